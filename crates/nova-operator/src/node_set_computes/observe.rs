//! Reads a node set, what the readings of nova's APIs have of its hosts, and the report about them.

use std::sync::Arc;

use api::dataplane::{NodeSet, Service};
use kube::ResourceExt;
use operator_core::node_set_host::{canonical_host_name, hosts};
use operator_core::object_key::Key;
use operator_runtime::api::Api;
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::conflicting_service::is_nova;
use crate::node_set_caches::NodeSetCaches;
use crate::node_set_computes::observed::{HostReading, Observed, Report};
use crate::node_set_readiness::{lists_gate, report_name};
use crate::nova_monitor::NovaMonitor;

/// Reads a node set; returns `None` when it does not exist.
pub async fn observe(
    caches: &Caches,
    of_sets: &NodeSetCaches,
    monitor: &NovaMonitor,
    key: &Key,
) -> Result<Option<Observed>> {
    let Some(set) = of_sets.node_sets.cache().get(key) else { return Ok(None) };
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
    Ok(Some(Observed { set, hosts, has_cells: !cells.is_empty(), has_gate, report }))
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
