//! Reads a node set, what the readings of nova's APIs have of its hosts, and the report about them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::dataplane::{HostReadiness, HostState, NodeSet, Service};
use kube::ResourceExt;
use operator_core::finalizers::is_terminating;
use operator_core::node_set_host::{canonical_host_name, hosts, is_about};
use operator_core::object_key::Key;
use operator_runtime::api::Api;
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::cell::discovery::settings::{Discovery, discovery};
use crate::conflicting_service::is_nova;
use crate::drain::before::{DrainBefore, drain_before_of};
use crate::drain::hosts_request::{modes_of_leaving, requested};
use crate::drain::order::{Drain, is_of_drain};
use crate::drain::progress::HostProgress;
use crate::drain::request::DrainRequest;
use crate::node_set_caches::NodeSetCaches;
use crate::node_set_cells::used_first;
use crate::node_set_computes::claims::{Claim, NovaDeployment};
use crate::node_set_computes::observed::{
    Disruption, HostAccess, HostDrain, HostReading, Observed, Report, Seen,
};
use crate::node_set_computes::removal;
use crate::node_set_computes::removal::observe::Sources;
use crate::node_set_computes::removal::observed::{reported_state, terminating};
use crate::node_set_computes::removal::record::records;
use crate::node_set_computes::rivals::Claims;
use crate::node_set_computes::rollout::{disruptions, enabling, request};
use crate::node_set_readiness;
use crate::node_set_readiness::{lists_gate, report_key};
use crate::nova_health::MappingHealth;
use crate::nova_monitor::NovaMonitor;

/// Reads a node set; of one that is gone, the report that it has left. Returns `None` without either.
pub async fn observe(
    caches: &Caches,
    of_sets: &NodeSetCaches,
    monitor: &NovaMonitor,
    key: &Key,
) -> Result<Option<Seen>> {
    let Some(set) = of_sets.node_sets.cache().get(key) else {
        removal::observe::forget(caches, key);
        return Ok(of_sets.left_report(&caches.api, key).await?.map(Seen::Gone));
    };
    let named = |name: &String| caches.services.get(&Key::new(&key.namespace, name));
    let services: Vec<Option<Arc<Service>>> = set
        .spec
        .services
        .iter()
        .map(|it| (it, named(it)))
        .filter(is_of_nova)
        .map(|it| it.1)
        .collect();
    let cells = caches.cells_of(&key.namespace);
    let cells = used_first(cells, &set, |it| caches.services.get(it));
    let readings = (!services.is_empty()).then(|| self::readings(caches, monitor, &cells, &set));
    let has_gate = services.iter().flatten().any(|it| lists_gate(it));
    let report = report(of_sets, &caches.api, &set, &key.namespace).await?;
    let ours = report.found().filter(|it| node_set_readiness::is_ours(it));
    let all = hosts(&set);
    let leaving = ours.map(|it| names_of_leaving(&set, it)).unwrap_or_default();
    let requested = requested(&set, &all, &with_earlier_names(&set, ours, leaving.clone()));
    let claims = Claims::new((caches, monitor), &set, ours, &cells);
    let from = Sources { caches, monitor, cells: &cells, claims: &claims, report: ours };
    let of_leaving = modes_of_leaving(&set, &leaving);
    let removals = removal::observe::observe(from, &set, readings.is_some(), &of_leaving);
    let removals = removals.await?;
    let (drain_before, disruptions) = (drain_before_of(&set), disruptions(&set, &report));
    let of_rollout = (&drain_before, &disruptions);
    let drains = requested.and_then(|mut it| drains(from, &set, &mut it, of_rollout));
    Ok(Some(Seen::Present(Box::new(Observed {
        set,
        hosts: readings,
        drains,
        removals,
        drain_before,
        disruptions,
        has_cells: !cells.is_empty(),
        has_gate,
        report,
    }))))
}

/// Returns the other names of the hosts that leave a node set, by their names in the inventory.
fn names_of_leaving(set: &NodeSet, report: &HostReadiness) -> BTreeMap<String, Vec<String>> {
    let records = records(report);
    let names = |(name, host): (&str, &str)| {
        let key = records.get(name).map(|it| it.key.clone());
        let others = key.into_iter().chain([host.to_owned()]).collect();
        (name.to_owned(), others)
    };
    terminating(set, report).into_iter().map(names).collect()
}

/// Returns other names of hosts with the earlier names in nova of those that stay, as long as no host has
/// them now.
fn with_earlier_names(
    set: &NodeSet,
    report: Option<&HostReadiness>,
    mut names: BTreeMap<String, Vec<String>>,
) -> BTreeMap<String, Vec<String>> {
    let all = hosts(set);
    let present: BTreeSet<String> = all.iter().map(|it| canonical_host_name(set, it)).collect();
    let recorded = report.map(|it| &it.spec.host_finalizers);
    for host in &all {
        let earlier = recorded.and_then(|it| it.get(&host.name));
        if let Some(earlier) = earlier.filter(|it| !present.contains(*it)) {
            names.entry(host.name.clone()).or_default().push(earlier.clone());
        }
    }
    names
}

