//! The decisions on a node: which compute it has, what that compute follows, and the node's
//! condition.

use api::conditions::{Condition, ConditionDraft, ConditionStatus, READY, Severity, find};
use api::dataplane::Node;
use api::nova::ExternalCompute;
use jiff::Timestamp;
use kube::ResourceExt;
use nova_config::conditions::{COMPUTE_CONDITION, HOST_MAPPED};
use operator_core::finalizers::is_terminating;
use operator_core::plan::{Kind, Plan, Step, Target, Write};
use operator_core::rejected_write::RejectedWrite;

use crate::cell_immutability::{CellBinding, binding, owns};
use crate::compute_lifecycle::build::{differences, fields, fill_images, follow};
use crate::compute_lifecycle::effective::{DesiredCompute, desired};
use crate::compute_lifecycle::node_decision::Outcome;
use crate::compute_lifecycle::observed::{Observed, REPEATED, own_conditions};
use crate::compute_lifecycle::removal;
use crate::foreign_condition;
use crate::reasons;

/// Returns the plan for a node.
pub fn decide(seen: &Observed, rejected: Option<&RejectedWrite>, now: Timestamp) -> Plan {
    if let Some(rejected) = rejected {
        return report_rejection(seen, rejected, now);
    }
    let mut plan = Plan::with_resync();
    if is_terminating(&*seen.node) {
        if let Some((steps, condition)) = removal::of_node(seen) {
            let is_released = condition.is_none();
            plan.steps = steps;
            plan.steps.extend(condition_step(seen, condition, now).filter(|_| !is_released));
        }
        return plan;
    }
    let (steps, condition) = outcome(seen);
    // A step that only fills images has a manager of its own, and is also used on a user's compute.
    let creates = steps.iter().any(|it| matches!(it.write, Write::Apply { manager: None, .. }));
    plan.steps.extend(removal::finalizer_step(seen, creates));
    plan.steps.extend(steps);
    plan.steps.extend(condition_step(seen, overruled(seen, condition), now));
    plan
}

/// A conflicting service replaces every condition except an error.
fn overruled(seen: &Observed, condition: Option<ConditionDraft>) -> Option<ConditionDraft> {
    let condition = condition?;
    let has_cell = matches!(desired(seen.group.as_ref(), &seen.node), DesiredCompute::Cell(_));
    match &seen.conflicting_service {
        Some(found) if has_cell && condition.severity != Some(Severity::Error) => {
            let reported = found.message(&seen.node.name_any());
            let condition = reasons::NOVA_SERVICE_LISTED.condition(COMPUTE_CONDITION, reported);
            Some(condition.with_severity(Severity::Error))
        }
        _ => Some(condition),
    }
}

/// Returns the node's condition after a write to its compute was rejected.
fn report_rejection(seen: &Observed, rejected: &RejectedWrite, now: Timestamp) -> Plan {
    let condition = rejected.condition(COMPUTE_CONDITION, &own_conditions(&seen.node));
    let steps = condition_step(seen, Some(condition), now).into_iter().collect();
    Plan { steps, ..Plan::default() }
}

/// The owner of a compute with the node's name.
enum Owner {
    /// The node itself.
    Node,
    /// An earlier node of that name, which is gone.
    EarlierNode,
    /// Another owner, by kind and name.
    Other(String),
    /// No owner: a user wrote it.
    Nobody,
}

fn owner(node: &Node, compute: &ExternalCompute) -> Owner {
    let owners = compute.metadata.owner_references.as_deref().unwrap_or_default();
    match owners.iter().find(|it| it.controller == Some(true)) {
        None => Owner::Nobody,
        Some(_) if owns(node, compute) => Owner::Node,
        Some(it) if it.kind == Kind::of::<Node>().kind && it.name == node.name_any() => {
            Owner::EarlierNode
        }
        Some(it) => Owner::Other(format!("{} {}", it.kind, it.name)),
    }
}

