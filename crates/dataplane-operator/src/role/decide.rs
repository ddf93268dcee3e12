//! The evaluation of a group: its inventories, attempts, runs and statuses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::conditions::{Condition, ConditionDraft};
use api::dataplane::{Node, ServiceRun};
use jiff::Timestamp;
use operator_core::plan::{Plan, Step};
use operator_core::rejected_write::{self, RejectedWrite};
use operator_core::run_engine::batches::{Batch, batches};
use operator_core::run_engine::rollout::DisruptionBudget;
use operator_core::run_engine::run_template::HostConnection;
use operator_core::run_engine::service_sequence::NeededRun;
use operator_core::run_engine::{Run, SequenceState, build, run_gc};

use crate::baremetal_request::{observed, provisioning_state};
use crate::default_services;
use crate::effective_spec::role_strategy;
use crate::role::blocked_rollout::BlockedRollout;
use crate::role::build::{connection, inventories, run_template};
use crate::role::faults::{self, OfGroup};
use crate::role::host::{self, EvaluatedHost, Shared};
use crate::role::host_key_trust::Offers;
use crate::role::machine_request::MachineRequest;
use crate::role::node_status::{node_findings, node_step};
use crate::role::observed::Observed;
use crate::role::rollout::{counts, failing};
use crate::role::status::role_step;
use crate::role::{deletion, finalizer, networks};

/// Evaluates a group.
///
/// # Guarantees
/// Attempts are recorded in the statuses of their nodes before the runs that carry them are
/// created.
pub fn decide(seen: &Observed, rejected: Option<&RejectedWrite>, now: Timestamp) -> Plan {
    let mut plan = Plan::with_resync();
    plan.steps.extend(deletion::abandonment(seen));
    plan.steps.extend(deletion::leftovers(seen));
    plan.steps.extend(finalizer::removals(seen));
    let request = MachineRequest::of(seen);
    let asks = request.as_ref().and_then(|it| deletion::set_step(seen, it));
    if seen.role.as_ref().is_some_and(|it| it.metadata.deletion_timestamp.is_some()) {
        let rejected = rejected_write::condition(rejected, previous(seen), asks.is_some());
        let rejected = rejected.as_ref();
        plan.steps
            .extend(request.iter().flat_map(|it| deletion::status_steps(seen, it, rejected, now)));
        plan.steps.extend(asks);
        requeue(&mut plan, seen, request.as_ref(), &[], now);
        return plan;
    }
    let missing =
        default_services::missing(&seen.namespace, seen.listed(), &seen.services, &seen.unreadable);
    if !missing.is_empty() && rejected.is_none() {
        plan.steps.extend(missing);
        // Their creation enqueues this group again; until then its services are incomplete.
        return plan;
    }
    let runs: Vec<Run<'_>> = seen.runs.iter().filter_map(|it| Run::of(it)).collect();
    let group_faults = faults::of_group(seen);
    let (hosts, is_failing) = evaluate_all(seen, &group_faults, &runs, request.as_ref(), now);
    plan.steps.extend(withdrawn(seen, &runs, &hosts, is_failing));
    plan.steps.extend(finalizer::additions(seen, &hosts));
    plan.steps.extend(inventories(seen, &hosts));
    let role = seen.role.as_deref();
    let new_runs = new_runs(seen, &hosts);
    let superseded = match seen.parent() {
        Some(_) => run_gc::superseded(&runs, &recorded(seen)),
        None => Vec::new(),
    };
    let is_waiting = !new_runs.is_empty() || !superseded.is_empty() || asks.is_some();
    let is_told = seen.parent().is_some() || request.is_some();
    let rejected =
        rejected_write::condition(rejected, previous(seen), is_waiting).filter(|_| is_told);
    let told_by = |it| deletion::status_steps(seen, it, rejected.as_ref(), now);
    plan.steps.extend(request.iter().flat_map(told_by));
    let mut evaluated: Vec<(EvaluatedHost, ConditionDraft, ConditionDraft)> = Vec::new();
    for host in hosts {
        let drafts = node_findings(&host, role, request.as_ref(), rejected.as_ref());
        let (ready, up_to_date) = (drafts.ready.clone(), drafts.up_to_date.clone());
        plan.steps.extend(node_step(seen, &host, drafts, now));
        evaluated.push((host, ready, up_to_date));
    }
    plan.steps.extend(superseded);
    // A new run enqueues the group again, and the role then names it: one write instead of two.
    if new_runs.is_empty() || rejected.is_some() {
        let faults = group_faults.all();
        plan.steps.extend(role_step(seen, &faults, rejected, &evaluated, request.as_ref(), now));
    }
    plan.steps.extend(new_runs);
    // Last, so that a rejected set of machines does not affect hosts that already have theirs.
    plan.steps.extend(asks);
    requeue(&mut plan, seen, request.as_ref(), &evaluated, now);
    plan
}

/// Requeues the group for changes that no informer reports.
fn requeue(
    plan: &mut Plan,
    seen: &Observed,
    request: Option<&MachineRequest>,
    evaluated: &[(EvaluatedHost, ConditionDraft, ConditionDraft)],
    now: Timestamp,
) {
    for (host, _, _) in evaluated {
        if let SequenceState::Failed { retry_at: Some(at), .. } = &host.sequence.state {
            plan.requeue_at(*at, now);
        }
        match &host.machine {
            Some(Ok(provisioning)) if provisioning.waits_for_ssh => {
                plan.requeue_in(provisioning_state::ASK_AGAIN);
            }
            Some(Ok(provisioning)) if provisioning.is_unheard => {
                plan.requeue_in(observed::LOOK_AGAIN);
            }
            Some(Err(fault)) if !fault.needs_human() => plan.requeue_in(observed::LOOK_AGAIN),
            Some(Ok(_) | Err(_)) | None => {}
        }
    }
    if evaluated.iter().any(|(host, _, _)| networks::are_unserved(&host.faults)) {
        plan.requeue_in(networks::LOOK_AGAIN);
    }
    if request.is_some_and(|it| !it.migrating_nodes(seen).is_empty()) {
        plan.requeue_in(observed::LOOK_AGAIN);
    }
}

