//! What follows from what was observed of a compute that goes.

use api::conditions::{Condition, ConditionStatus, find};
use api::dataplane::service_run::RunState;
use api::dataplane::{Node, ServiceRun};
use api::nova::{Cell, ExternalCompute, ExternalComputeStatus};
use kube::ResourceExt;
use nova_config::annotations::SKIP_CLEANUP;
use nova_config::conditions::{HOST_CLEANED, HOST_UNMAPPED};
use nova_config::services::{LIBVIRT, NOVA_CLEANUP};
use operator_core::run_engine::Run;
use operator_core::run_engine::service_sequence::{has_begun, is_first_attempt};
use operator_core::run_engine::ssh_secret::PRIVATE_KEY;

use crate::compute::deploy::build;
use crate::compute::deploy::inputs::went_to;
use crate::compute::deploy::nova_matches;
use crate::compute::host_layout::is_published;
use crate::compute::removal::build::{Extent, identity};
use crate::compute::removal::known_mappings::{self, Mapping};
use crate::compute::removal::messages;
use crate::compute::removal::observed::Observed;
use crate::compute_status::host_cleaned::{concluded, goes_by_api};
use crate::compute_status::registration::{has_registered, was_deployed};
use crate::group::inherited_annotation::annotation;
use crate::nova::drain::order::{Drain, DrainMode};
use crate::nova::drain::progress::HostProgress;
use crate::nova::drain::request::{DrainRequest, requested};
use crate::nova::health::ServiceHealth;
use crate::requested::cell_immutability::{has_run, owns};
use crate::shared_caches::cleanup_runs::cleans_up_after;

/// What a removal has to do with nova's API.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way {
    /// Nothing, because that API is not used, or its user lets the compute go. A removal that began so
    /// ends so.
    ByHand,
    /// Nova is only asked for servers before the host is stopped: the compute is not known to have
    /// registered, but may have done so by itself after its deployment failed.
    Inspected,
    /// The host is drained, and what nova has of it is removed.
    ByApi,
}

/// What follows from what was observed.
pub struct Resolved<'a> {
    /// What was observed.
    pub seen: &'a Observed,
    /// The compute.
    pub compute: &'a ExternalCompute,
    /// Its node; `None` also where another node has its name by now.
    pub own_node: Option<&'a Node>,
    /// The name under which nova knows the host.
    pub host: String,
    /// The command to proceed without the host, in a sentence.
    pub skip: String,
    /// The name of the cell's Secret with the credentials; empty without a cell.
    pub secret: &'a str,
    /// The address of the host, or why no run can be made there.
    pub address: Result<String, String>,
    /// Whether the inventory that its node publishes is not written yet: the node may have been held only a
    /// moment ago.
    pub lacks_inventory: bool,
    /// Whether its user lets the compute go without its cleanup.
    pub is_skipped: bool,
    /// What its removal has to do with nova's API.
    pub way: Way,
    /// Why the finalizer can be removed at once; `None` where a cleanup is needed.
    pub needs_nothing: Option<&'static str>,
    /// What is reported in place of an order, while nova has the host under another identity than the
    /// recorded one.
    pub other_identity: Option<HostProgress>,
    /// How the host is drained.
    pub drain: Drain,
    /// How far the order about the host is; `None` where nova's API is not used.
    pub progress: Option<&'a HostProgress>,
    /// Whether nova has shown that stopping nova-compute ends nothing on the host, where it is asked.
    pub may_stop: bool,
    /// What a cleanup run takes away from the host.
    pub extent: Extent,
    /// The runs that clean up after the compute.
    pub cleanups: Vec<Run<'a>>,
    /// All other runs of the compute.
    pub others: Vec<Run<'a>>,
    /// The final condition `HostCleaned`; `None` before the cleanup has ended.
    pub concluded: Option<&'a Condition>,
    /// What is known of the mapping of the host.
    pub mapping: Mapping,
    /// What is reported of nova's records of the host; empty where the operator removes them.
    pub left: String,
    /// The cell that is still to record what nova keeps of the host.
    pub unrecorded_in: Option<&'a Cell>,
}

