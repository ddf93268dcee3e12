//! What holds a node, and what becomes of one that is being deleted while it has a compute.

use api::conditions::{ConditionDraft, Severity, find};
use api::nova::ExternalCompute;
use kube::ResourceExt;
use nova_config::conditions::{COMPUTE_CONDITION, HOST_CLEANED};
use operator_core::finalizers::{add_finalizer, is_terminating, remove_finalizer};
use operator_core::plan::{Step, Target};

use crate::cell_immutability::owns;
use crate::cleanup::decide::{LEFT_IN_NOVA, concluded};
use crate::cleanup::messages;
use crate::compute_lifecycle::observe::{Observed, own_condition};
use crate::compute_lifecycle::outcome::Outcome;
use crate::finalizers;

/// What is written of a node that is being deleted: its compute goes first, then it is released.
pub fn of_node(seen: &Observed) -> Option<Outcome> {
    let node = &*seen.node;
    let released = |because| Some((vec![remove_finalizer(node, finalizers::NODE, because)?], None));
    if seen.namespace_goes {
        return released("its namespace is being deleted");
    }
    let Some(compute) = seen.compute.as_deref().filter(|it| owns(node, it)) else {
        return released("it has no compute any more");
    };
    let mut steps = Vec::new();
    if !is_terminating(compute) {
        steps.push(Step::delete(Target::of(compute), "its node is being deleted"));
    }
    Some((steps, Some(leaving(compute, None, "its node is being deleted"))))
}

/// The node is held before it gets a compute, and let go when that is gone.
///
/// `creates` says whether this pass gives it one.
pub fn finalizer_step(seen: &Observed, creates: bool) -> Option<Step> {
    let node = &*seen.node;
    if creates || seen.compute.as_deref().is_some_and(|it| owns(node, it)) {
        return add_finalizer(node, finalizers::NODE, "its compute needs it to go in order");
    }
    remove_finalizer(node, finalizers::NODE, "it has no compute any more")
}

/// What the node says of a compute that is being deleted; `next` is the cell of the one that follows.
pub fn leaving(compute: &ExternalCompute, next: Option<&str>, why: &str) -> ConditionDraft {
    if let Some(concluded) = concluded(compute) {
        let text = messages::left(compute, concluded);
        return ConditionDraft::error(COMPUTE_CONDITION, LEFT_IN_NOVA, text);
    }
    let name = compute.name_any();
    if let Some(problem) = trouble(compute) {
        return problem;
    }
    let text = match next {
        Some(cell) => format!(
            "NovaExternalCompute {name} is being deleted; when it is gone, another one is made in \
             cell {cell}."
        ),
        None => format!("NovaExternalCompute {name} is being deleted: {why}."),
    };
    ConditionDraft::waiting(COMPUTE_CONDITION, "ComputeTerminating", text)
}

/// What keeps the host from being cleaned, where something does.
fn trouble(compute: &ExternalCompute) -> Option<ConditionDraft> {
    let found = find(&compute.status.as_ref()?.conditions, HOST_CLEANED)?;
    let is_waiting = found.reason == "Queued" || found.severity == Some(Severity::Warning);
    (is_waiting && is_terminating(compute)).then(|| ConditionDraft {
        type_: COMPUTE_CONDITION.to_owned(),
        status: found.status,
        severity: found.severity,
        reason: found.reason.clone(),
        message: found.message.clone(),
    })
}

/// What a node without a compute goes on saying: where no cell of ours remembers what is left in
/// nova, it is the last place that does.
pub fn remembered(seen: &Observed) -> Option<ConditionDraft> {
    let reported = own_condition(&seen.node).filter(|it| it.reason == LEFT_IN_NOVA)?;
    (!seen.cells_are_ours)
        .then(|| ConditionDraft::error(COMPUTE_CONDITION, LEFT_IN_NOVA, reported.message.clone()))
}
