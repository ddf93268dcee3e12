//! What the user, the rollout of its role and the deployments of its node set request for the servers
//! of a compute's host, and the order about the host that follows.
//!
//! All of it follows from what was observed before the present decision, so that an operator which
//! was killed anywhere comes to the same end: a host belongs to a rollout from the recorded attempt
//! on until its service is known to be enabled again.

use api::conditions::find;
use api::dataplane::HostState;
use api::nova::ExternalCompute;
use api::problem::Problem;
use nova_config::annotations::DRAIN_BEFORE;
use nova_config::conditions::DRAINED;
use operator_core::plan::Order;
use operator_core::run_engine::rollout::RolloutState;

use crate::compute::deploy::host_facts::HostFacts;
use crate::compute::deploy::nova_matches;
use crate::compute::node_part::own_holder;
use crate::group::group_key;
use crate::nova::drain::before::{DrainBefore, of_rollout};
use crate::nova::drain::order::{
    HostOrder, IdentityGoal, IdentityOrder, OrderOfHost, is_of_rollout, is_ours,
};
use crate::nova::drain::progress::HostProgress;
use crate::nova::drain::request::{DrainRequest, requested};
use crate::nova::health::{HostHealth, ServiceHealth};
use crate::nova::identity::{Agreement, Identity};
use crate::reasons;
use crate::rollout::compute_state::{deployment_state, is_at_work, is_under_way};
use crate::shared_caches::indexes::cell_key;

/// What is requested for the servers of a host, and what follows from that whatever its runs do.
///
/// Conditions follow from what the pass of the order has found; the order itself is resolved apart, as
/// if nothing were found yet ([`order`]).
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct HostDrain<'a> {
    /// How far the order about the host is; `None` where nova's API is not used.
    pub progress: Option<&'a HostProgress>,
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
    enabling: HostOrder,
    /// Whether the rollout has disabled the service; `None` where it is not disabled, or was not read.
    by_rollout: Option<bool>,
    /// Whether nova was not read yet, so that it is unknown whether the service is disabled and why.
    is_unread: bool,
}

impl<'a> HostDrain<'a> {
    /// Resolves a host about which the pass of its order has found this.
    pub fn resolve(host: &HostFacts<'_>, progress: Option<&'a HostProgress>) -> Self {
        // The reason of another service under the host's name says nothing of its own.
        let own = host.sources.health.filter(|it| host.recorded.compare(it) == Agreement::Same);
        let disabled = own.and_then(|it| it.disabled.as_deref());
        let by_rollout = disabled.map(is_of_rollout);
        let is_by_rollout = by_rollout == Some(true);
        // No user asked for a renewed certificate, its run ends no guest, and guests could not leave the
        // host any more once the old one has expired. While inputs are unknown, which may begin no run,
        // no drain begins and none ends.
        let renews_certificate = host.renews_certificate.unwrap_or(!is_by_rollout);
        let drains_before = host.asks_for_drain && !renews_certificate;
        let is_known =
            matches!(progress, None | Some(HostProgress::Released | HostProgress::NotFound));
        let was_drained = find(host.compute.conditions(), DRAINED).is_some();
        let may_be_marked = was_drained && !is_known && host.is_registered;
        let mut found = Self {
            progress,
            request: None,
            drains_before,
            may_be_disabled: disabled.is_some_and(is_ours) || may_be_marked,
            belongs_to_rollout: false,
            enabling: if drains_before || is_by_rollout {
                HostOrder::EnableOnceUp
            } else {
                HostOrder::Enable
            },
            by_rollout,
            is_unread: host.sources.health.is_none_or(is_pending),
        };
        found.belongs_to_rollout = found.belongs_to_rollout(host);
        found.request = found.request(host);
        found
    }

