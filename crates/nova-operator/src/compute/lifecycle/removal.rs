//! The finalizer of a node, and what happens when a node with a compute is deleted.

use api::conditions::{Condition, ConditionDraft, ConditionStatus, READY, Severity, find};
use api::nova::ExternalCompute;
use jiff::Timestamp;
use kube::ResourceExt;
use nova_config::conditions::{COMPUTE_CONDITION, DRAINED, HOST_CLEANED, LEFTOVER_RECORDED};
use operator_core::finalizers::{add_finalizer, is_terminating, remove_finalizer};
use operator_core::plan::{EventDraft, Plan, Step, Target};

use crate::compute::lifecycle::node_status;
use crate::compute::lifecycle::observed::Observed;
use crate::compute::node_part::own_condition;
use crate::compute::removal::messages;
use crate::compute_status::host_cleaned::{concluded, goes_by_api};
use crate::finalizers;
use crate::reasons;

/// Returns the steps for a terminating node: its compute is deleted first, then the finalizer is removed.
pub fn of_node(seen: &Observed, now: Timestamp) -> Vec<Step> {
    let node = &*seen.node;
    let released = |because| Vec::from_iter(remove_finalizer(node, finalizers::NODE, because));
    if seen.namespace_goes {
        return released("its namespace is being deleted");
    }
    let Some(compute) = seen.own_compute() else {
        return released("it has no compute any more");
    };
    let because = "its node is being deleted";
    let deletion = (!is_terminating(compute)).then(|| Step::delete(Target::of(compute), because));
    let condition = leaving(compute, None, because);
    deletion.into_iter().chain(node_status::step(seen, Some(condition), now)).collect()
}

/// Returns the plan for a node with a compute that a service deploys, where nova's API is not read: there
/// is nothing to look after, so the compute is let go and nothing holds the node any more. `None` where that
/// is not so.
pub fn of_observed_without_api(seen: &Observed, now: Timestamp) -> Option<Plan> {
    let (node, compute) = (&*seen.node, seen.own_compute()?);
    if seen.reads_nova || !compute.is_observed() {
        return None;
    }
    let because = "nova's API is not read, so the compute cannot be looked after";
    let mut plan = Plan::with_resync();
    plan.steps.extend(remove_finalizer(compute, finalizers::COMPUTE, because));
    if !is_terminating(compute) {
        plan.steps.push(Step::delete(Target::of(compute), because));
        let said = format!(
            "NovaExternalCompute {} is let go, because nova's API is not read: its host is neither \
             drained nor removed from nova any more. With nova.api.enabled true in the values of the \
             chart, it is made again.",
            compute.name_any()
        );
        let event = EventDraft { warning: true, reason: "ObservedReleased".to_owned(), note: said };
        plan.events.push((Target::of(node), event));
    }
    plan.steps.extend(remove_finalizer(node, finalizers::NODE, because));
    plan.steps.extend(node_status::released(seen, now));
    Some(plan)
}

/// Adds the finalizer before the node gets a compute, and removes it after that compute is gone.
///
/// `creates` says whether the current plan creates the compute.
pub fn finalizer_step(seen: &Observed, creates: bool) -> Option<Step> {
    let node = &*seen.node;
    if creates || seen.own_compute().is_some() {
        return add_finalizer(node, finalizers::NODE, "its compute needs it to go in order");
    }
    remove_finalizer(node, finalizers::NODE, "it has no compute any more")
}

/// Returns the node's condition for a compute that is being deleted, or whose host leaves; `next` is where
/// its successor is made.
pub fn leaving(compute: &ExternalCompute, next: Option<&str>, why: &str) -> ConditionDraft {
    if goes_by_api(compute) {
        return of_nova(compute);
    }
    let repeated = |it| ConditionDraft::repeated(it).with_type(COMPUTE_CONDITION);
    // The second one says that the cell has no place to record what nova keeps of the host.
    let conditions = compute.conditions();
    if let Some(holds) = held(conditions).or_else(|| find(conditions, LEFTOVER_RECORDED)) {
        return repeated(holds);
    }
    if let Some(concluded) = concluded(compute) {
        let text = messages::left(compute, concluded);
        return reasons::node::LEFT_IN_NOVA.condition(COMPUTE_CONDITION, text);
    }
    let name = compute.name_any();
    if let Some(blocks) = cleanup_problem(conditions) {
        return repeated(blocks);
    }
    let text = match next {
        Some(place) => format!(
            "NovaExternalCompute {name} is being deleted; when it is gone, another one is made in \
             {place}."
        ),
        None => format!("NovaExternalCompute {name} is being deleted: {why}."),
    };
    reasons::node::COMPUTE_TERMINATING.condition(COMPUTE_CONDITION, text)
}

/// Returns the node's condition while the removal goes through nova's API: the present step of it.
fn of_nova(compute: &ExternalCompute) -> ConditionDraft {
    let name = compute.name_any();
    match find(compute.conditions(), READY) {
        Some(step) if step.status != ConditionStatus::True => {
            let text = format!("NovaExternalCompute {name} is being deleted: {}", step.message);
            ConditionDraft::repeated(step).with_type(COMPUTE_CONDITION).with_message(text)
        }
        _ => {
            let text =
                format!("NovaExternalCompute {name} is being deleted: nova has nothing of it.");
            reasons::node::COMPUTE_TERMINATING.condition(COMPUTE_CONDITION, text)
        }
    }
}

/// Returns what holds a compute that nova is only asked about, or `None` when nothing does.
fn held(conditions: &[Condition]) -> Option<&Condition> {
    // The status of a compute that has just been deleted is that of its life.
    find(conditions, HOST_CLEANED)?;
    find(conditions, DRAINED).filter(|it| it.status != ConditionStatus::True)
}

/// Returns what blocks the cleanup of the host, or `None` when nothing does.
fn cleanup_problem(conditions: &[Condition]) -> Option<&Condition> {
    let is_queued = |it: &Condition| it.reason == reasons::cleanup::QUEUED.word;
    let found = find(conditions, HOST_CLEANED)?;
    (is_queued(found) || found.severity == Some(Severity::Warning)).then_some(found)
}

/// Returns the condition that a node without a compute keeps: when no cell of ours records what
/// remains in nova, the node is the last object that does.
pub fn remembered(seen: &Observed) -> Option<ConditionDraft> {
    let reported =
        own_condition(&seen.node).filter(|it| it.reason == reasons::node::LEFT_IN_NOVA.word)?;
    (!seen.cells_are_ours)
        .then(|| reasons::node::LEFT_IN_NOVA.condition(COMPUTE_CONDITION, reported.message.clone()))
}
