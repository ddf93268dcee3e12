//! Where the runs of a parent find their inventory, keys and certificates.

use std::collections::BTreeMap;

/// Where runs find their inventory and keys, and how their volumes are named.
///
/// Volume names are part of an existing AnsibleEE's identity. They are not part of any hash that
/// decides whether another one is created.
#[derive(Clone, Debug, PartialEq)]
pub enum Layout {
    /// One inventory per parent, one ssh Secret per host, and one volume per object.
    Parent {
        /// ConfigMap with the inventory.
        inventory: String,
        /// Secret with the variables beside the inventory, if there are any.
        beside: Option<String>,
        /// CA bundles and certificates.
        tls: Vec<Tls>,
    },
    /// The layout of node sets: names, order and paths are those of upstream's Jobs.
    NodeSets(NodeSets),
}

/// The node sets whose hosts a run may change, and what is mounted beside the files of its service.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeSets {
    /// Name of the node set → Secret with its ssh key.
    pub ssh_secrets: BTreeMap<String, String>,
    /// Whether the service runs once for all node sets of a deployment.
    pub is_global: bool,
    /// CA bundles and certificates, in the order in which they are mounted.
    pub tls: Vec<Tls>,
}

/// Files of a certificate's Secret: the CA that signed it (if cert-manager knows it), the
/// certificate and the key.
pub const CERTIFICATE_FILES: [&str; 3] = ["ca.crt", "tls.crt", "tls.key"];

/// A directory of TLS files.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Tls {
    /// All keys of a Secret with a CA bundle.
    Bundle {
        /// The service that names the Secret.
        service: String,
        /// That service's type.
        service_type: String,
        /// The Secret.
        secret: String,
    },
    /// One certificate of each host, from Secrets with the files of several hosts.
    Certificates {
        /// The Secrets with the certificates; the first one names the volume.
        secrets: Vec<String>,
        /// The type of the service that uses them.
        service_type: String,
        /// The name of the certificate, unique within the service.
        key: String,
    },
    /// The same from the hosts' own Secrets.
    OfHosts {
        /// The name with which a host's files begin → the host's Secret.
        secrets: BTreeMap<String, String>,
        /// The type of the service that uses them.
        service_type: String,
        /// The name of the certificate, unique within the service.
        key: String,
    },
}
