//! Exposes ports of the hosts as Kubernetes Services, for each service that lists ports.
//!
//! The addresses are those of all nodes that get the service, whatever their role.

pub mod build;
pub mod decide;
pub mod observe;

pub mod observed;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use api::dataplane::{Node, Role, Service};
use kube::{Resource, ResourceExt};
use operator_core::object_key::Key;
use operator_runtime::cache::Cache;
use operator_runtime::workqueue::WorkQueue;

use crate::endpoints::observe::Caches;

pub use observed::Observed;

/// Enqueues the services whose ports a change concerns; most services expose none and are skipped.
pub fn map_events(queue: &Arc<WorkQueue>, caches: &Caches) {
    let push = exposing(queue, &caches.services);
    caches.roles.on_change(move |it: &Role| push(it, &it.spec.services));
    let (push, roles) = (exposing(queue, &caches.services), Arc::clone(&caches.roles));
    caches.nodes.on_change(move |it: &Node| match &it.spec.role {
        Some(role) => {
            let role = roles.get(&Key::new(it.namespace().unwrap_or_default(), role));
            push(it, role.as_ref().map(|it| it.spec.services.as_slice()).unwrap_or_default());
        }
        None => push(it, &it.spec.services),
    });
    let owners = Arc::clone(queue);
    caches.exposed.on_change(move |it| push_owner(&owners, it));
    let owners = Arc::clone(queue);
    caches.slices.on_change(move |it| push_owner(&owners, it));
}

/// Returns a function that enqueues those of the named services, in an object's namespace, that
/// expose ports.
fn exposing<K: Resource>(
    queue: &Arc<WorkQueue>,
    services: &Arc<Cache<Service>>,
) -> impl Fn(&K, &[String]) + Send + Sync + 'static {
    let (queue, services) = (Arc::clone(queue), Arc::clone(services));
    move |beside, names| {
        for name in names {
            let key = Key::new(beside.namespace().unwrap_or_default(), name);
            if services.get(&key).is_some_and(|it| !it.spec.services.is_empty()) {
                queue.push(key);
            }
        }
    }
}

fn push_owner<K: Resource>(queue: &WorkQueue, object: &K) {
    let kind = Service::kind(&());
    for owner in object.owner_references().iter().filter(|it| it.kind == kind) {
        queue.push(Key::new(object.namespace().unwrap_or_default(), &owner.name));
    }
}
