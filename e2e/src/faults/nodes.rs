//! Faults in what a user wrote about nodes, roles and data planes; no run starts for them.

use super::{Fault, Kstatus};

/// What the faults of a node have in common.
const OF_NODE: Fault = Fault::of("OpenStackDataPlaneNode", "n0");
/// What those of a role have in common.
const OF_ROLE: Fault = Fault::of("OpenStackDataPlaneRole", "compute");
const PLANE: &str = "OpenStackDataPlane";

/// The faults.
pub const FAULTS: &[Fault] = &[
    Fault {
        name: "ssh-secret-missing",
        done: "The ssh Secret of a role is deleted.",
        words: [
            "Secret key with the ssh key",
            "does not exist",
            "kubectl create secret generic -n NAMESPACE key",
        ],
        ..OF_NODE
    },
    Fault {
        name: "ssh-secret-without-key",
        done: "The ssh Secret loses its private key.",
        words: [
            "Secret key",
            "has no key ssh-privatekey",
            "add it with the private key that the hosts accept",
        ],
        ..OF_NODE
    },
    Fault {
        name: "role-missing",
        done: "A node is moved to a role that does not exist.",
        words: [
            "OpenStackDataPlaneRole computer",
            "does not exist",
            "create it or correct spec.role",
        ],
        ..OF_NODE
    },
    Fault {
        name: "service-missing",
        done: "A role lists a service that does not exist.",
        words: [
            "OpenStackDataPlaneService no-such-service",
            "does not exist",
            "create it or take it off the list",
        ],
        ..OF_ROLE
    },
    Fault {
        name: "host-address-missing",
        done: "A node loses its address and its host name.",
        words: [
            "OpenStackDataPlaneNode n0",
            "has neither spec.ansibleHost nor spec.hostName",
            "set one",
        ],
        kstatus: Kstatus::Failed,
        ..OF_NODE
    },
    Fault {
        name: "network-attachment-missing",
        done: "The NetworkAttachmentDefinition that a role names is deleted.",
        words: [
            "NetworkAttachmentDefinition ctlplane",
            "does not exist",
            "create it, or correct the list",
        ],
        ..OF_NODE
    },
    Fault {
        name: "network-attachments-differ",
        done: "A node gets another list of network attachments than its role.",
        words: [
            "OpenStackDataPlaneNode n0 (internal)",
            "of OpenStackDataPlaneRole compute (ctlplane) differ",
            "make them equal, in the same order",
        ],
        kstatus: Kstatus::Failed,
        ..OF_NODE
    },
    Fault {
        name: "variables-missing",
        done: "`ansibleVarsFrom` of a role names a Secret that does not exist.",
        words: [
            "Secret vars, named in spec.nodeTemplate.ansibleVarsFrom of OpenStackDataPlaneRole compute",
            "does not exist",
            "create it, or set optional: true",
        ],
        ..OF_NODE
    },
    Fault {
        name: "variables-not-text",
        done: "A Secret with variables gets a key whose value is no text.",
        words: ["Secret vars", "has a key blob that is no text", "take it out"],
        ..OF_NODE
    },
    Fault {
        name: "data-source-missing",
        done: "`dataSources` of a service names a ConfigMap that does not exist.",
        words: [
            "ConfigMap site, named by OpenStackDataPlaneService noop",
            "does not exist",
            "create it",
        ],
        ..OF_NODE
    },
    Fault {
        name: "inventory-refused",
        done: "An inventory is deleted, and a quota keeps the operator from writing it again.",
        words: [
            "ConfigMap dataplanerole-compute cannot be written",
            "exceeded quota: no-more",
            "Raise the quota",
        ],
        ..OF_ROLE
    },
    Fault {
        name: "node-of-others",
        done: "A data plane gets an entry with the name of a node that a user made.",
        kind: PLANE,
        object: "plane",
        also: None,
        words: [
            "OpenStackDataPlaneNode n1",
            "was made by others and is left alone",
            "kubectl annotate -n NAMESPACE openstackdataplanenode/n1",
        ],
        kstatus: Kstatus::Failed,
    },
    Fault {
        name: "data-plane-missing",
        done: "A role without nodes, which is ready, names a data plane that does not exist.",
        words: [
            "OpenStackDataPlane plane, named in spec.dataPlane of OpenStackDataPlaneRole compute",
            "does not exist",
            "create it or correct spec.dataPlane",
        ],
        kstatus: Kstatus::Current,
        ..OF_ROLE
    },
];
