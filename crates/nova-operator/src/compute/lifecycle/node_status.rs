//! What this operator writes into the status of a node: its conditions, whether a deployment may disturb
//! the host, and variables of the host.
//!
//! All of it is one apply, for server-side apply removes what a field manager leaves out.

use api::conditions::{ConditionDraft, ConditionStatus, find, merge_conditions};
use api::dataplane::{DisruptionHolder, HostVars, Node};
use api::nova::ExternalCompute;
use jiff::Timestamp;
use nova_config::conditions::{HOST_MAPPED, SERVICE_UP};
use operator_core::finalizers::is_terminating;
use operator_core::plan::{Step, Target, Write, transition_events};
use serde_json::json;

use crate::compute::deploy::identity::COMPUTE_ID;
use crate::compute::lifecycle::ignored_annotations;
use crate::compute::lifecycle::observed::Observed;
use crate::compute::lifecycle::permission;
use crate::compute::node_part::{OPERATOR, REPEATED, own_conditions, own_holder};

/// Returns the step that makes `condition` and what follows from the compute everything that this operator
/// has in the status of the node, or `None` when it is.
pub fn step(seen: &Observed, condition: Option<ConditionDraft>, now: Timestamp) -> Option<Step> {
    let ignored = ignored_annotations::of_node(seen);
    let conditions = condition.into_iter().chain(repeated(seen)).chain(ignored).collect();
    write(&seen.node, conditions, permission::holder(seen), host_vars(seen), now)
}

/// Returns the step that removes everything of this operator from the status of a node whose compute is
/// let go.
pub fn released(seen: &Observed, now: Timestamp) -> Option<Step> {
    write(&seen.node, vec![], None, None, now)
}

fn write(
    node: &Node,
    conditions: Vec<ConditionDraft>,
    holder: Option<DisruptionHolder>,
    vars: Option<HostVars>,
    now: Timestamp,
) -> Option<Step> {
    let previous = own_conditions(node);
    let conditions = merge_conditions(&previous, conditions, None, now);
    let own_vars = node.status.iter().flat_map(|it| &it.host_vars).find(|it| it.name == OPERATOR);
    let is_same = holder.as_ref() == own_holder(node) && vars.as_ref() == own_vars;
    if conditions == previous && is_same {
        return None;
    }
    let notices = transition_events(&previous, &conditions);
    let mut status = json!({ "conditions": conditions });
    if let Some(holder) = holder {
        status["disruption"] = json!({ "holders": [holder] });
    }
    if let Some(vars) = vars {
        status["hostVars"] = json!([vars]);
    }
    Some(Step {
        target: Target::of(node),
        write: Write::Status { status, resource_version: None, notices },
        reason: "what is known of the compute differs from what the node says".to_owned(),
    })
}

/// Returns the node's conditions that repeat those of its compute; none of a compute that is being
/// deleted.
fn repeated(seen: &Observed) -> impl Iterator<Item = ConditionDraft> {
    let own = seen.own_compute().filter(|it| !is_terminating(*it));
    let conditions = own.map(ExternalCompute::conditions).unwrap_or_default();
    // A deployment of a node set waits for both, and has one readiness gate for them.
    let has_gate = seen.node.node_set().is_some();
    let unmapped = find(conditions, HOST_MAPPED);
    let unmapped = unmapped.filter(|it| has_gate && it.status != ConditionStatus::True);
    REPEATED.into_iter().filter_map(move |(type_, of_node)| {
        let found = find(conditions, type_)?;
        let is_up = type_ == SERVICE_UP && found.status == ConditionStatus::True;
        let draft = match unmapped.filter(|_| is_up) {
            Some(unmapped) => not_down(ConditionDraft::repeated(unmapped)),
            None => ConditionDraft::repeated(found),
        };
        Some(draft.with_type(of_node))
    })
}

/// Returns a condition that is not True, for a host that does not count as down.
fn not_down(mut draft: ConditionDraft) -> ConditionDraft {
    draft.status = ConditionStatus::Unknown;
    draft.severity = None;
    draft
}

/// Returns what deployments of a node set need to know of the host: the identity that was recorded when it
/// registered.
fn host_vars(seen: &Observed) -> Option<HostVars> {
    let compute = permission::looked_after(seen)?;
    let id = compute.status.as_ref()?.compute_id.clone()?;
    Some(HostVars { name: OPERATOR.to_owned(), vars: [(COMPUTE_ID.to_owned(), id)].into() })
}
