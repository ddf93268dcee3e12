//! The caches of objects that describe hosts: nodes, with the defaults of their roles, and node
//! sets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::dataplane::{Node, NodeSet, Role};
use kube::ResourceExt;
use operator_core::object_key::Key;
use operator_core::run_engine::host_key::HostKey;
use operator_runtime::cache::Cache;
use operator_runtime::cache_registry::CacheRegistry;

use crate::host::conflicts::host_claim::{Claim, keys_of_node};
use crate::host::conflicts::host_keys::key_of;
use crate::indexes::{
    BY_HOST, BY_NODE_SET, BY_OWNER, BY_PLANE, BY_ROLE, controller_of, node_set_of_node, plane_of,
    role_of,
};

/// The caches; clones share them.
#[derive(Clone)]
pub struct ClaimCaches {
    /// All roles, indexed [`BY_OWNER`] and [`BY_PLANE`].
    pub roles: Arc<Cache<Role>>,
    /// All nodes, indexed [`BY_OWNER`], [`BY_ROLE`], [`BY_NODE_SET`] and [`BY_HOST`].
    pub nodes: Arc<Cache<Node>>,
    /// All node sets, indexed [`BY_HOST`].
    pub node_sets: Arc<Cache<NodeSet>>,
}

impl ClaimCaches {
    /// Creates empty caches, whose informers `registry` starts.
    pub fn new(registry: &mut CacheRegistry) -> Self {
        Self {
            roles: registry
                .owned(vec![(BY_OWNER, Box::new(controller_of)), (BY_PLANE, Box::new(plane_of))]),
            nodes: registry.owned(vec![
                (BY_OWNER, Box::new(controller_of)),
                (BY_ROLE, Box::new(role_of)),
                (BY_NODE_SET, Box::new(node_set_of_node)),
                (BY_HOST, Box::new(keys_of_node)),
            ]),
            node_sets: registry
                .owned(vec![(BY_HOST, Box::new(|it| Claim::of_node_set(it).keys()))]),
        }
    }

    /// Returns the claim of a node, with the defaults of its role.
    pub fn of_node(&self, node: &Node) -> Claim {
        let role = node.spec.role.as_ref();
        let role = role.map(|it| Key::new(node.namespace().unwrap_or_default(), it));
        Claim::of_node(node, role.and_then(|it| self.roles.get(&it)).as_deref())
    }

    /// Returns the claims of all objects that may describe hosts of `claims`, including the objects
    /// of `claims` themselves, and of those that have one of `keys`. Each object is read once,
    /// however many hosts it shares.
    pub fn overlapping(&self, claims: &[Claim], keys: impl IntoIterator<Item = Key>) -> Vec<Claim> {
        let (mut nodes, mut node_sets) = (BTreeMap::new(), BTreeSet::new());
        for key in claims.iter().flat_map(Claim::lookup_keys).chain(keys) {
            for node in self.nodes.indexed(BY_HOST, &key) {
                let of_set = node_set_of_node(&node);
                if of_set.is_empty() {
                    nodes.insert(Key::of(&*node), node);
                }
                node_sets.extend(of_set);
            }
            node_sets.extend(Key::of_each(self.node_sets.indexed(BY_HOST, &key)));
        }
        let nodes = nodes.into_values().map(|it| self.of_node(&it));
        let node_sets = node_sets.iter().filter_map(|it| self.node_sets.get(it));
        nodes.chain(node_sets.map(|it| self.of_node_set(&it))).collect()
    }

    /// Returns the keys of the node sets with a host that has this key of the index [`BY_HOST`], also
    /// of one that was taken out.
    pub fn node_sets_at(&self, key: &Key) -> Vec<Key> {
        let mut found = Key::of_each(self.node_sets.indexed(BY_HOST, key));
        found.extend(self.nodes.indexed(BY_HOST, key).iter().flat_map(|it| node_set_of_node(it)));
        found
    }

    /// Returns the claim of a node set, with what its nodes say.
    pub fn of_node_set(&self, set: &NodeSet) -> Claim {
        Claim::of_node_set(set).with_nodes(&self.nodes.indexed(BY_NODE_SET, &Key::of(set)))
    }
}

impl Default for ClaimCaches {
    fn default() -> Self {
        Self::new(&mut CacheRegistry::default())
    }
}

/// Returns the keys of the index [`BY_HOST`] for the ssh host keys that runs report of hosts for which
/// `is_concerned` holds.
pub fn reported_keys<'a>(
    namespace: &'a str,
    runs: impl Iterator<Item = &'a Arc<AnsibleEe>>,
    is_concerned: impl Fn(&str) -> bool,
) -> BTreeSet<Key> {
    let reports = runs.flat_map(|it| it.status.iter().flat_map(|it| &it.host_keys));
    let reports = reports.filter(|it| is_concerned(&it.name));
    let keys = reports.filter_map(|it| HostKey::parse(it.key.as_deref()?));
    keys.map(|it| key_of(namespace, &it)).collect()
}
