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
use operator_core::run_engine::run_template::HostConnection;
use operator_core::run_engine::service_sequence::NeededRun;
use operator_core::run_engine::ssh_secret::PRIVATE_KEY;
use operator_core::run_engine::{Run, last_run, run_gc};

use crate::compute::cleanup::attempts::{Evaluation, HostCleanup, Next, identity};
use crate::compute::cleanup::build::{Extent, cleanup};
use crate::compute::cleanup::inspection;
use crate::compute::cleanup::kept_options;
use crate::compute::cleanup::leftover_places;
use crate::compute::cleanup::messages;
use crate::compute::cleanup::nova_removal;
use crate::compute::cleanup::nova_steps::is_done;
use crate::compute::cleanup::observed::Observed;
use crate::compute::cleanup::status;
use crate::compute::deploy::build;
use crate::compute::deploy::host_order::of_host;
use crate::compute::deploy::inputs;
use crate::compute::deploy::libvirt_tls;
use crate::compute::deploy::nova_matches;
use crate::compute_status::host_cleaned::concluded;
use crate::compute_status::registration::was_deployed;
use crate::finalizers;
use crate::group::inherited_annotation::annotation;
use crate::nova::drain::findings::Findings;
use crate::nova::drain::order::{HostOrder, OrderOfHost};
use crate::nova::drain::progress::HostProgress;
use crate::reasons;
use crate::requested::cell_immutability::{has_run, owns};
use crate::shared_caches::cleanup_runs::cleans_up_after;

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
    let mut plan = if let Some(rejected) = rejected {
        report_rejection(seen, rejected, now)
    } else {
        let mut plan = removal(seen, now);
        kept_options::keep(seen, &mut plan);
        plan
    };
    plan.orders.extend(order(seen));
    plan
}

/// Returns the order about the host, or `None` without one; it does not follow from what passes have
/// found.
fn order(seen: &Observed) -> Option<Order<OrderOfHost>> {
    of_host(&seen.compute, host_order(seen)?, "the compute is being deleted")
}

/// Returns what was observed with how far the order is that follows from it.
pub fn with_progress(seen: &Observed, found: &Findings) -> Observed {
    let progress = found.of(order(seen).as_ref());
    let progress = nova_matches::held(seen.identity_sources()).unwrap_or(progress);
    Observed { drain: seen.drain.as_ref().map(|_| progress), ..seen.clone() }
}

