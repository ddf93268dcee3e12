//! The part of a compute's removal that happens through nova's API: its host is drained before it
//! is stopped, and what nova, placement and neutron have of it is removed afterwards.

use api::conditions::{ConditionDraft, ConditionStatus, find};
use api::dataplane::{Node, ServiceRun};
use api::nova::{ExternalCompute, ExternalComputeStatus};
use kube::ResourceExt;
use nova_config::conditions::{HOST_CLEANED, HOST_UNMAPPED, SERVICE_DELETED};
use operator_core::run_engine::Run;

use crate::compute::cleanup::attempts;
use crate::compute::cleanup::attempts::is_another_s;
use crate::compute::cleanup::build::Extent;
use crate::compute::cleanup::known_mappings;
use crate::compute::cleanup::known_mappings::Mapping;
use crate::compute::cleanup::messages::{host, skip};
use crate::compute::cleanup::nova_steps::{NovaSteps, is_empty};
use crate::compute::cleanup::observed::Observed;
use crate::compute_status::host_cleaned::concluded;
use crate::compute_status::registration::has_registered;
use crate::nova::drain::order::{Drain, DrainMode, HostOrder, OwnService, Remove, Stop};
use crate::nova::drain::progress::HostProgress;
use crate::nova::drain::request::{DrainRequest, requested};
use crate::nova::health::ServiceHealth;
use crate::reasons;
use crate::requested::cell_immutability::has_run;

/// Whether the removal goes through nova's API; `is_skipped` is whether the user asked to let the
/// compute go without its cleanup.
///
/// A removal that began without that API ends without it, and of a compute that is not known to
/// have registered, nova may have nothing, or the records of another one: see [`is_inspected`].
pub fn is_by_api(seen: &Observed, is_skipped: bool) -> bool {
    let compute = &*seen.compute;
    let is_registered = has_begun(compute) || has_registered(compute);
    seen.drain.is_some() && is_registered && !is_skipped && !began_by_hand(compute)
}

/// Whether nova's API is asked for servers before the host of a compute is stopped that is not known
/// to have registered: it may have done so by itself after its deployment failed. Nothing of it is
/// changed in nova.
pub fn is_inspected(seen: &Observed, is_skipped: bool) -> bool {
    let compute = &*seen.compute;
    let has_name = compute.status.as_ref().is_some_and(|it| it.host_name.is_some());
    seen.drain.is_some()
        && has_name
        && !is_skipped
        && !is_by_api(seen, is_skipped)
        && !has_registered(compute)
}

/// Whether a compute without any record of a run may have registered all the same, as one that was
/// restored without its status has: nova has not shown that it has no service of its host's name. In a
/// cell that does not exist none can have.
pub fn may_have_registered(seen: &Observed) -> bool {
    let is_absent = seen.health.as_ref().is_some_and(|it| it.service == ServiceHealth::NotFound);
    seen.cell.is_some() && !is_absent && is_inspected(seen, false)
}

/// Whether nova is still to be read of a compute without any record of a run, which goes without a
/// cleanup where nova has no service of its host's name.
pub fn is_unread(seen: &Observed) -> bool {
    let is_pending = seen.health.as_ref().is_some_and(|it| it.service == ServiceHealth::Pending);
    is_pending && !has_run(&seen.compute, !seen.runs.is_empty())
}

fn began_by_hand(compute: &ExternalCompute) -> bool {
    find(compute.conditions(), HOST_CLEANED).is_some() && !has_begun(compute)
}

/// Whether the removal of a compute goes through nova's API, as far as its status says.
pub fn has_begun(compute: &ExternalCompute) -> bool {
    find(compute.conditions(), SERVICE_DELETED).is_some()
}

/// Whether nova has ever listed the host of a compute, as far as its status says: a compute node without
/// a nova may be one that its deployment has reported and nova did not have.
fn was_listed(compute: &ExternalCompute) -> bool {
    let lists = |it: &ExternalComputeStatus| it.nova.is_some() && it.compute_id.is_some();
    compute.status.as_ref().is_some_and(|it| it.service_id.is_some() || lists(it))
}

/// Whether nova has nothing on the host of a compute that stopping nova-compute there would end. A host
/// that nova does not list is empty only if it was listed before: else it may have another name there.
pub fn may_stop(seen: &Observed) -> bool {
    let is_absent = seen.drain == Some(HostProgress::NotFound);
    is_empty(seen.drain.as_ref()) && (!is_absent || was_listed(&seen.compute))
}

