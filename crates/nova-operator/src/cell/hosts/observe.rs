//! Reads what concerns the hosts of a cell in nova.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::dataplane::NodeSet;
use api::nova::{Cell, ExternalCompute, Leftover};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use nova_config::annotations::SKIP_CLEANUP;
use operator_core::finalizers::is_terminating;
use operator_core::node_set_host::{Host, canonical_host_name, hosts};
use operator_core::object_key::Key;
use operator_runtime::clock;
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::cell::config::is_cell_zero;
use crate::cell::hosts::observed::{HostsSeen, LeftoverSeen, has_ids, user};
use crate::cell::mappings::observed::AwaitedHost;
use crate::drain::progress::HostProgress;
use crate::node_set_cells::uses_cell;
use crate::node_set_computes::removal::observed::{leftover_uid, terminating};
use crate::node_set_computes::removal::record::{HostRecord, records};
use crate::nova_monitor::{ApiHosts, NovaMonitor};

/// What is read of the caches and of nova's API.
struct Sources<'a> {
    caches: &'a Caches,
    monitor: &'a NovaMonitor,
    cell: &'a Key,
}

/// Returns what is observed in nova of a cell's hosts; `None` for a cell0, which has none, and
/// where nova's API is not used. `computes` are those of the cell.
pub async fn observe(
    caches: &Caches,
    cell: &Cell,
    key: &Key,
    computes: &[Arc<ExternalCompute>],
) -> Result<Option<HostsSeen>> {
    let monitor = caches.nova.as_deref().filter(|_| !is_cell_zero(cell));
    let Some(monitor) = monitor else { return Ok(None) };
    let from = Sources { caches, monitor, cell: key };
    let leftovers = cell.status.as_ref().map(|it| it.leftovers.as_slice()).unwrap_or_default();
    let Leaving { let_go, removing, unmapping } = leaving(caches, key, leftovers).await?;
    let is_releasing = is_terminating(cell) && computes.is_empty();
    Ok(Some(HostsSeen {
        leftovers: from.leftovers(leftovers, &let_go),
        let_go,
        removing,
        unmapping,
        hosts: is_releasing.then(|| from.hosts(leftovers)).flatten(),
    }))
}

/// The hosts of a cell that leave node sets, and have host finalizers.
#[derive(Default)]
struct Leaving {
    /// What those leave that are let go without a removal from nova.
    let_go: Vec<Leftover>,
    /// The others, named as their services are registered.
    removing: Vec<String>,
    /// Those of them whose removals wait for their mappings.
    unmapping: Vec<AwaitedHost>,
}

/// Returns the hosts of a cell that leave node sets; `known` are the leftovers of the cell.
///
/// After a restart it waits until node sets and reports have been listed, unless the cluster lacks
/// the kinds: without them, what is recorded of the hosts would be forgotten, and hosts would count
/// as unused.
async fn leaving(caches: &Caches, cell: &Key, known: &[Leftover]) -> Result<Leaving> {
    let mut all = Leaving::default();
    let Some(of_sets) = &caches.node_sets else { return Ok(all) };
    let are_served = of_sets.node_sets.open(&caches.api).await?;
    if !are_served || !of_sets.reports.open(&caches.api).await? {
        return Ok(all);
    }
    for set in caches.node_sets_of(&cell.namespace) {
        let Some(report) = of_sets.report_about(&set) else { continue };
        let is_skipped = set.annotations().get(SKIP_CLEANUP).is_some_and(|it| it == "true");
        let records = records(&report);
        for (name, host) in terminating(&set, &report) {
            match records.get(name).filter(|it| it.cell == cell.name) {
                None => {}
                Some(record) if is_skipped => {
                    all.let_go.push(let_go(&set, (name, host), record, known));
                }
                Some(record) => {
                    all.removing.push(host.to_owned());
                    all.unmapping.extend(record.awaited(host));
                }
            }
        }
    }
    Ok(all)
}

/// Returns what a host leaves that is let go.
fn let_go(
    set: &NodeSet,
    (name, host): (&str, &str),
    record: &HostRecord,
    known: &[Leftover],
) -> Leftover {
    let uid = leftover_uid(set, name);
    let before = known.iter().find(|it| it.uid == uid);
    Leftover {
        host_name: host.to_owned(),
        compute: name.to_owned(),
        stopped: false,
        since: before.map_or_else(|| Time(clock::now()), |it| it.since.clone()),
        service_id: record.service_id.clone(),
        compute_id: record.compute_id.clone(),
        message: String::new(),
        uid,
    }
}

