//! What the rule of the cell is judged by: nodes, roles, computes and their runs, as they are watched.

use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::dataplane::{Node, Role};
use api::nova::ExternalCompute;
use kube::ResourceExt;
use operator_core::object_key::Key;
use operator_runtime::cache::Cache;
use operator_runtime::manager::Informers;

use crate::indexes::{
    BY_CELL, BY_NODE, BY_OWNER, BY_ROLE, cell_key, node_key, owner_keys, role_key,
};

/// The caches; clones share them.
#[derive(Clone)]
pub struct SharedCaches {
    /// All nodes, indexed [`BY_ROLE`].
    pub nodes: Arc<Cache<Node>>,
    /// All roles.
    pub roles: Arc<Cache<Role>>,
    /// All computes, indexed [`BY_NODE`] and [`BY_CELL`].
    pub computes: Arc<Cache<ExternalCompute>>,
    /// All runs, indexed [`BY_OWNER`].
    pub runs: Arc<Cache<AnsibleEe>>,
}

impl SharedCaches {
    /// Empty caches.
    pub fn new() -> Self {
        Self {
            nodes: Cache::new(vec![(
                BY_ROLE,
                Box::new(|it: &Node| role_key(it).into_iter().collect()),
            )]),
            roles: Cache::new(vec![]),
            computes: Cache::new(vec![
                (BY_NODE, Box::new(|it: &ExternalCompute| vec![node_key(it)])),
                (BY_CELL, Box::new(|it: &ExternalCompute| vec![cell_key(it)])),
            ]),
            runs: Cache::new(vec![(BY_OWNER, Box::new(owner_keys))]),
        }
    }

    /// Opens their watches.
    pub fn watch(&self, informers: &mut Informers) {
        informers.watch(&self.nodes, "");
        informers.watch(&self.roles, "");
        informers.watch_owned(&self.computes);
        informers.watch(&self.runs, "");
    }

    /// The role that a node names, where it exists.
    pub fn role_of(&self, node: &Node) -> Option<Arc<Role>> {
        self.roles.get(&role_key(node)?)
    }

    /// The node that a compute names, where it exists.
    pub fn node_of(&self, compute: &ExternalCompute) -> Option<Arc<Node>> {
        self.nodes.get(&node_key(compute))
    }

    /// The compute of a node's name, and whether a run of it exists.
    pub fn compute_of(&self, node: &Node) -> Option<(Arc<ExternalCompute>, bool)> {
        let key = Key::of(node);
        let compute = self.computes.get(&key)?;
        let uid = compute.uid().unwrap_or_default();
        let runs = self.runs.indexed(BY_OWNER, &Key::new(key.namespace, uid));
        Some((compute, !runs.is_empty()))
    }
}

impl Default for SharedCaches {
    fn default() -> Self {
        Self::new()
    }
}
