//! The caches that the cell rules need: nodes, roles, node sets, computes and their runs.

pub mod audit_runs;
pub mod cleanup_runs;
pub mod credential_keys;
pub mod discovery_jobs;
pub mod indexes;
pub mod queues;

use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::dataplane::{Node, NodeSet, Role};
use api::nova::ExternalCompute;
use kube::ResourceExt;
use operator_core::object_key::Key;
use operator_runtime::cache::Cache;
use operator_runtime::cache_registry::CacheRegistry;
use operator_runtime::error::Result;

use crate::group::{Group, GroupKey, group_key};
use crate::shared_caches::audit_runs::{audited_nodes, open_addresses, open_audits};
use crate::shared_caches::credential_keys::keys_of;
use crate::shared_caches::indexes::{
    BY_AUDITED_NODE, BY_CELL, BY_CREDENTIAL, BY_NODE, BY_NODE_SET, BY_OPEN_ADDRESS, BY_OPEN_AUDIT,
    BY_OWNER, BY_ROLE, cell_key, node_key, node_set_key, owner_keys, role_key,
};

/// Caches of nodes, roles, node sets, computes and runs; clones share them.
#[derive(Clone)]
pub struct SharedCaches {
    /// All nodes, indexed [`BY_ROLE`] and [`BY_NODE_SET`].
    pub nodes: Arc<Cache<Node>>,
    /// All roles.
    pub roles: Arc<Cache<Role>>,
    /// All node sets.
    pub node_sets: Arc<Cache<NodeSet>>,
    /// All computes, indexed [`BY_NODE`], [`BY_CELL`] and [`BY_CREDENTIAL`].
    pub computes: Arc<Cache<ExternalCompute>>,
    /// All runs, indexed [`BY_OWNER`], [`BY_OPEN_ADDRESS`], [`BY_OPEN_AUDIT`] and
    /// [`BY_AUDITED_NODE`].
    pub runs: Arc<Cache<AnsibleEe>>,
}

impl SharedCaches {
    /// Returns empty caches.
    pub fn new(registry: &mut CacheRegistry) -> Self {
        Self {
            nodes: registry.cache(vec![
                (BY_ROLE, Box::new(|it: &Node| role_key(it).into_iter().collect())),
                (BY_NODE_SET, Box::new(|it: &Node| node_set_key(it).into_iter().collect())),
            ]),
            roles: registry.cache(vec![]),
            node_sets: registry.cache(vec![]),
            computes: registry.owned(vec![
                (BY_NODE, Box::new(|it: &ExternalCompute| vec![node_key(it)])),
                (BY_CELL, Box::new(|it: &ExternalCompute| vec![cell_key(it)])),
                (BY_CREDENTIAL, Box::new(keys_of)),
            ]),
            runs: registry.cache(vec![
                (BY_OWNER, Box::new(owner_keys)),
                (BY_OPEN_ADDRESS, Box::new(open_addresses)),
                (BY_OPEN_AUDIT, Box::new(open_audits)),
                (BY_AUDITED_NODE, Box::new(audited_nodes)),
            ]),
        }
    }

    /// Returns a group, or `None` when it does not exist.
    pub fn group(&self, key: &GroupKey) -> Option<Group> {
        match key {
            GroupKey::Role(key) => self.roles.get(key).map(Group::Role),
            GroupKey::NodeSet(key) => self.node_sets.get(key).map(Group::NodeSet),
        }
    }

    /// Returns the nodes of a group.
    pub fn nodes_of(&self, group: &GroupKey) -> Vec<Arc<Node>> {
        match group {
            GroupKey::Role(key) => self.nodes.indexed(BY_ROLE, key),
            GroupKey::NodeSet(key) => self.nodes.indexed(BY_NODE_SET, key),
        }
    }

    /// Returns what a node belongs to, or `None` when it names nothing or that does not exist.
    pub fn group_of(&self, node: &Node) -> Option<Group> {
        self.group(&group_key(node)?)
    }

    /// The same, with an error for an object that exists and cannot be read.
    pub fn try_group_of(&self, node: &Node) -> Result<Option<Group>> {
        Ok(match group_key(node) {
            Some(GroupKey::Role(key)) => self.roles.try_get(&key)?.map(Group::Role),
            Some(GroupKey::NodeSet(key)) => self.node_sets.try_get(&key)?.map(Group::NodeSet),
            None => None,
        })
    }

    /// Returns the node that a compute names, or `None` when it does not exist.
    pub fn node_of(&self, compute: &ExternalCompute) -> Option<Arc<Node>> {
        self.nodes.get(&node_key(compute))
    }

    /// Returns the compute with the node's name, and whether a run of it exists; `None` without
    /// one.
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
        Self::new(&mut CacheRegistry::default())
    }
}