/// Returns the present conditions of the object that reports a rejected write: the role, or a node
/// without one.
fn previous(seen: &Observed) -> &[Condition] {
    let conditions = match (&seen.role, seen.nodes.first()) {
        (Some(role), _) => role.status.as_ref().map(|it| it.conditions.as_slice()),
        (None, Some(node)) => node.status.as_ref().map(|it| it.conditions.as_slice()),
        (None, None) => None,
    };
    conditions.unwrap_or_default()
}

/// Evaluates all hosts, and blocks those that the role's disruption budget does not admit.
///
/// Also returns whether a host failed before.
fn evaluate_all(
    seen: &Observed,
    faults: &OfGroup,
    runs: &[Run<'_>],
    request: Option<&MachineRequest>,
    now: Timestamp,
) -> (Vec<EvaluatedHost>, bool) {
    // Includes runs of other owners: phase 1 may meet a new host key first.
    let offers = Offers::of(seen.runs.iter().chain(&seen.others));
    let shared = Shared { seen, faults, runs, offers: &offers, machine_request: request, now };
    let judge = |node: &Arc<Node>, blocked| host::evaluate(&shared, node, blocked);
    let hosts: Vec<EvaluatedHost> = seen
        .nodes
        .iter()
        .filter(|it| it.metadata.deletion_timestamp.is_none())
        .map(|it| judge(it, None))
        .collect();
    let counts = counts(&hosts);
    let mut budget = DisruptionBudget::of(&seen.limits(), &counts);
    let failing = failing(&hosts);
    let evaluated = hosts
        .into_iter()
        .map(|host| match host.sequence.state {
            SequenceState::NeedsRun(_) if !host.is_at_work() => {
                match budget.admit(host.rollout_state()) {
                    Ok(()) => host,
                    Err(blocked) => judge(
                        &host.node,
                        Some(BlockedRollout { blocked, failing: failing.clone() }),
                    ),
                }
            }
            SequenceState::Done
            | SequenceState::OutOfDate
            | SequenceState::NeedsRun(_)
            | SequenceState::InRun { .. }
            | SequenceState::Failed { .. } => host,
        })
        .collect();
    (evaluated, counts.is_failing())
}

/// Returns the steps that withdraw waiting runs that none of their hosts needs any more.
///
/// The inputs have changed, the deployment was switched off, the host is gone, or a failure pauses
/// what has not begun.
fn withdrawn(
    seen: &Observed,
    runs: &[Run<'_>],
    hosts: &[EvaluatedHost],
    is_failing: bool,
) -> Vec<Step> {
    if seen.parent().is_none() {
        return Vec::new();
    }
    let is_paused = seen.limits().pause_on_failure && is_failing;
    let by_name: BTreeMap<&str, &EvaluatedHost> =
        hosts.iter().map(|it| (it.effective.name.as_str(), it)).collect();
    let needs = |run: &Run<'_>, name: &str| {
        by_name.get(name).is_some_and(|it| {
            let is_for_it = it.sequence.services.iter().any(|service| run.carries(name, service));
            is_for_it && it.effective.deploy && !(is_paused && it.may_be_paused())
        })
    };
    run_gc::withdrawn(runs, needs)
}

fn new_runs(seen: &Observed, evaluated: &[EvaluatedHost]) -> Vec<Step> {
    let mut needs: BTreeMap<String, NeededRun> = BTreeMap::new();
    let mut hosts: BTreeMap<&str, &EvaluatedHost> = BTreeMap::new();
    for host in evaluated {
        hosts.insert(&host.effective.name, host);
        if let SequenceState::NeedsRun(need) = &host.sequence.state {
            needs.insert(host.effective.name.clone(), need.clone());
        }
    }
    let connection: BTreeMap<String, HostConnection> =
        hosts.iter().map(|(name, host)| ((*name).to_owned(), connection(seen, host))).collect();
    let asks = |(name, it): (&String, &HostConnection)| it.scan.is_some().then(|| name.clone());
    let asked: BTreeSet<String> = connection.iter().filter_map(asks).collect();
    let all: Vec<&EvaluatedHost> = evaluated.iter().collect();
    let strategy = role_strategy(seen.data_plane.as_deref(), seen.role.as_deref());
    let create = |batch: &Batch| {
        let first = batch.attempts.keys().next()?;
        let template = run_template(seen, &batch.service, hosts.get(first.as_str())?, &all)?;
        Some(build::run(&template, batch, &connection))
    };
    batches(needs, strategy.batch_size(), &asked).iter().filter_map(create).collect()
}

/// Returns the services that the API server has recorded, by host.
fn recorded(seen: &Observed) -> BTreeMap<&str, &[ServiceRun]> {
    let name = |it: &'_ std::sync::Arc<api::dataplane::Node>| it.metadata.name.is_some();
    seen.nodes
        .iter()
        .filter(|it| name(it))
        .map(|it| {
            let services = it.status.as_ref().map(|it| it.services.as_slice());
            (it.metadata.name.as_deref().unwrap_or_default(), services.unwrap_or_default())
        })
        .collect()
}
