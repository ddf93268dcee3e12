//! The indexes of the caches: their names, and the keys of each object.

use api::ansibleee::AnsibleEe;
use api::dataplane::Node;
use api::nova::ExternalCompute;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::core::PartialObjectMeta;
use operator_core::object_key::Key;

use crate::group::{GroupKey, group_key};
use crate::shared_caches::cleanup_runs::cleans_up_after;

/// Index of nodes by the role that they name.
pub const BY_ROLE: &str = "role";
/// Index of nodes by the node set that they name.
pub const BY_NODE_SET: &str = "node-set";
/// Index of computes by the node that they name.
pub const BY_NODE: &str = "node";
/// Index of computes by the cell that they name.
pub const BY_CELL: &str = "cell";
/// Index of computes by what they may log in with, as `held_credentials` keys it.
pub const BY_CREDENTIAL: &str = "credential";
/// Index of the Secrets with application credentials, by namespace.
pub const BY_APPLICATION_CREDENTIAL: &str = "application-credential";
/// Label of the Secrets in which keystone-operator keeps application credentials.
const AC_LABEL: &str = "application-credentials";
/// Index of Jobs by the UID of the cell that owns them.
pub const BY_CELL_UID: &str = "cell-uid";
/// Index of runs that have not ended by the addresses of their hosts, of all namespaces.
pub const BY_OPEN_ADDRESS: &str = "open-address";
/// Index of audits that have not ended, under one key.
pub const BY_OPEN_AUDIT: &str = "open-audit";
/// Index of audits by the nodes of their hosts.
pub const BY_AUDITED_NODE: &str = "audited-node";
/// Index of runs by the UID of their owner, or of the compute that they clean up after.
pub const BY_OWNER: &str = "owner";

/// Returns the namespace of a Secret with an application credential; nothing for any other Secret.
pub fn application_credential_key(secret: &PartialObjectMeta<Secret>) -> Vec<Key> {
    let is_one = secret.labels().get(AC_LABEL).is_some_and(|it| it == "true");
    let namespace = secret.namespace().unwrap_or_default();
    is_one.then(|| Key::new(namespace, "")).into_iter().collect()
}

/// Returns the role that a node names, or `None` for a node without a role.
pub fn role_key(node: &Node) -> Option<Key> {
    if let GroupKey::Role(key) = group_key(node)? { Some(key) } else { None }
}

/// Returns the node set that a node names, or `None` for a node without one.
pub fn node_set_key(node: &Node) -> Option<Key> {
    if let GroupKey::NodeSet(key) = group_key(node)? { Some(key) } else { None }
}

/// Returns the node that a compute names.
pub fn node_key(compute: &ExternalCompute) -> Key {
    Key::new(compute.namespace().unwrap_or_default(), &compute.spec.dataplane_node_name)
}

/// Returns the cell that a compute names.
pub fn cell_key(compute: &ExternalCompute) -> Key {
    Key::new(compute.namespace().unwrap_or_default(), &compute.spec.cell_name)
}

/// Returns the owners of a run and the compute that it cleans up after, each by namespace and UID.
pub fn owner_keys(run: &AnsibleEe) -> Vec<Key> {
    let namespace = run.namespace().unwrap_or_default();
    let owners = run.owner_references().iter().map(|it| &it.uid);
    owners.chain(cleans_up_after(run)).map(|it| Key::new(&namespace, it)).collect()
}
