//! What the user, the rollout of its role and the deployments of its node set request for the servers
//! of a compute's host.
//!
//! All of it follows from what was observed before the present decision, so that an operator which
//! was killed anywhere comes to the same end: a host belongs to a rollout from the recorded attempt
//! on until its service is known to be enabled again.

use api::conditions::find;
use api::dataplane::{DisruptionTarget, HostState, Node};
use nova_config::conditions::DRAINED;
use operator_core::keyed::{Digest, changed_inputs};
use operator_core::run_engine::rollout::RolloutState;

use crate::compute::deploy::inputs::service_inputs;
use crate::compute::deploy::observed::Observed;
use crate::compute::deploy::{libvirt_tls, preconditions};
use crate::compute::node_part::own_holder;
use crate::compute_status::registration::has_registered;
use crate::group::group_key;
use crate::nova::drain::before::{DrainBefore, drain_before, of_rollout};
use crate::nova::drain::order::{HostOrder, is_of_rollout, is_ours};
use crate::nova::drain::progress::HostProgress;
use crate::nova::drain::request::{DrainRequest, requested};
use crate::nova::health::ServiceHealth;
use crate::nova::identity::{Agreement, Identity};
use crate::rollout::compute_state::{deployment_state, is_at_work, is_under_way};

/// Returns what is requested: by the user, else by the rollout; a rollout's annotation that is not
/// valid changes nothing either. Returns `None` when it is unknown, because the node does not exist,
/// or the role whose rollout has drained the host, or whose host may belong to a rollout until nova
/// was read: nothing is enabled because of that.
pub fn request(seen: &Observed) -> Option<DrainRequest> {
    let (group, node) = (seen.group.as_ref(), seen.node.as_deref()?);
    let request = requested(group, node);
    if request != DrainRequest::Absent {
        return Some(request);
    }
    let is_group_missing = group.is_none() && group_key(node).is_some();
    if is_group_missing && disabled(seen).is_some_and(is_of_rollout) {
        return None;
    }
    let may_be_marked = || !drains_before(seen) && is_unread(seen) && may_be_disabled(seen);
    if (is_group_missing || is_disturbed(seen)) && may_be_marked() {
        return None;
    }
    Some(match drain_before(group, node) {
        _ if belongs_to_rollout(seen) => of_rollout(group, node),
        DrainBefore::Invalid(message) if may_be_disabled(seen) || awaited(seen).is_some() => {
            DrainRequest::Invalid(message)
        }
        DrainBefore::No | DrainBefore::Yes | DrainBefore::Invalid(_) => request,
    })
}

/// Whether a run on the host begins only when it is drained.
pub fn drains_before(seen: &Observed) -> bool {
    preconditions::is_drain_asked_for(seen) && !renews_certificate(seen)
}

/// Whether a renewed certificate is all that is to be deployed. No user asked for that change, its run
/// ends no guest, and guests could not leave the host any more once the old certificate has expired.
fn renews_certificate(seen: &Observed) -> bool {
    let Some(status) = &seen.compute.status else { return false };
    let deployed = &status.deployed_inputs;
    let is_renewed = |(name, digest): (&String, &Digest)| {
        deployed.get(name).is_some_and(|text| !digest.is(text))
    };
    if !libvirt_tls::inputs(seen).iter().any(is_renewed) {
        return false;
    }
    let (_, Some(complete)) = preconditions::input(seen) else {
        // While inputs are unknown, which may begin no run, no drain begins and none ends.
        return !disabled(seen).is_some_and(is_of_rollout);
    };
    changed_inputs(deployed, &service_inputs(seen, &complete).union()).len() == 1
}

/// Whether a run has to wait for the drain, and for what is read of the host after the rollout has
/// reached it.
pub fn waits_for_drain(seen: &Observed) -> bool {
    // A host that nova does not list may have another name there, and servers.
    let is_empty = seen.drain == Some(HostProgress::Drained);
    // What is found of the identity comes after the drain, where one is requested.
    let is_identified = matches!(seen.drain, Some(HostProgress::Identity(_)))
        && matches!(request(seen), Some(DrainRequest::Drain(_)));
    let is_ready = belongs_to_rollout(seen) && (is_empty || is_identified);
    drains_before(seen) && !is_ready
}

/// Whether a run that waits for its place was to begin on a drained host, which is not empty any more.
pub fn forbids_runs(seen: &Observed) -> bool {
    drains_before(seen) && seen.drain.as_ref().is_some_and(HostProgress::forbids_runs)
}