/// Whether a listed service is of type nova, from its name and the service if it exists.
fn is_of_nova((name, service): &(&String, Option<Arc<Service>>)) -> bool {
    is_nova(name, service.as_deref())
}

/// Returns the hosts of a node set by name, with what is known of each.
fn readings(
    caches: &Caches,
    monitor: &NovaMonitor,
    cells: &[Key],
    set: &NodeSet,
) -> Vec<HostReading> {
    let all = hosts(set);
    let discovers = |key: &Key| {
        let cell = caches.cells.get(key).filter(|_| caches.cells_are_ours);
        cell.is_some_and(|it| discovery(&it) != Discovery::External)
    };
    let read = |host| {
        let registered = canonical_host_name(set, host);
        let health = monitor.host_in(cells, &registered);
        let unmapped = (health.mapping == MappingHealth::NotMapped).then_some(&registered);
        let cell = unmapped.and_then(|it| monitor.cell_with(cells, it)).filter(discovers);
        HostReading { name: host.name.clone(), health, discovered_by: cell.map(|it| it.name) }
    };
    let mut read: Vec<HostReading> = all.iter().map(read).collect();
    read.sort_by(|a, b| a.name.cmp(&b.name));
    read
}

/// Returns the hosts of a node set that are to be drained or enabled, from the drains that are
/// requested. Hosts of a node set that is being deleted are among them while a deployment is under
/// way, which may wait for them: then they are removed.
fn drains(
    from: Sources<'_>,
    set: &NodeSet,
    requested: &mut BTreeMap<String, Drain>,
    (before, disruptions): (&DrainBefore, &BTreeMap<String, Disruption>),
) -> std::result::Result<Vec<HostDrain>, String> {
    let (all, recorded) = (hosts(set), from.recorded());
    let mut drains = Vec::new();
    for it in all.iter().filter(|it| !is_going(set, &it.name)) {
        let (host, deployment) = from.registered(&recorded, &it.name, canonical_host_name(set, it));
        let is_proven = deployment == Some(NovaDeployment::Succeeded);
        let health = from.monitor.host_in(from.cells, &host);
        let disruption = disruptions.get(&it.name);
        let is_awaited = disruption.is_some_and(|it| it.target.is_some());
        let of = (before, disruption, health.disabled.as_deref());
        let named = requested.remove(&it.name).map(DrainRequest::Drain);
        let (is_named, enabling) = (named.is_some(), enabling(of));
        let request = match named {
            Some(request) => request,
            None => match request(set, of)? {
                Some(request) => request,
                None => continue,
            },
        };
        let is_marked = health.disabled.as_deref().is_some_and(is_of_drain);
        let has_begun = from.claims.deployment(&it.name).is_some();
        let ends_drain = is_marked && has_begun && request == DrainRequest::Absent;
        let (access, cell) = access(from, (&host, is_proven), ends_drain);
        let identity = cell.as_ref().map(|cell| from.identity(&recorded, (&it.name, &host), cell));
        drains.push(HostDrain {
            name: it.name.clone(),
            host,
            is_named,
            request,
            is_awaited,
            enabling,
            health,
            access,
            cell,
            recorded: identity.unwrap_or_default(),
            progress: HostProgress::Pending,
        });
    }
    drains.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(drains)
}

/// Whether a host of a node set that is being deleted is removed, as its status says.
fn is_going(set: &NodeSet, host: &str) -> bool {
    is_terminating(set) && reported_state(set, host).is_none_or(|it| it == HostState::Terminating)
}

/// Returns whether a node set decides about a host, and the cell of the host if so. `host` is the name
/// under which its service is registered, and `is_proven` whether a deployment of nova has succeeded
/// there. `ends_drain` is whether only a drain of this operator is to be taken back, so that its service
/// is enabled.
fn access(
    from: Sources<'_>,
    (host, is_proven): (&str, bool),
    ends_drain: bool,
) -> (HostAccess, Option<Key>) {
    let Some(key) = from.monitor.cell_with(from.cells, host) else {
        return (HostAccess::NoCell, None);
    };
    let claim = from.claims.claim(&key, host, is_proven);
    match if ends_drain { claim.to_enable() } else { claim } {
        Claim::Own => {
            let cell = from.caches.cells.get(&key);
            let secret = cell.map(|it| it.spec.secret.clone()).unwrap_or_default();
            (HostAccess::Cell(secret), Some(key))
        }
        Claim::Unproven => (HostAccess::Unproven, None),
        Claim::Other(owner) => (HostAccess::Other(owner), None),
        Claim::Contested(owner) => (HostAccess::Contested(owner), None),
    }
}

async fn report(
    of_sets: &NodeSetCaches,
    api: &Api,
    set: &NodeSet,
    namespace: &str,
) -> Result<Report> {
    let Some(all) = of_sets.reports.seen(api, namespace).await? else {
        return Ok(Report::NotServed);
    };
    let key = report_key(&Key::of(set));
    let found = all.into_iter().find(|it| it.name_any() == key.name && is_about(it, set));
    Ok(found.map_or(Report::Missing, Report::Found))
}
