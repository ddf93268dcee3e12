//! Maps changes of watched objects to the services that they concern.

use std::sync::Arc;

use api::dataplane::Service;
use operator_core::object_key::Key;
use operator_runtime::event_mapping::EventMapping;
use operator_runtime::workqueue::WorkQueue;

use crate::caches::Caches;
use crate::controller_names::SERVICE;
use crate::controller_ref::owner_keys;
use crate::default_services;
use crate::indexes::namespace;

/// Registers the event handlers that enqueue services in `queue`.
pub fn map_events(queue: &Arc<WorkQueue>, caches: &Arc<Caches>) {
    let services = EventMapping::new(queue, caches);
    let hosts = &caches.hosts;
    services.watches(&caches.services, |_, service| [Key::of(service)]);
    services.watches(&caches.exposed, |_, exposed| owner_keys::<Service>(exposed));
    services.watches(&caches.slices, |_, slice| owner_keys::<Service>(slice));
    services.watches(&hosts.roles, |caches, role| {
        let exposing = exposing(caches, &namespace(role), &role.spec.services);
        [exposing, missing(caches, &namespace(role))].concat()
    });
    services.watches(&hosts.nodes, |caches, node| {
        let namespace = namespace(node);
        let Some(role) = &node.spec.role else {
            let exposing = exposing(caches, &namespace, &node.spec.services);
            return [exposing, missing(caches, &namespace)].concat();
        };
        // The role has enqueued the missing default services.
        let role = caches.hosts.roles.get(&Key::new(&namespace, role));
        role.map(|it| exposing(caches, &namespace, &it.spec.services)).unwrap_or_default()
    });
    services.watches(&hosts.node_sets, |caches, set| missing(caches, &namespace(set)));
    caches.sources.on_change(SERVICE, services.handler(|_, reader| [reader]));
}

/// Returns those of the named services that expose ports; most expose none and are skipped.
fn exposing(caches: &Caches, namespace: &str, names: &[String]) -> Vec<Key> {
    let keys = names.iter().map(|it| Key::new(namespace, it));
    let exposes =
        |key: &Key| caches.services.get(key).is_some_and(|it| !it.spec.services.is_empty());
    keys.filter(exposes).collect()
}

/// Returns the default services that are missing in a namespace.
fn missing(caches: &Caches, namespace: &str) -> Vec<Key> {
    let keys = default_services::names().map(|it| Key::new(namespace, it));
    keys.filter(|it| caches.services.get(it).is_none()).collect()
}
