//! What is to be done in nova about the host of a compute that is not being deleted.

use api::nova::ExternalCompute;
use operator_core::plan::Order;

use crate::compute::deploy::host_drain::{HostDrain, awaited};
use crate::compute::deploy::identity;
use crate::compute::deploy::nova_matches;
use crate::compute::deploy::observed::Observed;
use crate::compute_status::registration::has_registered;
use crate::nova::drain::findings::Findings;
use crate::nova::drain::order::{HostOrder, IdentityGoal, IdentityOrder, OrderOfHost};
use crate::nova::drain::progress::HostProgress;
use crate::nova::drain::request::DrainRequest;
use crate::nova::identity::Identity;
use crate::shared_caches::indexes::cell_key;

/// Returns the order about the host, or `None` without one.
///
/// It follows from what is recorded and read, and not from what passes have found: else each finding
/// would change the order that it was about.
pub fn order(seen: &Observed, drain: &HostDrain) -> Option<Order<OrderOfHost>> {
    seen.drain.as_ref()?;
    let order = host_order(&with_drain(seen, HostProgress::Pending))?;
    let reason = reason(drain, &order);
    let target = awaited(seen).filter(|_| is_for_change(&order)).cloned();
    let mut given = of_host(&seen.compute, order, reason)?;
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

fn reason(drain: &HostDrain, order: &HostOrder) -> &'static str {
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

/// Returns what was observed with how far the order is that follows from it.
pub fn with_progress(seen: &Observed, found: &Findings) -> Observed {
    let progress = found.of(order(seen, &HostDrain::resolve(seen)).as_ref());
    with_drain(seen, nova_matches::held(seen.identity_sources()).unwrap_or(progress))
}

fn with_drain(seen: &Observed, progress: HostProgress) -> Observed {
    Observed { drain: seen.drain.as_ref().map(|_| progress), ..seen.clone() }
}

/// Returns what is to be done, or `None` for nothing.
///
/// A node that does not exist requests nothing, so nothing is enabled because of it. Nothing is done
/// where nova has the host under another identity than the recorded one.
pub fn host_order(seen: &Observed) -> Option<HostOrder> {
    let is_held = nova_matches::held(seen.identity_sources()).is_some();
    if is_held || !has_registered(&seen.compute) {
        return None;
    }
    let HostDrain { request, may_be_disabled, belongs_to_rollout, enabling, .. } =
        HostDrain::resolve(seen);
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
    let identity = identity::order(seen, &request)
        .filter(|it| !is_released || it.goal == IdentityGoal::Restore);
    identity.map(HostOrder::Identity).or(order)
}
