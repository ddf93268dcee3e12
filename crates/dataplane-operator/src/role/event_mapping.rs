//! Maps changes of watched objects to the node groups they concern.

use std::sync::Arc;

use api::dataplane::{Node, Role};
use kube::ResourceExt;
use operator_core::object_key::Key;
use operator_runtime::source_cache::SourceCache;
use operator_runtime::workqueue::{DEBOUNCE, WorkQueue};

use crate::attachments::Attachments;
use crate::baremetal_request::observe::Machines;
use crate::caches::{SharedCaches, namespace};
use crate::host_conflicts::Claim;
use crate::indexes::BY_HOST;
use crate::role::NodeGroup;

/// Registers the event handlers for roles, nodes, services, runs and sources.
pub(crate) fn by_objects(
    queue: &Arc<WorkQueue>,
    shared_caches: &SharedCaches,
    sources: &Arc<SourceCache>,
) {
    let SharedCaches { roles, nodes, services, runs, .. } = shared_caches;
    let to = |queue: &Arc<WorkQueue>| {
        let queue = Arc::clone(queue);
        move |group: NodeGroup, namespace: &str| queue.push(group.key(namespace))
    };
    let push = to(queue);
    roles.on_change(move |it| push(NodeGroup::Role(it.name_any()), &namespace(it)));
    let push = to(queue);
    nodes.on_change(move |it| push(NodeGroup::of(it), &namespace(it)));
    by_claims(queue, shared_caches);
    let push = to(queue);
    let (all_roles, all_nodes) = (Arc::clone(roles), Arc::clone(nodes));
    services.on_change(move |service| {
        let lists = |role: &Arc<Role>| role.spec.services.contains(&service.name_any());
        let same_namespace = |role: &Arc<Role>| namespace(&**role) == namespace(service);
        for role in all_roles.all().iter().filter(|it| same_namespace(it) && lists(it)) {
            push(NodeGroup::Role(role.name_any()), &namespace(service));
        }
        let lists = |node: &Arc<Node>| node.spec.services.contains(&service.name_any());
        let same_namespace = |node: &Arc<Node>| namespace(&**node) == namespace(service);
        for node in all_nodes.all().iter().filter(|it| same_namespace(it) && lists(it)) {
            push(NodeGroup::of(node), &namespace(service));
        }
    });
    let push = to(queue);
    let all_nodes = Arc::clone(nodes);
    runs.on_change(move |run| {
        // Runs of any owner count: each may report another key of the host.
        for report in run.status.iter().flat_map(|it| &it.host_keys) {
            if let Some(node) = all_nodes.get(&Key::new(namespace(run), &report.name)) {
                push(NodeGroup::of(&node), &namespace(run));
            }
        }
        for owner in run.owner_references() {
            match owner.kind.as_str() {
                "OpenStackDataPlaneRole" => {
                    push(NodeGroup::Role(owner.name.clone()), &namespace(run));
                }
                "OpenStackDataPlaneNode" => {
                    push(NodeGroup::Node(owner.name.clone()), &namespace(run));
                }
                _ => {}
            }
        }
    });
    let readers = Arc::clone(queue);
    sources.on_change(move |reader| {
        // Services read the same sources under other keys.
        if NodeGroup::parse(&reader).is_some() {
            readers.push(reader);
        }
    });
}

/// Several objects may describe one host: a change of one enqueues the others.
fn by_claims(queue: &Arc<WorkQueue>, shared_caches: &SharedCaches) {
    let enqueue = || {
        let (queue, nodes) = (Arc::clone(queue), Arc::clone(&shared_caches.nodes));
        move |claim: &Claim| {
            for node in claim.lookup_keys().iter().flat_map(|it| nodes.indexed(BY_HOST, it)) {
                queue.push(NodeGroup::of(&node).key(&namespace(&*node)));
            }
        }
    };
    let (others, claim_caches) = (enqueue(), shared_caches.claim_caches());
    shared_caches.nodes.on_change(move |node| others(&claim_caches.of_node(node)));
    let others = enqueue();
    shared_caches.node_sets.on_change(move |set| others(&Claim::of_node_set(set)));
}

/// Enqueues the groups that name a network attachment when it is added or deleted.
pub(crate) fn by_networks(
    queue: &Arc<WorkQueue>,
    shared_caches: &SharedCaches,
    attachments: &Attachments,
) {
    let (queue, roles) = (Arc::clone(queue), Arc::clone(&shared_caches.roles));
    let nodes = Arc::clone(&shared_caches.nodes);
    attachments.on_change(move |key| {
        let is_here = |namespace: String| namespace == key.namespace;
        for role in roles.all().iter().filter(|it| is_here(namespace(&***it))) {
            if role.spec.network_attachments.contains(&key.name) {
                queue.push(NodeGroup::Role(role.name_any()).key(&key.namespace));
            }
        }
        for node in nodes.all().iter().filter(|it| is_here(namespace(&***it))) {
            if node.spec.network_attachments.contains(&key.name) {
                queue.push(NodeGroup::of(node).key(&key.namespace));
            }
        }
    });
}

/// Enqueues the role or node that has the name of a changed baremetal set.
pub(crate) fn by_machines(queue: &Arc<WorkQueue>, machines: &Machines) {
    let queue = Arc::clone(queue);
    machines.on_change(move |Key { namespace, name }| {
        // The machines of a set change one by one, so events are debounced.
        for group in [NodeGroup::Role(name.clone()), NodeGroup::Node(name)] {
            queue.push_in(group.key(&namespace), DEBOUNCE);
        }
    });
}
