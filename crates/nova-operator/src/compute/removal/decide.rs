//! The decisions on a compute that is being deleted, or whose host leaves.

use api::conditions::{ConditionDraft, find};
use api::dataplane::ServiceRun;
use api::dataplane::service_run::RunState;
use api::nova::ExternalCompute;
use jiff::Timestamp;
use kube::ResourceExt;
use nova_config::annotations::SKIP_CLEANUP;
use nova_config::conditions::{COMPUTE_CONDITION, HOST_CLEANED, LEFTOVER_RECORDED};
use nova_config::services::{LIBVIRT, NOVA_CLEANUP};
use operator_core::finalizers::{has_finalizer, is_terminating, remove_finalizer};
use operator_core::plan::{Order, Plan, Step, Target};
use operator_core::rejected_write::RejectedWrite;
use operator_core::run_engine::last_run::{self, Holds, LastRun};
use operator_core::run_engine::run_template::HostConnection;
use operator_core::run_engine::service_sequence::NeededRun;
use operator_core::run_engine::ssh_secret::PRIVATE_KEY;
use operator_core::run_engine::{Run, run_gc};

use crate::compute::deploy::build;
use crate::compute::deploy::host_order::of_host;
use crate::compute::deploy::inputs;
use crate::compute::deploy::libvirt_tls;
use crate::compute::deploy::nova_matches;
use crate::compute::removal::attempts::{self, Evaluation, Next, identity};
use crate::compute::removal::build::{Extent, cleanup};
use crate::compute::removal::inspection;
use crate::compute::removal::kept_options;
use crate::compute::removal::leftover_places;
use crate::compute::removal::messages;
use crate::compute::removal::nova_removal;
use crate::compute::removal::nova_steps::NovaSteps;
use crate::compute::removal::observed::Observed;
use crate::compute::removal::resolve::{Resolved, Way};
use crate::compute::removal::status;
use crate::compute_status::host_cleaned::concluded;
use crate::compute_status::registration::was_deployed;
use crate::finalizers;
use crate::nova::drain::findings::Findings;
use crate::nova::drain::order::{HostOrder, OrderOfHost};
use crate::nova::drain::progress::{HostProgress, Removal};
use crate::nova::health::ServiceHealth;
use crate::reasons;
use crate::requested::cell_immutability::{has_run, owns};

/// Returns the plan for a compute that is being deleted, with the order about its host. One whose host
/// leaves is deleted once nova has shown that the host is empty, and stays if the host stays before that.
///
/// # Guarantees
/// What its user wrote is kept before the finalizer is removed, where the node stays.
/// The finalizer is removed after the host was cleaned up, or after a bounded number of attempts of
/// bounded time; and only after nova has nothing of the host any more, or, where its API is not
/// used, the remaining work in nova is reported where a user finds it. With that API, nothing is
/// stopped on a host before nova has shown that it is empty.
///
/// # Caveats
/// The time that a run waits for another run or for a worker is not bounded, nor is the time that a
/// lost worker holds it. The condition reports both, with the command to proceed without the host.
pub fn decide(
    seen: &Observed,
    rejected: Option<&RejectedWrite>,
    now: Timestamp,
) -> Plan<OrderOfHost> {
    let resolved = &Resolved::of(seen);
    let mut plan = if let Some(rejected) = rejected {
        report_rejection(resolved, rejected, now)
    } else {
        let mut plan = removal(resolved, now);
        kept_options::keep(seen, &mut plan);
        plan
    };
    plan.orders.extend(order(resolved));
    plan
}

/// Returns the order about the host, or `None` without one; it does not follow from what passes have
/// found.
fn order(resolved: &Resolved<'_>) -> Option<Order<OrderOfHost>> {
    let because = "the compute is being deleted";
    of_host(&resolved.seen.compute, host_order(resolved)?, because)
}

/// Returns what was observed with how far the order is that follows from it.
pub fn with_progress(seen: &Observed, found: &Findings) -> Observed {
    let progress = found.of(order(&Resolved::of(seen)).as_ref());
    let progress = nova_matches::held(seen.identity_sources()).unwrap_or(progress);
    Observed { drain: seen.drain.as_ref().map(|_| progress), ..seen.clone() }
}

