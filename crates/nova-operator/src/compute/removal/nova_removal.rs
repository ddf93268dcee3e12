//! The part of a compute's removal that happens through nova's API: its host is drained before it
//! is stopped, and what nova, placement and neutron have of it is removed afterwards.

use api::conditions::{ConditionStatus, find};
use api::dataplane::Node;
use api::nova::{ExternalCompute, ExternalComputeStatus};
use kube::ResourceExt;
use nova_config::conditions::{HOST_UNMAPPED, SERVICE_DELETED};
use operator_core::run_engine::Run;

use crate::compute::removal::attempts::{identity, is_another_s};
use crate::compute::removal::build::Extent;
use crate::compute::removal::known_mappings::{self, Mapping};
use crate::compute::removal::messages::host;
use crate::compute::removal::observed::Observed;
use crate::compute_status::host_cleaned::concluded;
use crate::nova::drain::order::{Drain, DrainMode, HostOrder, OwnService, Remove, Stop};
use crate::nova::drain::progress::HostProgress;
use crate::nova::drain::request::{DrainRequest, requested};
use crate::reasons;

/// Whether the removal of a compute goes through nova's API, as far as its status says.
pub fn has_begun(compute: &ExternalCompute) -> bool {
    find(compute.conditions(), SERVICE_DELETED).is_some()
}

/// Whether nova has ever listed the host of a compute, as far as its status says: a compute node without
/// a nova may be one that its deployment has reported and nova did not have.
pub fn was_listed(compute: &ExternalCompute) -> bool {
    let lists = |it: &ExternalComputeStatus| it.nova.is_some() && it.compute_id.is_some();
    compute.status.as_ref().is_some_and(|it| it.service_id.is_some() || lists(it))
}

/// Whether nova has nothing on the host of a compute that stopping nova-compute there would end. A host
/// that nova does not list is empty only if it was listed before: else it may have another name there.
pub fn may_stop(seen: &Observed) -> bool {
    match seen.drain {
        Some(HostProgress::Drained) => true,
        Some(HostProgress::NotFound) => was_listed(&seen.compute),
        _ => false,
    }
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
            awaits_agents: stops_agents(compute),
        });
    }
    let compute_id = compute.status.as_ref().and_then(|it| it.compute_id.clone());
    HostOrder::DrainForRemoval(drain(seen), compute_id)
}

/// Returns what the cleanup of the host takes away; `runs` are those of the cleanup. The host leaves,
/// and not only its compute, where its node leaves or is gone. A cleanup that has begun with the agents of
/// neutron, or without them, ends so.
pub fn extent(seen: &Observed, runs: &[Run<'_>]) -> Extent {
    let compute = &*seen.compute;
    let node = &compute.spec.dataplane_node_name;
    let of_runs = runs.iter().filter_map(|it| it.attempts.get(node)).map(|it| it.hash.as_str());
    let recorded = compute.services().iter().map(|it| it.hash.as_str());
    let host_leaves = seen.node.as_deref().is_none_or(Node::is_leaving);
    let extents = [Extent::Files, Extent::Host].map(|it| (identity(compute, it), it));
    let of = |hash: &str| extents.iter().find(|it| it.0 == hash).map(|it| it.1);
    let anew = if host_leaves { Extent::Host } else { Extent::Files };
    recorded.chain(of_runs).find_map(of).unwrap_or(anew)
}

/// Whether recorded attempts on the host have stopped the agents of neutron, or have tried to.
fn stops_agents(compute: &ExternalCompute) -> bool {
    let with_agents = identity(compute, Extent::Host);
    compute.services().iter().any(|it| it.hash == with_agents)
}

/// Returns how nova is asked about the host of a compute that is not known to have registered.
pub fn inspection(compute: &ExternalCompute) -> HostOrder {
    let is_another_s = compute.services().iter().any(is_another_s);
    HostOrder::InspectForRemoval(match concluded(compute) {
        None => Stop::Due,
        Some(it) if is_another_s || it.reason == reasons::cleanup::HOST_CLEANED.word => Stop::Done,
        Some(_) => Stop::Failed,
    })
}

/// Returns what is known of the mapping of the host; what has been reported as settled stays so.
pub fn mapping(seen: &Observed) -> Mapping {
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

/// Returns how the host is drained: its servers are migrated only where the node asks for it.
pub fn drain(seen: &Observed) -> Drain {
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
