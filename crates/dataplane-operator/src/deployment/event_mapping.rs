//! Maps changes of watched objects to the deployments that they concern.

use std::sync::Arc;

use api::dataplane::Deployment;
use kube::{Resource, ResourceExt};
use operator_core::object_key::Key;
use operator_runtime::cache::Cache;
use operator_runtime::workqueue::{DEBOUNCE, WorkQueue};

use crate::deployment::finalizer::is_open;
use crate::deployment::observe::{Caches, is_ours, key};
use crate::indexes::{BY_NODE_SET, node_sets_of};

/// Enqueues the deployments that a change concerns.
pub fn map_events(queue: &Arc<WorkQueue>, caches: &Caches) {
    let (to, all) = (Arc::clone(queue), Arc::clone(&caches.deployments));
    caches.deployments.on_change(move |deployment| {
        to.push(key_of(deployment));
        push_others(&to, &all, deployment);
    });
    let (to, all) = (Arc::clone(queue), Arc::clone(&caches.deployments));
    caches.node_sets.on_change(move |node_set| {
        let deployments = all.indexed(BY_NODE_SET, &Key::of(node_set));
        for deployment in deployments.iter().filter(|it| is_open(it)) {
            to.push(key_of(deployment));
        }
    });
    let (to, all) = (Arc::clone(queue), Arc::clone(&caches.deployments));
    caches.services.on_change(move |service| {
        for deployment in open_beside(&all.all(), service) {
            to.push(key_of(deployment));
        }
    });
    let (to, all) = (Arc::clone(queue), Arc::clone(&caches.deployments));
    caches.runs.on_change(move |run| {
        let (kind, namespace) = (Deployment::kind(&()), run.namespace().unwrap_or_default());
        for owner in run.owner_references().iter().filter(|it| it.kind == kind) {
            to.push(key(&namespace, &owner.name));
            // The status is not updated for each run.
            if let Some(deployment) = all.get(&Key::new(&namespace, &owner.name)) {
                push_others(&to, &all, &deployment);
            }
        }
    });
    let to = Arc::clone(queue);
    caches.sources.on_change(move |reader| {
        if is_ours(&reader) {
            to.push(reader);
        }
    });
    let (to, all) = (Arc::clone(queue), Arc::clone(&caches.deployments));
    caches.attachments.on_change(move |attachment| {
        let is_near = |it: &&Arc<Deployment>| {
            it.namespace().as_ref() == Some(&attachment.namespace) && !it.has_ended()
        };
        for deployment in all.all().iter().filter(is_near) {
            to.push(key_of(deployment));
        }
    });
}

/// Enqueues the other deployments of the same node sets, which share their disruption budget.
fn push_others(to: &WorkQueue, all: &Cache<Deployment>, deployment: &Deployment) {
    for set in node_sets_of(deployment) {
        let others = all.indexed(BY_NODE_SET, &set);
        for other in others.iter().filter(|it| it.uid() != deployment.uid() && is_open(it)) {
            to.push_in(key_of(other), DEBOUNCE);
        }
    }
}

fn key_of(deployment: &Deployment) -> Key {
    key(&deployment.namespace().unwrap_or_default(), &deployment.name_any())
}

/// Returns the open deployments in an object's namespace.
fn open_beside<'a, K: Resource>(
    all: &'a [Arc<Deployment>],
    object: &K,
) -> impl Iterator<Item = &'a Arc<Deployment>> {
    let namespace = object.namespace();
    all.iter().filter(move |it| it.namespace() == namespace && is_open(it))
}
