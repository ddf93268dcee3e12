//! This operator's part of the status of a node.

use api::conditions::{Condition, find};
use api::dataplane::{DisruptionHolder, Node};
use nova_config::conditions::{
    ANNOTATIONS_IGNORED, COMPUTE_CONDITION, CONFIGURATION_IN_SYNC, DRAINED,
    NODE_CONFIGURATION_IN_SYNC, NODE_DRAINED, NODE_REDEPLOY_REQUESTED, NODE_SERVICE_UP,
    REDEPLOY_REQUESTED, SERVICE_UP,
};

/// The name of this operator's part of lists on a node: the prefix of its conditions.
pub const OPERATOR: &str = "nova.openstack.org";

/// Conditions of a compute that its node repeats, and their types on the node.
pub const REPEATED: [(&str, &str); 4] = [
    (SERVICE_UP, NODE_SERVICE_UP),
    (DRAINED, NODE_DRAINED),
    (CONFIGURATION_IN_SYNC, NODE_CONFIGURATION_IN_SYNC),
    (REDEPLOY_REQUESTED, NODE_REDEPLOY_REQUESTED),
];

/// Returns this operator's conditions on a node.
pub fn own_conditions(node: &Node) -> Vec<Condition> {
    let of_node = [COMPUTE_CONDITION, ANNOTATIONS_IGNORED].into_iter();
    let own: Vec<&str> = of_node.chain(REPEATED.map(|it| it.1)).collect();
    let is_own = |it: &&Condition| own.contains(&it.type_.as_str());
    node.conditions().iter().filter(is_own).cloned().collect()
}

/// Returns this operator's condition on a node's compute, or `None` without one.
pub fn own_condition(node: &Node) -> Option<&Condition> {
    find(&node.status.as_ref()?.conditions, COMPUTE_CONDITION)
}

/// Returns this operator's entry among those of operators that may hold a disruption.
pub fn own_holder(node: &Node) -> Option<&DisruptionHolder> {
    node.disruption_holders().iter().find(|it| it.name == OPERATOR)
}