impl<'a> Resolved<'a> {
    /// Returns what follows from what was observed.
    pub fn of(seen: &'a Observed) -> Self {
        let compute = &*seen.compute;
        let own_node = seen.node.as_deref().filter(|it| owns(it, compute));
        let host = messages::host(compute);
        let is_skipped = is_skipped(seen, own_node);
        let way = if is_skipped { Way::ByHand } else { way(seen) };
        let runs = seen.runs.iter().filter_map(|it| Run::of(it));
        let (cleanups, others): (Vec<_>, Vec<_>) =
            runs.partition(|it| cleans_up_after(it.object).is_some());
        let is_by_api = way == Way::ByApi;
        let has_run = has_run(compute, !seen.runs.is_empty());
        Self {
            seen,
            compute,
            own_node,
            skip: messages::skip(compute),
            secret: seen.cell.as_ref().map(|it| it.spec.secret.as_str()).unwrap_or_default(),
            address: address(seen),
            lacks_inventory: !seen.has_inventory
                && own_node.is_some_and(|it| is_published(compute, it)),
            is_skipped,
            way,
            needs_nothing: needs_nothing(seen, way, has_run),
            other_identity: nova_matches::held(seen.identity_sources()),
            drain: drain(seen),
            progress: seen.drain.as_ref(),
            may_stop: may_stop(seen, way, has_run),
            extent: if is_by_api { extent(seen, &cleanups) } else { Extent::Units },
            cleanups,
            others,
            concluded: concluded(compute),
            mapping: mapping(seen, &host),
            left: if is_by_api { String::new() } else { messages::left_in_nova(compute) },
            unrecorded_in: unrecorded_in(seen),
            host,
        }
    }

    /// Whether the removal goes through nova's API.
    pub fn is_by_api(&self) -> bool {
        self.way == Way::ByApi
    }

    /// Whether a compute that is only inspected is held, because nova has not shown that its host is
    /// empty.
    pub fn is_held(&self) -> bool {
        self.way == Way::Inspected && !self.may_stop
    }
}

/// The user may set the annotation on the compute, on its node, or on what the node belongs to.
fn is_skipped(seen: &Observed, own_node: Option<&Node>) -> bool {
    let inherited = own_node.and_then(|it| annotation(seen.group.as_ref(), it, SKIP_CLEANUP));
    let own = seen.compute.annotations().get(SKIP_CLEANUP).map(String::as_str);
    [own, inherited.map(|it| it.0)].contains(&Some("true"))
}

/// Of a compute that is not known to have registered, nova may have nothing, or the records of another
/// one.
fn way(seen: &Observed) -> Way {
    let compute = &*seen.compute;
    let began_by_hand = || find(compute.conditions(), HOST_CLEANED).is_some();
    match (goes_by_api(compute), has_registered(compute)) {
        _ if seen.drain.is_none() => Way::ByHand,
        (false, true) if began_by_hand() => Way::ByHand,
        (true, _) | (false, true) => Way::ByApi,
        (false, false) if compute.host_name().is_some() => Way::Inspected,
        (false, false) => Way::ByHand,
    }
}

fn needs_nothing(seen: &Observed, way: Way, has_run: bool) -> Option<&'static str> {
    if seen.namespace_goes {
        return Some("its namespace is being deleted");
    }
    if seen.compute.is_observed() && seen.drain.is_none() {
        return Some("nova's API is not read, so the compute is not looked after");
    }
    if !has_run {
        return (!may_have_registered(seen, way)).then_some("it has never touched its host");
    }
    (!may_have_started(seen)).then_some("nova-compute was never started on its host")
}

/// Whether a compute without any record of a run may have registered all the same, as one that was
/// restored without its status has: nova has not shown that it has no service of its host's name. In a
/// cell that does not exist none can have.
fn may_have_registered(seen: &Observed, way: Way) -> bool {
    let is_absent = seen.health.as_ref().is_some_and(|it| it.service == ServiceHealth::NotFound);
    way == Way::Inspected && seen.cell.is_some() && !is_absent
}

/// Whether nova-compute may have been started on the host, and so be registered in nova.
///
/// The record of the cleanup replaces all other records, and is made only when this holds.
fn may_have_started(seen: &Observed) -> bool {
    // While a service sequence is in progress, its later services may have started without being
    // recorded.
    let is_held_up = |it: &ServiceRun| matches!(it.state, RunState::Pending | RunState::Failed);
    let shows_start = |it: &ServiceRun| match it.name.as_str() {
        NOVA_CLEANUP => true,
        LIBVIRT => !is_held_up(it),
        _ => !is_first_attempt(it),
    };
    was_deployed(&seen.compute)
        || (seen.compute.is_observed() && is_under_way(seen.node.as_deref()))
        || seen.compute.services().iter().any(shows_start)
        || seen.runs.iter().filter_map(|it| Run::of(it)).any(|it| it.service != LIBVIRT)
}

/// Whether a sequence of services may be in progress on a node's host: that its first run has begun, and
/// what follows, may be recorded at its end alone.
fn is_under_way(node: Option<&Node>) -> bool {
    let status = node.and_then(|it| it.status.as_ref());
    let services = status.map(|it| it.services.as_slice()).unwrap_or_default();
    // A failure stops the services after it.
    let mut until_failure = services.iter().take_while(|it| it.state != RunState::Failed);
    has_begun(services) || until_failure.any(|it| it.state == RunState::Pending)
}

