//! The status of a role, from the summaries of its hosts.

use std::sync::Arc;

use api::conditions::{self, ConditionDraft, READY, Severity, merge_conditions};
use api::dataplane::condition_types::{DEPLOYMENT_READY, INPUT_READY, SETUP_READY};
use api::dataplane::{Role, RoleStatus};
use api::problem::Problem;
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::plan::{Step, Target, status_step};
use operator_core::run_engine::host_progress;
use operator_core::run_engine::rollout::BlockReason;

use crate::conditions::{NAMED, first_texts, input, rank, service_inputs};
use crate::host::machines::machine_conditions;
use crate::host::services::not_included;
use crate::ignored_annotations;
use crate::indexes::data_plane_of;
use crate::reasons;
use crate::role::node_status::HOST_TEXT;
use crate::role::observed::Observed;
use crate::role::resolve::Resolved;
use crate::role::summary::HostSummary;
use crate::spec_warnings;

/// The condition type for phase -1 of all nodes of a role; absent when it requests no machines.
pub const PROVISION_READY: &str = "RoleBaremetalProvisionReady";

/// The condition type for whether the data plane that a role names exists.
pub const DATA_PLANE_FOUND: &str = "DataPlaneFound";

/// Returns the condition for whether all hosts of a role are in an inventory.
fn setup_of_all(hosts: &[Arc<HostSummary>]) -> ConditionDraft {
    let open: Vec<&str> =
        hosts.iter().filter(|it| !it.is_set_up()).map(|it| it.name.as_str()).collect();
    if open.is_empty() {
        return reasons::role::NODES_SET_UP
            .condition(SETUP_READY, "Every node is in an inventory.");
    }
    let text = format!(
        "{} nodes are in no inventory: {}; see their InputReady.",
        open.len(),
        conditions::first_names(&open, NAMED)
    );
    reasons::inputs::INPUT_MISSING.condition(SETUP_READY, text)
}

/// Returns the step that writes the status of a role; `None` when it is up to date.
pub fn role_step(
    seen: &Observed,
    resolved: &Resolved<'_>,
    rejection: Option<ConditionDraft>,
    hosts: &[Arc<HostSummary>],
    now: Timestamp,
) -> Option<Step> {
    let role = seen.role.as_deref()?;
    let nodes = nodes_finding(seen, hosts);
    let is_deployed = nodes.holds() && !hosts.is_empty();
    let good = nodes.clone().with_type(READY);
    let of_services: Vec<Problem> = resolved.problems.all().cloned().collect();
    // Deployed hosts lose nothing when their ssh key goes.
    let is_blocking =
        |it: &&ConditionDraft| it.type_ != INPUT_READY || !of_services.is_empty() || !is_deployed;
    let input = input(&[of_services.as_slice(), &resolved.ssh_faults].concat());
    let mut all: Vec<ConditionDraft> =
        [Some(input), rejection, Some(nodes)].into_iter().flatten().collect();
    all.push(conditions::ready(all.iter().filter(is_blocking), good));
    // They are run all the same, for the image may have been extended under its name.
    let services = seen.listed().iter().filter_map(|it| seen.services.get(it));
    let lacking: Vec<Problem> = services.filter_map(|it| not_included(it, seen.runner)).collect();
    all.extend((!lacking.is_empty()).then(|| service_inputs(&lacking)));
    all.push(setup_of_all(hosts));
    all.extend(data_plane(seen.data_plane.is_some(), role));
    let names = seen.nodes.iter().filter_map(|it| it.metadata.name.as_ref());
    all.extend(ignored_annotations::of_group(role, names));
    all.extend(without_effect(role, resolved));
    // Each node has a condition of its own; the role's reports how many there are.
    let asks = resolved.machine_request.is_some();
    all.extend(asks.then(|| {
        let machines: Vec<(&str, ConditionDraft)> =
            hosts.iter().filter_map(|it| Some((it.name.as_str(), it.machine.clone()?))).collect();
        machine_conditions::sum(PROVISION_READY, &machines)
    }));
    let count = |holds: fn(&HostSummary) -> bool| {
        host_progress::count(hosts.iter().filter(|it| holds(it)).count())
    };
    let observed = role.status.as_ref();
    let desired = RoleStatus {
        observed_generation: role.metadata.generation,
        conditions: merge_conditions(role.conditions(), all, role.metadata.generation, now),
        deployed: is_deployed.then_some(true),
        nodes: count(|_| true),
        ready_nodes: count(|it| it.ready.holds()),
        up_to_date_nodes: count(|it| it.is_up_to_date),
        provisioned_nodes: asks
            .then(|| count(|it| it.machine.as_ref().is_some_and(ConditionDraft::holds))),
    };
    status_step(Target::of::<Role>(role), observed, &desired)
}