/// Returns what is to be done in nova about the host of a compute that is being deleted.
pub fn order(seen: &Observed) -> HostOrder {
    let compute = &*seen.compute;
    if let Some(concluded) = concluded(compute) {
        let status = compute.status.as_ref();
        let service = status.and_then(|it| it.service_id.clone());
        // A release before may have recorded none of a compute that the operator deploys.
        let unread = if compute.is_observed() { OwnService::None } else { OwnService::Unread };
        return HostOrder::Remove(Remove {
            service: service.map_or(unread, OwnService::Is),
            compute_id: status.and_then(|it| it.compute_id.clone()),
            is_stopped: concluded.reason == reasons::cleanup::HOST_CLEANED.word,
            is_unmapped: mapping(seen).is_settled(),
            awaits_agents: attempts::stops_agents(&compute.uid(), recorded(compute)),
        });
    }
    let compute_id = compute.status.as_ref().and_then(|it| it.compute_id.clone());
    HostOrder::DrainForRemoval(drain(seen), compute_id)
}

/// Returns what the cleanup of the host takes away; `runs` are those of the cleanup. The host leaves,
/// and not only its compute, where its node leaves or is gone.
pub fn extent(seen: &Observed, runs: &[Run<'_>]) -> Extent {
    let compute = &*seen.compute;
    let node = &compute.spec.dataplane_node_name;
    let of_runs = runs.iter().filter_map(|it| it.attempts.get(node)).map(|it| it.hash.as_str());
    let host_leaves = seen.node.as_deref().is_none_or(Node::is_leaving);
    let recorded = recorded(compute).iter().map(|it| it.hash.as_str());
    attempts::extent(&compute.uid(), recorded.chain(of_runs), host_leaves)
}

fn recorded(compute: &ExternalCompute) -> &[ServiceRun] {
    compute.status.as_ref().map(|it| it.services.as_slice()).unwrap_or_default()
}

/// Returns how nova is asked about the host of a compute that is not known to have registered.
pub fn inspection(compute: &ExternalCompute) -> HostOrder {
    let services = compute.status.iter().flat_map(|it| &it.services);
    let is_another_s = services.into_iter().any(is_another_s);
    HostOrder::InspectForRemoval(match concluded(compute) {
        None => Stop::Due,
        Some(it) if is_another_s || it.reason == reasons::cleanup::HOST_CLEANED.word => Stop::Done,
        Some(_) => Stop::Failed,
    })
}

/// Returns what is known of the mapping of the host; what has been reported as settled stays so.
fn mapping(seen: &Observed) -> Mapping {
    let compute = &*seen.compute;
    let status = compute.status.as_ref();
    let reported = status.and_then(|it| find(&it.conditions, HOST_UNMAPPED));
    if reported.is_some_and(|it| it.status == ConditionStatus::True) {
        return Mapping::Absent;
    }
    // The condition is there since the removal began, so an earlier one of this host does not count.
    let since = reported.map(|it| it.last_transition_time.0);
    known_mappings::mapping(seen.cell.as_deref(), seen.cells_are_ours, &host(compute), since)
}

/// The servers are migrated only where the node asks for it.
fn drain(seen: &Observed) -> Drain {
    let asked = seen.node.as_deref().map(|it| requested(seen.group.as_ref(), it));
    let mode = match asked {
        Some(DrainRequest::Drain(drain)) => drain.mode,
        Some(DrainRequest::Absent | DrainRequest::Invalid(_)) | None => DrainMode::Wait,
    };
    let compute = &*seen.compute;
    let (namespace, name) = (compute.namespace().unwrap_or_default(), compute.name_any());
    let reason = format!("NovaExternalCompute {namespace}/{name} is being deleted");
    Drain { mode, reason }
}

/// Returns the conditions of the steps, in their order: `Drained` while the host is not stopped
/// yet, and those after it was stopped, between which that of the host itself belongs.
pub fn conditions(seen: &Observed) -> (Option<ConditionDraft>, [ConditionDraft; 4]) {
    let compute = &*seen.compute;
    let is_concluded = concluded(compute).is_some();
    let steps = NovaSteps {
        host: &host(compute),
        skip: &skip(compute),
        secret: seen.cell.as_ref().map(|it| it.spec.secret.as_str()).unwrap_or_default(),
        cell: &compute.spec.cell_name,
        progress: seen.drain.as_ref(),
        mapping: &mapping(seen),
        previous: compute.conditions(),
        was_listed: was_listed(compute),
        is_concluded,
    };
    // Once the host is stopped, `Drained` has nothing to say any more.
    ((!is_concluded).then(|| steps.drained(drain(seen))), steps.steps())
}
