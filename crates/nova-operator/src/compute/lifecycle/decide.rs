//! The decisions on a node: which compute it has, what that compute follows, and the node's
//! condition.

use api::conditions::{Condition, ConditionDraft, ConditionStatus, READY, Severity, find};
use api::dataplane::{Node, NodeStatus};
use api::nova::ExternalCompute;
use jiff::Timestamp;
use kube::ResourceExt;
use nova_config::annotations::CELL;
use nova_config::conditions::{COMPUTE_CONDITION, HOST_MAPPED};
use operator_core::finalizers::is_terminating;
use operator_core::plan::{Kind, Plan, Step, Target, Write};
use operator_core::rejected_write::RejectedWrite;
use serde_json::{Map, Value};

use crate::compute::lifecycle::build::{
    differences, fields, fill_images, follow, is_other_management, observed_fields,
};
use crate::compute::lifecycle::node_status;
use crate::compute::lifecycle::observed::Observed;
use crate::compute::lifecycle::removal;
use crate::compute::node_part::own_conditions;
use crate::group::inherited_annotation::annotation;
use crate::group::{GroupKey, group_key};
use crate::reasons;
use crate::requested::cell_immutability::{CellBinding, binding_of};
use crate::requested::desired_compute::{DesiredCompute, desired};

/// Returns the plan for a node.
pub fn decide(seen: &Observed, rejected: Option<&RejectedWrite>, now: Timestamp) -> Plan {
    if let Some(rejected) = rejected {
        return report_rejection(seen, rejected, now);
    }
    if let Some(plan) = removal::of_observed_without_api(seen, now) {
        return plan;
    }
    let mut plan = Plan::with_resync();
    if is_terminating(&*seen.node) {
        plan.steps = removal::of_node(seen, now);
        return plan;
    }
    let (steps, condition) = outcome(seen);
    // A step that only fills images has a manager of its own, and is also used on a user's compute.
    let creates = steps.iter().any(|it| matches!(it.write, Write::Apply { manager: None, .. }));
    plan.steps.extend(removal::finalizer_step(seen, creates));
    plan.steps.extend(steps);
    plan.steps.extend(node_status::step(seen, overruled(seen, condition), now));
    plan
}

/// A cell annotation beside a service of type nova replaces every condition except an error.
fn overruled(seen: &Observed, condition: Option<ConditionDraft>) -> Option<ConditionDraft> {
    let is_error = condition.as_ref().is_some_and(|it| it.severity == Some(Severity::Error));
    let found = seen.nova.listed.as_ref().filter(|_| !is_error);
    let named = annotation(seen.group.as_ref(), &seen.node, CELL);
    let Some((found, (_, origin))) = found.zip(named.filter(|(cell, _)| !cell.trim().is_empty()))
    else {
        return condition;
    };
    let is_managed = seen.own_compute().is_some_and(|it| !it.is_observed());
    let text = if is_managed {
        found.message(&seen.node.name_any())
    } else {
        found.message_of_annotation(&origin)
    };
    let condition = reasons::NOVA_SERVICE_LISTED.condition(COMPUTE_CONDITION, text);
    Some(condition.with_severity(Severity::Error))
}

/// Returns the node's condition after a write to its compute was rejected.
fn report_rejection(seen: &Observed, rejected: &RejectedWrite, now: Timestamp) -> Plan {
    let condition = rejected.condition(COMPUTE_CONDITION, &own_conditions(&seen.node));
    let steps = node_status::step(seen, Some(condition), now).into_iter().collect();
    Plan { steps, ..Plan::default() }
}

/// The owner of a compute that has the node's name and is not its own.
enum Owner {
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
        Some(it) if it.kind == Kind::of::<Node>().kind && it.name == node.name_any() => {
            Owner::EarlierNode
        }
        Some(it) => Owner::Other(format!("{} {}", it.kind, it.name)),
    }
}

/// The writes to the compute and the node's condition; `None` removes the condition.
type Outcome = (Vec<Step>, Option<ConditionDraft>);

