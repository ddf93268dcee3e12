//! Maps changes of observed objects to the node sets that they concern.

use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::dataplane::{Node, NodeSet, Service};
use kube::ResourceExt;
use operator_core::certificates::certificate_source;
use operator_core::node_set_host;
use operator_core::object_key::Key;
use operator_runtime::event_mapping::EventMapping;
use operator_runtime::workqueue::WorkQueue;

use crate::caches::Caches;
use crate::controller_names::NODE_SET;
use crate::controller_ref::owner_keys;
use crate::host::conflicts::Claim;
use crate::host::conflicts::host_claim::keys_of_node;
use crate::indexes::{BY_NODE_SET, namespace, node_set_of_node, node_set_of_secret, node_sets_of};

/// Registers the event handlers that enqueue node sets in `queue`.
pub fn map_events(queue: &Arc<WorkQueue>, caches: &Arc<Caches>) {
    let node_sets = EventMapping::new(queue, caches);
    let hosts = &caches.hosts;
    node_sets.watches(&hosts.node_sets, |_, set| [Key::of(set)]);
    // Several objects may describe one host: a change of one enqueues the others.
    node_sets.watches(&hosts.node_sets, |caches, set| described(caches, &Claim::of_node_set(set)));
    node_sets.watches(&hosts.nodes, |caches, node| described(caches, &caches.hosts.of_node(node)));
    node_sets.watches(&caches.runs, with_reported_hosts);
    node_sets.watches(&caches.runs, owners);
    node_sets.watches(&caches.services, with_service);
    caches.attachments.on_change(node_sets.handler(|caches, attachment| {
        let names = |set: &NodeSet| set.spec.network_attachments.contains(&attachment.name);
        keys_of(caches, &attachment.namespace, names)
    }));
    caches.sources.on_change(NODE_SET, node_sets.handler(|_, reader| [reader]));
    // These change host by host, or for each run.
    let debounced = node_sets.debounced();
    debounced.watches(&hosts.nodes, with_node);
    debounced.watches(&caches.deployments, |_, deployment| node_sets_of(deployment));
    debounced.watches(&caches.secrets, |_, secret| node_set_of_secret(secret));
    caches.machines.on_change(debounced.handler(|_, set| [set]));
    caches.external_apis.on_change(
        &debounced.handler(|caches, object| keys_of(caches, &object.namespace, |_| true)),
    );
}

/// Returns the node sets of a namespace that are concerned.
fn keys_of(caches: &Caches, namespace: &str, is_concerned: impl Fn(&NodeSet) -> bool) -> Vec<Key> {
    let here = caches.hosts.node_sets.in_namespace(namespace);
    Key::of_each(here.into_iter().filter(|it| is_concerned(it)))
}

/// Returns the node sets that describe a host of a claim.
fn described(caches: &Caches, claim: &Claim) -> Vec<Key> {
    claim.lookup_keys().iter().flat_map(|it| caches.hosts.node_sets_at(it)).collect()
}

/// Returns the node set whose node it is, and those that describe its host, or have one that shows its
/// ssh key.
fn with_node(caches: &Caches, node: &Node) -> Vec<Key> {
    let all = keys_of_node(node);
    let beside = all.iter().flat_map(|it| caches.hosts.node_sets_at(it));
    node_set_of_node(node).into_iter().chain(beside).collect()
}

/// Returns the node sets of the nodes that own a run.
fn owners(caches: &Caches, run: &AnsibleEe) -> Vec<Key> {
    let nodes = owner_keys::<Node>(run).into_iter().filter_map(|it| caches.hosts.nodes.get(&it));
    nodes.flat_map(|it| node_set_of_node(&it)).collect()
}

/// Returns the node sets with hosts at the addresses whose ssh keys a run reports.
fn with_reported_hosts(caches: &Caches, run: &AnsibleEe) -> Vec<Key> {
    let reports = run.status.as_ref().map(|it| it.host_keys.as_slice()).unwrap_or_default();
    if reports.is_empty() {
        return Vec::new();
    }
    let is_reported = |name: &str| reports.iter().any(|it| it.name == name);
    let hosts = run.spec.hosts.iter().filter(|it| is_reported(&it.name));
    let addresses: Vec<&str> = hosts.map(|it| it.address.as_str()).collect();
    keys_of(caches, &namespace(run), |set| {
        let nodes = caches.hosts.nodes.indexed(BY_NODE_SET, &Key::of(set));
        let all = node_set_host::addresses(set, nodes.iter().map(|it| &**it));
        all.iter().any(|it| addresses.contains(&it.as_str()))
    })
}

/// Returns the node sets that list a service, those whose deployments bring it, and those where such
/// a service uses its certificates.
fn with_service(caches: &Caches, service: &Service) -> Vec<Key> {
    let (name, namespace) = (service.name_any(), namespace(service));
    let is_concerned = |listed: &String| {
        let other = || caches.services.get(&Key::new(&namespace, listed));
        *listed == name || other().is_some_and(|it| certificate_source(&it) == Some(name.as_str()))
    };
    keys_of(caches, &namespace, |set| {
        let deployments = caches.deployments.indexed(BY_NODE_SET, &Key::of(set));
        let mut brought = deployments.iter().flat_map(|it| &it.spec.services_override);
        set.spec.services.iter().any(is_concerned) || brought.any(is_concerned)
    })
}
