//! The finalizer on nodes and roles, which keeps their inventory objects and machines until all
//! other finalizers are gone.

use std::sync::Arc;

use api::dataplane::{Node, Role};
use kube::ResourceExt;
use operator_core::certificates;
use operator_core::finalizers::{
    add_finalizer, is_only_finalizer, is_terminating, remove_finalizer,
};
use operator_core::plan::{Step, WRITES_PER_PASS};

use crate::finalizers::INVENTORY_FINALIZER;
use crate::role::build::removal;
use crate::role::certificates::owner_of;
use crate::role::inventory_shards;
use crate::role::inventory_shards::node_inventory_name;
use crate::role::machine_request::MachineRequest;
use crate::role::observed::Observed;
use crate::role::resolved::ResolvedHost;

/// The nodes that go together: an inventory that cannot be deleted holds no node of the groups before it.
const TOGETHER: usize = 16;

const BECAUSE: &str = "its inventory must not go before it";

/// Returns the steps that add the finalizer to nodes and the role, before they have an inventory
/// object.
pub fn additions(seen: &Observed, hosts: &[&ResolvedHost<'_>]) -> Vec<Step> {
    let nodes = hosts.iter().filter(|it| it.is_reachable() || it.machine.is_some());
    let nodes = nodes.filter_map(|it| add_finalizer(it.node, INVENTORY_FINALIZER, BECAUSE));
    let role = seen.role.as_ref().and_then(|it| add_finalizer(&**it, INVENTORY_FINALIZER, BECAUSE));
    nodes.chain(role).collect()
}

/// Returns the steps that delete the inventory objects of terminating nodes and roles without other
/// finalizers, and then remove the finalizer. Machines have to be given back first.
///
/// # Guarantees
/// The finalizer is removed only after the inventory was deleted: no inventory is orphaned.
pub fn removals(seen: &Observed, machine_request: Option<&MachineRequest<'_>>) -> Vec<Step> {
    let because = "its inventory is gone, and it has no other finalizer";
    let goes = |node: &&Arc<Node>| {
        is_terminating(&***node)
            && is_only_finalizer(&***node, INVENTORY_FINALIZER)
            && machine_request.is_none_or(|it| it.is_given_back(node))
    };
    // Each node that is gone enqueues the group again, for those beyond.
    let going: Vec<&Arc<Node>> = seen.nodes.iter().filter(goes).take(WRITES_PER_PASS).collect();
    let mut steps = Vec::new();
    for nodes in going.chunks(TOGETHER) {
        let names = nodes.iter().map(|it| node_inventory_name(&it.name_any()));
        let mut inventories: Vec<Step> = names.flat_map(|it| removal(seen, &it)).collect();
        // Neighbours of one kind are written together.
        inventories.sort_by(|a, b| b.target.kind.cmp(&a.target.kind));
        steps.extend(inventories);
        let release = |it: &&Arc<Node>| remove_finalizer(&***it, INVENTORY_FINALIZER, because);
        steps.extend(nodes.iter().filter_map(release));
    }
    let goes =
        |it: &&Arc<Role>| is_terminating(&***it) && is_only_finalizer(&***it, INVENTORY_FINALIZER);
    let has_set = machine_request.is_some_and(|it| it.request.set.is_some());
    if let Some(role) = seen.role.as_ref().filter(goes).filter(|_| !has_set) {
        let names = inventory_shards::names(&role.name_any(), seen.nodes.len());
        steps.extend(names.iter().flat_map(|it| removal(seen, it)));
        steps.extend(certificates::removals(&owner_of(role), &seen.issued));
        steps.extend(remove_finalizer(&**role, INVENTORY_FINALIZER, because));
    }
    steps
}
