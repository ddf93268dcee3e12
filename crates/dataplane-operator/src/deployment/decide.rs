//! The evaluation of a deployment: when it begins, which runs are created, and when it ends.

use std::collections::{BTreeMap, BTreeSet};

use api::dataplane::NodeSetProgress;
use api::problem::Problem;
use jiff::Timestamp;
use operator_core::finalizers::{add_finalizer, is_terminating};
use operator_core::plan::{Plan, Step};
use operator_core::rejected_write::{self, RejectedWrite};
use operator_core::run_engine::host_progress::position;
use operator_core::run_engine::{Run, run_gc};

use crate::deployment::build::new_runs;
use crate::deployment::evaluate::{self, Common};
use crate::deployment::faults::MissingInputs;
use crate::deployment::finalizer::{self, RUNNING};
use crate::deployment::hosts::hosts_of;
use crate::deployment::node_set_part::NodeSetPart;
use crate::deployment::observed::Observed;
use crate::deployment::services::{List, Listed};
use crate::deployment::status::{End, Evaluation, has_begun};
use crate::deployment::{disruption, faults, gates, rollout, services};
use crate::host::networks;
use crate::host::ssh_trust::Offers;

/// Evaluates a deployment.
///
/// # Guarantees
/// Attempts are recorded in the status before the runs that carry them are created. A service that
/// is done on a host never runs there again, even if its runs are deleted.
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
        if !has_begun(deployment) || finalizer::is_confirmed(deployment) {
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
    let Progress { lists, setup, mut inputs, is_new } = Progress::of(seen);
    let parts = evaluate_parts(seen, &runs, &lists, is_new, now);
    inputs.extend(parts.iter().flat_map(|it| it.lacking.all().cloned()));
    inputs.extend(parts.iter().flat_map(|it| missing_hosts(seen, it)));
    let new = if is_going { Vec::new() } else { new_runs(seen, &parts) };
    let previous = deployment.status.as_ref().map(|it| it.conditions.as_slice());
    let previous = previous.unwrap_or_default();
    let judgement = Evaluation {
        seen,
        runs: &runs,
        setup: &setup,
        inputs: &inputs,
        parts: &parts,
        begins: is_new && !parts.is_empty(),
        gates: gates::evaluate(seen, &parts, now),
        made: new.iter().map(|it| it.service.as_str()).collect(),
        blocked: rollout::blocked_hosts(seen, &parts),
        deletion: finalizer::condition(deployment, &runs),
        rejection: rejected_write::condition(rejected, previous, !new.is_empty()),
    };
    // The end is written first; the finalizer is removed when the node sets have recorded the end.
    if judgement.end() == End::Open {
        if going.is_some() {
            plan.steps.extend(going);
            return plan;
        }
        if !parts.is_empty() {
            let reason = "it must not be deleted by accident";
            plan.steps.extend(add_finalizer(deployment, RUNNING, reason));
        }
    }
    plan.steps.extend(judgement.step(now));
    requeue(&mut plan, &judgement, now);
    plan.steps.extend(new.into_iter().map(|it| it.step));
    plan
}

/// Evaluates the hosts of each node set, and holds those that the disruption budget blocks.
fn evaluate_parts(
    seen: &Observed,
    runs: &[Run<'_>],
    lists: &BTreeMap<String, NodeSetProgress>,
    is_new: bool,
    now: Timestamp,
) -> Vec<NodeSetPart> {
    let offers = Offers::of(&seen.runs);
    let may_run = !is_terminating(&*seen.deployment);
    let of_part = |(name, kept): (&String, &NodeSetProgress)| {
        let lacking = lacking(seen, name, kept);
        let runs = evaluate::runs_of(runs, name, kept);
        let common = Common { seen, runs: &runs, offers: &offers, may_run, now };
        evaluate::evaluate(&common, name, kept, lacking)
    };
    let parts: Vec<NodeSetPart> = lists.iter().map(of_part).collect();
    let mut blocked = rollout::blocked_by_budget(seen, &parts, now);
    let hold = |it: NodeSetPart| {
        let holds = blocked.remove(&it.name).unwrap_or_default();
        evaluate::reported(it.held(&holds), is_new, now)
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
struct Progress {
    lists: BTreeMap<String, NodeSetProgress>,
    setup: Vec<Problem>,
    inputs: Vec<Problem>,
    is_new: bool,
}

impl Progress {
    fn of(seen: &Observed) -> Self {
        let deployment = &*seen.deployment;
        if has_begun(deployment) {
            let status = deployment.status.as_ref();
            let lists = status.map(|it| it.progress.clone()).unwrap_or_default();
            return Self { lists, setup: Vec::new(), inputs: Vec::new(), is_new: false };
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
            return Self { lists: BTreeMap::new(), setup, inputs, is_new: true };
        }
        let of_sets = seen.node_sets.keys().flat_map(|it| faults::of_node_set(seen, it));
        inputs.extend(of_sets);
        let begin = |(name, list): (String, List)| {
            let node_set = seen.node_sets.get(&name)?;
            Some((name, evaluate::beginning(seen, node_set, list)))
        };
        let lists = if inputs.is_empty() {
            services.into_iter().filter_map(begin).collect()
        } else {
            BTreeMap::new()
        };
        Self { lists, setup, inputs, is_new: true }
    }
}

/// Returns the missing inputs that keep the next runs of a node set from being created.
///
/// Only those of services that some host has not completed yet count.
fn lacking(seen: &Observed, name: &str, kept: &NodeSetProgress) -> MissingInputs {
    let attempts = evaluate::attempts(seen);
    let open = kept.hosts.values().filter(|it| !evaluate::is_ended(it, attempts));
    let Some(front) = open.map(position).min() else { return MissingInputs::default() };
    MissingInputs::of(seen, name, kept, kept.services.get(front..).unwrap_or_default())
}

/// Returns the faults of hosts with open services whose nodes or machines are gone since the
/// beginning.
fn missing_hosts(seen: &Observed, part: &NodeSetPart) -> Vec<Problem> {
    let attempts = evaluate::attempts(seen);
    let open = part.hosts.iter().filter(|it| !evaluate::is_ended(&it.live, attempts));
    let names: Vec<String> = open.map(|it| it.name.clone()).collect();
    let nodes = faults::of_nodes(seen, &part.name, names.iter().cloned());
    nodes.into_iter().chain(faults::of_machines(seen, &part.name, names.into_iter())).collect()
}

/// Requeues the deployment for changes that no informer reports.
fn requeue(plan: &mut Plan, judged: &Evaluation<'_>, now: Timestamp) {
    let of_gates = judged.gates.as_ref().and_then(|it| it.deadline);
    let of_words = judged.parts.iter().filter_map(|it| disruption::deadline(judged.seen, it));
    let reports = judged.parts.iter().filter_map(|it| it.report_at);
    for at in reports.chain(of_gates).chain(of_words.filter(|it| *it > now)) {
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
