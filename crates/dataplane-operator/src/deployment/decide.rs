//! The evaluation of a deployment: when it begins, which runs are created, and when it ends.

use std::collections::{BTreeMap, BTreeSet};

use api::dataplane::{DeploymentNodeSet, Node};
use api::problem::Problem;
use jiff::Timestamp;
use operator_core::finalizers::{add_finalizer, is_terminating};
use operator_core::plan::{Kind, Plan, REST_OF_WRITES, Step, WRITES_PER_PASS};
use operator_core::rejected_write::{self, RejectedWrite};
use operator_core::run_engine::{Run, run_gc};

use crate::deployment::build::new_runs;
use crate::deployment::evaluate;
use crate::deployment::finalizer::{self, RUNNING};
use crate::deployment::hosts::hosts_of;
use crate::deployment::node_set_part::NodeSetPart;
use crate::deployment::observed::Observed;
use crate::deployment::order::has_begun;
use crate::deployment::services::{List, Listed};
use crate::deployment::status::{End, Evaluation};
use crate::deployment::{disruption, faults, gates, node_records, rollout, services};
use crate::host::networks;
use crate::host::ssh_trust::Offers;

/// Evaluates a deployment.
///
/// # Guarantees
/// Attempts are recorded on the nodes before the runs that carry them are created, and the end of the
/// deployment on the nodes before its own. A service that is recorded as done on a host never runs
/// there again, even if its runs are deleted.
pub fn decide(seen: &Observed, rejected: Option<&RejectedWrite>, now: Timestamp) -> Plan {
    let deployment = &*seen.deployment;
    let runs: Vec<Run<'_>> = seen.runs.iter().filter_map(|it| Run::of(it)).collect();
    if deployment.has_ended() {
        return Plan { steps: finalizer::over(seen).into_iter().collect(), ..Plan::default() };
    }
    let mut plan = Plan::with_resync();
    let is_going = is_terminating(deployment);
    let going = finalizer::going(deployment, &runs).filter(|_| is_going);
    if is_going {
        plan.steps = run_gc::withdrawn(&runs, |_, _| false);
        if !has_begun(deployment) {
            plan.steps.extend(going);
            return plan;
        }
    } else if rejected.is_none() {
        plan.steps = missing_services(seen);
        if !plan.steps.is_empty() {
            // Their creation enqueues this deployment again; until then its services are
            // incomplete.
            return plan;
        }
    }
    let Beginning { node_sets, setup, mut inputs, is_new } = Beginning::of(seen, now);
    let parts = evaluate_parts(seen, &runs, &node_sets, now);
    inputs.extend(parts.iter().flat_map(|it| it.lacking.all().cloned()));
    inputs.extend(parts.iter().filter_map(|it| missing_machines(seen, it)));
    let new = if is_going { Vec::new() } else { new_runs(seen, &parts) };
    let judgement = Evaluation {
        seen,
        runs: &runs,
        setup: &setup,
        inputs: &inputs,
        parts: &parts,
        begins: is_new.then_some(node_sets).filter(|it| !it.is_empty()),
        gates: gates::evaluate(seen, &parts, now),
        made: new.iter().map(|it| it.service.as_str()).collect(),
        blocked: rollout::blocked_hosts(seen, &parts),
        deletion: finalizer::condition(deployment, &runs),
        rejection: rejected_write::condition(rejected, deployment.conditions(), !new.is_empty()),
        is_refused: rejected.is_some_and(|it| it.target.kind == Kind::of::<Node>()),
    };
    requeue(&mut plan, &judgement, now);
    let are_written = write_statuses(&mut plan, &judgement, going, now);
    // It goes on once others can see that it has begun.
    if are_written && judgement.begins.is_none() {
        plan.steps.extend(new.into_iter().map(|it| it.step));
    }
    plan
}

/// Adds the writes before the runs, and returns whether those are all; `going` lets a deployment go
/// that has not ended and is to be deleted.
///
/// The end of a deployment, or that it goes, is written after the nodes have it, so that none is left
/// as one where it is at work; only a deletion that the user confirmed waits for no node. The finalizer
/// stays until the node sets have recorded the end.
fn write_statuses(
    plan: &mut Plan,
    judgement: &Evaluation<'_>,
    going: Option<Step>,
    now: Timestamp,
) -> bool {
    let Evaluation { seen, parts, is_refused, .. } = *judgement;
    let deployment = &*seen.deployment;
    let is_cut = is_terminating(deployment) && finalizer::is_confirmed(deployment);
    let mut end = judgement.end();
    let going = going.filter(|_| end == End::Open || is_cut);
    if going.is_some() || is_cut {
        end = End::Failed;
    }
    let rests = deployment.has_run() || judgement.begins.is_some() || is_refused;
    let hosts = parts.iter().flat_map(|part| part.hosts.iter().map(move |it| (part, it)));
    let hosts = hosts.filter(|_| !rests);
    let nodes = hosts.filter_map(|(part, it)| node_records::step(seen, part, it, end, now));
    if is_cut {
        plan.independent = nodes.collect();
        plan.steps.extend(going);
        return false;
    }
    let because = "it must not be deleted by accident";
    let held = add_finalizer(deployment, RUNNING, because);
    plan.steps.extend(held.filter(|_| end == End::Open && !parts.is_empty()));
    let mut nodes = nodes.peekable();
    plan.steps.extend(nodes.by_ref().take(WRITES_PER_PASS));
    if nodes.peek().is_some() {
        plan.requeue_in(REST_OF_WRITES);
        return false;
    }
    let own = judgement.step(now).filter(|_| going.is_none() || is_refused);
    plan.steps.extend(own.into_iter().chain(going));
    true
}

