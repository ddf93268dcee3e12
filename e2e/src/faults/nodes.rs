//! Faults in what a user wrote about nodes, roles and data planes; no run starts for them.

use super::{Fault, Kstatus};

const NODE: &str = "OpenStackDataPlaneNode";
const ROLE: &str = "OpenStackDataPlaneRole";
const PLANE: &str = "OpenStackDataPlane";

/// The faults.
pub const FAULTS: &[Fault] = &[
    Fault {
        name: "ssh-secret-missing",
        done: "The ssh Secret of a role is deleted.",
        kind: NODE,
        object: "n0",
        also: None,
        words: [
            "Secret key with the ssh key",
            "does not exist",
            "kubectl create secret generic -n NAMESPACE key",
        ],
        kstatus: Kstatus::InProgress,
    },
    Fault {
        name: "ssh-secret-without-key",
        done: "The ssh Secret loses its private key.",
        kind: NODE,
        object: "n0",
        also: None,
        words: [
            "Secret key",
            "has no key ssh-privatekey",
            "add it with the private key that the hosts accept",
        ],
        kstatus: Kstatus::InProgress,
    },
    Fault {
        name: "role-missing",
        done: "A node is moved to a role that does not exist.",
        kind: NODE,
        object: "n0",
        also: None,
        words: [
            "OpenStackDataPlaneRole computer",
            "does not exist",
            "create it or correct spec.role",
        ],
        kstatus: Kstatus::InProgress,
    },
    Fault {
        name: "service-missing",
        done: "A role lists a service that does not exist.",
        kind: ROLE,
        object: "compute",
        also: None,
        words: [
            "OpenStackDataPlaneService no-such-service",
            "does not exist",
            "create it or take it off the list",
        ],
        kstatus: Kstatus::InProgress,
    },
    Fault {
        name: "host-address-missing",
        done: "A node loses its address and its host name.",
        kind: NODE,
        object: "n0",
        also: None,
        words: [
            "OpenStackDataPlaneNode n0",
            "has neither spec.ansibleHost nor spec.hostName",
            "set one",
        ],
        kstatus: Kstatus::Failed,
    },
    Fault {
        name: "network-attachment-missing",
        done: "The NetworkAttachmentDefinition that a role names is deleted.",
        kind: NODE,
        object: "n0",
        also: None,
        words: [
            "NetworkAttachmentDefinition ctlplane",
            "does not exist",
            "create it, or correct the list",
        ],
        kstatus: Kstatus::InProgress,
    },
    Fault {
        name: "network-attachments-differ",
        done: "A node gets another list of network attachments than its role.",
        kind: NODE,
        object: "n0",
        also: None,
        words: [
            "OpenStackDataPlaneNode n0 (internal)",
            "of OpenStackDataPlaneRole compute (ctlplane) differ",
            "make them equal, in the same order",
        ],
        kstatus: Kstatus::Failed,
    },
    Fault {
        name: "variables-missing",
        done: "`ansibleVarsFrom` of a role names a Secret that does not exist.",
        kind: NODE,
        object: "n0",
        also: None,
        words: [
            "Secret vars, named in spec.nodeTemplate.ansibleVarsFrom of OpenStackDataPlaneRole compute",
            "does not exist",
            "create it, or set optional: true",
        ],
        kstatus: Kstatus::InProgress,
    },
    Fault {
        name: "variables-not-text",
        done: "A Secret with variables gets a key whose value is no text.",
        kind: NODE,
        object: "n0",
        also: None,
        words: ["Secret vars", "has a key blob that is no text", "take it out"],
        kstatus: Kstatus::InProgress,
    },
    Fault {
        name: "data-source-missing",
        done: "`dataSources` of a service names a ConfigMap that does not exist.",
        kind: NODE,
        object: "n0",
        also: None,
        words: [
            "ConfigMap site, named by OpenStackDataPlaneService noop",
            "does not exist",
            "create it",
        ],
        kstatus: Kstatus::InProgress,
    },
    Fault {
        name: "inventory-refused",
        done: "An inventory is deleted, and a quota keeps the operator from writing it again.",
        kind: ROLE,
        object: "compute",
        also: None,
        words: [
            "ConfigMap dataplanenode-n0 cannot be written",
            "exceeded quota: no-more",
            "Raise the quota",
        ],
        kstatus: Kstatus::InProgress,
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
        kind: ROLE,
        object: "compute",
        also: None,
        words: [
            "OpenStackDataPlane plane, named in spec.dataPlane of OpenStackDataPlaneRole compute",
            "does not exist",
            "create it or correct spec.dataPlane",
        ],
        kstatus: Kstatus::Current,
    },
];
