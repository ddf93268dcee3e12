//! What was observed of a node that may get a compute, as plain data.

use std::sync::Arc;

use api::conditions::{Condition, find};
use api::dataplane::{DisruptionHolder, Node, SeenDeployment};
use api::nova::ExternalCompute;
use nova_config::conditions::{
    ANNOTATIONS_IGNORED, COMPUTE_CONDITION, CONFIGURATION_IN_SYNC, DRAINED,
    NODE_CONFIGURATION_IN_SYNC, NODE_DRAINED, NODE_REDEPLOY_REQUESTED, NODE_SERVICE_UP,
    REDEPLOY_REQUESTED, SERVICE_UP,
};

use crate::compute_lifecycle::mounted_cell::NovaServices;
use crate::drain::order::OrderOfHost;
use crate::drain::progress::HostProgress;
use crate::group::Group;
use crate::images::Images;
use crate::nova_health::HostHealth;

/// The name of this operator's part of lists on a node: the prefix of its conditions.
pub const OPERATOR: &str = "nova.openstack.org";

/// A snapshot of everything that the decisions on a node use.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Observed {
    /// The node.
    pub node: Arc<Node>,
    /// What the node belongs to, or `None` when it names nothing or that does not exist.
    pub group: Option<Group>,
    /// The services of type nova that deploy nova-compute to the host.
    pub nova: NovaServices,
    /// Whether nova's API is read.
    pub reads_nova: bool,
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
    /// What nova's API says of the host of a compute that a service deploys; `None` for any other.
    pub health: Option<HostHealth>,
    /// The attempt of a deployment that has ended well on the host, once nova was read twice since.
    pub read_twice_since: Option<SeenDeployment>,
    /// The newest order about the host, and what its last pass has found; `None` without one.
    pub order: Option<(OrderOfHost, HostProgress)>,
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
