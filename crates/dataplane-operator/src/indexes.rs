//! The indexes of the caches and the functions that compute their keys.

use std::collections::BTreeSet;

use api::dataplane::{DataPlane, Deployment};
use kube::ResourceExt;
use operator_core::object_key::Key;

/// Index of nodes by the role that they name.
pub const BY_ROLE: &str = "role";

/// Index of runs, roles, nodes and exposed objects by the UID of their owner.
pub const BY_OWNER: &str = "owner";

/// Index of runs by the addresses of hosts that presented their ssh host key to the run.
pub const BY_HOST_KEY: &str = "host key";

/// Index of nodes and node sets by the hosts that they describe.
pub const BY_HOST: &str = "host";

/// Index of deployments by the node sets that they name.
pub const BY_NODE_SET: &str = "node set";

/// Index of Secrets that hold certificates by the node set that their label names.
pub const BY_LABEL: &str = "label";

/// Index of data planes by their namespace.
pub const BY_NAMESPACE: &str = "namespace";

/// Index of roles by the data plane that they name.
pub const BY_PLANE: &str = "plane";

/// Returns the keys of a deployment in the index [`BY_NODE_SET`].
pub fn node_sets_of(deployment: &Deployment) -> Vec<Key> {
    let namespace = deployment.namespace().unwrap_or_default();
    let names: BTreeSet<&String> = deployment.spec.node_sets.iter().collect();
    names.into_iter().map(|it| Key::new(&namespace, it)).collect()
}

/// Returns the key of a data plane in the index [`BY_NAMESPACE`]; its name is empty.
pub fn namespace_of(data_plane: &DataPlane) -> Vec<Key> {
    vec![Key::new(data_plane.namespace().unwrap_or_default(), "")]
}
