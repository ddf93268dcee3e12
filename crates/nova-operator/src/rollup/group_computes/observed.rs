//! What was observed of the computes of a role or node set, as plain data.

use std::sync::Arc;

use api::dataplane::Node;

use crate::compute_status::computes_up::ComputeState;
use crate::group::Group;

/// A snapshot of everything that the decision on a role or node set uses.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The role or node set.
    pub group: Group,
    /// Its nodes.
    pub nodes: Vec<Arc<Node>>,
    /// The computes of its nodes, by name; `None` where nova's API is not read.
    pub states: Option<Vec<(String, ComputeState)>>,
}
