//! The observed objects on which the decision on a data plane depends.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::dataplane::{DataPlane, Node, Role};

/// Plain copies of everything that was observed.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The data plane.
    pub data_plane: Arc<DataPlane>,
    /// The roles that are in its map, belong to it, or are named by its nodes.
    pub roles: BTreeMap<String, Arc<Role>>,
    /// The nodes that are in its map or belong to it.
    pub nodes: BTreeMap<String, Arc<Node>>,
    /// How many nodes, of any owner, name each of its orphaned roles.
    pub n_followers: BTreeMap<String, usize>,
}
