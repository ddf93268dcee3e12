//! Reads a node set, and what the readings of nova's APIs have of its hosts.

use api::dataplane::NodeSet;
use operator_core::node_set_host::{canonical_host_name, hosts};
use operator_core::object_key::Key;
use operator_runtime::cache::Cache;

use crate::caches::Caches;
use crate::conflicting_service::is_nova;
use crate::node_set_computes::observed::{HostReading, Observed};
use crate::nova_monitor::NovaMonitor;

/// Reads a node set; returns `None` when it does not exist.
pub fn observe(
    caches: &Caches,
    node_sets: &Cache<NodeSet>,
    monitor: &NovaMonitor,
    key: &Key,
) -> Option<Observed> {
    let set = node_sets.get(key)?;
    let is_nova = |name: &String| {
        is_nova(name, caches.services.get(&Key::new(&key.namespace, name)).as_deref())
    };
    let cells = caches.cells_of(&key.namespace);
    let is_counted = !cells.is_empty() && set.spec.services.iter().any(is_nova);
    let hosts = is_counted.then(|| {
        let all = hosts(&set);
        let read = |host| {
            let service = canonical_host_name(&set, host);
            let health = monitor.host_in(&cells, &service).service;
            HostReading { name: host.name.clone(), health }
        };
        let mut read: Vec<HostReading> = all.iter().map(read).collect();
        read.sort_by(|a, b| a.name.cmp(&b.name));
        read
    });
    Some(Observed { set, hosts })
}
