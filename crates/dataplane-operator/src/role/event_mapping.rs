//! Maps changes of watched objects to the node groups they concern.

use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::cert_manager::Certificate;
use api::dataplane::{Node, NodeSpec, Role, RoleSpec};
use kube::{Resource as _, ResourceExt};
use operator_core::object_key::Key;
use operator_runtime::event_mapping::EventMapping;
use operator_runtime::workqueue::WorkQueue;

use crate::annotations::NETWORK_SCOPE;
use crate::caches::Caches;
use crate::controller_names::GROUP;
use crate::host::conflicts::host_claim::keys_of_node;
use crate::indexes::{BY_HOST, BY_ROLE, namespace};
use crate::role::NodeGroup;
use crate::role::inventory_shards;

/// Registers the event handlers that enqueue node groups in `queue`.
pub(crate) fn map_events(queue: &Arc<WorkQueue>, caches: &Arc<Caches>) {
    let groups = EventMapping::new(queue, caches);
    let hosts = &caches.hosts;
    groups.watches(&hosts.roles, |_, role| [key_of_role(role)]);
    groups.watches(&hosts.nodes, |_, node| key_of_node(node));
    // The scope of a role is that of its hosts' addresses.
    groups.watches_changes(
        &hosts.roles,
        |it| it.annotations().get(NETWORK_SCOPE).cloned(),
        |caches, role| {
            let key = Key::new(namespace(role), role.name_any());
            let nodes = caches.hosts.nodes.indexed(BY_ROLE, &key);
            let claimed = nodes.iter().flat_map(|it| caches.hosts.of_node(it).lookup_keys());
            described(caches, claimed)
        },
    );
    // Several objects may describe one host: a change of one enqueues the others.
    groups.watches(&hosts.nodes, |caches, node| {
        let claimed = caches.hosts.of_node(node).lookup_keys().into_iter();
        // A host of a node set is claimed there, but what was learned of it is on its node.
        described(caches, claimed.chain(keys_of_node(node)))
    });
    groups.watches(&hosts.node_sets, |caches, set| {
        described(caches, caches.hosts.of_node_set(set).lookup_keys())
    });
    groups.watches(&caches.services, |caches, service| {
        let name = service.name_any();
        let of_role = |it: &RoleSpec| it.services.contains(&name);
        let of_node = |it: &NodeSpec| it.services.contains(&name);
        keys_of(caches, &namespace(service), of_role, of_node)
    });
    groups.watches(&caches.runs, reported_and_owners);
    caches.attachments.on_change(groups.handler(|caches, attachment| {
        let of_role = |it: &RoleSpec| it.network_attachments.contains(&attachment.name);
        let of_node = |it: &NodeSpec| it.network_attachments.contains(&attachment.name);
        keys_of(caches, &attachment.namespace, of_role, of_node)
    }));
    // A baremetal set has the name of its role or node. Its machines change one by one.
    caches.machines.on_change(groups.debounced().handler(|_, Key { namespace, name }| {
        [NodeGroup::Role(name.clone()), NodeGroup::Node(name)].map(|it| it.key(&namespace))
    }));
    let (debounced, cert_manager) = (groups.debounced(), &caches.external_apis.cert_manager);
    debounced.watches(cert_manager.issuers.cache(), |caches, issuer| {
        let of_role = |it: &RoleSpec| it.tls_enabled == Some(true);
        keys_of(caches, &namespace(issuer), of_role, |_| false)
    });
    debounced.watches(cert_manager.certificates.cache(), |_, certificate| owners(certificate));
    caches.sources.on_change(GROUP, groups.handler(|_, reader| [reader]));
    caches.sources.on_each(groups.handler(|caches, object| owner_of_inventory(caches, &object)));
}

fn key_of_role(role: &Role) -> Key {
    NodeGroup::Role(role.name_any()).key(&namespace(role))
}

fn key_of_node(node: &Node) -> Option<Key> {
    NodeGroup::of(node).map(|it| it.key(&namespace(node)))
}

/// Returns the group of a node, with the note that something about its host has changed.
fn changed(caches: &Caches, node: &Node) -> Option<Key> {
    let group = key_of_node(node)?;
    caches.changed_hosts.note(&group, &node.name_any());
    Some(group)
}

/// Returns the groups of the nodes that have one of these keys of the index [`BY_HOST`].
fn described(caches: &Caches, keys: impl IntoIterator<Item = Key>) -> Vec<Key> {
    let nodes = keys.into_iter().flat_map(|it| caches.hosts.nodes.indexed(BY_HOST, &it));
    nodes.filter_map(|it| changed(caches, &it)).collect()
}

/// Returns the group of the node whose inventory object, or the Secret beside it, this is.
fn owner_of_inventory(caches: &Caches, object: &Key) -> Option<Key> {
    let node = inventory_shards::node_of_inventory(&object.name)?;
    changed(caches, &*caches.hosts.nodes.get(&Key::new(&object.namespace, node))?)
}

/// Returns the groups of a namespace whose role or node is concerned.
fn keys_of(
    caches: &Caches,
    namespace: &str,
    of_role: impl Fn(&RoleSpec) -> bool,
    of_node: impl Fn(&NodeSpec) -> bool,
) -> Vec<Key> {
    let roles = caches.hosts.roles.in_namespace(namespace);
    let roles = roles.iter().filter(|it| of_role(&it.spec));
    let nodes = caches.hosts.nodes.in_namespace(namespace);
    let nodes = nodes.iter().filter(|it| of_node(&it.spec));
    roles.map(|it| key_of_role(it)).chain(nodes.filter_map(|it| key_of_node(it))).collect()
}

/// Returns the groups of the roles that own a certificate.
fn owners(certificate: &Certificate) -> Vec<Key> {
    let owners = certificate.owner_references().iter().filter(|it| it.kind == Role::kind(&()));
    let role = |name: &str| NodeGroup::Role(name.to_owned()).key(&namespace(certificate));
    owners.map(|it| role(&it.name)).collect()
}

/// Returns the groups of the hosts whose keys a run reports, of any owner, and of its owners.
fn reported_and_owners(caches: &Caches, run: &AnsibleEe) -> Vec<Key> {
    let namespace = namespace(run);
    let reports = run.status.iter().flat_map(|it| &it.host_keys);
    let nodes = reports.filter_map(|it| caches.hosts.nodes.get(&Key::new(&namespace, &it.name)));
    let owners = run.owner_references().iter().filter_map(|it| match it.kind.as_str() {
        "OpenStackDataPlaneRole" => Some(NodeGroup::Role(it.name.clone())),
        "OpenStackDataPlaneNode" => {
            let node = caches.hosts.nodes.get(&Key::new(&namespace, &it.name))?;
            NodeGroup::of(&node)
        }
        _ => None,
    });
    let nodes = nodes.filter_map(|it| changed(caches, &it));
    nodes.chain(owners.map(|it| it.key(&namespace))).collect()
}