    fn request(&self, host: &HostFacts<'_>) -> Option<DrainRequest> {
        let (group, node) = (host.group, host.node?);
        let request = requested(group, node);
        if request != DrainRequest::Absent {
            return Some(request);
        }
        let is_group_missing = group.is_none() && group_key(node).is_some();
        let may_be_marked = !self.drains_before && self.is_unread && self.may_be_disabled;
        if (is_group_missing && self.by_rollout == Some(true))
            || ((is_group_missing || is_disturbed(host)) && may_be_marked)
        {
            return None;
        }
        Some(match host.drain_before.as_ref()? {
            _ if self.belongs_to_rollout => of_rollout(group, node),
            DrainBefore::Invalid(message)
                if self.may_be_disabled || host.disruption_target().is_some() =>
            {
                DrainRequest::Invalid(message.clone())
            }
            DrainBefore::No | DrainBefore::Yes | DrainBefore::Invalid(_) => request,
        })
    }

    /// Whether a run has to wait for the drain, and for what is read of the host after the rollout has
    /// reached it.
    pub fn waits(&self) -> bool {
        // A host that nova does not list may have another name there, and servers.
        let is_empty = self.progress == Some(&HostProgress::Drained);
        // What is found of the identity comes after the drain, where one is requested.
        let is_identified = matches!(self.progress, Some(HostProgress::Identity(_)))
            && matches!(self.request, Some(DrainRequest::Drain(_)));
        self.drains_before && !(self.belongs_to_rollout && (is_empty || is_identified))
    }

    /// Whether a run that waits for its place was to begin on a drained host, which is not empty any more.
    pub fn forbids_runs(&self) -> bool {
        self.drains_before && self.progress.is_some_and(HostProgress::forbids_runs)
    }

    /// Whether the rollout has disabled the service, as far as the reason is known: before the first
    /// reading, it is any drain that was reported.
    fn is_disabled_by_rollout(&self) -> bool {
        self.by_rollout.unwrap_or(self.is_unread && self.may_be_disabled)
    }

    fn belongs_to_rollout(&self, host: &HostFacts<'_>) -> bool {
        let compute = host.compute;
        if compute.is_observed() {
            return self.belongs_to_deployment(host);
        }
        // What runs goes on whatever is asked for meanwhile, and may restart the host.
        if self.by_rollout == Some(true) && is_at_work(compute) {
            return true;
        }
        if !self.drains_before {
            return false;
        }
        match deployment_state(compute, host.node) {
            RolloutState::Disturbed | RolloutState::Corrected => true,
            // One that failed without a drain is drained when its next attempt is due.
            RolloutState::Failed => self.is_disabled_by_rollout() || is_under_way(compute),
            RolloutState::New
            | RolloutState::Started
            | RolloutState::FailedNew
            | RolloutState::Ready
            | RolloutState::Down => false,
        }
    }

    /// Whether a deployment of the node set waits for the host, is at it, or has failed on it after it was
    /// drained for that.
    fn belongs_to_deployment(&self, host: &HostFacts<'_>) -> bool {
        let drains = host.drain_before == Some(DrainBefore::Yes);
        match state_of_deployment(host) {
            _ if drains && host.disruption_target().is_some() => true,
            // Servers that came now would be disturbed, whatever is asked for meanwhile, and also where
            // nova was not read since the host was drained.
            Some(HostState::Deploying) => self.is_disabled_by_rollout() || is_allowed(host),
            // It may have failed before nova was read again.
            Some(HostState::Failed) => drains && self.by_rollout.unwrap_or(self.may_be_disabled),
            Some(HostState::Undeployed | HostState::Deployed | HostState::Terminating) | None => {
                false
            }
        }
    }
}

/// Whether it is unknown whether the service is disabled, and why.
fn is_pending(health: &HostHealth) -> bool {
    health.service == ServiceHealth::Pending && health.disabled.is_none()
}

/// Returns how far the last deployment by others is on the host, where these deploy the compute.
fn state_of_deployment(host: &HostFacts<'_>) -> Option<HostState> {
    Some(host.node_of_others()?.status.as_ref()?.deployment.as_ref()?.state)
}

/// Whether a deployment was allowed to disturb the host, and the host was not given back since.
fn is_allowed(host: &HostFacts<'_>) -> bool {
    host.node.and_then(own_holder).is_some_and(|it| it.allowed.is_some())
}

/// Whether a run that has begun on the host has not ended.
fn is_disturbed(host: &HostFacts<'_>) -> bool {
    is_at_work(host.compute) || state_of_deployment(host) == Some(HostState::Deploying)
}

