//! Maps changes of watched objects to the deployments that they concern.

use std::sync::Arc;

use api::dataplane::{Deployment, Node};
use kube::ResourceExt;
use operator_core::object_key::Key;
use operator_runtime::event_mapping::EventMapping;
use operator_runtime::workqueue::WorkQueue;

use crate::caches::Caches;
use crate::controller_names::DEPLOYMENT;
use crate::controller_ref::owner_keys;
use crate::deployment::finalizer::is_open;
use crate::indexes::{BY_NODE_SET, namespace, node_set_of_node, node_sets_of};

/// Registers the event handlers that enqueue deployments in `queue`.
pub fn map_events(queue: &Arc<WorkQueue>, caches: &Arc<Caches>) {
    let deployments = EventMapping::new(queue, caches);
    deployments.watches(&caches.deployments, |_, deployment| [Key::of(deployment)]);
    deployments.watches(&caches.hosts.node_sets, |caches, node_set| {
        let naming = caches.deployments.indexed(BY_NODE_SET, &Key::of(node_set));
        Key::of_each(naming.into_iter().filter(|it| is_open(it)))
    });
    deployments.watches(&caches.services, |caches, service| {
        let here = caches.deployments.in_namespace(&namespace(service));
        Key::of_each(here.into_iter().filter(|it| is_open(it)))
    });
    deployments.watches(&caches.runs, |_, run| owner_keys::<Deployment>(run));
    caches.sources.on_change(DEPLOYMENT, deployments.handler(|_, reader| [reader]));
    caches.attachments.on_change(deployments.handler(|caches, attachment| {
        let here = caches.deployments.in_namespace(&attachment.namespace);
        Key::of_each(here.into_iter().filter(|it| !it.has_ended()))
    }));
    let debounced = deployments.debounced();
    debounced.watches(&caches.deployments, others);
    debounced.watches(&caches.hosts.nodes, |caches, node: &Node| {
        let keys = node_set_of_node(node);
        let all = keys.iter().flat_map(|it| caches.deployments.indexed(BY_NODE_SET, it));
        Key::of_each(all.filter(|it| !it.has_ended()))
    });
}

/// Returns the other deployments of the same node sets, which may wait for it.
fn others(caches: &Caches, deployment: &Deployment) -> Vec<Key> {
    let node_sets = node_sets_of(deployment);
    let all = node_sets.iter().flat_map(|it| caches.deployments.indexed(BY_NODE_SET, it));
    Key::of_each(all.filter(|it| it.uid() != deployment.uid() && !it.has_ended()))
}