fn outcome(seen: &Observed) -> Outcome {
    let asked = desired(seen.group.as_ref(), &seen.node, &seen.nova);
    let own = seen.own_compute();
    if let Some(compute) = own.filter(|it| is_terminating(*it)) {
        // Whatever is requested: the compute waits until the node reports its leftovers.
        return (vec![], Some(gone_for(compute, &asked)));
    }
    if seen.node.is_leaving() {
        return leaving(seen, own);
    }
    if let DesiredCompute::Refused(problem) = asked {
        // An invalid cell moves no compute, and does not stop the other fields from being updated.
        let steps = own.map(|it| followed(seen, it)).unwrap_or_default();
        return (steps, Some(problem.condition(COMPUTE_CONDITION)));
    }
    if let Some(compute) = own {
        return ours(seen, compute, &asked);
    }
    let wanted = wanted(seen, &asked);
    let Some(compute) = &seen.compute else {
        let Some(fields) = wanted else { return (vec![], removal::remembered(seen)) };
        let step = follow(seen, None, &fields, "the node asks for a compute and has none");
        return (vec![step], Some(on_its_way(&*seen.node, asked.cell().unwrap_or_default())));
    };
    match (owner(&seen.node, compute), wanted) {
        (Owner::Nobody, None) if !is_terminating(&**compute) => {
            (fill_images(seen, compute).into_iter().collect(), removal::remembered(seen))
        }
        // No other object of nova concerns a node without a cell.
        (_, None) => (vec![], removal::remembered(seen)),
        (_, Some(_)) if is_terminating(&**compute) => (vec![], Some(gone_for(compute, &asked))),
        (Owner::EarlierNode, Some(_)) => (vec![], Some(gone_for(compute, &asked))),
        (Owner::Nobody, Some(fields)) => adoption(seen, compute, &fields),
        (Owner::Other(owner), Some(_)) => (vec![], Some(not_ours(compute, &owner))),
    }
}

/// Returns the fields of the compute that is requested; `None` where none is, or where none can be looked
/// after because nova's API is not read.
fn wanted(seen: &Observed, asked: &DesiredCompute) -> Option<Map<String, Value>> {
    match asked {
        DesiredCompute::Managed(cell) => Some(fields(seen, cell)),
        DesiredCompute::Observed { .. } => {
            seen.reads_nova.then(|| observed_fields(seen, asked.cell().unwrap_or_default()))
        }
        DesiredCompute::Nothing | DesiredCompute::Unknown { .. } | DesiredCompute::Refused(_) => {
            None
        }
    }
}

