//! The decision on a node set: its inventory, the objects it requests, and its status.

use api::dataplane::Node;
use jiff::Timestamp;
use operator_core::certificates::removals;
use operator_core::finalizers::{
    add_finalizer, has_finalizer, is_only_finalizer, is_terminating, remove_finalizer,
};
use operator_core::plan::{Kind, Plan, Step};
use operator_core::rejected_write::{self, RejectedWrite};

use crate::finalizers::INVENTORY_FINALIZER;
use crate::host::machines::{request, set};
use crate::host::networks;
use crate::node_set::certificate_bundles::owner_of;
use crate::node_set::observed::{Observed, own_set};
use crate::node_set::resolve::resolve;
use crate::node_set::{build, last_looks, node_acceptance, nodes, status, terminating, tls};

/// Decides what to write for a node set.
///
/// # Guarantees
/// The inventory that a status refers to is written before the status.
pub fn decide(seen: &Observed, rejected: Option<&RejectedWrite>, now: Timestamp) -> Plan {
    let mut plan = Plan::with_resync();
    // A node that is refused holds its host alone.
    let is_node = |it: &&RejectedWrite| it.target.kind == Kind::of::<Node>();
    let (refused_node, rejected) = (rejected.filter(is_node), rejected.filter(|it| !is_node(it)));
    if is_terminating(&*seen.set) {
        delete(&mut plan, seen, now);
        return plan;
    }
    let (listed, known) = (&seen.set.spec.services, &seen.services);
    let missing = seen.defaults.missing(&seen.namespace, listed, known, &seen.unreadable);
    if !missing.is_empty() && rejected.is_none() {
        plan.steps.extend(missing);
        // Their creation enqueues this node set again; until then its services are incomplete.
        return plan;
    }
    let mut resolved = resolve(seen, now);
    let because = "its inventory must not go before it";
    plan.independent.clone_from(&resolved.served.requested);
    // A rejected write to the machines must not affect hosts that have theirs, so it is
    // independent.
    let is_held = has_finalizer(&*seen.set, INVENTORY_FINALIZER);
    plan.independent.extend(resolved.asked_of_machines.clone().filter(|_| is_held));
    // Without it the nodes would stay where the node set is deleted.
    if is_held {
        nodes::add(&mut plan, seen, &resolved, now);
    }
    plan.steps.extend(add_finalizer(&*seen.set, INVENTORY_FINALIZER, because));
    plan.steps.extend(resolved.served.bundles.clone());
    let inventory = resolved.content.as_ref().and_then(|it| build::secret(seen, it));
    if inventory.is_some() && rejected.is_some() {
        // The rejected write may have been the inventory or one before it, so its state is unknown.
        resolved.content = None;
    }
    plan.steps.extend(inventory);
    let rejected = rejected_write::condition(rejected, seen.set.conditions(), false);
    let of_nodes = node_acceptance::condition(seen, refused_node);
    plan.steps.extend(status::step(seen, &resolved, rejected, of_nodes, now));
    last_looks::add(&mut plan, seen, now);
    if let Some(at) = resolved.gates.as_ref().and_then(|it| it.deadline) {
        plan.requeue_at(at, now);
    }
    if networks::are_unserved(&resolved.network_faults) {
        plan.requeue_in(networks::CRD_POLL_INTERVAL);
    }
    request::requeue(&mut plan, resolved.machines.states.values());
    if seen.infra.is_missed || tls::is_unserved(&resolved.served.conditions) {
        plan.requeue_in(request::CRD_POLL_INTERVAL);
    }
    plan
}

/// Plans the deletion of a node set, and says in its status and on its nodes what it waits for.
fn delete(plan: &mut Plan, seen: &Observed, now: Timestamp) {
    if !has_finalizer(&*seen.set, INVENTORY_FINALIZER) {
        return;
    }
    let resolved = resolve(seen, now);
    nodes::add_removals(plan, seen, &resolved, now);
    plan.steps.extend(releases(seen));
    if !plan.steps.is_empty() {
        return;
    }
    // A deployment under way, or an operator that cleans up, keeps using the inventory.
    let inventory = resolved.content.as_ref().filter(|_| is_needed(seen));
    plan.steps.extend(inventory.and_then(|it| build::secret(seen, it)));
    plan.steps.extend(status::step(seen, &resolved, None, None, now));
    last_looks::add(plan, seen, now);
}

/// Returns whether runs may still start with the inventory of a node set that is being deleted.
fn is_needed(seen: &Observed) -> bool {
    seen.is_in_use()
        || !terminating::names(seen).is_empty()
        || !last_looks::held_names(seen).is_empty()
}

/// Returns the steps that release a node set that is being deleted: its machines are given back, its
/// nodes go, its inventory is deleted, then the finalizer is removed.
///
/// Returns no steps while runs may still start with the inventory.
fn releases(seen: &Observed) -> Vec<Step> {
    if is_needed(seen) || !is_only_finalizer(&*seen.set, INVENTORY_FINALIZER) {
        return Vec::new();
    }
    if let Some(set) = own_set(seen) {
        return set::deletion(set).into_iter().collect();
    }
    // In a namespace that is being deleted, others let go of the nodes by themselves.
    let is_awaited =
        |it: &Node| !seen.is_namespace_terminating || has_finalizer(it, INVENTORY_FINALIZER);
    if seen.nodes.all().any(|(_, it)| is_awaited(it)) {
        return Vec::new();
    }
    let because = "its inventory is gone, and it has no other finalizer";
    let mut steps = removals(&owner_of(&seen.set), &seen.issued);
    steps.extend(build::removal(seen));
    steps.extend(remove_finalizer(&*seen.set, INVENTORY_FINALIZER, because));
    steps
}