/// A host that nova does not list is empty only if it was listed before: else it may have another name
/// there.
fn may_stop(seen: &Observed, way: Way, has_run: bool) -> bool {
    let is_pending = seen.health.as_ref().is_some_and(|it| it.service == ServiceHealth::Pending);
    match (way, &seen.drain) {
        (Way::ByHand, _) | (Way::ByApi, Some(HostProgress::Drained)) => true,
        // Without any record of a run, the compute goes without a cleanup where nova has no service of its
        // host's name, which is still to be read.
        (Way::Inspected, _) if is_pending && !has_run => false,
        (Way::Inspected, progress) => progress.as_ref().is_some_and(HostProgress::is_empty),
        (Way::ByApi, Some(HostProgress::NotFound)) => was_listed(&seen.compute),
        (Way::ByApi, _) => false,
    }
}

/// Whether nova has ever listed the host of a compute, as far as its status says: a compute node without
/// a nova may be one that its deployment has reported and nova did not have.
fn was_listed(compute: &ExternalCompute) -> bool {
    let lists = |it: &ExternalComputeStatus| it.nova.is_some() && it.compute_id.is_some();
    compute.status.as_ref().is_some_and(|it| it.service_id.is_some() || lists(it))
}

/// Its servers are migrated only where the node asks for it.
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

/// The host leaves, and not only its compute, where its node leaves or is gone. A cleanup that has begun
/// with the agents of neutron, or without them, ends so.
fn extent(seen: &Observed, cleanups: &[Run<'_>]) -> Extent {
    let compute = &*seen.compute;
    let node = &compute.spec.dataplane_node_name;
    let of_runs = cleanups.iter().filter_map(|it| it.attempts.get(node)).map(|it| it.hash.as_str());
    let recorded = compute.services().iter().map(|it| it.hash.as_str());
    let host_leaves = seen.node.as_deref().is_none_or(Node::is_leaving);
    let extents = [Extent::Files, Extent::Host].map(|it| (identity(compute, it), it));
    let of = |hash: &str| extents.iter().find(|it| it.0 == hash).map(|it| it.1);
    let anew = if host_leaves { Extent::Host } else { Extent::Files };
    recorded.chain(of_runs).find_map(of).unwrap_or(anew)
}

/// The address is the one that the compute recorded: a node of the same name may be another host.
fn address(seen: &Observed) -> Result<String, String> {
    let node = &seen.compute.spec.dataplane_node_name;
    if !seen.has_inventory {
        return Err(format!("the inventory of OpenStackDataPlaneNode {node} is gone"));
    }
    if !seen.ssh.as_ref().is_some_and(|it| it.keys.contains_key(PRIVATE_KEY)) {
        let (ssh_secret, _) = build::ssh(&seen.compute, seen.ssh.as_ref());
        return Err(format!("there is no Secret {ssh_secret} with {PRIVATE_KEY} any more"));
    }
    let status = seen.compute.status.as_ref();
    let recorded = status.and_then(|it| it.address.clone());
    let of_node = seen.node.as_ref().and_then(|it| it.status.as_ref()?.address.clone());
    match (recorded, of_node) {
        (Some(recorded), Some(now)) if recorded != now => Err(format!(
            "it was deployed at {recorded}, and OpenStackDataPlaneNode {node} is now at {now}"
        )),
        (recorded, of_node) => {
            let address = recorded.or(of_node).ok_or("its address is unknown")?;
            // A failed attempt may have gone to another address since.
            if status.is_some_and(|it| !went_to(&it.deployed_inputs, &address)) {
                return Err(format!("its last complete deployment did not go to {address}"));
            }
            Ok(address)
        }
    }
}

/// What has been reported as settled stays so.
fn mapping(seen: &Observed, host: &str) -> Mapping {
    let reported = find(seen.compute.conditions(), HOST_UNMAPPED);
    if reported.is_some_and(|it| it.status == ConditionStatus::True) {
        return Mapping::Absent;
    }
    // The condition is there since the removal began, so an earlier one of this host does not count.
    let since = reported.map(|it| it.last_transition_time.0);
    known_mappings::mapping(seen.cell.as_deref(), seen.cells_are_ours, host, since)
}

/// A cell of another operator records nothing of it.
fn unrecorded_in(seen: &Observed) -> Option<&Cell> {
    let is_recorded = |cell: &Cell| {
        cell.leftovers().iter().any(|it| Some(&it.uid) == seen.compute.metadata.uid.as_ref())
    };
    seen.cell.as_deref().filter(|it| seen.cells_are_ours && !is_recorded(it))
}
