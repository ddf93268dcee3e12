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
use crate::nova::health::{HostHealth, ServiceHealth};
use crate::nova::identity::{Agreement, Identity};
use crate::rollout::compute_state::{deployment_state, is_at_work, is_under_way};

/// What is requested for the servers of a host, and what follows from that whatever its runs do.
///
/// Conditions follow from what the pass of the order has found; the order itself is resolved apart, from the
/// same observation without it ([`order`](super::host_order::order)).
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct HostDrain {
    /// What is requested: by the user, else by the rollout; a rollout's annotation that is not valid
    /// changes nothing either. `None` when it is unknown, because the node does not exist, or the role
    /// whose rollout has drained the host, or whose host may belong to a rollout until nova was read:
    /// nothing is enabled because of that.
    pub request: Option<DrainRequest>,
    /// Whether a run on the host begins only when it is drained.
    pub drains_before: bool,
    /// Whether the service may carry the marker of this operator, and so be disabled without a request: it
    /// was read so, or a drain was reported since which no pass has found it without.
    pub may_be_disabled: bool,
    /// Whether the rollout drains the host, or keeps it drained because its deployment fails.
    pub belongs_to_rollout: bool,
    /// How the service is enabled again: after a rollout only once it is up.
    pub enabling: HostOrder,
    /// Whether the rollout has disabled the service; `None` where it is not disabled, or was not read.
    by_rollout: Option<bool>,
    /// Whether nova was not read yet, so that it is unknown whether the service is disabled and why.
    is_unread: bool,
}

impl HostDrain {
    /// Resolves what was observed.
    pub fn resolve(seen: &Observed) -> Self {
        let disabled = disabled(seen);
        let by_rollout = disabled.map(is_of_rollout);
        let may_drain_before = preconditions::is_drain_asked_for(seen);
        let drains_before = may_drain_before && !renews_certificate(seen, by_rollout == Some(true));
        let is_after_rollout = drains_before || by_rollout == Some(true);
        let is_known =
            matches!(seen.drain, None | Some(HostProgress::Released | HostProgress::NotFound));
        let may_be_marked = find(seen.compute.conditions(), DRAINED).is_some()
            && !is_known
            && has_registered(&seen.compute);
        let mut found = Self {
            request: None,
            drains_before,
            may_be_disabled: disabled.is_some_and(is_ours) || may_be_marked,
            belongs_to_rollout: false,
            enabling: if is_after_rollout { HostOrder::EnableOnceUp } else { HostOrder::Enable },
            by_rollout,
            is_unread: seen.health.as_ref().is_none_or(is_pending),
        };
        found.belongs_to_rollout = found.belongs_to_rollout(seen);
        found.request = found.request(seen);
        found
    }

    fn request(&self, seen: &Observed) -> Option<DrainRequest> {
        let (group, node) = (seen.group.as_ref(), seen.node.as_deref()?);
        let request = requested(group, node);
        if request != DrainRequest::Absent {
            return Some(request);
        }
        let is_group_missing = group.is_none() && group_key(node).is_some();
        let may_be_marked = !self.drains_before && self.is_unread && self.may_be_disabled;
        if (is_group_missing && self.by_rollout == Some(true))
            || ((is_group_missing || is_disturbed(seen)) && may_be_marked)
        {
            return None;
        }
        Some(match drain_before(group, node) {
            _ if self.belongs_to_rollout => of_rollout(group, node),
            DrainBefore::Invalid(message) if self.may_be_disabled || awaited(seen).is_some() => {
                DrainRequest::Invalid(message)
            }
            DrainBefore::No | DrainBefore::Yes | DrainBefore::Invalid(_) => request,
        })
    }

    /// Whether a run has to wait for the drain, and for what is read of the host after the rollout has
    /// reached it.
    pub fn waits(&self, seen: &Observed) -> bool {
        // A host that nova does not list may have another name there, and servers.
        let is_empty = seen.drain == Some(HostProgress::Drained);
        // What is found of the identity comes after the drain, where one is requested.
        let is_identified = matches!(seen.drain, Some(HostProgress::Identity(_)))
            && matches!(self.request, Some(DrainRequest::Drain(_)));
        self.drains_before && !(self.belongs_to_rollout && (is_empty || is_identified))
    }

    /// Whether a run that waits for its place was to begin on a drained host, which is not empty any more.
    pub fn forbids_runs(&self, seen: &Observed) -> bool {
        self.drains_before && seen.drain.as_ref().is_some_and(HostProgress::forbids_runs)
    }

    /// Whether the rollout has disabled the service, as far as the reason is known: before the first
    /// reading, it is any drain that was reported.
    fn is_disabled_by_rollout(&self) -> bool {
        self.by_rollout.unwrap_or(self.is_unread && self.may_be_disabled)
    }

    fn belongs_to_rollout(&self, seen: &Observed) -> bool {
        if seen.compute.is_observed() {
            return self.belongs_to_deployment(seen);
        }
        // What runs goes on whatever is asked for meanwhile, and may restart the host.
        if self.by_rollout == Some(true) && is_at_work(&seen.compute) {
            return true;
        }
        if !self.drains_before {
            return false;
        }
        match deployment_state(&seen.compute, seen.node.as_deref()) {
            RolloutState::Disturbed | RolloutState::Corrected => true,
            // One that failed without a drain is drained when its next attempt is due.
            RolloutState::Failed => self.is_disabled_by_rollout() || is_under_way(&seen.compute),
            RolloutState::New
            | RolloutState::Started
            | RolloutState::FailedNew
            | RolloutState::Ready
            | RolloutState::Down => false,
        }
    }

    /// Whether a deployment of the node set waits for the host, is at it, or has failed on it after it was
    /// drained for that.
    fn belongs_to_deployment(&self, seen: &Observed) -> bool {
        let asked = seen.node.as_deref().map(|it| drain_before(seen.group.as_ref(), it));
        let drains = asked == Some(DrainBefore::Yes);
        match state_of_deployment(seen) {
            _ if drains && awaited(seen).is_some() => true,
            // Servers that came now would be disturbed, whatever is asked for meanwhile, and also where
            // nova was not read since the host was drained.
            Some(HostState::Deploying) => self.is_disabled_by_rollout() || is_allowed(seen),
            // It may have failed before nova was read again.
            Some(HostState::Failed) => drains && self.by_rollout.unwrap_or(self.may_be_disabled),
            Some(HostState::Undeployed | HostState::Deployed | HostState::Terminating) | None => {
                false
            }
        }
    }
}

/// Whether a renewed certificate is all that is to be deployed. No user asked for that change, its run
/// ends no guest, and guests could not leave the host any more once the old certificate has expired.
fn renews_certificate(seen: &Observed, is_disabled_by_rollout: bool) -> bool {
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
        return !is_disabled_by_rollout;
    };
    changed_inputs(deployed, &service_inputs(seen, &complete).union()).len() == 1
}

/// Whether it is unknown whether the service is disabled, and why.
fn is_pending(health: &HostHealth) -> bool {
    health.service == ServiceHealth::Pending && health.disabled.is_none()
}

/// Returns the reason of the service, if it is disabled. That of another service under the host's name
/// says nothing of it.
fn disabled(seen: &Observed) -> Option<&str> {
    let recorded = Identity::recorded(&seen.compute);
    let own = seen.health.as_ref().filter(|it| recorded.compare(it) == Agreement::Same);
    own?.disabled.as_deref()
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
