//! Reads a node set, what the readings of nova's APIs have of its hosts, and the report about them;
//! and has done in nova what is requested for these hosts.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::dataplane::{NodeSet, Service};
use kube::ResourceExt;
use operator_core::finalizers::is_terminating;
use operator_core::node_set_host::{canonical_host_name, hosts};
use operator_core::object_key::Key;
use operator_runtime::api::Api;
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::conflicting_service::is_nova;
use crate::drain::before::{DrainBefore, drain_before_of};
use crate::drain::hosts_request::requested;
use crate::drain::progress::HostProgress;
use crate::drain::request::DrainRequest;
use crate::node_set_caches::NodeSetCaches;
use crate::node_set_computes::observed::{
    Disruption, HostAccess, HostDrain, HostReading, Observed, Report,
};
use crate::node_set_computes::rollout::{disruptions, enabling, request};
use crate::node_set_readiness::{lists_gate, report_name};
use crate::nova_monitor::NovaMonitor;
use crate::nova_orders::{NovaOrders, OrderOfHost};

/// Reads a node set; returns `None` when it does not exist.
pub async fn observe(
    caches: &Caches,
    of_sets: &NodeSetCaches,
    monitor: &NovaMonitor,
    orders: &Arc<NovaOrders>,
    key: &Key,
) -> Result<Option<Observed>> {
    let Some(set) = of_sets.node_sets.cache().get(key) else {
        orders.set_each(key, []);
        return Ok(None);
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
    let hosts = (!services.is_empty()).then(|| readings(monitor, &cells, &set));
    let has_gate = services.iter().flatten().any(|it| lists_gate(it));
    let report = report(of_sets, &caches.api, &set, &key.namespace).await?;
    let (drain_before, disruptions) = (drain_before_of(&set), disruptions(&set, &report));
    let drains = drains(caches, monitor, &cells, &set, (&drain_before, &disruptions));
    let drains = with_progress(orders, key, drains);
    let has_cells = !cells.is_empty();
    Ok(Some(Observed {
        set,
        hosts,
        drains,
        drain_before,
        disruptions,
        has_cells,
        has_gate,
        report,
    }))
}

/// Whether a listed service is of type nova, from its name and the service if it exists.
fn is_of_nova((name, service): &(&String, Option<Arc<Service>>)) -> bool {
    is_nova(name, service.as_deref())
}

/// Returns the hosts of a node set by name, with what is known of each.
fn readings(monitor: &NovaMonitor, cells: &[Key], set: &NodeSet) -> Vec<HostReading> {
    let all = hosts(set);
    let read = |host| {
        let health = monitor.host_in(cells, &canonical_host_name(set, host));
        HostReading { name: host.name.clone(), health }
    };
    let mut read: Vec<HostReading> = all.iter().map(read).collect();
    read.sort_by(|a, b| a.name.cmp(&b.name));
    read
}

/// A host that is to be drained or enabled, and the cell in which it is if something is to be done.
type Located = (HostDrain, Option<Key>);

/// Returns the hosts of a node set that are to be drained or enabled, or the message about the
/// annotation that is not valid. Nothing is to be done about one that is being deleted.
fn drains(
    caches: &Caches,
    monitor: &NovaMonitor,
    cells: &[Key],
    set: &NodeSet,
    (before, disruptions): (&DrainBefore, &BTreeMap<String, Disruption>),
) -> std::result::Result<Vec<Located>, String> {
    let all = hosts(set);
    let mut requested = requested(set, &all)?;
    let mut located = Vec::new();
    for it in all.iter().filter(|_| !is_terminating(set)) {
        let host = canonical_host_name(set, it);
        let health = monitor.host_in(cells, &host);
        let of = (before, disruptions.get(&it.name), health.disabled.as_deref());
        let named = requested.remove(&it.name).map(DrainRequest::Drain);
        let (is_named, enabling) = (named.is_some(), enabling(of));
        let request = match named {
            Some(request) => request,
            None => match request(set, of)? {
                Some(request) => request,
                None => continue,
            },
        };
        let (access, cell) = access(caches, monitor, cells, (set, &host));
        let (name, progress) = (it.name.clone(), HostProgress::Pending);
        let drain = HostDrain { name, host, is_named, request, enabling, health, access, progress };
        located.push((drain, cell));
    }
    located.sort_by(|a, b| a.0.name.cmp(&b.0.name));
    Ok(located)
}

/// Returns whether a node set decides about a host, and the cell of the host if so.
fn access(
    caches: &Caches,
    monitor: &NovaMonitor,
    cells: &[Key],
    (set, host): (&NodeSet, &str),
) -> (HostAccess, Option<Key>) {
    let Some(key) = monitor.cell_with(cells, host) else { return (HostAccess::NoCell, None) };
    if let Some(compute) = monitor.compute_on(&key, host) {
        return (HostAccess::Other(format!("NovaExternalCompute {compute}")), None);
    }
    if let Some(older) = older_set_with(caches, set, host) {
        return (HostAccess::Other(format!("OpenStackDataPlaneNodeSet {older}")), None);
    }
    let secret = caches.cells.get(&key).map(|it| it.spec.secret.clone()).unwrap_or_default();
    (HostAccess::Cell(secret), Some(key))
}

/// Returns the name of an older node set of the namespace with a host that registers under that
/// name; `None` without one.
fn older_set_with(caches: &Caches, set: &NodeSet, host: &str) -> Option<String> {
    let age = |it: &NodeSet| (it.creation_timestamp().map(|it| it.0), it.name_any());
    let has = |it: &NodeSet| hosts(it).iter().any(|of| canonical_host_name(it, of) == host);
    let all = caches.node_sets_of(&set.namespace().unwrap_or_default()).into_iter();
    all.filter(|it| age(it) < age(set)).find(|it| has(it)).map(|it| it.name_any())
}

/// Has done in nova from now on what is to be done about the hosts, and nothing else about hosts of
/// the node set; adds how far that is.
fn with_progress(
    orders: &Arc<NovaOrders>,
    set: &Key,
    drains: std::result::Result<Vec<Located>, String>,
) -> std::result::Result<Vec<HostDrain>, String> {
    let of_host = |(drain, cell): &Located| {
        let order = drain.request.order(drain.enabling.clone())?;
        Some(OrderOfHost { cell: cell.clone()?, host: drain.host.clone(), order })
    };
    let wanted: Vec<OrderOfHost> = drains.iter().flatten().filter_map(of_host).collect();
    let mut found: BTreeMap<String, HostProgress> = orders.set_each(set, wanted);
    let mut with_progress = |(drain, _): Located| {
        let progress = found.remove(&drain.host).unwrap_or_default();
        HostDrain { progress, ..drain }
    };
    drains.map(|it| it.into_iter().map(&mut with_progress).collect())
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
    let name = report_name(set);
    let found = all.into_iter().find(|it| it.name_any() == name);
    Ok(found.map_or(Report::Missing, Report::Found))
}
