//! The indexes of the caches and the functions that compute their keys.

use std::collections::BTreeSet;

use api::ansibleee::AnsibleEe;
use api::dataplane::{Deployment, Node, Role};
use k8s_openapi::api::core::v1::Secret;
use kube::core::PartialObjectMeta;
use kube::{Resource, ResourceExt};
use operator_core::certificates::label_value;
use operator_core::object_key::Key;

use crate::controller_ref::controller;
use crate::labels;

/// Index of nodes by the role that they name.
pub const BY_ROLE: &str = "role";

/// Index of runs, roles, nodes and exposed objects by the UID of their owner.
pub const BY_OWNER: &str = "owner";

/// Index of runs by the addresses of hosts that presented their ssh host key to the run.
pub const BY_HOST_KEY: &str = "host key";

/// Index of nodes and node sets by the hosts that they describe.
pub const BY_HOST: &str = "host";

/// Index of deployments by the node sets that they name, and of nodes by theirs.
pub const BY_NODE_SET: &str = "node set";

/// Index of Secrets that hold certificates by the node set that their label names.
pub const BY_LABEL: &str = "label";

/// Index of Secrets that hold certificates by the role that their label names.
pub const BY_ROLE_LABEL: &str = "role label";

/// Index of roles by the data plane that they name.
pub const BY_PLANE: &str = "plane";

/// Returns the keys of a deployment in the index [`BY_NODE_SET`].
pub fn node_sets_of(deployment: &Deployment) -> Vec<Key> {
    let namespace = deployment.namespace().unwrap_or_default();
    let names: BTreeSet<&String> = deployment.spec.node_sets.iter().collect();
    names.into_iter().map(|it| Key::new(&namespace, it)).collect()
}

/// Returns the key of a node in the index [`BY_NODE_SET`].
pub fn node_set_of_node(node: &Node) -> Vec<Key> {
    node.node_set().map(|it| Key::new(namespace(node), it)).into_iter().collect()
}

/// Returns the keys of a Secret in the index [`BY_LABEL`].
pub fn node_set_of_secret(secret: &PartialObjectMeta<Secret>) -> Vec<Key> {
    labelled(secret, labels::OF_NODE_SET)
}

/// Returns the keys of a Secret in the index [`BY_ROLE_LABEL`].
pub fn role_of_secret(secret: &PartialObjectMeta<Secret>) -> Vec<Key> {
    labelled(secret, labels::OF_ROLE)
}

/// Returns the key of a role's Secrets in the index [`BY_ROLE_LABEL`].
pub fn role_label_key(namespace: &str, role: &str) -> Key {
    Key::new(namespace, label_value(role))
}

fn labelled(secret: &PartialObjectMeta<Secret>, label: &str) -> Vec<Key> {
    secret.labels().get(label).map(|it| Key::new(namespace(secret), it)).into_iter().collect()
}

/// Returns the name of the data plane that a role names.
pub fn data_plane_of(role: &Role) -> Option<&str> {
    role.spec.data_plane.as_deref().filter(|it| !it.is_empty())
}

/// Returns the key of a role in the index [`BY_PLANE`].
pub fn plane_of(role: &Role) -> Vec<Key> {
    data_plane_of(role).map(|it| Key::new(namespace(role), it)).into_iter().collect()
}

/// Returns the namespace of an object; empty without one.
pub(crate) fn namespace<K: Resource>(object: &K) -> String {
    object.namespace().unwrap_or_default()
}

/// Returns the key of a node in the index [`BY_ROLE`].
pub fn role_of(node: &Node) -> Vec<Key> {
    let role = node.spec.role.iter().filter(|it| !it.is_empty());
    role.map(|it| Key::new(namespace(node), it)).collect()
}

/// Returns the keys of a run in the index [`BY_HOST_KEY`].
pub fn addresses_with_keys(run: &AnsibleEe) -> Vec<Key> {
    let reports = run.status.as_ref().map(|it| it.host_keys.as_slice()).unwrap_or_default();
    let reported = |name: &str| reports.iter().any(|it| it.name == name && it.key.is_some());
    let hosts = run.spec.hosts.iter().filter(|it| reported(&it.name));
    hosts.map(|it| Key::new(namespace(run), &it.address)).collect()
}

/// Returns the keys of an object in the index [`BY_OWNER`]: its owners, controlling or not.
pub fn owner_of<K: Resource>(object: &K) -> Vec<Key> {
    object.owner_references().iter().map(|it| Key::new(namespace(object), &it.uid)).collect()
}

/// Returns the key of an object in the index [`BY_OWNER`], if an owner controls it.
pub fn controller_of<K: Resource>(object: &K) -> Vec<Key> {
    let owner = controller(object.meta());
    owner.map(|it| Key::new(namespace(object), &it.uid)).into_iter().collect()
}
