//! What other operators say on the node of a host of a node set about disturbing the host.
//!
//! Why a host has to wait is not known here: each operator has an entry of its own, under the prefix of
//! its conditions.

use api::conditions::ConditionStatus;
use api::dataplane::{DisruptionHolder, DisruptionTarget, Node, Service};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;

/// End of the type of a condition by which an operator says, under its own prefix, whether the host is
/// in service; only one that is False counts.
pub const SERVICE_UP: &str = "/ServiceUp";

/// How long an operator may have no entry on a node: after that nothing waits for it, and its gate counts
/// as a fault.
pub const REPORTED_WITHIN: SignedDuration = SignedDuration::from_mins(5);

/// Returns whether deployments of the host, if it is in service, wait until they may disturb it.
pub fn restricts(node: &Node) -> bool {
    node.disruption_holders().iter().any(|it| it.holds)
}

/// Returns the first operator for which the host waits and that does not let this target go on; none
/// does while there is no target.
pub fn lacking<'a>(
    node: &'a Node,
    target: Option<&DisruptionTarget>,
) -> Option<&'a DisruptionHolder> {
    let lacks = |it: &&DisruptionHolder| target.is_none() || it.allowed.as_ref() != target;
    node.disruption_holders().iter().filter(|it| it.holds).find(lacks)
}

/// Returns whether an operator lets any target go on: then the host counts as unavailable.
pub fn is_disturbed(node: &Node) -> bool {
    node.disruption_holders().iter().any(|it| it.allowed.is_some())
}

/// Returns whether an operator says that the host is down.
pub fn is_down(node: &Node) -> bool {
    let conditions = node.conditions().iter();
    let mut reports = conditions.filter(|it| it.type_.ends_with(SERVICE_UP));
    reports.any(|it| it.status == ConditionStatus::False)
}

/// Returns the operator, by its prefix, whose entry the host waits for, and until when: it reports a
/// gate of one of the services, so it may hold the host, and has no entry on the node yet. So no
/// deployment goes on at a node that is new, as after an upgrade or a restore, before that operator has
/// looked at it. `deployment` is when the deployment was created.
pub fn awaited<'a>(
    node: &Node,
    services: impl IntoIterator<Item = &'a Service>,
    deployment: Option<Timestamp>,
) -> Option<(&'a str, Timestamp)> {
    let gates = services.into_iter().flat_map(|it| &it.spec.readiness_gates);
    let mut prefixes = gates.filter_map(|it| Some(it.condition_type.rsplit_once('/')?.0));
    let prefix = prefixes.find(|it| entry(node, it).is_none())?;
    let created = node.creation_timestamp().map(|it| it.0);
    let said = node.status.as_ref().and_then(|it| it.deployment.as_ref()).map(|it| it.since.0);
    let since = [deployment, created, said].into_iter().flatten().max()?;
    Some((prefix, since + REPORTED_WITHIN))
}

/// Returns the entry of an operator, by the prefix of its conditions.
pub fn entry<'a>(node: &'a Node, prefix: &str) -> Option<&'a DisruptionHolder> {
    node.disruption_holders().iter().find(|it| it.name == prefix)
}
