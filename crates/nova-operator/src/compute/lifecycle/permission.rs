//! Whether a deployment of a node set may disturb the host of a compute that it deploys, and which of its
//! attempts the conditions on the node are about.
//!
//! All of it follows from what was observed, so that an operator which was killed anywhere comes to the
//! same end: the node has the deployment that waits for the host, whether one is at it, and what was allowed
//! before; nova has the marker of a drained host.

use api::conditions::{ConditionStatus, find};
use api::dataplane::{
    DisruptionHolder, DisruptionTarget, HostState, NodeDeployment, SeenDeployment,
};
use api::nova::ExternalCompute;
use kube::ResourceExt;
use nova_config::annotations::DRAIN;
use nova_config::conditions::NOVA_MATCHES;
use operator_core::finalizers::is_terminating;

use crate::compute::lifecycle::observed::Observed;
use crate::compute::node_part::{OPERATOR, own_holder};
use crate::compute_status::computes_up::service_up;
use crate::compute_status::registration::has_registered;
use crate::nova::drain::before::{DrainBefore, drain_before};
use crate::nova::drain::order::{HostOrder, is_ours};
use crate::nova::drain::progress::HostProgress;
use crate::nova::health::{HostHealth, ServiceHealth};
use crate::requested::desired_compute::{DesiredCompute, desired};

/// Returns this operator's entry on the node; `None` where it has no compute of a node set to look after.
pub fn holder(seen: &Observed) -> Option<DisruptionHolder> {
    seen.node.node_set()?;
    let recorded = own_holder(&seen.node);
    // What the node inherits is unknown, so nothing that was said changes.
    let Some(group) = &seen.group else { return recorded.cloned() };
    let before = drain_before(Some(group), &seen.node);
    let holds = before != DrainBefore::No && !is_new(seen);
    let name = OPERATOR.to_owned();
    let Some(compute) = looked_after(seen) else {
        // While the compute is missing or another's, nothing says that its host is empty.
        let entry = DisruptionHolder { name, holds, ..DisruptionHolder::default() };
        let asked = desired(seen.group.as_ref(), &seen.node, &seen.nova);
        let is_missing = seen.reads_nova && matches!(asked, DesiredCompute::Observed { .. });
        return (holds && is_missing).then_some(entry);
    };
    Some(DisruptionHolder {
        name,
        holds,
        allowed: allowed(seen, compute, &before).cloned(),
        seen: settled(seen, compute).or_else(|| recorded?.seen.clone()),
    })
}

/// Whether nothing of nova can be disturbed on the host: no deployment of it has begun there, also not
/// before the node had records. So a first deployment that failed earlier is tried again.
fn is_new(seen: &Observed) -> bool {
    let status = seen.node.status.as_ref();
    let was_in_service = status.is_some_and(|it| it.deployed_config_hash.is_some());
    let is_registered = seen.compute.as_deref().is_some_and(has_registered);
    seen.nova.deployed.is_none() && !was_in_service && !is_registered
}

/// Returns the compute of the node if it is one that deployments of a node set deploy.
pub fn looked_after(seen: &Observed) -> Option<&ExternalCompute> {
    seen.own_compute().filter(|it| it.is_observed() && seen.node.node_set().is_some())
}

/// Returns the attempt of the deployment that has ended on the host, if the condition that the node repeats
/// was made after it: nova was read twice since, and the condition says what was read.
fn settled(seen: &Observed, compute: &ExternalCompute) -> Option<SeenDeployment> {
    let ended = deployment(seen)?.succeeded()?;
    let said = service_up(compute)?;
    let read = match seen.health.as_ref()?.service {
        ServiceHealth::Up { .. } => ConditionStatus::True,
        ServiceHealth::Down { .. } | ServiceHealth::NotFound => ConditionStatus::False,
        ServiceHealth::Pending | ServiceHealth::ApiFails | ServiceHealth::CellNotAnswering => {
            return None;
        }
    };
    (seen.read_twice_since.as_ref() == Some(&ended) && said == read).then_some(ended)
}

