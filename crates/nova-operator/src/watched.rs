//! What the rule of the cell is judged by: nodes, roles, computes and their runs, as they are watched.

use std::sync::Arc;

use common::api::ansibleee::AnsibleEe;
use common::api::dataplane::{Node, Role};
use common::api::nova::ExternalCompute;
use kube::ResourceExt;
use shell::cache::{Cache, Key};
use shell::leader::Watches;

use crate::removal::build::cleans_up_after;

/// Index of nodes by the role that they name.
pub const BY_ROLE: &str = "role";
/// Index of computes by the node that they name.
pub const BY_NODE: &str = "node";
/// Index of computes by the cell that they name.
pub const BY_CELL: &str = "cell";
/// Index of runs by the UID of their owner, or of the compute that they clean up after.
pub const BY_OWNER: &str = "owner";

/// The caches; clones share them.
#[derive(Clone)]
pub struct Watched {
    /// All nodes, indexed [`BY_ROLE`].
    pub nodes: Arc<Cache<Node>>,
    /// All roles.
    pub roles: Arc<Cache<Role>>,
    /// All computes, indexed [`BY_NODE`] and [`BY_CELL`].
    pub computes: Arc<Cache<ExternalCompute>>,
    /// All runs, indexed [`BY_OWNER`].
    pub runs: Arc<Cache<AnsibleEe>>,
}

impl Watched {
    /// Empty caches.
    pub fn new() -> Self {
        Self {
            nodes: Cache::new(vec![(BY_ROLE, Box::new(role_key))]),
            roles: Cache::new(vec![]),
            computes: Cache::new(vec![
                (BY_NODE, Box::new(|it: &ExternalCompute| vec![node_key(it)])),
                (BY_CELL, Box::new(|it: &ExternalCompute| vec![cell_key(it)])),
            ]),
            runs: Cache::new(vec![(BY_OWNER, Box::new(owners))]),
        }
    }

    /// Opens their watches.
    pub fn watch(&self, watches: &mut Watches) {
        watches.watch(&self.nodes, "");
        watches.watch(&self.roles, "");
        watches.watch_owned(&self.computes);
        watches.watch(&self.runs, "");
    }

    /// The role that a node names, where it exists.
    pub fn role_of(&self, node: &Node) -> Option<Arc<Role>> {
        let name = node.spec.role.as_ref()?;
        self.roles.get(&Key::new(node.namespace().unwrap_or_default(), name))
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

impl Default for Watched {
    fn default() -> Self {
        Self::new()
    }
}

fn role_key(node: &Node) -> Vec<Key> {
    let namespace = node.namespace().unwrap_or_default();
    node.spec.role.iter().map(|it| Key::new(&namespace, it)).collect()
}

fn node_key(compute: &ExternalCompute) -> Key {
    Key::new(compute.namespace().unwrap_or_default(), &compute.spec.dataplane_node_name)
}

/// The cell that a compute names.
pub fn cell_key(compute: &ExternalCompute) -> Key {
    Key::new(compute.namespace().unwrap_or_default(), &compute.spec.cell_name)
}

fn owners(run: &AnsibleEe) -> Vec<Key> {
    let namespace = run.namespace().unwrap_or_default();
    let owners = run.owner_references().iter().map(|it| &it.uid);
    owners.chain(cleans_up_after(run)).map(|it| Key::new(&namespace, it)).collect()
}
