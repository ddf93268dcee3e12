//! The decision on a node set: its inventory, the objects it requests, and its status.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::dataplane::Service;
use api::problem::Problem;
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::data_sources::service_type;
use operator_core::finalizers::{
    add_finalizer, has_finalizer, is_only_finalizer, is_terminating, remove_finalizer,
};
use operator_core::node_set_host::Host;
use operator_core::plan::{Plan, Step};
use operator_core::rejected_write::{self, RejectedWrite};

use crate::baremetal_request::{observed, provisioning_state, set};
use crate::default_services;
use crate::finalizers::INVENTORY_FINALIZER;
use crate::host::networks;
use crate::inputs::Inputs;
use crate::node_set::deployment_history::{self, DeploymentHistory};
use crate::node_set::evaluation::Evaluation;
use crate::node_set::machine_request::{self, Machines};
use crate::node_set::observed::{Observed, own_set};
use crate::node_set::{
    build, external_resources, faults, host_key_trust, inputs, inventory, status, tls,
};
use crate::reasons;

/// Types of services that bring another version to the hosts, as upstream's control plane expects.
const VERSION_TYPES: [&str; 2] = ["update", "update-services"];

/// Decides what to write for a node set.
///
/// # Guarantees
/// The inventory that a status refers to is written before the status.
pub fn decide(seen: &Observed, rejected: Option<&RejectedWrite>, now: Timestamp) -> Plan {
    let mut plan = Plan::with_resync();
    if is_terminating(&*seen.set) {
        plan.steps.extend(releases(seen));
        if plan.steps.is_empty() && has_finalizer(&*seen.set, INVENTORY_FINALIZER) {
            let evaluated = evaluate(seen, now);
            // A deployment under way keeps using the inventory.
            let is_needed = evaluated.is_frozen();
            let inventory = evaluated.content.as_ref().filter(|_| is_needed);
            plan.steps.extend(inventory.and_then(|it| build::secret(seen, it)));
            plan.steps.extend(status::step(seen, &evaluated, None, now));
        }
        return plan;
    }
    let (listed, known) = (&seen.set.spec.services, &seen.services);
    let missing = default_services::missing(&seen.namespace, listed, known, &seen.unreadable);
    if !missing.is_empty() && rejected.is_none() {
        plan.steps.extend(missing);
        // Their creation enqueues this node set again; until then its services are incomplete.
        return plan;
    }
    let mut evaluated = evaluate(seen, now);
    let because = "its inventory must not go before it";
    plan.independent.clone_from(&evaluated.served.requested);
    // A rejected write to the machines must not affect hosts that have theirs, so it is
    // independent.
    let is_held = has_finalizer(&*seen.set, INVENTORY_FINALIZER);
    plan.independent.extend(evaluated.asked_of_machines.clone().filter(|_| is_held));
    plan.steps.extend(add_finalizer(&*seen.set, INVENTORY_FINALIZER, because));
    plan.steps.extend(evaluated.served.bundles.clone());
    let inventory = evaluated.content.as_ref().and_then(|it| build::secret(seen, it));
    if inventory.is_some() && rejected.is_some() {
        // The rejected write may have been the inventory or one before it, so its state is unknown.
        evaluated.content = None;
    }
    plan.steps.extend(inventory);
    let previous = seen.set.status.as_ref().map(|it| it.conditions.as_slice());
    let rejected = rejected_write::condition(rejected, previous.unwrap_or_default(), false);
    plan.steps.extend(status::step(seen, &evaluated, rejected, now));
    if networks::are_unserved(&evaluated.service_faults) {
        plan.requeue_in(networks::LOOK_AGAIN);
    }
    if evaluated.machines.waits_for_ssh() {
        plan.requeue_in(provisioning_state::ASK_AGAIN);
    }
    if evaluated.machines.are_unheard() {
        plan.requeue_in(observed::LOOK_AGAIN);
    }
    if seen.infra.is_missed || tls::is_unserved(&evaluated.served.conditions) {
        plan.requeue_in(observed::LOOK_AGAIN);
    }
    plan
}

