//! Maps changes of observed objects to the node sets that they concern.

use std::sync::Arc;

use api::dataplane::NodeSet;
use kube::ResourceExt;
use operator_core::node_set_host;
use operator_core::object_key::Key;
use operator_runtime::workqueue::{DEBOUNCE, WorkQueue};

use crate::host_conflicts::Claim;
use crate::indexes::{BY_HOST, BY_NODE_SET, node_sets_of};
use crate::node_set::observe::Caches;
use crate::node_set::tls::{certificate_source, node_set_of};

/// Registers the event handlers that enqueue node sets in `queue`.
pub fn map_events(queue: &Arc<WorkQueue>, caches: &Caches) {
    map_hosts(queue, caches);
    map_others(queue, caches);
    let to = Arc::clone(queue);
    caches.deployments.on_change(move |deployment| {
        for key in node_sets_of(deployment) {
            to.push_in(key, DEBOUNCE);
        }
    });
    map_services(queue, caches);
    let (to, all) = (Arc::clone(queue), Arc::clone(&caches.node_sets));
    caches.attachments.on_change(move |key| {
        let is_here = |it: &&Arc<NodeSet>| it.namespace().as_ref() == Some(&key.namespace);
        let names = |it: &&Arc<NodeSet>| it.spec.network_attachments.contains(&key.name);
        for set in all.all().iter().filter(is_here).filter(names) {
            to.push(Key::of(&**set));
        }
    });
    let to = Arc::clone(queue);
    caches.sources.on_change(move |reader| to.push(reader));
}

/// A service concerns the node sets that list it, those whose deployments bring it, and those where
/// such a service uses its certificates.
fn map_services(queue: &Arc<WorkQueue>, caches: &Caches) {
    let (to, all) = (Arc::clone(queue), Arc::clone(&caches.node_sets));
    let (services, deployments) = (Arc::clone(&caches.services), Arc::clone(&caches.deployments));
    caches.services.on_change(move |service| {
        let (name, namespace) = (service.name_any(), service.namespace());
        let is_concerned = |it: &String| {
            let other = || services.get(&Key::new(namespace.clone().unwrap_or_default(), it));
            *it == name || other().is_some_and(|it| certificate_source(&it) == Some(name.as_str()))
        };
        for set in all.all().iter().filter(|it| it.namespace() == namespace) {
            let brought = deployments.indexed(BY_NODE_SET, &Key::of(&**set));
            let mut brought = brought.iter().flat_map(|it| &it.spec.services_override);
            if set.spec.services.iter().any(is_concerned) || brought.any(is_concerned) {
                to.push(Key::of(&**set));
            }
        }
    });
}

/// External objects change host by host, so their events are debounced.
fn map_others(queue: &Arc<WorkQueue>, caches: &Caches) {
    let (to, all) = (Arc::clone(queue), Arc::clone(&caches.node_sets));
    caches.others.on_change(move |namespace| {
        for set in all.all().iter().filter(|it| it.namespace().as_deref() == Some(namespace)) {
            to.push_in(Key::of(&**set), DEBOUNCE);
        }
    });
    let to = Arc::clone(queue);
    caches.machines.on_change(move |key| to.push_in(key, DEBOUNCE));
    let to = Arc::clone(queue);
    caches.secrets.on_change(move |secret| {
        for key in node_set_of(secret) {
            to.push_in(key, DEBOUNCE);
        }
    });
}

/// A change of a host description enqueues the node sets that describe the same host. A run that
/// reports host keys enqueues the node sets with hosts at those addresses.
fn map_hosts(queue: &Arc<WorkQueue>, caches: &Caches) {
    let (to, all) = (Arc::clone(queue), Arc::clone(&caches.node_sets));
    caches.node_sets.on_change(move |set| {
        to.push(Key::of(set));
        for key in Claim::of_node_set(set).lookup_keys() {
            for other in all.indexed(BY_HOST, &key) {
                to.push(Key::of(&*other));
            }
        }
    });
    let (to, all) = (Arc::clone(queue), caches.claim_caches.clone());
    caches.claim_caches.nodes.on_change(move |node| {
        for key in all.of_node(node).lookup_keys() {
            for set in all.node_sets.indexed(BY_HOST, &key) {
                to.push(Key::of(&*set));
            }
        }
    });
    let (to, all) = (Arc::clone(queue), Arc::clone(&caches.node_sets));
    caches.runs.on_change(move |run| {
        let Some(status) = run.status.as_ref().filter(|it| !it.host_keys.is_empty()) else {
            return;
        };
        let reported = |name: &str| status.host_keys.iter().any(|it| it.name == name);
        let addresses: Vec<&str> = run
            .spec
            .hosts
            .iter()
            .filter(|it| reported(&it.name))
            .map(|it| it.address.as_str())
            .collect();
        let is_here = |it: &&Arc<NodeSet>| it.namespace() == run.namespace();
        let has = |set: &NodeSet| {
            node_set_host::hosts(set).iter().any(|it| addresses.contains(&it.address().as_str()))
        };
        for set in all.all().iter().filter(is_here).filter(|it| has(it)) {
            to.push(Key::of(&**set));
        }
    });
}
