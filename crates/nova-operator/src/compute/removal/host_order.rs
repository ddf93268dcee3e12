//! What is to be done in nova about the host of a compute that goes.

use api::dataplane::ServiceRun;
use nova_config::services::NOVA_CLEANUP;
use operator_core::finalizers::has_finalizer;
use operator_core::plan::Order;
use operator_core::run_engine::outcome::FailureReason;

use crate::compute::deploy::drain::of_host;
use crate::compute::removal::build::{Extent, identity};
use crate::compute::removal::observed::Observed;
use crate::compute::removal::resolve::{Resolved, Way};
use crate::finalizers;
use crate::nova::drain::findings::Findings;
use crate::nova::drain::order::{HostOrder, OrderOfHost, OwnService, Remove, Stop};
use crate::reasons;

/// Returns the order about the host, or `None` without one; it does not follow from what passes have
/// found.
pub fn order(resolved: &Resolved<'_>) -> Option<Order<OrderOfHost>> {
    of_host(resolved.compute, host_order(resolved)?, "the compute is being deleted")
}

/// Returns what was observed with how far the order is that follows from it.
pub fn with_progress(seen: &Observed, found: &Findings) -> Observed {
    let resolved = Resolved::of(seen);
    let of_order = found.of(order(&resolved).as_ref());
    let progress = resolved.other_identity.unwrap_or(of_order);
    Observed { drain: seen.drain.as_ref().map(|_| progress), ..seen.clone() }
}

/// Returns what is to be done, or `None` for nothing, also where nova has the host under another identity
/// than the recorded one.
pub fn host_order(resolved: &Resolved<'_>) -> Option<HostOrder> {
    let is_held = has_finalizer(resolved.compute, finalizers::COMPUTE);
    if resolved.other_identity.is_some() || !is_held || resolved.needs_nothing.is_some() {
        return None;
    }
    match resolved.way {
        Way::ByHand => None,
        Way::Inspected => Some(HostOrder::InspectForRemoval(stop(resolved))),
        Way::ByApi => Some(removal(resolved)),
    }
}

/// Returns how far the stop of a host is that nova is only asked about.
fn stop(resolved: &Resolved<'_>) -> Stop {
    let is_another_s = resolved.compute.services().iter().any(is_another_s);
    match resolved.concluded {
        None => Stop::Due,
        Some(it) if is_another_s || it.reason == reasons::cleanup::HOST_CLEANED.word => Stop::Done,
        Some(_) => Stop::Failed,
    }
}

/// Whether a clean-up has found that the host records another owner: then nothing may be cleaned on it.
/// What an earlier deployment has found is no matter of the clean-up.
fn is_another_s(record: &ServiceRun) -> bool {
    let reason = record.reason.as_deref();
    record.name == NOVA_CLEANUP && reason == Some(FailureReason::HostNotOwned.as_str())
}

fn removal(resolved: &Resolved<'_>) -> HostOrder {
    let compute = resolved.compute;
    let status = compute.status.as_ref();
    let compute_id = status.and_then(|it| it.compute_id.clone());
    let Some(concluded) = resolved.concluded else {
        return HostOrder::DrainForRemoval(resolved.drain.clone(), compute_id);
    };
    let service = status.and_then(|it| it.service_id.clone());
    // A release before may have recorded none of a compute that the operator deploys.
    let unread = if compute.is_observed() { OwnService::None } else { OwnService::Unread };
    // Of attempts that have stopped the agents of neutron, or have tried to.
    let with_agents = identity(compute, Extent::Host);
    HostOrder::Remove(Remove {
        service: service.map_or(unread, OwnService::Is),
        compute_id,
        is_stopped: concluded.reason == reasons::cleanup::HOST_CLEANED.word,
        is_unmapped: resolved.mapping.is_settled(),
        awaits_agents: compute.services().iter().any(|it| it.hash == with_agents),
    })
}