/// Returns the steps that release a node set that is being deleted: its machines are given back,
/// its inventory is deleted, then the finalizer is removed.
///
/// Returns no steps while a deployment is under way, which may still start runs with the inventory.
fn releases(seen: &Observed) -> Vec<Step> {
    let is_needed =
        seen.deployments.iter().any(|it| deployment_history::is_under_way(it, &seen.set));
    let is_needed = is_needed || seen.unreadable_deployments.iter().any(|it| !it.has_ended);
    if is_needed || !is_only_finalizer(&*seen.set, INVENTORY_FINALIZER) {
        return Vec::new();
    }
    if let Some(set) = own_set(seen) {
        return set::deletion(set).into_iter().collect();
    }
    let because = "its inventory is gone, and nobody else holds it";
    let mut steps = tls::removals(&seen.set, &seen.issued);
    steps.extend(build::removal(seen));
    steps.extend(remove_finalizer(&*seen.set, INVENTORY_FINALIZER, because));
    steps
}

/// Evaluates a node set: everything that follows from what was observed.
pub fn evaluate(seen: &Observed, now: Timestamp) -> Evaluation<'_> {
    let hosts = external_resources::hosts(seen);
    let machines = Machines::of(seen, &hosts, now);
    let mut faults = faults::of_hosts(seen, &hosts);
    let is_frozen =
        seen.deployments.iter().any(|it| deployment_history::is_under_way(it, &seen.set));
    let served = external_resources::of(seen, &hosts, &faults, is_frozen);
    let inputs: Inputs =
        inputs::of(seen, &hosts, &served).into_iter().chain(machines.inputs()).collect();
    let outcome = outcome(seen, &hosts, &machines, &inputs);
    // Machines are not requested for invalid hosts either.
    let asked_of_machines = if faults.is_empty() {
        machine_request::step(seen, &hosts, &machines, &served, is_frozen)
    } else {
        None
    };
    faults.extend(faults::of_set(seen));
    let trusts = host_key_trust::trusts(seen, &hosts, &machines);
    let shared_keys = host_key_trust::shared(seen, &trusts);
    let waits = shared_keys.clone().filter(|_| !is_frozen && !outcome.is_in_service());
    faults.extend(waits.map(|it| Problem::new(&reasons::inputs::HOST_KEY_SHARED, it)));
    let content = if faults.is_empty() && served.missing().is_none() {
        let known_hosts = host_key_trust::known_hosts(&hosts, &trusts);
        let inventory = inventory::inventory(seen, &hosts, &served);
        let content = build::content(seen, &hosts, inventory, known_hosts);
        let size = content.values().map(String::len).sum();
        faults.extend(faults::of_inventory(&seen.set.name_any(), size));
        faults.is_empty().then_some(content)
    } else {
        None
    };
    Evaluation {
        service_faults: faults::of_services(seen),
        inputs,
        machines,
        asked_of_machines,
        outcome,
        hosts,
        faults,
        trusts,
        shared_keys,
        served,
        content,
    }
}

fn outcome(
    seen: &Observed,
    hosts: &[Host<'_>],
    machines: &Machines,
    inputs: &Inputs,
) -> DeploymentHistory {
    let names: BTreeSet<&str> = hosts.iter().map(|it| it.name.as_str()).collect();
    let brings_version = |(name, it): &(&String, &Arc<Service>)| {
        VERSION_TYPES.contains(&service_type(&it.spec, name).as_str())
    };
    let services = seen.services.iter().chain(&seen.brought);
    let versions = services.filter(brings_version).map(|(name, _)| name.as_str());
    let versions = versions.collect();
    let present = inputs::digest(inputs);
    let deployments = (&seen.deployments[..], &seen.unreadable_deployments[..]);
    deployment_history::of(
        &seen.set,
        &names,
        deployments,
        (&present, &versions),
        &machines.replaced(),
    )
}
