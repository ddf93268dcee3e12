//! Where the runs of a parent find their inventory, keys and certificates.

use std::collections::BTreeMap;

/// Where runs find their inventory and keys, and how their volumes are called.
///
/// The names of volumes are in the identity of an AnsibleEE that exists, and in no hash that decides
/// whether another one is made.
#[derive(Clone, Debug, PartialEq)]
pub enum Layout {
    /// The parent has one inventory, each host has its own ssh Secret, and each object one volume.
    Parent {
        /// ConfigMap with the inventory.
        inventory: String,
        /// Secret with the variables beside the inventory, where there are any.
        beside: Option<String>,
    },
    /// Node sets: names, order and paths are those of upstream's Jobs.
    NodeSets(NodeSets),
}

/// The node sets whose hosts a run may touch, and what it gets beside the files of its service.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeSets {
    /// Name of the node set → Secret with its ssh key.
    pub ssh_secrets: BTreeMap<String, String>,
    /// Whether the service runs once for all node sets of a deployment, however many there are.
    pub is_global: bool,
    /// CA bundles and certificates, in the order in which they are mounted.
    pub tls: Vec<Tls>,
}

/// A folder of TLS files.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Tls {
    /// All keys of a Secret with a CA bundle.
    Bundle {
        /// The service that names the Secret.
        service: String,
        /// Its type.
        service_type: String,
        /// The Secret.
        secret: String,
    },
    /// One certificate of each host.
    Certificates {
        /// The Secrets that hold them, the first one naming the volume.
        secrets: Vec<String>,
        /// The type of the service that uses them.
        service_type: String,
        /// The name of the certificate, among the service's.
        key: String,
    },
}