fn outcome(seen: &Observed) -> Outcome {
    let asked = desired(seen.group.as_ref(), &seen.node);
    let cell = if let DesiredCompute::Cell(cell) = &asked { Some(cell.as_str()) } else { None };
    let own = seen.compute.as_deref().filter(|it| owns(&seen.node, it));
    if let Some(compute) = own.filter(|it| is_terminating(*it)) {
        // Whatever is requested: the compute waits until the node reports its leftovers.
        return (vec![], Some(gone_for(compute, cell)));
    }
    if let DesiredCompute::Refused(problem) = asked {
        // An invalid cell moves no compute, and does not stop the other fields from being updated.
        let steps = own.map(|it| followed(seen, it)).unwrap_or_default();
        return (steps, Some(problem.condition(COMPUTE_CONDITION)));
    }
    let Some(compute) = &seen.compute else {
        let Some(cell) = cell else { return (vec![], removal::remembered(seen)) };
        let because = "the node has a cell and no compute";
        let step = follow(seen, &fields(seen, cell), because);
        return (vec![step], Some(coming(seen, cell)));
    };
    match (owner(&seen.node, compute), cell) {
        (Owner::Node, _) => ours(seen, compute, &asked),
        (Owner::Nobody, None) if !is_terminating(&**compute) => {
            (fill_images(seen, compute).into_iter().collect(), removal::remembered(seen))
        }
        // No other object of nova concerns a node without a cell.
        (_, None) => (vec![], removal::remembered(seen)),
        (_, Some(_)) if is_terminating(&**compute) => (vec![], Some(gone_for(compute, cell))),
        (Owner::EarlierNode, Some(_)) => (vec![], Some(gone_for(compute, cell))),
        (Owner::Nobody, Some(cell)) => adoption(seen, compute, cell),
        (Owner::Other(owner), Some(_)) => (vec![], Some(not_ours(compute, &owner))),
    }
}

fn not_ours(compute: &ExternalCompute, owner: &str) -> ConditionDraft {
    let text = format!(
        "NovaExternalCompute {} belongs to {owner} and is left alone: delete it, and the node gets \
         one of its own.",
        compute.name_any()
    );
    reasons::node::COMPUTE_NOT_OURS.condition(COMPUTE_CONDITION, text)
}

/// A compute that a user wrote first is adopted only when nothing in it has to change (D8).
fn adoption(seen: &Observed, compute: &ExternalCompute, cell: &str) -> Outcome {
    let fields = fields(seen, cell);
    let differing = differences(compute, &fields, true);
    if differing.is_empty() {
        let because = "a user wrote the node's compute first";
        let mut steps = vec![follow(seen, &fields, because)];
        steps.extend(fill_images(seen, compute));
        return (steps, Some(mirror(compute)));
    }
    let texts: Vec<String> = differing
        .iter()
        .map(|it| format!("spec.{it} would be {}", fields.get(it).unwrap_or_default()))
        .collect();
    let name = compute.name_any();
    let text = format!(
        "NovaExternalCompute {name} was not made by the operator and differs from what node {name} \
         asks for: {}. It is left alone: correct it, or delete it with: {}",
        texts.join(", "),
        delete_command(compute)
    );
    (vec![], Some(reasons::node::COMPUTE_DIFFERS.condition(COMPUTE_CONDITION, text)))
}

/// The cell is immutable; everything else keeps following the node (D7).
fn ours(seen: &Observed, compute: &ExternalCompute, asked: &DesiredCompute) -> Outcome {
    let own = &compute.spec.cell_name;
    match (binding(asked, &seen.node, compute, seen.has_runs), asked) {
        (CellBinding::Agrees, _) => {
            let condition = role_missing(seen, compute).unwrap_or_else(|| mirror(compute));
            (followed(seen, compute), Some(condition))
        }
        (CellBinding::Unknown { .. }, _) => (followed(seen, compute), role_missing(seen, compute)),
        (CellBinding::Replaceable, DesiredCompute::Cell(cell)) => {
            let because =
                format!("it never ran, and its node is now of cell {cell} instead of {own}");
            (vec![remove(compute, because)], Some(coming(seen, cell)))
        }
        (CellBinding::Replaceable, _) => {
            (vec![remove(compute, "its node has no cell any more, and it never ran")], None)
        }
        (CellBinding::MayGo, _) => {
            let because = "its node has no cell any more, and its removal is allowed";
            let step = Step::delete(Target::of(compute), because);
            (vec![step], Some(gone_for(compute, None)))
        }
        (CellBinding::Bound(mismatch), _) => {
            let condition =
                reasons::node::CELL_MISMATCH.condition(COMPUTE_CONDITION, mismatch.message());
            (followed(seen, compute), Some(condition))
        }
    }
}

/// A missing role changes no compute: what the node would inherit is unknown.
fn role_missing(seen: &Observed, compute: &ExternalCompute) -> Option<ConditionDraft> {
    let role = seen.node.spec.role.as_ref().filter(|_| seen.group.is_none())?;
    let (name, cell) = (compute.name_any(), &compute.spec.cell_name);
    let text = format!(
        "OpenStackDataPlaneRole {role}, named in spec.role of OpenStackDataPlaneNode {name}, does \
         not exist. NovaExternalCompute {name} stays in cell {cell} as it is: create the role \
         again, or correct spec.role."
    );
    Some(reasons::node::ROLE_NOT_FOUND.condition(COMPUTE_CONDITION, text))
}

