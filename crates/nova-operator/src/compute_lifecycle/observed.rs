//! What was observed of a node that may get a compute, as plain data.

use std::sync::Arc;

use api::conditions::{Condition, find};
use api::dataplane::Node;
use api::nova::ExternalCompute;
use nova_config::conditions::{
    COMPUTE_CONDITION, CONFIGURATION_IN_SYNC, DRAINED, NODE_CONFIGURATION_IN_SYNC, NODE_DRAINED,
    NODE_REDEPLOY_REQUESTED, NODE_SERVICE_UP, REDEPLOY_REQUESTED, SERVICE_UP,
};

use crate::conflicting_service::ConflictingService;
use crate::group::Group;
use crate::images::Images;

/// A snapshot of everything that the decisions on a node use.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The node.
    pub node: Arc<Node>,
    /// What the node belongs to, or `None` when it names nothing or that does not exist.
    pub group: Option<Group>,
    /// The service in phase 0 that would write the same files as the compute, or `None`.
    pub conflicting_service: Option<ConflictingService>,
    /// The compute with the node's name, or `None` when it does not exist.
    pub compute: Option<Arc<ExternalCompute>>,
    /// Whether a run of that compute exists.
    pub has_runs: bool,
    /// The default images.
    pub images: Images,
    /// Whether the namespace is being deleted; read only for a terminating node with the finalizer.
    pub namespace_goes: bool,
    /// Whether this operator reconciles the cells, which then record what remains in nova.
    pub cells_are_ours: bool,
}

/// Conditions of a compute that its node repeats, and their types on the node.
pub(super) const REPEATED: [(&str, &str); 4] = [
    (SERVICE_UP, NODE_SERVICE_UP),
    (DRAINED, NODE_DRAINED),
    (CONFIGURATION_IN_SYNC, NODE_CONFIGURATION_IN_SYNC),
    (REDEPLOY_REQUESTED, NODE_REDEPLOY_REQUESTED),
];

/// Returns this operator's conditions on a node.
pub fn own_conditions(node: &Node) -> Vec<Condition> {
    let conditions = node.status.as_ref().map(|it| it.conditions.as_slice()).unwrap_or_default();
    let repeated = |type_: &str| REPEATED.iter().any(|it| it.1 == type_);
    let is_own = |it: &&Condition| it.type_ == COMPUTE_CONDITION || repeated(&it.type_);
    conditions.iter().filter(is_own).cloned().collect()
}

/// Returns this operator's condition on a node's compute, or `None` without one.
pub fn own_condition(node: &Node) -> Option<&Condition> {
    find(&node.status.as_ref()?.conditions, COMPUTE_CONDITION)
}