fn deployment(seen: &Observed) -> Option<&NodeDeployment> {
    seen.node.status.as_ref()?.deployment.as_ref()
}

/// Returns the target that may go on: from when the host is drained for it until its service is enabled
/// again, or the deployment has failed there.
fn allowed<'a>(
    seen: &'a Observed,
    compute: &ExternalCompute,
    before: &DrainBefore,
) -> Option<&'a DisruptionTarget> {
    let recorded = own_holder(&seen.node).and_then(|it| it.allowed.as_ref());
    let state = deployment(seen).map(|it| it.state);
    let at = deployment(seen).filter(|it| it.state == HostState::Deploying).map(|it| &it.uid);
    let target = seen.node.disruption_target();
    if is_terminating(compute) {
        // The removal of the compute drains and stops it by itself, and nothing begins meanwhile.
        return recorded.filter(|_| state == Some(HostState::Deploying));
    }
    match (before, target) {
        // Nothing begins, and nothing is enabled, while the annotation is not understood.
        (DrainBefore::No, _) | (DrainBefore::Invalid(_), Some(_)) => None,
        (DrainBefore::Invalid(_), None) => recorded,
        (DrainBefore::Yes, None) => {
            let is_kept = match state {
                Some(HostState::Deploying) => true,
                Some(HostState::Undeployed | HostState::Deployed) | None => !is_given_back(seen),
                // It counts as unavailable because it has failed.
                Some(HostState::Failed | HostState::Terminating) => false,
            };
            recorded.filter(|_| is_kept)
        }
        (DrainBefore::Yes, Some(target)) => {
            // Another deployment is at the host, and needs its permission until it ends there.
            let of_other = |it: &&DisruptionTarget| {
                at.is_some_and(|at| *at == it.deployment && *at != target.deployment)
            };
            let other = recorded.filter(of_other);
            let is_kept = |it: &&DisruptionTarget| *it == target && may_be_empty(seen, compute);
            let found = is_empty(seen, target).then_some(target);
            other.or(found).or_else(|| recorded.filter(is_kept))
        }
    }
}

/// Whether the host was found empty for exactly this target: what was found before it was given says
/// nothing of the servers there now. A host that nova does not list is not empty.
fn is_empty(seen: &Observed, target: &DisruptionTarget) -> bool {
    let Some((order, progress)) = &seen.order else { return false };
    let is_drained = match (&order.order, progress) {
        (HostOrder::Drain(_) | HostOrder::DrainForChange(_), HostProgress::Drained) => true,
        // The identity is looked at once the host is drained.
        (HostOrder::Identity(of), HostProgress::Identity(_)) => of.drain.is_some(),
        _ => false,
    };
    is_drained && order.target.as_ref() == Some(target)
}

/// Whether nothing says that a host which was found empty for its target is so no more: what is not known,
/// after a restart, takes nothing back.
fn may_be_empty(seen: &Observed, compute: &ExternalCompute) -> bool {
    let is_unknown = match &seen.order {
        Some((_, progress)) => {
            matches!(progress, HostProgress::Pending | HostProgress::Unread { .. })
        }
        None => true,
    };
    is_unknown && find(compute.conditions(), NOVA_MATCHES).is_none()
}

/// Whether nothing has to be enabled any more after a deployment: the service is enabled or gone, or the
/// user drains the host.
fn is_given_back(seen: &Observed) -> bool {
    let is_released =
        matches!(&seen.order, Some((_, HostProgress::Released | HostProgress::NotFound)));
    let is_marked = |it: &HostHealth| it.disabled.as_deref().is_some_and(is_ours);
    let read = seen.health.as_ref().filter(|it| it.service.is_known());
    let is_enabled = read.is_some_and(|it| !is_marked(it));
    is_released || is_enabled || seen.node.annotations().contains_key(DRAIN)
}
