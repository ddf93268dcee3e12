//! Services as objects: default services are restored, all are evaluated, and host ports exposed.

pub mod decide;
pub mod observe;
pub mod observed;
pub mod status;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use api::dataplane::{Node, NodeSet, Role};
use jiff::Timestamp;
use kube::Resource;
use operator_core::object_key::Key;
use operator_core::plan::Plan;
use operator_core::rejected_write::RejectedWrite;
use operator_runtime::controller::Controller;
use operator_runtime::error::Result;
use operator_runtime::workqueue::WorkQueue;

use crate::{default_services, endpoints};

pub use observe::Caches;
pub use observed::Observed;

/// The controller of services; its keys also include default services that do not exist.
pub struct Services {
    /// The caches that it reads.
    pub caches: Caches,
}

impl Controller for Services {
    type Observed = Observed;

    const NAME: &'static str = "service";

    async fn observe(&self, key: &Key) -> Result<Option<Observed>> {
        observe::observe(&self.caches, key).await
    }

    fn decide(seen: &Observed, rejected: Option<&RejectedWrite>, now: Timestamp) -> Plan {
        decide::decide(seen, rejected, now)
    }
}

/// Enqueues the services that a change concerns.
pub fn map_events(queue: &Arc<WorkQueue>, world: &Caches) {
    endpoints::map_events(queue, &world.ports);
    let own = Arc::clone(queue);
    world.ports.services.on_change(move |it| own.push(Key::of(it)));
    let push = missing(queue, world);
    world.ports.roles.on_change(move |it: &Role| push(it));
    let push = missing(queue, world);
    world.node_sets.on_change(move |it: &NodeSet| push(it));
    let push = missing(queue, world);
    world.ports.nodes.on_change(move |it: &Node| {
        // A node with a role needs nothing: its role has enqueued them.
        if it.spec.role.is_none() {
            push(it);
        }
    });
    let readers = Arc::clone(queue);
    world.sources.on_change(move |reader| {
        if let Some(name) = reader.name.strip_prefix(observe::READER) {
            readers.push(Key::new(&reader.namespace, name));
        }
    });
}

/// Returns a function that enqueues the default services missing in an object's namespace.
fn missing<K: Resource>(
    queue: &Arc<WorkQueue>,
    caches: &Caches,
) -> impl Fn(&K) + Send + Sync + use<K> {
    let (queue, services) = (Arc::clone(queue), Arc::clone(&caches.ports.services));
    move |beside| {
        let namespace = beside.meta().namespace.clone().unwrap_or_default();
        for name in default_services::names() {
            let key = Key::new(&namespace, name);
            if services.get(&key).is_none() {
                queue.push(key);
            }
        }
    }
}