/// Whether the service may carry the marker of this operator, and so be disabled without a request:
/// it was read so, or a drain was reported since which no pass has found it without.
pub fn may_be_disabled(seen: &Observed) -> bool {
    let was_drained = find(seen.compute.conditions(), DRAINED).is_some();
    let is_known =
        matches!(seen.drain, None | Some(HostProgress::Released | HostProgress::NotFound));
    let is_marked = disabled(seen).is_some_and(is_ours);
    is_marked || (was_drained && !is_known && has_registered(&seen.compute))
}

/// Returns how the service is enabled again: after a rollout only once it is up.
pub fn enabling(seen: &Observed) -> HostOrder {
    let is_after_rollout = drains_before(seen) || disabled(seen).is_some_and(is_of_rollout);
    if is_after_rollout { HostOrder::EnableOnceUp } else { HostOrder::Enable }
}

/// Returns the reason of the service, if it is disabled. That of another service under the host's name
/// says nothing of it.
fn disabled(seen: &Observed) -> Option<&str> {
    let recorded = Identity::recorded(&seen.compute);
    let own = seen.health.as_ref().filter(|it| recorded.compare(it) == Agreement::Same);
    own?.disabled.as_deref()
}

/// Whether the rollout has disabled the service, as far as the reason is known: before the first
/// reading, it is any drain that was reported.
fn is_disabled_by_rollout(seen: &Observed) -> bool {
    disabled(seen).map_or_else(|| is_unread(seen) && may_be_disabled(seen), is_of_rollout)
}

/// Whether nova was not read yet, so that it is unknown whether the service is disabled and why.
fn is_unread(seen: &Observed) -> bool {
    let health = seen.health.as_ref();
    health.is_none_or(|it| it.service == ServiceHealth::Pending && it.disabled.is_none())
}

/// Returns the deployment of a node set that waits for the host of a compute which it deploys; `None`
/// where none does.
pub fn awaited(seen: &Observed) -> Option<&DisruptionTarget> {
    seen.node.as_deref().filter(|_| seen.compute.is_observed())?.disruption_target()
}

/// Returns how far the last deployment by others is on the host, where these deploy the compute.
fn state_of_deployment(seen: &Observed) -> Option<HostState> {
    let node: &Node = seen.node.as_deref().filter(|_| seen.compute.is_observed())?;
    Some(node.status.as_ref()?.deployment.as_ref()?.state)
}

/// Whether a deployment was allowed to disturb the host, and the host was not given back since.
fn is_allowed(seen: &Observed) -> bool {
    seen.node.as_deref().and_then(own_holder).is_some_and(|it| it.allowed.is_some())
}

/// Whether a run that has begun on the host has not ended.
fn is_disturbed(seen: &Observed) -> bool {
    is_at_work(&seen.compute) || state_of_deployment(seen) == Some(HostState::Deploying)
}

/// Whether the rollout drains the host, or keeps it drained because its deployment fails.
pub fn belongs_to_rollout(seen: &Observed) -> bool {
    if seen.compute.is_observed() {
        return belongs_to_deployment(seen);
    }
    // What runs goes on whatever is asked for meanwhile, and may restart the host.
    if disabled(seen).is_some_and(is_of_rollout) && is_at_work(&seen.compute) {
        return true;
    }
    if !drains_before(seen) {
        return false;
    }
    match deployment_state(&seen.compute, seen.node.as_deref()) {
        RolloutState::Disturbed | RolloutState::Corrected => true,
        // One that failed without a drain is drained when its next attempt is due.
        RolloutState::Failed => is_disabled_by_rollout(seen) || is_under_way(&seen.compute),
        RolloutState::New
        | RolloutState::Started
        | RolloutState::FailedNew
        | RolloutState::Ready
        | RolloutState::Down => false,
    }
}

/// Whether a deployment of the node set waits for the host, is at it, or has failed on it after it was
/// drained for that.
fn belongs_to_deployment(seen: &Observed) -> bool {
    let asked = seen.node.as_deref().map(|it| drain_before(seen.group.as_ref(), it));
    let drains = asked == Some(DrainBefore::Yes);
    match state_of_deployment(seen) {
        _ if drains && awaited(seen).is_some() => true,
        // Servers that came now would be disturbed, whatever is asked for meanwhile, and also where nova
        // was not read since the host was drained.
        Some(HostState::Deploying) => is_disabled_by_rollout(seen) || is_allowed(seen),
        // It may have failed before nova was read again.
        Some(HostState::Failed) => {
            drains && disabled(seen).map_or_else(|| may_be_disabled(seen), is_of_rollout)
        }
        Some(HostState::Undeployed | HostState::Deployed | HostState::Terminating) | None => false,
    }
}
