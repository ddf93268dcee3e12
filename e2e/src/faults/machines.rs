//! Faults between a host and its machine, reported on the node and on the set of machines.

use super::{Fault, Kstatus};

/// The set of machines that a role creates.
const SET: Option<(&str, &str)> = Some(("OpenStackBaremetalSet", "compute"));

/// What most faults have in common.
const OF_SET: Fault =
    Fault { also: SET, kstatus: Kstatus::Failed, ..Fault::of("OpenStackDataPlaneNode", "n0") };

/// Faults in what users write; those that only Ironic knows are in [`FATES`].
pub const ASKED: &[Fault] = &[
    Fault {
        name: "machine-template-invalid",
        done: "A role requests machines by a field that no set of machines has.",
        also: None,
        words: [
            "OpenStackDataPlaneRole compute",
            "it has no field ironic.machine.resourceclass",
            "Correct it; kubectl explain openstackbaremetalset.spec",
        ],
        ..OF_SET
    },
    Fault {
        name: "machine-secret-missing",
        done: "A host is made without the Secret with the public keys of the machines.",
        words: [
            "spec.deploymentSSHSecret: \"machine-keys\"",
            "is not an existing Secret",
            "create it, with key authorized_keys",
        ],
        ..OF_SET
    },
    Fault {
        name: "machine-secret-without-key",
        done: "A host is made, and the Secret with the public keys of the machines lacks its key.",
        words: [
            "spec.deploymentSSHSecret: \"machine-keys\"",
            "is a Secret that lacks a key",
            "give it key authorized_keys with a text",
        ],
        ..OF_SET
    },
    Fault {
        name: "machine-address-wrong",
        done: "A host is made with the address of a whole network.",
        words: [
            "spec.baremetalHosts[n0].ctlPlaneIP: \"192.168.123.0/24\"",
            "is not a host address",
            "use one between the first and the last of its subnet",
        ],
        ..OF_SET
    },
    Fault {
        name: "machine-address-missing",
        done: "A host is made with a gateway and without an address: it is reached by a name.",
        words: [
            "spec.baremetalHosts[n0].ctlPlaneIP: the value",
            "is missing, and spec.ctlplaneGateway 192.168.123.1 has an effect only with an address",
            "give the host its address",
        ],
        ..OF_SET
    },
    Fault {
        name: "machine-gateway-outside",
        done: "A host is made whose gateway is outside of its network.",
        words: [
            "spec.ctlplaneGateway: \"198.51.100.1\"",
            "is outside the subnet 192.168.123.0/24",
            "give a router of that subnet, or none",
        ],
        ..OF_SET
    },
    Fault {
        name: "machine-address-twice",
        done: "A second host is made with the address of the first one.",
        object: "n1",
        words: [
            "spec.baremetalHosts[n1].ctlPlaneIP: \"192.168.123.200\"",
            "is the address of host n0 too",
            "give each host its own",
        ],
        ..OF_SET
    },
    Fault {
        name: "machine-drive-too-large",
        done: "A host is made whose user data outgrow a config drive.",
        words: [
            "spec.userData",
            "and makes a drive of",
            "let the host fetch what is large at its first boot",
        ],
        ..OF_SET
    },
    Fault {
        name: "machine-secret-of-ironic-missing",
        done: "A host is made without the Secret with the credentials for Ironic.",
        words: [
            "spec.ironic.secret: \"ironic\"",
            "is not an existing Secret",
            "create it, with username and password",
        ],
        ..OF_SET
    },
    Fault {
        name: "machine-credentials-wrong",
        done: "A host is made with a wrong password for Ironic.",
        words: [
            "http://10.96.10.61:6385",
            "Ironic refuses the credentials",
            "correct the Secret that spec.ironic.secret names",
        ],
        ..OF_SET
    },
    Fault {
        name: "machine-ironic-old",
        done: "A host is made whose Ironic is too old.",
        words: [
            "http://10.96.10.63:6385",
            "Ironic supports versions 1.1 to 1.31 of its API",
            "use another Ironic",
        ],
        ..OF_SET
    },
];

/// Faults that only Ironic knows.
pub const FATES: &[Fault] = &[
    Fault {
        name: "no-machine-fits",
        done: "A host asks for a trait that no machine has.",
        words: [
            "none of 4 machines is suitable",
            "1 without trait CUSTOM_GPU",
            "spec.baremetalHosts[n0].machine",
        ],
        kstatus: Kstatus::InProgress,
        ..OF_SET
    },
    Fault {
        name: "machine-taken",
        done: "Another client reserves the machine that a host requests by its name.",
        words: ["3 not named machine-taken", "1 reserved by others", "free or repair one of these"],
        kstatus: Kstatus::InProgress,
        ..OF_SET
    },
    Fault {
        name: "too-few-machines",
        done: "A second host wants a machine where there is one for the first one alone.",
        object: "n1",
        words: ["none of 4 machines is suitable", "1 reserved by others", "enroll another machine"],
        kstatus: Kstatus::InProgress,
        ..OF_SET
    },
    Fault {
        name: "ironic-away",
        done: "A host is made while Ironic is stopped.",
        words: [
            "http://10.96.10.64:6385",
            "Ironic cannot be reached",
            "check spec.ironic.endpoint and the network path",
        ],
        kstatus: Kstatus::InProgress,
        ..OF_SET
    },
    Fault {
        name: "machine-in-maintenance",
        done: "An administrator takes a machine that runs into maintenance and powers it off.",
        words: [
            "machine machine-in-maintenance is in maintenance",
            "disk 3 is broken",
            "openstack baremetal node maintenance unset machine-in-maintenance",
        ],
        ..OF_SET
    },
    Fault {
        name: "deploy-failed",
        done: "Ironic cannot deploy a machine, for it has nowhere to keep the config drive.",
        words: [
            "the deployment of machine deploy-failed failed",
            "Ironic says",
            "openstack baremetal node undeploy deploy-failed",
        ],
        ..OF_SET
    },
    Fault {
        name: "clean-failed",
        done: "Ironic cannot clean a machine.",
        words: [
            "the cleaning of machine clean-failed failed",
            "Ironic says",
            "openstack baremetal node manage clean-failed",
        ],
        ..OF_SET
    },
    Fault {
        name: "machine-refused",
        done: "Ironic refuses what is to be written to a machine: network data without a MAC address.",
        words: ["machine machine-refused: Ironic says", "network_data", "correct what it names"],
        ..OF_SET
    },
    Fault {
        name: "machine-taken-over",
        done: "Another client takes a machine that runs from its host, and reserves it.",
        words: [
            "its machine machine-taken-over is active and now reserved by instance",
            "still answers at the address of n0",
            "remove its record with",
        ],
        ..OF_SET
    },
    Fault {
        name: "machine-deleted",
        done: "A machine that runs is deleted in Ironic.",
        words: [
            "no longer exists in Ironic",
            "two machines could answer at one address",
            "make sure that it is off",
        ],
        ..OF_SET
    },
];
