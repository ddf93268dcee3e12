//! Faults between a run and its host, reported on the node.

use super::{Fault, Kstatus};

/// What the faults have in common.
const OF_NODE: Fault = Fault::of("OpenStackDataPlaneNode", "n0");

/// The faults. The first four need a real host; the others are visible in the API.
pub const FAULTS: &[Fault] = &[
    Fault {
        name: "host-unreachable",
        done: "A node is deployed at an address where no host answers.",
        words: ["Host n0", "cannot be reached", "Check that the host is up"],
        ..OF_NODE
    },
    Fault {
        name: "ssh-key-refused",
        done: "A node is deployed with an ssh key that its host does not accept.",
        words: [
            "Host n0",
            "refuses the ssh key",
            "Put a key that the host accepts for ansibleUser into ssh-privatekey",
        ],
        ..OF_NODE
    },
    Fault {
        name: "host-key-mismatch",
        done: "A node is deployed with the known hosts of another host.",
        words: [
            "Host n0",
            "shows a host key that is not the known one",
            "correct known_hosts of the ssh Secret",
        ],
        ..OF_NODE
    },
    Fault {
        name: "task-failed",
        done: "A task of a service fails on the host.",
        words: [
            "Host n0 failed (service trace",
            "task 'Nothing forbids it'",
            "kubectl annotate --overwrite -n NAMESPACE openstackdataplanenode/n0",
        ],
        kstatus: Kstatus::Failed,
        ..OF_NODE
    },
    Fault {
        name: "run-deleted",
        done: "The `OpenStackAnsibleEE` that deploys a node is deleted while it runs.",
        words: [
            "Host n0 has no result",
            "the run was deleted before it had reported one",
            "kubectl annotate --overwrite -n NAMESPACE openstackdataplanenode/n0",
        ],
        kstatus: Kstatus::Failed,
        ..OF_NODE
    },
    Fault {
        name: "host-not-cleaned",
        done: "A node with a compute is deleted, and its host does not answer.",
        words: [
            "host n0",
            "nova-compute could not be stopped",
            "kubectl annotate --overwrite -n NAMESPACE novaexternalcompute/n0 nova.openstack.org/skip-cleanup=true",
        ],
        kstatus: Kstatus::Terminating,
        ..OF_NODE
    },
];