impl Sources<'_> {
    /// Returns what is known of the leftovers with UUIDs, without those of computes that are there, and
    /// of hosts in `let_go`.
    fn leftovers(
        &self,
        leftovers: &[Leftover],
        let_go: &[Leftover],
    ) -> BTreeMap<String, LeftoverSeen> {
        let caches = self.caches;
        let leftovers: Vec<&Leftover> = leftovers.iter().filter(|it| has_ids(it)).collect();
        if leftovers.is_empty() {
            return <_>::default();
        }
        let namespace = &self.cell.namespace;
        let mut computes = caches.computes.all();
        computes.retain(|it| it.metadata.namespace.as_ref() == Some(namespace));
        let is_there = |it: &&&Leftover| {
            let is_compute = computes.iter().any(|of| of.uid().as_ref() == Some(&it.uid));
            is_compute || let_go.iter().any(|of| of.uid == it.uid)
        };
        let of_sets = caches.node_sets_of(namespace);
        let of_sets = of_sets.iter().flat_map(|it| named(it, &it.name_any())).collect();
        let gone: Vec<&&Leftover> = leftovers.iter().filter(|it| !is_there(it)).collect();
        gone.into_iter()
            .map(|it| {
                let user = user(it, &computes, &of_sets);
                let seen = match user.or_else(|| self.other_user(it)) {
                    Some(user) => LeftoverSeen::InUse(user),
                    None => self.leftover(it),
                };
                (it.uid.clone(), seen)
            })
            .collect()
    }

    /// Returns the object of another namespace that has the host of a leftover in the same nova.
    fn other_user(&self, leftover: &Leftover) -> Option<String> {
        let host = &leftover.host_name;
        let compute = self.monitor.compute_on(self.cell, host);
        let compute = compute.map(|it| format!("NovaExternalCompute {it}"));
        let of_set = || self.monitor.node_set_on(self.cell, host);
        compute.or_else(|| of_set().map(|it| format!("OpenStackDataPlaneNodeSet {it}")))
    }

    fn leftover(&self, leftover: &Leftover) -> LeftoverSeen {
        let node = self.monitor.host(self.cell, &leftover.host_name).compute_id;
        let is_other = |it: &String| leftover.compute_id.as_ref().is_some_and(|id| id != it);
        let other = node.filter(is_other).map(LeftoverSeen::OtherNode);
        other.unwrap_or(LeftoverSeen::Progress(HostProgress::Pending))
    }

    /// Returns the hosts of the cell; `None` where it is unknown which it has.
    fn hosts(&self, leftovers: &[Leftover]) -> Option<Vec<(String, HostProgress)>> {
        let caches = self.caches;
        let mut all: BTreeSet<String> = leftovers.iter().map(|it| it.host_name.clone()).collect();
        let sets = caches.node_sets_of(&self.cell.namespace);
        let of_cell =
            sets.iter().filter(|it| uses_cell(it, self.cell, |it| caches.services.get(it)));
        all.extend(of_cell.flat_map(|it| named(it, "").into_iter().map(|it| it.0)));
        // The service whose files the hosts have may be gone before its cell.
        all.extend(sets.iter().flat_map(|it| recorded(caches, it, self.cell)));
        match self.monitor.hosts(self.cell) {
            ApiHosts::OfSeveralCells => {}
            ApiHosts::Unknown => return None,
            ApiHosts::OfCell(hosts) => all.extend(hosts),
        }
        Some(all.into_iter().map(|host| (host, HostProgress::Pending)).collect())
    }
}

/// Returns the hosts of a node set whose records have them in a cell, as they are registered.
fn recorded(caches: &Caches, set: &NodeSet, cell: &Key) -> Vec<String> {
    let report = caches.node_sets.as_ref().and_then(|it| it.report_about(set));
    let Some(report) = report else { return vec![] };
    let records = records(&report);
    let is_there = |it: &Host<'_>| records.get(&*it.name).is_some_and(|it| it.cell == cell.name);
    let all = hosts(set).into_iter().filter(|it| is_there(it));
    all.filter_map(|it| report.spec.host_finalizers.get(&it.name).cloned()).collect()
}

/// Returns the hosts of a node set as they are registered, each with `text`.
fn named(set: &NodeSet, text: &str) -> Vec<(String, String)> {
    hosts(set).iter().map(|it| (canonical_host_name(set, it), text.to_owned())).collect()
}
