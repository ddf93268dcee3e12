//! Maps changes of watched objects to the services that they concern.

use std::sync::Arc;

use api::conditions::find;
use api::dataplane::Service;
use operator_core::object_key::Key;
use operator_runtime::event_mapping::EventMapping;
use operator_runtime::workqueue::WorkQueue;

use crate::caches::Caches;
use crate::controller_names::SERVICE;
use crate::controller_ref::owner_keys;
use crate::indexes::namespace;
use crate::service::status::DATA_SOURCES_USED;
use crate::{default_services, reasons};

/// Registers the event handlers that enqueue services in `queue`.
pub fn map_events(queue: &Arc<WorkQueue>, caches: &Arc<Caches>) {
    let services = EventMapping::new(queue, caches);
    let hosts = &caches.hosts;
    services.watches(&caches.services, |_, service| [Key::of(service)]);
    services.watches(&caches.exposed, |_, exposed| owner_keys::<Service>(exposed));
    services.watches(&caches.slices, |_, slice| owner_keys::<Service>(slice));
    services.watches(&hosts.roles, |caches, role| {
        with_missing(caches, &namespace(role), &role.spec.services)
    });
    services.watches(&hosts.nodes, |caches, node| {
        if node.node_set().is_some() {
            return Vec::new();
        }
        let namespace = namespace(node);
        let Some(role) = &node.spec.role else {
            return with_missing(caches, &namespace, &node.spec.services);
        };
        // The role has enqueued the missing default services.
        let role = caches.hosts.roles.get(&Key::new(&namespace, role));
        role.map(|it| concerned(caches, &namespace, &it.spec.services)).unwrap_or_default()
    });
    services.watches(&hosts.node_sets, |caches, set| {
        with_missing(caches, &namespace(set), &set.spec.services)
    });
    caches.sources.on_change(SERVICE, services.handler(|_, reader| [reader]));
}

/// Returns those of the listed services that expose ports, or that report that nothing lists them;
/// most do neither and are skipped.
fn concerned(caches: &Caches, namespace: &str, listed: &[String]) -> Vec<Key> {
    let keys = listed.iter().map(|it| Key::new(namespace, it));
    let is_concerned = |key: &Key| {
        let service = caches.services.get(key);
        service.is_some_and(|it| !it.spec.services.is_empty() || is_reported_unused(&it))
    };
    keys.filter(is_concerned).collect()
}

fn is_reported_unused(service: &Service) -> bool {
    let found = find(service.conditions(), DATA_SOURCES_USED);
    found.is_some_and(|it| it.reason == reasons::service::NOT_USED.word)
}

/// Returns the same, and the default services that are missing in the namespace.
fn with_missing(caches: &Caches, namespace: &str, listed: &[String]) -> Vec<Key> {
    let keys = default_services::names().map(|it| Key::new(namespace, it));
    let missing = keys.filter(|it| caches.services.get(it).is_none());
    concerned(caches, namespace, listed).into_iter().chain(missing).collect()
}