/// Returns what happens to the compute of a host that leaves its node set: it is removed in order, and
/// deleted by its own controller once that cannot be taken back; no other one is made.
fn leaving(seen: &Observed, own: Option<&ExternalCompute>) -> Outcome {
    let Some(compute) = own else { return (vec![], removal::remembered(seen)) };
    let why = "its host leaves its node set";
    (followed(seen, compute), Some(removal::leaving(compute, None, why)))
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
fn adoption(seen: &Observed, compute: &ExternalCompute, fields: &Map<String, Value>) -> Outcome {
    let mut differing = differences(compute, fields, true);
    if is_other_management(compute, fields) {
        differing.push("management".to_owned());
    }
    if differing.is_empty() {
        let because = "a user wrote the node's compute first";
        let mut steps = vec![follow(seen, None, fields, because)];
        steps.extend(fill_images(seen, compute));
        return (steps, Some(mirror(compute)));
    }
    let texts: Vec<String> = differing
        .iter()
        .map(|it| match fields.get(it) {
            Some(value) => format!("spec.{it} would be {value}"),
            None => format!("spec.{it} would be absent"),
        })
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
    let (node, group) = (&*seen.node, seen.group.as_ref());
    match binding_of(group, node, compute, &seen.nova, seen.has_runs) {
        CellBinding::Agrees => {
            let condition = group_missing(seen, compute).unwrap_or_else(|| mirror(compute));
            (followed(seen, compute), Some(condition))
        }
        CellBinding::Unknown { .. } => (followed(seen, compute), group_missing(seen, compute)),
        CellBinding::CellUnknown(cell) => {
            let text = cell.message(&compute.name_any());
            let condition = reasons::node::CELL_UNKNOWN.condition(COMPUTE_CONDITION, text);
            (followed(seen, compute), Some(condition))
        }
        CellBinding::Replaceable => {
            let is_replaced = wanted(seen, asked).is_some();
            let because = if is_replaced {
                "it never ran, and its node now asks for another one"
            } else {
                "its node asks for no compute any more, and it never ran"
            };
            let coming = || on_its_way(node, asked.cell().unwrap_or_default());
            (vec![remove(compute, because)], is_replaced.then(coming))
        }
        CellBinding::MayGo => {
            let because = "its node has no cell any more, and its removal is allowed";
            let step = Step::delete(Target::of(compute), because);
            (vec![step], Some(gone_for(compute, &DesiredCompute::Nothing)))
        }
        CellBinding::Bound(mismatch) => {
            let condition =
                reasons::node::CELL_MISMATCH.condition(COMPUTE_CONDITION, mismatch.message());
            (followed(seen, compute), Some(condition))
        }
    }
}

/// A missing group changes no compute: what the node would inherit is unknown.
fn group_missing(seen: &Observed, compute: &ExternalCompute) -> Option<ConditionDraft> {
    let key = group_key(&seen.node).filter(|_| seen.group.is_none())?;
    let (name, place) = (compute.name_any(), place(&compute.spec.cell_name));
    let text = format!(
        "{}, named in {} of OpenStackDataPlaneNode {name}, does not exist. NovaExternalCompute \
         {name} stays in {place} as it is: create it again, or correct the name.",
        key.title(),
        key.field()
    );
    let reason = match key {
        GroupKey::Role(_) => &reasons::node::ROLE_NOT_FOUND,
        GroupKey::NodeSet(_) => &reasons::node::NODE_SET_NOT_FOUND,
    };
    Some(reason.condition(COMPUTE_CONDITION, text))
}

/// Whether the node's controller used the group for what it published. It may notice before this
/// controller that the group is gone, and then publishes values that the user did not write.
fn is_made_with_group(seen: &Observed) -> bool {
    let Some(key) = group_key(&seen.node) else { return true };
    let is_observed = |it: &NodeStatus| match key {
        GroupKey::Role(_) => it.observed_role.is_some(),
        GroupKey::NodeSet(_) => it.observed_node_set.is_some(),
    };
    seen.group.is_some() && seen.node.status.as_ref().is_none_or(is_observed)
}

fn followed(seen: &Observed, compute: &ExternalCompute) -> Vec<Step> {
    if !is_made_with_group(seen) {
        return vec![];
    }
    let fields = if compute.is_observed() {
        observed_fields(seen, cell_of(seen, compute))
    } else {
        fields(seen, &compute.spec.cell_name)
    };
    let differing = differences(compute, &fields, false);
    let mut steps = Vec::new();
    if !differing.is_empty() {
        let because = format!("{} follows the node", differing.join(", "));
        steps.push(follow(seen, Some(compute), &fields, &because));
    }
    steps.extend(fill_images(seen, compute));
    steps
}

/// Returns the cell of a compute that a service deploys: once recorded it stays, and before it is the
/// one whose Secret the service mounts; empty while that is not known.
fn cell_of<'a>(seen: &'a Observed, compute: &'a ExternalCompute) -> &'a str {
    match seen.nova.cells.as_slice() {
        [mounted] if compute.spec.cell_name.is_empty() => mounted,
        _ => &compute.spec.cell_name,
    }
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

/// Returns the node's condition while its compute goes, in whose place `asked` comes.
fn gone_for(compute: &ExternalCompute, asked: &DesiredCompute) -> ConditionDraft {
    let is_observed = matches!(asked, DesiredCompute::Observed { .. });
    let next = asked.cell().or_else(|| is_observed.then_some(""));
    removal::leaving(compute, next.map(place).as_deref(), "its node has no cell any more")
}

/// Returns the cell as messages name it.
fn place(cell: &str) -> String {
    if cell.is_empty() { "a cell that is not known yet".to_owned() } else { format!("cell {cell}") }
}

/// Returns the node's condition while a compute in that cell, which is named as the object, is made or
/// deployed. One text for all phases: the compute's own conditions have the details.
fn on_its_way(object: &impl ResourceExt, cell: &str) -> ConditionDraft {
    let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
    let text = format!(
        "NovaExternalCompute {name} of {} is not Ready yet; its own conditions report \
         more: kubectl describe -n {namespace} novaexternalcompute {name}",
        place(cell)
    );
    reasons::node::DEPLOYING.condition(COMPUTE_CONDITION, text)
}

/// Returns the node's condition, which mirrors `Ready` of its compute.
fn mirror(compute: &ExternalCompute) -> ConditionDraft {
    let (name, cell) = (compute.name_any(), &compute.spec.cell_name);
    let place = place(cell);
    let ready = find(compute.conditions(), READY);
    let bad = |it: &&Condition| {
        it.status == ConditionStatus::False
            && matches!(it.severity, Some(Severity::Error | Severity::Warning))
    };
    match ready {
        Some(ready) if ready.status == ConditionStatus::True => {
            let is_read = find(compute.conditions(), HOST_MAPPED).is_some();
            let discovery = " Nova schedules to a new host once it is discovered: nova-manage \
                             cell_v2 discover_hosts";
            let discovery = if is_read { "" } else { discovery };
            let text = format!("NovaExternalCompute {name} is Ready in {place}.{discovery}");
            reasons::node::READY.condition(COMPUTE_CONDITION, text)
        }
        Some(ready) if bad(&ready) => {
            let text = format!("NovaExternalCompute {name} of {place}: {}", ready.message);
            ConditionDraft::repeated(ready).with_type(COMPUTE_CONDITION).with_message(text)
        }
        _ => on_its_way(compute, cell),
    }
}