/// Returns why nothing is deployed, where a drain is to come first and none can.
pub fn fault(host: &HostFacts<'_>) -> Option<Problem> {
    if let Some(DrainBefore::Invalid(message)) = &host.drain_before {
        return Some(Problem::new(&reasons::compute::DRAIN_BEFORE_INVALID, message.clone()));
    }
    (host.asks_for_drain && !host.uses_nova).then(|| {
        let text = format!(
            "Annotation {DRAIN_BEFORE} of OpenStackDataPlaneNode {} or its role is true, and no host \
             can be drained, because nova's API is not used: set nova.api.enabled to true in the \
             values of the chart, or the annotation to false.",
            host.compute.spec.dataplane_node_name
        );
        Problem::new(&reasons::compute::DRAIN_WITHOUT_API, text)
    })
}

/// Returns the order about the host, of which `drain` is requested; `None` without one.
///
/// It follows from what is recorded and read, and not from what passes have found: else each finding
/// would change the order that it was about.
pub fn order(host: &HostFacts<'_>, drain: &HostDrain<'_>) -> Option<Order<OrderOfHost>> {
    let pending = Some(&HostProgress::Pending);
    let order = host.uses_nova.then(|| host_order(host, pending)).flatten()?;
    let reason = reason(drain, &order);
    let target = host.disruption_target().filter(|_| is_for_change(&order)).cloned();
    let mut given = of_host(host.compute, order, reason)?;
    given.what.target = target;
    Some(given)
}

/// Returns an order about the host of a compute, also of one whose records its removal has replaced;
/// `None` where it has no name yet.
pub fn of_host(
    compute: &ExternalCompute,
    order: HostOrder,
    reason: &str,
) -> Option<Order<OrderOfHost>> {
    let host = compute.host_name()?.to_owned();
    let (cell, meant_for) = (cell_key(compute), Identity::recorded(compute));
    let what = OrderOfHost { cell, host, meant_for, order, target: None };
    Some(Order { what, reason: reason.to_owned() })
}

/// Whether a host that the order finds to be empty may be changed then.
const fn is_for_change(order: &HostOrder) -> bool {
    matches!(
        order,
        HostOrder::DrainForChange(_) | HostOrder::Identity(IdentityOrder { drain: Some(_), .. })
    )
}

fn reason(drain: &HostDrain<'_>, order: &HostOrder) -> &'static str {
    if matches!(order, HostOrder::Identity(_)) {
        "its last run missed the identity of its host"
    } else if matches!(order, HostOrder::Enable | HostOrder::EnableOnceUp) {
        "no drain of its host is requested any more"
    } else if drain.belongs_to_rollout {
        "its host is changed once it is empty"
    } else {
        "a drain of its host is requested"
    }
}

/// Returns what is to be done about a host of which this is found, or `None` for nothing.
///
/// A node that does not exist requests nothing, so nothing is enabled because of it. Nothing is done
/// where nova has the host under another identity than the recorded one.
pub fn host_order(host: &HostFacts<'_>, progress: Option<&HostProgress>) -> Option<HostOrder> {
    if nova_matches::held(host.sources).is_some() || !host.is_registered {
        return None;
    }
    let HostDrain { request, may_be_disabled, belongs_to_rollout, enabling, .. } =
        HostDrain::resolve(host, progress);
    let request = request?;
    let order = match &request {
        DrainRequest::Drain(drain) if belongs_to_rollout => {
            Some(HostOrder::DrainForChange(drain.clone()))
        }
        DrainRequest::Drain(drain) => Some(HostOrder::Drain(drain.clone())),
        DrainRequest::Absent => may_be_disabled.then_some(enabling),
        // A request that is not valid changes nothing.
        DrainRequest::Invalid(_) => None,
    };
    let is_released = matches!(order, Some(HostOrder::Enable | HostOrder::EnableOnceUp));
    // A nova-compute that has lost its identity does not report before that is restored.
    let identity = host.missed.order(&request);
    let identity = identity.filter(|it| !is_released || it.goal == IdentityGoal::Restore);
    identity.map(HostOrder::Identity).or(order)
}
