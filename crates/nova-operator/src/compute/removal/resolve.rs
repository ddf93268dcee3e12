//! What follows from what was observed of a compute that goes, whatever its attempts do.

use api::conditions::find;
use kube::ResourceExt;
use nova_config::annotations::SKIP_CLEANUP;
use nova_config::conditions::HOST_CLEANED;
use operator_core::run_engine::Run;

use crate::compute::removal::nova_removal::has_begun;
use crate::compute::removal::observed::Observed;
use crate::compute_status::registration::has_registered;
use crate::group::inherited_annotation::annotation;
use crate::nova::drain::progress::HostProgress;
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
    /// Whether its user lets the compute go without its cleanup.
    pub is_skipped: bool,
    /// What its removal has to do with nova's API.
    pub way: Way,
    /// Whether a compute that is only inspected is held, because nova has not shown that its host is
    /// empty.
    pub is_held: bool,
    /// The runs that clean up after the compute.
    pub cleanups: Vec<Run<'a>>,
    /// All other runs of the compute.
    pub others: Vec<Run<'a>>,
}

impl<'a> Resolved<'a> {
    /// Returns what follows from what was observed.
    pub fn of(seen: &'a Observed) -> Self {
        let is_skipped = is_skipped(seen);
        let way = if is_skipped { Way::ByHand } else { way(seen) };
        let is_empty = seen.drain.as_ref().is_some_and(HostProgress::is_empty);
        let runs = seen.runs.iter().filter_map(|it| Run::of(it));
        let (cleanups, others) = runs.partition(|it| cleans_up_after(it.object).is_some());
        let is_held = way == Way::Inspected && (!is_empty || is_unread(seen));
        Self { seen, is_skipped, way, is_held, cleanups, others }
    }

    /// Whether the removal goes through nova's API.
    pub fn is_by_api(&self) -> bool {
        self.way == Way::ByApi
    }
}

/// The user may set the annotation on the compute, on its node, or on what the node belongs to.
fn is_skipped(seen: &Observed) -> bool {
    let node = seen.node.as_deref().filter(|it| owns(it, &seen.compute));
    let inherited = node.and_then(|it| annotation(seen.group.as_ref(), it, SKIP_CLEANUP));
    let own = seen.compute.annotations().get(SKIP_CLEANUP).map(String::as_str);
    [own, inherited.map(|it| it.0)].contains(&Some("true"))
}

/// Of a compute that is not known to have registered, nova may have nothing, or the records of another
/// one.
fn way(seen: &Observed) -> Way {
    let compute = &*seen.compute;
    let began_by_hand = || find(compute.conditions(), HOST_CLEANED).is_some();
    match (has_begun(compute), has_registered(compute)) {
        _ if seen.drain.is_none() => Way::ByHand,
        (false, true) if began_by_hand() => Way::ByHand,
        (true, _) | (false, true) => Way::ByApi,
        (false, false) if compute.host_name().is_some() => Way::Inspected,
        (false, false) => Way::ByHand,
    }
}

/// Whether nova is still to be read of a compute without any record of a run, which goes without a
/// cleanup where nova has no service of its host's name.
fn is_unread(seen: &Observed) -> bool {
    let is_pending = seen.health.as_ref().is_some_and(|it| it.service == ServiceHealth::Pending);
    is_pending && !has_run(&seen.compute, !seen.runs.is_empty())
}