fn removal(seen: &Observed, now: Timestamp) -> Plan<OrderOfHost> {
    let mut plan = Plan::with_resync();
    let compute = &*seen.compute;
    if !has_finalizer(compute, finalizers::COMPUTE) {
        plan.steps.extend(seen.is_revocable().then(|| deletion(seen)));
        return plan;
    }
    if let Some(because) = needs_nothing(seen) {
        plan.steps.extend(release(seen, because));
        return plan;
    }
    let is_by_api = nova_removal::is_by_api(seen, is_skipped(seen));
    let is_held = !is_by_api && is_held(seen);
    let evaluated = if is_by_api { in_order(seen, now) } else { unregistered(seen, is_held, now) };
    // Nothing is stopped on the host before the compute is deleted, which cannot be taken back.
    if seen.is_revocable() && !matches!(evaluated.next, Next::Wait(_)) {
        plan.steps.push(deletion(seen));
        return plan;
    }
    let steps = if is_by_api {
        conditions(seen, &evaluated)
    } else {
        held_conditions(seen, is_held, &evaluated)
    };
    plan.steps.extend(status_step(seen, &steps, &evaluated.services, now));
    plan.steps.extend(unneeded_runs(seen, is_by_api, is_held));
    match evaluated.next {
        Next::Conclude if is_by_api && is_done(seen.drain.as_ref()) => {
            let because = "its host is done with, and nova has nothing of it";
            plan.steps.extend(release(seen, because));
        }
        Next::Conclude if !is_by_api && is_inspected_last(seen) && is_reported(seen) => {
            let because = "its host is done with, and what is left in nova is reported";
            plan.steps.extend(release(seen, because));
        }
        Next::Conclude | Next::Wait(None) => {}
        Next::Wait(Some(at)) => plan.requeue_at(at, now),
        Next::Run { need, was_key_refused } => {
            let (node, ssh) = (seen.node.as_deref(), seen.ssh.as_ref());
            let (secret, _) = build::ssh(&seen.compute, ssh);
            let connection = build::host_connection(node, &secret, ssh, was_key_refused);
            // Without an address no attempt is evaluated.
            let at = address(seen).map(|address| HostConnection { address, ..connection });
            let extent = extent(seen, is_by_api);
            plan.steps.extend(at.into_iter().flat_map(|it| runs(seen, need.clone(), it, extent)));
        }
    }
    plan
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
fn unneeded_runs(seen: &Observed, is_by_api: bool, is_held: bool) -> Vec<Step> {
    let (cleanups, others) = parted(seen);
    let mut steps = Vec::new();
    if is_held {
        // A run that has not begun would start nova-compute.
        steps.extend(run_gc::withdrawn(&others, |_, _| false));
    }
    if (is_by_api || is_held) && seen.drain.as_ref().is_some_and(HostProgress::forbids_runs) {
        steps.extend(run_gc::withdrawn(&cleanups, |_, _| false));
    }
    steps.extend(last_run::superseded(&cleanups, &seen.compute.spec.dataplane_node_name));
    steps
}

/// Returns what is to be done in nova about the host of a compute that is being deleted, or `None`
/// for nothing, also where nova has the host under another identity than the recorded one.
pub fn host_order(seen: &Observed) -> Option<HostOrder> {
    let is_held = has_finalizer(&*seen.compute, finalizers::COMPUTE);
    let is_another = nova_matches::held(seen.identity_sources()).is_some();
    if is_another || !is_held || needs_nothing(seen).is_some() {
        return None;
    }
    let is_skipped = is_skipped(seen);
    if nova_removal::is_by_api(seen, is_skipped) {
        return Some(nova_removal::order(seen));
    }
    nova_removal::is_inspected(seen, is_skipped).then(|| nova_removal::inspection(&seen.compute))
}

/// Whether a compute that is not known to have registered is held, because nova has not shown that
/// its host is empty.
fn is_held(seen: &Observed) -> bool {
    let is_empty = seen.drain.as_ref().is_some_and(HostProgress::is_empty);
    let is_unknown = !is_empty || nova_removal::is_unread(seen);
    is_unknown && nova_removal::is_inspected(seen, is_skipped(seen))
}

/// Whether nothing holds a compute that is not known to have registered: nova has shown that its
/// host is empty since its stop was recorded.
fn is_inspected_last(seen: &Observed) -> bool {
    let is_inspected = nova_removal::is_inspected(seen, is_skipped(seen));
    !is_inspected || (!is_held(seen) && concluded(&seen.compute).is_some())
}

/// Returns the evaluation, in which no attempt to stop the host begins unless it is empty now.
fn in_order(seen: &Observed, now: Timestamp) -> Evaluation {
    let evaluated = evaluate(seen, true, now);
    let text = "nova-compute is stopped once the host has no servers; see Drained.";
    unless_held(seen, evaluated, !nova_removal::may_stop(seen), text)
}

/// Returns the evaluation where nothing is changed in nova; no attempt begins while the compute is
/// held.
fn unregistered(seen: &Observed, is_held: bool, now: Timestamp) -> Evaluation {
    let evaluated = evaluate(seen, false, now);
    let text = "nova-compute is stopped once nova has shown that the host is empty; see Drained.";
    unless_held(seen, evaluated, is_held, text)
}

/// Returns the evaluation; while the compute is held, without an attempt that has not begun, and
/// `text` says why.
fn unless_held(seen: &Observed, evaluated: Evaluation, is_held: bool, text: &str) -> Evaluation {
    if !is_held || concluded(&seen.compute).is_some() {
        return evaluated;
    }
    let status = seen.compute.status.as_ref();
    let services = status.map(|it| it.services.clone()).unwrap_or_default();
    let has_begun = services.iter().any(|it| it.name == NOVA_CLEANUP);
    match evaluated.next {
        Next::Conclude | Next::Wait(_) if has_begun => evaluated,
        Next::Conclude | Next::Wait(_) | Next::Run { .. } => {
            let condition = reasons::removal::WAITING_FOR_DRAIN.condition(HOST_CLEANED, text);
            Evaluation { condition, services, next: Next::Wait(None) }
        }
    }
}

/// Returns the conditions of all steps, in their order; what holds the stop of an empty host comes
/// before what is unknown of its drain.
fn conditions(seen: &Observed, evaluated: &Evaluation) -> Vec<ConditionDraft> {
    let (drained, steps) = nova_removal::conditions(seen);
    let mut first: Vec<_> = drained.into_iter().chain([evaluated.condition.clone()]).collect();
    if nova_removal::may_stop(seen) {
        first.reverse();
    }
    first.into_iter().chain(steps).collect()
}

/// Returns the conditions of a removal without nova's API, or of one that nova is only asked about.
fn held_conditions(seen: &Observed, is_held: bool, evaluated: &Evaluation) -> Vec<ConditionDraft> {
    let is_over = !is_held && matches!(evaluated.next, Next::Conclude);
    let unrecorded = unrecorded(seen).filter(|_| is_over);
    let all = drained_and_cleaned(seen, is_held, evaluated.condition.clone());
    unrecorded.into_iter().chain(all).collect()
}

/// Returns the condition of the host, after what holds its stop.
fn drained_and_cleaned(
    seen: &Observed,
    is_held: bool,
    of_host: ConditionDraft,
) -> Vec<ConditionDraft> {
    let drained = is_held.then(|| inspection::drained(seen, &of_host)).flatten();
    drained.into_iter().chain([of_host]).collect()
}

/// Returns the status writes after a rejected write; a final result is never changed.
fn report_rejection(
    seen: &Observed,
    rejected: &RejectedWrite,
    now: Timestamp,
) -> Plan<OrderOfHost> {
    let compute = &*seen.compute;
    if concluded(compute).is_some() {
        return Plan::default();
    }
    let before = compute.status.as_ref();
    let condition = rejected.condition(HOST_CLEANED, compute.conditions());
    let services = before.map(|it| it.services.clone()).unwrap_or_default();
    let mut steps = drained_and_cleaned(seen, is_held(seen), condition);
    if nova_removal::has_begun(compute) {
        steps.extend(nova_removal::conditions(seen).1);
    }
    let steps = status_step(seen, &steps, &services, now).into_iter().collect();
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
fn needs_nothing(seen: &Observed) -> Option<&'static str> {
    if seen.namespace_goes {
        return Some("its namespace is being deleted");
    }
    if seen.compute.is_observed() && seen.drain.is_none() {
        return Some("nova's API is not read, so the compute is not looked after");
    }
    if !has_run(&seen.compute, !seen.runs.is_empty()) {
        let may_have_registered = nova_removal::may_have_registered(seen) && !is_skipped(seen);
        return (!may_have_registered).then_some("it has never touched its host");
    }
    (!may_have_started(seen)).then_some("nova-compute was never started on its host")
}

/// Whether nova-compute may have been started on the host, and so be registered in nova.
///
/// The record of the cleanup replaces all other records, and is made only when this holds.
fn may_have_started(seen: &Observed) -> bool {
    let status = seen.compute.status.as_ref();
    let records = status.map(|it| it.services.as_slice()).unwrap_or_default();
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
        || records.iter().any(shows_start)
        || seen.runs.iter().filter_map(|it| Run::of(it)).any(|it| it.service != LIBVIRT)
}

/// Returns the evaluation; `by_api` is whether the removal goes through nova's API.
fn evaluate(seen: &Observed, by_api: bool, now: Timestamp) -> Evaluation {
    let compute = &*seen.compute;
    let recorded = compute.status.as_ref().map(|it| it.services.clone()).unwrap_or_default();
    let conclude =
        |condition| Evaluation { condition, services: recorded.clone(), next: Next::Conclude };
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
    if is_skipped(seen) {
        let cause = format!("annotation {SKIP_CLEANUP} says so");
        let text = not_cleaned(compute, &cause, false);
        return conclude(reasons::cleanup::CLEANUP_SKIPPED.condition(HOST_CLEANED, text));
    }
    match address(seen) {
        Ok(_) => attempt(seen, by_api, now),
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

/// The user may set the annotation on the compute, on its node, or on what the node belongs to.
fn is_skipped(seen: &Observed) -> bool {
    let node = seen.node.as_deref().filter(|it| owns(it, &seen.compute));
    let inherited = node.and_then(|it| annotation(seen.group.as_ref(), it, SKIP_CLEANUP));
    let own = seen.compute.annotations().get(SKIP_CLEANUP).map(String::as_str);
    [own, inherited.map(|it| it.0)].contains(&Some("true"))
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

/// Returns the cleanup runs and all other runs.
fn parted(seen: &Observed) -> (Vec<Run<'_>>, Vec<Run<'_>>) {
    let all = seen.runs.iter().filter_map(|it| Run::of(it));
    all.partition(|it| cleans_up_after(it.object).is_some())
}

fn attempt(seen: &Observed, by_api: bool, now: Timestamp) -> Evaluation {
    let compute = &*seen.compute;
    let (runs, _) = parted(seen);
    let (ssh_secret, ssh_version) = build::ssh(compute, seen.ssh.as_ref());
    let cleanup = HostCleanup {
        name: &compute.spec.dataplane_node_name,
        host: &messages::host(compute),
        identity: identity(&compute.uid(), extent(seen, by_api)),
        recorded: compute.status.as_ref().map(|it| it.services.as_slice()).unwrap_or_default(),
        ssh: (&ssh_secret, &ssh_version),
        trust: &build::trust(seen.node.as_deref()),
        skip: &messages::skip(compute),
        left: &messages::left_in_nova(compute, by_api),
        deletes_service: by_api,
    };
    cleanup.evaluate(&runs, now)
}

/// Returns what a cleanup run takes away from the host.
fn extent(seen: &Observed, by_api: bool) -> Extent {
    if by_api { nova_removal::extent(seen, &parted(seen).0) } else { Extent::Units }
}

/// Returns the steps that create the run and delete those that are no longer needed: these use the
/// same host, so the new run waits for their pods.
fn runs(seen: &Observed, need: NeededRun, connection: HostConnection, extent: Extent) -> Vec<Step> {
    let (_, earlier) = parted(seen);
    let unneeded = earlier
        .iter()
        .filter(|it| !it.is_finished() && !is_terminating(it.object))
        .map(|it| Step::delete(Target::of(it.object), "its compute is being deleted"));
    unneeded.chain(cleanup(seen, need, connection, extent)).collect()
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
    let leftovers = cell.status.as_ref().map(|it| it.leftovers.as_slice()).unwrap_or_default();
    leftovers.iter().any(|it| Some(&it.uid) == seen.compute.metadata.uid.as_ref())
}