/// Evaluates the hosts of each node set, and holds those that the disruption budget blocks.
fn evaluate_parts(
    seen: &Observed,
    runs: &[Run<'_>],
    node_sets: &BTreeMap<String, DeploymentNodeSet>,
    now: Timestamp,
) -> Vec<NodeSetPart> {
    let offers = Offers::of(&seen.runs);
    let parts = node_sets.iter();
    let parts = parts.map(|(name, it)| evaluate::evaluate(seen, name, it, runs, &offers, now));
    let parts: Vec<NodeSetPart> = parts.collect();
    let mut blocked = rollout::blocked_by_budget(seen, &parts, now);
    let hold = |it: NodeSetPart| {
        let holds = blocked.remove(&it.name).unwrap_or_default();
        it.held(&holds)
    };
    parts.into_iter().map(hold).collect()
}

/// Returns the steps that create the default services that the deployment needs.
fn missing_services(seen: &Observed) -> Vec<Step> {
    let listed = seen.named().into_iter().flat_map(|it| seen.listed(it).to_vec());
    let listed: BTreeSet<String> = listed.collect();
    let listed: Vec<String> = listed.into_iter().collect();
    seen.defaults.missing(&seen.namespace, &listed, &seen.services, &seen.unreadable)
}

/// The node sets of a deployment, as recorded or at its beginning; none while it cannot begin.
struct Beginning {
    node_sets: BTreeMap<String, DeploymentNodeSet>,
    setup: Vec<Problem>,
    inputs: Vec<Problem>,
    is_new: bool,
}

impl Beginning {
    fn of(seen: &Observed, now: Timestamp) -> Self {
        let deployment = &*seen.deployment;
        if has_begun(deployment) {
            let status = deployment.status.as_ref();
            let node_sets = status.map(|it| it.node_sets.clone()).unwrap_or_default();
            return Self { node_sets, setup: Vec::new(), inputs: Vec::new(), is_new: false };
        }
        let setup = faults::of_setup(seen);
        let listed = |node_set| {
            let has_hosts = hosts_of(seen, node_set).next().is_some();
            Listed { node_set, names: seen.listed(node_set), has_hosts }
        };
        let listed: Vec<Listed<'_>> = seen.named().into_iter().map(listed).collect();
        let services = services::lists(&listed, &seen.services);
        let mut inputs: Vec<Problem> = faults::of_limit(seen).into_iter().collect();
        inputs.extend(faults::of_no_hosts(seen));
        inputs.extend(faults::of_size(seen, &services));
        for (name, list) in &services {
            inputs.extend(faults::of_list(seen, name));
            inputs.extend(faults::of_services(seen, name, &list.services));
            inputs.extend(faults::of_certificates(seen, name, &list.services));
        }
        if !setup.is_empty() || is_terminating(deployment) {
            return Self { node_sets: BTreeMap::new(), setup, inputs, is_new: true };
        }
        let of_sets = seen.node_sets.keys().flat_map(|it| faults::of_node_set(seen, it));
        inputs.extend(of_sets);
        let begin = |(name, list): (String, List)| {
            let node_set = seen.node_sets.get(&name)?;
            Some((name, evaluate::beginning(seen, node_set, list, now)))
        };
        let node_sets = if inputs.is_empty() {
            services.into_iter().filter_map(begin).collect()
        } else {
            BTreeMap::new()
        };
        Self { node_sets, setup, inputs, is_new: true }
    }
}

/// Returns the fault of hosts with open services whose machines are gone since the beginning.
fn missing_machines(seen: &Observed, part: &NodeSetPart) -> Option<Problem> {
    let open = part.hosts.iter().filter(|it| !it.is_ended());
    faults::of_machines(seen, &part.name, open.map(|it| it.name.clone()))
}

/// Requeues the deployment for changes that no informer reports.
fn requeue(plan: &mut Plan, judged: &Evaluation<'_>, now: Timestamp) {
    let of_gates = judged.gates.as_ref().and_then(|it| it.deadline);
    let of_words = judged.parts.iter().filter_map(|it| disruption::deadline(judged.seen, it));
    for at in of_words.filter(|it| *it > now).chain(of_gates) {
        plan.requeue_at(at, now);
    }
    for host in judged.parts.iter().flat_map(|it| &it.hosts) {
        if let Some(at) = host.sequence.retry_at() {
            plan.requeue_at(at, now);
        }
    }
    if networks::are_unserved(judged.inputs) {
        plan.requeue_in(networks::CRD_POLL_INTERVAL);
    }
}
