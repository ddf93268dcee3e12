//! Faults between a host and its machine, told on the node and on the set of machines.

use super::{Fault, Kstatus};

const NODE: &str = "OpenStackDataPlaneNode";
/// The set that a role asks for.
const SET: Option<(&str, &str)> = Some(("OpenStackBaremetalSet", "compute"));

/// What Kubernetes knows: faults of what humans write.
pub const ASKED: &[Fault] = &[
    Fault {
        name: "machine-template-invalid",
        done: "A role asks for machines by a field that no set of machines has.",
        kind: NODE,
        object: "n0",
        also: None,
        words: [
            "OpenStackDataPlaneRole compute",
            "it has no field ironic.machine.resourceclass",
            "Correct it; kubectl explain openstackbaremetalset.spec",
        ],
        kstatus: Kstatus::Failed,
    },
    Fault {
        name: "machine-secret-missing",
        done: "A host is made without the Secret with the public keys of the machines.",
        kind: NODE,
        object: "n0",
        also: SET,
        words: [
            "spec.deploymentSSHSecret: \"machine-keys\"",
            "is no Secret there",
            "make it, with key authorized_keys",
        ],
        kstatus: Kstatus::Failed,
    },
    Fault {
        name: "machine-secret-without-key",
        done: "A host is made, and the Secret with the public keys of the machines lacks its key.",
        kind: NODE,
        object: "n0",
        also: SET,
        words: [
            "spec.deploymentSSHSecret: \"machine-keys\"",
            "is a Secret that lacks a key",
            "give it key authorized_keys",
        ],
        kstatus: Kstatus::Failed,
    },
    Fault {
        name: "machine-address-wrong",
        done: "A host is made with the address of a whole network.",
        kind: NODE,
        object: "n0",
        also: SET,
        words: [
            "spec.baremetalHosts[n0].ctlPlaneIP: \"192.168.123.0/24\"",
            "is no address of a host",
            "use one between the first and the last of its subnet",
        ],
        kstatus: Kstatus::Failed,
    },
    Fault {
        name: "machine-gateway-outside",
        done: "A host is made whose gateway is outside of its network.",
        kind: NODE,
        object: "n0",
        also: SET,
        words: [
            "spec.ctlplaneGateway: \"198.51.100.1\"",
            "is outside the subnet 192.168.123.0/24",
            "give a router of that subnet, or none",
        ],
        kstatus: Kstatus::Failed,
    },
    Fault {
        name: "machine-address-twice",
        done: "A second host is made with the address of the first one.",
        kind: NODE,
        object: "n1",
        also: SET,
        words: [
            "spec.baremetalHosts[n1].ctlPlaneIP: \"192.168.123.200\"",
            "is the address of host n0 too",
            "give each host its own",
        ],
        kstatus: Kstatus::Failed,
    },
    Fault {
        name: "machine-drive-too-large",
        done: "A host is made whose user data outgrow a config drive.",
        kind: NODE,
        object: "n0",
        also: SET,
        words: [
            "spec.userData",
            "and makes a drive of",
            "let the host fetch what is large at its first boot",
        ],
        kstatus: Kstatus::Failed,
    },
    Fault {
        name: "machine-secret-of-ironic-missing",
        done: "A host is made without the Secret with the credentials for Ironic.",
        kind: NODE,
        object: "n0",
        also: SET,
        words: [
            "spec.ironic.secret: \"ironic\"",
            "is no Secret there",
            "make it, with username and password",
        ],
        kstatus: Kstatus::Failed,
    },
    Fault {
        name: "machine-credentials-wrong",
        done: "A host is made with a wrong password for Ironic.",
        kind: NODE,
        object: "n0",
        also: SET,
        words: [
            "http://10.96.10.61:6385",
            "Ironic refuses the credentials",
            "correct the Secret that spec.ironic.secret names",
        ],
        kstatus: Kstatus::Failed,
    },
    Fault {
        name: "machine-ironic-old",
        done: "A host is made whose Ironic is too old.",
        kind: NODE,
        object: "n0",
        also: SET,
        words: [
            "http://10.96.10.63:6385",
            "Ironic speaks versions 1.1 to 1.31 of its API",
            "use another Ironic",
        ],
        kstatus: Kstatus::Failed,
    },
];

/// What Ironic alone knows.
pub const FATES: &[Fault] = &[
    Fault {
        name: "no-machine-fits",
        done: "A host asks for a trait that no machine has.",
        kind: NODE,
        object: "n0",
        also: SET,
        words: [
            "none of 4 machines can be taken",
            "1 without trait CUSTOM_GPU",
            "spec.baremetalHosts[n0].machine",
        ],
        kstatus: Kstatus::InProgress,
    },
    Fault {
        name: "machine-taken",
        done: "Somebody else reserves the machine that a host asks for by its name.",
        kind: NODE,
        object: "n0",
        also: SET,
        words: ["3 not named machine-taken", "1 reserved by others", "free or mend one of these"],
        kstatus: Kstatus::InProgress,
    },
    Fault {
        name: "too-few-machines",
        done: "A second host wants a machine where there is one for the first one alone.",
        kind: NODE,
        object: "n1",
        also: SET,
        words: [
            "none of 4 machines can be taken",
            "1 reserved by others",
            "enroll another machine",
        ],
        kstatus: Kstatus::InProgress,
    },
    Fault {
        name: "ironic-away",
        done: "A host is made while Ironic is stopped.",
        kind: NODE,
        object: "n0",
        also: SET,
        words: [
            "http://10.96.10.64:6385",
            "Ironic cannot be reached",
            "check spec.ironic.endpoint and the way there",
        ],
        kstatus: Kstatus::InProgress,
    },
    Fault {
        name: "machine-in-maintenance",
        done: "Somebody takes a machine that runs into maintenance and powers it off.",
        kind: NODE,
        object: "n0",
        also: SET,
        words: [
            "machine machine-in-maintenance is in maintenance",
            "disk 3 is broken",
            "openstack baremetal node maintenance unset machine-in-maintenance",
        ],
        kstatus: Kstatus::Failed,
    },
    Fault {
        name: "deploy-failed",
        done: "Ironic cannot deploy a machine, for it has nowhere to keep the config drive.",
        kind: NODE,
        object: "n0",
        also: SET,
        words: [
            "the deployment of machine deploy-failed failed",
            "Ironic says",
            "openstack baremetal node undeploy deploy-failed",
        ],
        kstatus: Kstatus::Failed,
    },
    Fault {
        name: "clean-failed",
        done: "Ironic cannot clean a machine.",
        kind: NODE,
        object: "n0",
        also: SET,
        words: [
            "the cleaning of machine clean-failed failed",
            "Ironic says",
            "openstack baremetal node manage clean-failed",
        ],
        kstatus: Kstatus::Failed,
    },
    Fault {
        name: "machine-deleted",
        done: "A machine that runs is deleted in Ironic.",
        kind: NODE,
        object: "n0",
        also: SET,
        words: [
            "Ironic does not know its machine",
            "two could answer at one address",
            "make sure that it is off",
        ],
        kstatus: Kstatus::Failed,
    },
];