fn removal(resolved: &Resolved<'_>, now: Timestamp) -> Plan<OrderOfHost> {
    let mut plan = Plan::with_resync();
    let seen = resolved.seen;
    if !has_finalizer(&*seen.compute, finalizers::COMPUTE) {
        plan.steps.extend(seen.is_revocable().then(|| deletion(seen)));
        return plan;
    }
    if let Some(because) = needs_nothing(resolved) {
        plan.steps.extend(release(seen, because));
        return plan;
    }
    let evaluated = evaluate_unless_held(resolved, now);
    // Nothing is stopped on the host before the compute is deleted, which cannot be taken back.
    if seen.is_revocable() && !matches!(evaluated.next, Next::Wait(_)) {
        plan.steps.push(deletion(seen));
        return plan;
    }
    let steps = conditions(resolved, &evaluated);
    plan.steps.extend(status_step(seen, &steps, &evaluated.services, now));
    plan.steps.extend(unneeded_runs(resolved));
    match evaluated.next {
        Next::Conclude => {
            plan.steps.extend(done(resolved).into_iter().flat_map(|it| release(seen, it)));
        }
        Next::Wait(None) => {}
        Next::Wait(Some(at)) => plan.requeue_at(at, now),
        Next::Run { need, was_key_refused } => {
            plan.steps.extend(runs(resolved, &need, was_key_refused));
        }
    }
    plan
}

