//! Faults between a run and its host, reported on the node.

use super::{Fault, Kstatus};

const NODE: &str = "OpenStackDataPlaneNode";

/// The faults. The first four need a real host; the others are visible in the API.
pub const FAULTS: &[Fault] = &[
    Fault {
        name: "host-unreachable",
        done: "A node is deployed at an address where no host answers.",
        kind: NODE,
        object: "n0",
        also: None,
        words: ["Host n0", "cannot be reached", "Check that the host is up"],
        kstatus: Kstatus::InProgress,
    },
    Fault {
        name: "ssh-key-refused",
        done: "A node is deployed with an ssh key that its host does not accept.",
        kind: NODE,
        object: "n0",
        also: None,
        words: [
            "Host n0",
            "refuses the ssh key",
            "Put a key that the host accepts for ansibleUser into ssh-privatekey",
        ],
        kstatus: Kstatus::InProgress,
    },
    Fault {
        name: "host-key-mismatch",
        done: "A node is deployed with the known hosts of another host.",
        kind: NODE,
        object: "n0",
        also: None,
        words: [
            "Host n0",
            "shows a host key that is not the known one",
            "correct known_hosts of the ssh Secret",
        ],
        kstatus: Kstatus::InProgress,
    },
    Fault {
        name: "task-failed",
        done: "A task of a service fails on the host.",
        kind: NODE,
        object: "n0",
        also: None,
        words: [
            "Host n0 failed (service trace",
            "task 'Nothing forbids it'",
            "kubectl annotate --overwrite -n NAMESPACE openstackdataplanenode/n0",
        ],
        kstatus: Kstatus::Failed,
    },
    Fault {
        name: "run-deleted",
        done: "The `OpenStackAnsibleEE` that deploys a node is deleted while it runs.",
        kind: NODE,
        object: "n0",
        also: None,
        words: [
            "Host n0 has no result",
            "the run was deleted before it had reported one",
            "kubectl annotate --overwrite -n NAMESPACE openstackdataplanenode/n0",
        ],
        kstatus: Kstatus::Failed,
    },
    Fault {
        name: "host-not-cleaned",
        done: "A node with a compute is deleted, and its host does not answer.",
        kind: NODE,
        object: "n0",
        also: None,
        words: [
            "host n0",
            "nova-compute could not be stopped",
            "kubectl annotate --overwrite -n NAMESPACE novaexternalcompute/n0 nova.openstack.org/skip-cleanup=true",
        ],
        kstatus: Kstatus::Terminating,
    },
];
