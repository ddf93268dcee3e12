//! The decisions on a compute that is being deleted, or whose host leaves.

use api::conditions::{ConditionDraft, find};
use jiff::Timestamp;
use nova_config::conditions::{COMPUTE_CONDITION, HOST_CLEANED};
use operator_core::finalizers::{has_finalizer, is_terminating, remove_finalizer};
use operator_core::plan::{Plan, Step, Target};
use operator_core::rejected_write::RejectedWrite;
use operator_core::run_engine::last_run;
use operator_core::run_engine::run_gc;
use operator_core::run_engine::run_template::HostConnection;
use operator_core::run_engine::service_sequence::NeededRun;

use crate::compute::deploy::build;
use crate::compute::deploy::libvirt_tls;
use crate::compute::removal::attempts::{self, Evaluation, Next};
use crate::compute::removal::build::cleanup;
use crate::compute::removal::host_order::order;
use crate::compute::removal::inspection;
use crate::compute::removal::kept_options;
use crate::compute::removal::leftover_places;
use crate::compute::removal::messages;
use crate::compute::removal::nova_steps;
use crate::compute::removal::observed::Observed;
use crate::compute::removal::resolve::{Resolved, Way};
use crate::compute::removal::status;
use crate::compute_status::host_cleaned::goes_by_api;
use crate::finalizers;
use crate::nova::drain::order::OrderOfHost;
use crate::nova::drain::progress::{HostProgress, Removal};
use crate::reasons;

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
        kept_options::keep(resolved, &mut plan);
        plan
    };
    plan.orders.extend(order(resolved));
    plan
}

fn removal(resolved: &Resolved<'_>, now: Timestamp) -> Plan<OrderOfHost> {
    let mut plan = Plan::with_resync();
    let seen = resolved.seen;
    if !has_finalizer(resolved.compute, finalizers::COMPUTE) {
        plan.steps.extend(seen.is_revocable().then(|| deletion(seen)));
        return plan;
    }
    if let Some(because) = resolved.needs_nothing {
        plan.steps.extend(release(seen, because));
        return plan;
    }
    let evaluated = attempts::evaluate(resolved, now);
    // Nothing is stopped on the host before the compute is deleted, which cannot be taken back.
    if seen.is_revocable() && !matches!(evaluated.next, Next::Wait(_)) {
        plan.steps.push(deletion(seen));
        return plan;
    }
    let steps = conditions(resolved, &evaluated);
    plan.steps.extend(status::step(seen, &steps, &evaluated.services, now));
    plan.steps.extend(unneeded_runs(resolved));
    match evaluated.next {
        Next::Conclude => {
            plan.steps.extend(done(resolved).into_iter().flat_map(|it| release(seen, it)));
        }
        Next::Wait(None) => {}
        Next::Wait(Some(at)) => plan.requeue_at(at, now),
        Next::Run { need, was_key_refused } => {
            plan.steps.extend(runs(resolved, need, was_key_refused));
        }
    }
    plan
}

/// Returns why the compute can go after its host is done with; `None` while something holds it.
fn done(resolved: &Resolved<'_>) -> Option<&'static str> {
    if resolved.is_by_api() {
        let removal = resolved.progress.and_then(HostProgress::removal);
        return removal
            .is_some_and(Removal::is_done)
            .then_some("its host is done with, and nova has nothing of it");
    }
    // Nova has shown that the host is empty since its stop was recorded.
    let is_inspected =
        resolved.way != Way::Inspected || resolved.may_stop && resolved.concluded.is_some();
    (is_inspected && is_reported(resolved))
        .then_some("its host is done with, and what is left in nova is reported")
}

/// Whether the remaining work is reported where a user finds it after the compute is gone.
fn is_reported(resolved: &Resolved<'_>) -> bool {
    is_on_node(resolved) && resolved.unrecorded_in.is_none()
}

/// Without the node, or with a new one of the same name, there is nothing to report on it.
fn is_on_node(resolved: &Resolved<'_>) -> bool {
    let Some(node) = resolved.own_node else { return true };
    let Some(concluded) = resolved.concluded else { return false };
    let left = messages::left(resolved.compute, concluded);
    find(node.conditions(), COMPUTE_CONDITION)
        .is_some_and(|it| it.reason == reasons::node::LEFT_IN_NOVA.word && it.message == left)
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
    let Resolved { compute, progress, cleanups, others, .. } = resolved;
    let mut steps = Vec::new();
    if resolved.is_held() {
        // A run that has not begun would start nova-compute.
        steps.extend(run_gc::withdrawn(others, |_, _| false));
    }
    if !resolved.may_stop && progress.is_some_and(HostProgress::forbids_runs) {
        steps.extend(run_gc::withdrawn(cleanups, |_, _| false));
    }
    steps.extend(last_run::superseded(cleanups, &compute.spec.dataplane_node_name));
    steps
}

/// Returns the steps that create the run and delete those that are no longer needed: these use the
/// same host, so the new run waits for their pods.
fn runs(resolved: &Resolved<'_>, need: NeededRun, was_key_refused: bool) -> Vec<Step> {
    let Resolved { seen, compute, others, .. } = resolved;
    // Without an address no attempt is evaluated.
    let Ok(address) = resolved.address.clone() else { return Vec::new() };
    let (node, ssh) = (seen.node.as_deref(), seen.ssh.as_ref());
    let of_node = build::connection(compute, node, ssh, was_key_refused);
    let connection = HostConnection { address, ..of_node };
    let unneeded = others
        .iter()
        .filter(|it| !it.is_finished() && !is_terminating(it.object))
        .map(|it| Step::delete(Target::of(it.object), "its compute is being deleted"));
    unneeded.chain(cleanup(seen, need, connection, resolved.extent)).collect()
}

/// Returns the conditions of all steps, in their order.
fn conditions(resolved: &Resolved<'_>, evaluated: &Evaluation) -> Vec<ConditionDraft> {
    let of_host = evaluated.condition.clone();
    if resolved.is_by_api() {
        return nova_steps::conditions(resolved, of_host);
    }
    let is_over = resolved.may_stop && matches!(evaluated.next, Next::Conclude);
    let cell = resolved.unrecorded_in.filter(|_| is_over);
    let unrecorded = cell.and_then(|it| leftover_places::full(&resolved.host, it));
    unrecorded.into_iter().chain(inspection::conditions(resolved, of_host)).collect()
}

/// Returns the status writes after a rejected write; a final result is never changed.
fn report_rejection(
    resolved: &Resolved<'_>,
    rejected: &RejectedWrite,
    now: Timestamp,
) -> Plan<OrderOfHost> {
    let Resolved { seen, compute, .. } = resolved;
    if resolved.concluded.is_some() {
        return Plan::default();
    }
    let condition = rejected.condition(HOST_CLEANED, compute.conditions());
    let mut steps = inspection::conditions(resolved, condition);
    if goes_by_api(compute) {
        steps.extend(nova_steps::after_stop(resolved));
    }
    let steps = status::step(seen, &steps, compute.services(), now).into_iter().collect();
    Plan { steps, ..Plan::default() }
}