/// Returns the condition about what in the specs of the role and its services is without effect.
fn without_effect(role: &Role, resolved: &Resolved<'_>) -> Option<ConditionDraft> {
    let mounts = role.spec.node_template.as_ref().map(|it| it.extra_mounts.as_slice());
    let path = "spec.nodeTemplate.extraMounts";
    let mut found = spec_warnings::of_mounts(path, mounts.unwrap_or_default());
    found.extend_from_slice(&resolved.certificates.without_effect);
    spec_warnings::condition(&format!("OpenStackDataPlaneRole {}", role.name_any()), &found)
}

/// Returns the condition for whether the role's data plane exists; `None` when it names none.
///
/// `Ready` does not depend on it: a role with its own settings does not need the data plane.
fn data_plane(is_there: bool, role: &Role) -> Option<ConditionDraft> {
    let name = data_plane_of(role)?;
    if is_there {
        let text = format!(
            "What deployStrategy of node and role leaves open is taken from OpenStackDataPlane \
             {name}."
        );
        return Some(reasons::role::FOUND.condition(DATA_PLANE_FOUND, text));
    }
    let text = format!(
        "OpenStackDataPlane {name}, named in spec.dataPlane of OpenStackDataPlaneRole {}, does not \
         exist, so nothing is taken from it: create it or correct spec.dataPlane.",
        role.name_any()
    );
    // A role that sets `deploy` itself lacks nothing, so it gets no permanent warning.
    let is_decided = role.spec.deploy_strategy.as_ref().is_some_and(|it| it.deploy.is_some());
    let severity = if is_decided { Severity::Info } else { Severity::Warning };
    let draft = reasons::role::DATA_PLANE_NOT_FOUND.condition(DATA_PLANE_FOUND, text);
    Some(draft.with_severity(severity))
}

/// Returns the condition over all nodes, with the names of the first ones that are not ready.
fn nodes_finding(seen: &Observed, hosts: &[Arc<HostSummary>]) -> ConditionDraft {
    let total = hosts.len();
    let mut open: Vec<&Arc<HostSummary>> = hosts.iter().filter(|it| !it.ready.holds()).collect();
    let mut texts = vec![format!("{}/{total} nodes are ready.", total - open.len())];
    open.sort_by_key(|it| rank(&it.ready));
    texts.extend(open.iter().take(NAMED).map(|it| host_text(it)));
    let named = first_texts(texts, open.len().saturating_sub(NAMED));
    let text = match held_text(seen, hosts) {
        Some(held) => format!("{named} {held}"),
        None => named,
    };
    if hosts.is_empty() {
        let text = "The role has no nodes: nothing is run.";
        return reasons::role::NODES_READY.condition(DEPLOYMENT_READY, text);
    }
    let Some(worst) = open.first().map(|it| &it.ready) else {
        return reasons::role::NODES_READY.condition(DEPLOYMENT_READY, text);
    };
    let severity = worst.severity.unwrap_or(Severity::Info);
    worst.clone().with_type(DEPLOYMENT_READY).with_message(text).with_severity(severity)
}

/// Returns the text about the nodes that the rollout blocks; `None` when it blocks none.
fn held_text(seen: &Observed, hosts: &[Arc<HostSummary>]) -> Option<String> {
    let held = hosts.iter().filter_map(|it| it.blocked.as_ref());
    let n_held = held.clone().count();
    let first = held
        .clone()
        .find(|it| it.blocked != BlockReason::LimitReached)
        .or_else(|| held.clone().next())?;
    Some(match first.blocked {
        BlockReason::LimitReached => {
            let max = seen.limits().max_unavailable_text();
            format!("{n_held} wait for their turn (maxUnavailable {max}).")
        }
        BlockReason::Stuck => {
            let max = seen.limits().max_unavailable_text();
            format!("{n_held} wait for their turn (maxUnavailable {max}): {}", first.way_on())
        }
        BlockReason::Paused => format!(
            "The rollout is paused (pauseOnFailure): {n_held} wait until no host fails; correct \
             the cause, or set deployStrategy.pauseOnFailure to false."
        ),
    })
}

/// Returns the part of the role's message about one host: what it runs, or why it is not ready.
fn host_text(HostSummary { name, ready, run, .. }: &HostSummary) -> String {
    if let (Some(run), Some(Severity::Info)) = (run, ready.severity) {
        return format!("{name}: runs {run}.");
    }
    format!("{name}: {}: {}", ready.reason, conditions::shortened(&ready.message, HOST_TEXT))
}