/// Whether the node's controller used the role for what it published. It may notice before this
/// controller that the role is gone, and then publishes values that the user did not write.
fn is_made_with_role(seen: &Observed) -> bool {
    let is_observed = || seen.node.status.as_ref().is_none_or(|it| it.observed_role.is_some());
    seen.node.spec.role.is_none() || (seen.group.is_some() && is_observed())
}

fn followed(seen: &Observed, compute: &ExternalCompute) -> Vec<Step> {
    if !is_made_with_role(seen) {
        return vec![];
    }
    let fields = fields(seen, &compute.spec.cell_name);
    let differing = differences(compute, &fields, false);
    let mut steps = Vec::new();
    if !differing.is_empty() {
        let because = format!("{} follows the node", differing.join(", "));
        steps.push(follow(seen, &fields, &because));
    }
    steps.extend(fill_images(seen, compute));
    steps
}

/// Deletes only the observed version: a user may be adding a configuration at this moment.
fn remove(compute: &ExternalCompute, because: impl Into<String>) -> Step {
    let mut step = Step::delete(Target::of(compute), because);
    step.write = Write::Delete { resource_version: compute.resource_version() };
    step
}

fn delete_command(compute: &ExternalCompute) -> String {
    let (namespace, name) = (compute.namespace().unwrap_or_default(), compute.name_any());
    format!("kubectl delete -n {namespace} novaexternalcompute {name}")
}

fn gone_for(compute: &ExternalCompute, next: Option<&str>) -> ConditionDraft {
    removal::leaving(compute, next, "its node has no cell any more")
}

fn coming(seen: &Observed, cell: &str) -> ConditionDraft {
    on_its_way(&seen.node.namespace().unwrap_or_default(), &seen.node.name_any(), cell)
}

/// One text for all phases: the compute's own conditions have the details.
fn on_its_way(namespace: &str, name: &str, cell: &str) -> ConditionDraft {
    let text = format!(
        "NovaExternalCompute {name} of cell {cell} is not Ready yet; its own conditions report \
         more: kubectl describe -n {namespace} novaexternalcompute {name}"
    );
    reasons::node::DEPLOYING.condition(COMPUTE_CONDITION, text)
}

/// Returns the node's condition, which mirrors `Ready` of its compute.
fn mirror(compute: &ExternalCompute) -> ConditionDraft {
    let (name, cell) = (compute.name_any(), &compute.spec.cell_name);
    let conditions = compute.status.as_ref().map(|it| it.conditions.as_slice());
    let ready = find(conditions.unwrap_or_default(), READY);
    let bad = |it: &&Condition| {
        it.status == ConditionStatus::False
            && matches!(it.severity, Some(Severity::Error | Severity::Warning))
    };
    match ready {
        Some(ready) if ready.status == ConditionStatus::True => {
            let is_read = find(conditions.unwrap_or_default(), HOST_MAPPED).is_some();
            let discovery = " Nova schedules to a new host once it is discovered: nova-manage \
                             cell_v2 discover_hosts";
            let discovery = if is_read { "" } else { discovery };
            let text = format!("NovaExternalCompute {name} is Ready in cell {cell}.{discovery}");
            reasons::node::READY.condition(COMPUTE_CONDITION, text)
        }
        Some(ready) if bad(&ready) => {
            let text = format!("NovaExternalCompute {name} of cell {cell}: {}", ready.message);
            ConditionDraft::repeated(ready).with_type(COMPUTE_CONDITION).with_message(text)
        }
        _ => on_its_way(&compute.namespace().unwrap_or_default(), &name, cell),
    }
}

fn condition_step(
    seen: &Observed,
    condition: Option<ConditionDraft>,
    now: Timestamp,
) -> Option<Step> {
    let because = "the conditions of the compute differ from those of the node";
    let conditions = condition.into_iter().chain(repeated(seen)).collect();
    foreign_condition::step(&*seen.node, &own_conditions(&seen.node), conditions, because, now)
}

/// Returns the node's conditions that repeat those of its compute; none of a compute that is being
/// deleted.
fn repeated(seen: &Observed) -> impl Iterator<Item = ConditionDraft> {
    let own = seen.compute.as_deref().filter(|it| owns(&seen.node, it) && !is_terminating(*it));
    let conditions = own.and_then(|it| it.status.as_ref()).map(|it| it.conditions.as_slice());
    REPEATED.into_iter().filter_map(move |(type_, of_node)| {
        let found = find(conditions.unwrap_or_default(), type_)?;
        Some(ConditionDraft::repeated(found).with_type(of_node))
    })
}