/// Returns why the compute can go after its host is done with; `None` while something holds it.
fn done(resolved: &Resolved<'_>) -> Option<&'static str> {
    let seen = resolved.seen;
    if resolved.is_by_api() {
        let removal = seen.drain.as_ref().and_then(HostProgress::removal);
        return removal
            .is_some_and(Removal::is_done)
            .then_some("its host is done with, and nova has nothing of it");
    }
    // Nova has shown that the host is empty since its stop was recorded.
    let is_inspected =
        resolved.way != Way::Inspected || !resolved.is_held && concluded(&seen.compute).is_some();
    (is_inspected && is_reported(seen))
        .then_some("its host is done with, and what is left in nova is reported")
}

/// Returns the step that deletes a compute whose host leaves.
fn deletion(seen: &Observed) -> Step {
    Step::delete(Target::of(&*seen.compute), "its host leaves the node set")
}

/// Returns the steps that let the compute go, without the certificate of its host.
fn release(seen: &Observed, because: &str) -> Vec<Step> {
    if seen.is_revocable() {
        return vec![deletion(seen)];
    }
    let mut steps = libvirt_tls::removals(&seen.compute, &seen.issued);
    steps.extend(remove_finalizer(&*seen.compute, finalizers::COMPUTE, because));
    steps
}

/// Returns the steps that take back runs which must not begin, and delete those that are superseded.
fn unneeded_runs(resolved: &Resolved<'_>) -> Vec<Step> {
    let Resolved { seen, is_held, cleanups, others, .. } = resolved;
    let mut steps = Vec::new();
    if *is_held {
        // A run that has not begun would start nova-compute.
        steps.extend(run_gc::withdrawn(others, |_, _| false));
    }
    let is_forbidden = seen.drain.as_ref().is_some_and(HostProgress::forbids_runs);
    if (resolved.is_by_api() || *is_held) && is_forbidden {
        steps.extend(run_gc::withdrawn(cleanups, |_, _| false));
    }
    steps.extend(last_run::superseded(cleanups, &seen.compute.spec.dataplane_node_name));
    steps
}

/// Returns what is to be done in nova about the host of a compute that is being deleted, or `None`
/// for nothing, also where nova has the host under another identity than the recorded one.
pub fn host_order(resolved: &Resolved<'_>) -> Option<HostOrder> {
    let seen = resolved.seen;
    let is_held = has_finalizer(&*seen.compute, finalizers::COMPUTE);
    let is_another = nova_matches::held(seen.identity_sources()).is_some();
    if is_another || !is_held || needs_nothing(resolved).is_some() {
        return None;
    }
    match resolved.way {
        Way::ByHand => None,
        Way::Inspected => Some(nova_removal::inspection(&seen.compute)),
        Way::ByApi => Some(nova_removal::order(seen)),
    }
}

/// Returns the evaluation; while the compute is held, without an attempt that has not begun: none begins
/// unless the host is empty now.
fn evaluate_unless_held(resolved: &Resolved<'_>, now: Timestamp) -> Evaluation {
    let (seen, evaluated) = (resolved.seen, evaluate(resolved, now));
    let (is_held, once) = if resolved.is_by_api() {
        (!nova_removal::may_stop(seen), "the host has no servers")
    } else {
        (resolved.is_held, "nova has shown that the host is empty")
    };
    let has_begun = seen.compute.services().iter().any(|it| it.name == NOVA_CLEANUP);
    let goes_on = has_begun && !matches!(evaluated.next, Next::Run { .. });
    if !is_held || goes_on || concluded(&seen.compute).is_some() {
        return evaluated;
    }
    let text = format!("nova-compute is stopped once {once}; see Drained.");
    let condition = reasons::removal::WAITING_FOR_DRAIN.condition(HOST_CLEANED, text);
    let services = seen.compute.services().to_vec();
    Evaluation { condition, services, next: Next::Wait(None) }
}

/// Returns the conditions of all steps, in their order; what holds the stop of an empty host comes
/// before what is unknown of its drain.
fn conditions(resolved: &Resolved<'_>, evaluated: &Evaluation) -> Vec<ConditionDraft> {
    let (seen, of_host) = (resolved.seen, evaluated.condition.clone());
    if !resolved.is_by_api() {
        let is_over = !resolved.is_held && matches!(evaluated.next, Next::Conclude);
        let unrecorded = unrecorded(seen).filter(|_| is_over);
        return unrecorded.into_iter().chain(drained_and_cleaned(resolved, of_host)).collect();
    }
    let steps = NovaSteps::of(seen);
    // Once the host is stopped, `Drained` has nothing to say any more.
    let drained = concluded(&seen.compute).is_none().then(|| steps.drained());
    let mut first: Vec<_> = drained.into_iter().chain([of_host]).collect();
    if nova_removal::may_stop(seen) {
        first.reverse();
    }
    first.into_iter().chain(steps.after_stop()).collect()
}

/// Returns the condition of the host, after what holds its stop, where nova is at most asked about it.
fn drained_and_cleaned(resolved: &Resolved<'_>, of_host: ConditionDraft) -> Vec<ConditionDraft> {
    let drained = resolved.is_held.then(|| inspection::drained(resolved.seen, &of_host)).flatten();
    drained.into_iter().chain([of_host]).collect()
}

/// Returns the status writes after a rejected write; a final result is never changed.
fn report_rejection(
    resolved: &Resolved<'_>,
    rejected: &RejectedWrite,
    now: Timestamp,
) -> Plan<OrderOfHost> {
    let (seen, compute) = (resolved.seen, &*resolved.seen.compute);
    if concluded(compute).is_some() {
        return Plan::default();
    }
    let condition = rejected.condition(HOST_CLEANED, compute.conditions());
    let mut steps = drained_and_cleaned(resolved, condition);
    if nova_removal::has_begun(compute) {
        steps.extend(NovaSteps::of(seen).after_stop());
    }
    let steps = status_step(seen, &steps, compute.services(), now).into_iter().collect();
    Plan { steps, ..Plan::default() }
}

/// Returns the step that writes the status, with the identity that the host has in nova now.
fn status_step(
    seen: &Observed,
    steps: &[ConditionDraft],
    services: &[ServiceRun],
    now: Timestamp,
) -> Option<Step> {
    let recorded = nova_matches::to_record(seen.identity_sources(), &[], now);
    let step = status::step(&seen.compute, steps, services, recorded.clone(), now)?;
    Some(nova_matches::noticed(step, &seen.compute, &recorded))
}

/// Returns why the finalizer can be removed at once, or `None` when a cleanup is needed.
fn needs_nothing(resolved: &Resolved<'_>) -> Option<&'static str> {
    let seen = resolved.seen;
    if seen.namespace_goes {
        return Some("its namespace is being deleted");
    }
    if seen.compute.is_observed() && seen.drain.is_none() {
        return Some("nova's API is not read, so the compute is not looked after");
    }
    if !has_run(&seen.compute, !seen.runs.is_empty()) {
        return (!may_have_registered(resolved)).then_some("it has never touched its host");
    }
    (!may_have_started(seen)).then_some("nova-compute was never started on its host")
}

/// Whether a compute without any record of a run may have registered all the same, as one that was
/// restored without its status has: nova has not shown that it has no service of its host's name. In a
/// cell that does not exist none can have.
fn may_have_registered(resolved: &Resolved<'_>) -> bool {
    let health = resolved.seen.health.as_ref();
    let is_absent = health.is_some_and(|it| it.service == ServiceHealth::NotFound);
    resolved.way == Way::Inspected && resolved.seen.cell.is_some() && !is_absent
}

/// Whether nova-compute may have been started on the host, and so be registered in nova.
///
/// The record of the cleanup replaces all other records, and is made only when this holds.
fn may_have_started(seen: &Observed) -> bool {
    let waits = |it: &ServiceRun| {
        it.state == RunState::Pending && it.attempt <= 1 && it.deployed_hash.is_none()
    };
    // While a service sequence is in progress, its later services may have started without being
    // recorded.
    let is_held_up = |it: &ServiceRun| matches!(it.state, RunState::Pending | RunState::Failed);
    let shows_start = |it: &ServiceRun| match it.name.as_str() {
        NOVA_CLEANUP => true,
        LIBVIRT => !is_held_up(it),
        _ => !waits(it),
    };
    was_deployed(&seen.compute)
        || seen.compute.services().iter().any(shows_start)
        || seen.runs.iter().filter_map(|it| Run::of(it)).any(|it| it.service != LIBVIRT)
}

fn evaluate(resolved: &Resolved<'_>, now: Timestamp) -> Evaluation {
    let (seen, by_api) = (resolved.seen, resolved.is_by_api());
    let compute = &*seen.compute;
    let conclude = |condition| {
        let services = compute.services().to_vec();
        Evaluation { condition, services, next: Next::Conclude }
    };
    if let Some(before) = concluded(compute) {
        let is_cleaned = before.reason == reasons::cleanup::HOST_CLEANED.word;
        if by_api || !nova_removal::has_begun(compute) {
            return conclude(ConditionDraft::repeated(before));
        }
        // The user lets the compute go during its removal from nova, where something may be left.
        if is_cleaned {
            let left = messages::left_in_nova(compute, false);
            let text = messages::cleaned(&messages::host(compute), &left);
            return conclude(reasons::cleanup::HOST_CLEANED.condition(HOST_CLEANED, text));
        }
    }
    if resolved.is_skipped {
        let cause = format!("annotation {SKIP_CLEANUP} says so");
        let text = not_cleaned(compute, &cause, false);
        return conclude(reasons::cleanup::CLEANUP_SKIPPED.condition(HOST_CLEANED, text));
    }
    match address(seen) {
        Ok(_) => attempt(resolved, now),
        Err(cause) => {
            let text = not_cleaned(compute, &cause, by_api);
            conclude(reasons::cleanup::HOST_NOT_CLEANED.condition(HOST_CLEANED, text))
        }
    }
}

fn not_cleaned(compute: &ExternalCompute, cause: &str, by_api: bool) -> String {
    let left = messages::left_in_nova(compute, by_api);
    messages::not_cleaned(&messages::host(compute), cause, &left)
}

/// Returns the address of the host as the compute recorded it: a node of the same name may be
/// another host.
fn address(seen: &Observed) -> Result<String, String> {
    let node = &seen.compute.spec.dataplane_node_name;
    if !seen.has_inventory {
        return Err(format!("the inventory of OpenStackDataPlaneNode {node} is gone"));
    }
    if !seen.ssh.as_ref().is_some_and(|it| it.keys.contains_key(PRIVATE_KEY)) {
        let (ssh_secret, _) = build::ssh(&seen.compute, seen.ssh.as_ref());
        return Err(format!("there is no Secret {ssh_secret} with {PRIVATE_KEY} any more"));
    }
    let status = seen.compute.status.as_ref();
    let recorded = status.and_then(|it| it.address.clone());
    let of_node = seen.node.as_ref().and_then(|it| it.status.as_ref()?.address.clone());
    match (recorded, of_node) {
        (Some(recorded), Some(now)) if recorded != now => Err(format!(
            "it was deployed at {recorded}, and OpenStackDataPlaneNode {node} is now at {now}"
        )),
        (recorded, of_node) => {
            let address = recorded.or(of_node).ok_or("its address is unknown")?;
            // A failed attempt may have gone to another address since.
            if status.is_some_and(|it| !inputs::went_to(&it.deployed_inputs, &address)) {
                return Err(format!("its last complete deployment did not go to {address}"));
            }
            Ok(address)
        }
    }
}

fn attempt(resolved: &Resolved<'_>, now: Timestamp) -> Evaluation {
    let (seen, by_api) = (resolved.seen, resolved.is_by_api());
    let compute = &*seen.compute;
    let (ssh_secret, ssh_version) = build::ssh(compute, seen.ssh.as_ref());
    let last = LastRun {
        service: NOVA_CLEANUP,
        name: &compute.spec.dataplane_node_name,
        identity: &identity(compute, extent(resolved)),
        recorded: compute.services(),
        ssh: (&ssh_secret, &ssh_version),
        trust: &build::trust(seen.node.as_deref()),
        // The service that is deleted may be that of another owner which the host records.
        holds: if by_api { Holds::GuestsAndOwner } else { Holds::Guests },
    };
    let left = messages::left_in_nova(compute, by_api);
    attempts::evaluate(compute, &last, &left, &resolved.cleanups, now)
}

/// Returns what a cleanup run takes away from the host.
fn extent(resolved: &Resolved<'_>) -> Extent {
    let Resolved { seen, cleanups, .. } = resolved;
    if resolved.is_by_api() { nova_removal::extent(seen, cleanups) } else { Extent::Units }
}

/// Returns the steps that create the run and delete those that are no longer needed: these use the
/// same host, so the new run waits for their pods.
fn runs(resolved: &Resolved<'_>, need: &NeededRun, was_key_refused: bool) -> Vec<Step> {
    let Resolved { seen, others, .. } = resolved;
    // Without an address no attempt is evaluated.
    let Ok(address) = address(seen) else { return Vec::new() };
    let (node, ssh) = (seen.node.as_deref(), seen.ssh.as_ref());
    let of_node = build::connection(&seen.compute, node, ssh, was_key_refused);
    let connection = HostConnection { address, ..of_node };
    let unneeded = others
        .iter()
        .filter(|it| !it.is_finished() && !is_terminating(it.object))
        .map(|it| Step::delete(Target::of(it.object), "its compute is being deleted"));
    unneeded.chain(cleanup(seen, need.clone(), connection, extent(resolved))).collect()
}

/// Whether the remaining work is reported where a user finds it after the compute is gone.
fn is_reported(seen: &Observed) -> bool {
    is_on_node(seen) && (!seen.cells_are_ours || is_in_cell(seen))
}

/// Returns that the cell has no place to record what nova keeps of the host; `None` where it has one,
/// or another operator reconciles it.
fn unrecorded(seen: &Observed) -> Option<ConditionDraft> {
    let cell = seen.cell.as_deref().filter(|_| seen.cells_are_ours && !is_in_cell(seen))?;
    let namespace = cell.namespace().unwrap_or_default();
    let text = leftover_places::full(&messages::host(&seen.compute), &namespace, &cell.name_any());
    let reason = &reasons::cleanup::LEFTOVERS_FULL;
    leftover_places::is_full(cell).then(|| reason.condition(LEFTOVER_RECORDED, text))
}

/// Without the node, or with a new one of the same name, there is nothing to report on it.
fn is_on_node(seen: &Observed) -> bool {
    let compute = &*seen.compute;
    let Some(node) = seen.node.as_ref().filter(|it| owns(it, compute)) else { return true };
    let Some(concluded) = concluded(compute) else { return false };
    let left = messages::left(compute, concluded);
    find(node.conditions(), COMPUTE_CONDITION)
        .is_some_and(|it| it.reason == reasons::node::LEFT_IN_NOVA.word && it.message == left)
}

fn is_in_cell(seen: &Observed) -> bool {
    let Some(cell) = &seen.cell else { return true };
    cell.leftovers().iter().any(|it| Some(&it.uid) == seen.compute.metadata.uid.as_ref())
}
