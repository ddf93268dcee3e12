//! The steps that make and delete the nodes of a node set, and the condition where one is refused.

use std::collections::BTreeSet;

use api::conditions::{ConditionDraft, Severity, find, first_names};
use api::dataplane::node_set::MAX_HOSTS;
use api::dataplane::{NODE_SET_UID, Node};
use api::names::is_dns_label;
use kube::ResourceExt;
use operator_core::finalizers::is_terminating;
use operator_core::plan::{Step, Target};
use operator_core::rejected_write::RejectedWrite;
use serde_json::{Value, json};

use crate::conditions::NAMED;
use crate::node_set::observed::Observed;
use crate::node_set::resolve::Resolved;
use crate::reasons;

/// Condition type: each host has its node. It is present only while a node is refused or has another
/// owner, and does not affect `Ready`.
pub const NODES_ACCEPTED: &str = "NodesAccepted";

/// How many missing nodes are tried in one pass once one was refused: a quota refuses the others as
/// well.
const PROBES: usize = 20;

/// Returns the steps that create the missing nodes. They are no applies, which would take over a node
/// that somebody else has made.
pub fn creations(seen: &Observed, resolved: &Resolved<'_>) -> Vec<Step> {
    if resolved.hosts.len() > MAX_HOSTS {
        return Vec::new();
    }
    let nodes = &seen.nodes;
    let exists = |it: &str| nodes.own.contains_key(it) || nodes.foreign.contains_key(it);
    let names: BTreeSet<&str> = resolved.hosts.iter().map(|it| it.name.as_str()).collect();
    let missing = names.into_iter().filter(|it| is_dns_label(it) && !exists(it));
    let n_tried = if was_refused(seen) { PROBES } else { MAX_HOSTS };
    let step = |name: &str| {
        let target = Target::named::<Node>(&seen.namespace, name);
        Step::create(
            target,
            fields(seen),
            "/spec/nodeSet",
            "the node set has an entry of that host",
        )
    };
    missing.take(n_tried).map(step).collect()
}

fn was_refused(seen: &Observed) -> bool {
    let conditions = seen.set.status.as_ref().map(|it| it.conditions.as_slice());
    let reported = find(conditions.unwrap_or_default(), NODES_ACCEPTED);
    reported.is_some_and(|it| it.reason != reasons::node_set::NODE_NOT_OURS.word)
}

/// Returns what the operator writes into a node beside its status.
fn fields(seen: &Observed) -> Value {
    json!({
        "metadata": { "labels": { NODE_SET_UID: seen.set.uid() } },
        "spec": { "nodeSet": seen.set.name_any() },
    })
}

/// Returns the steps that label nodes of an earlier node set of the same name as this one's, as after
/// a restore.
pub fn adoptions(seen: &Observed) -> Vec<Step> {
    let uid = seen.set.uid();
    let is_other = |it: &Node| it.labels().get(NODE_SET_UID) != uid.as_ref();
    let others = seen.nodes.own.values().filter(|it| is_other(it) && !is_terminating(&***it));
    let because = "its label names an earlier node set of that name";
    others.map(|it| Step::apply(Target::of(&**it), fields(seen), because)).collect()
}

/// Returns the deletions of nodes whose hosts have left the node set and are not terminating any more.
pub fn of_left_hosts(seen: &Observed, resolved: &Resolved<'_>) -> Vec<Step> {
    let present = resolved.hosts.iter().map(|it| &it.name);
    let leaving = resolved.outcome.terminating.iter().map(|it| &it.name);
    let kept: BTreeSet<&String> = present.chain(leaving).collect();
    let left = seen.nodes.own.iter().filter(|(name, _)| !kept.contains(name));
    deletions(left.map(|(_, it)| &**it), "its host has left the node set")
}

/// Returns the deletions of all nodes of a node set that goes.
pub fn of_all_hosts(seen: &Observed) -> Vec<Step> {
    deletions(seen.nodes.own.values().map(|it| &**it), "its node set is being deleted")
}

fn deletions<'a>(nodes: impl Iterator<Item = &'a Node>, because: &str) -> Vec<Step> {
    let present = nodes.filter(|it| !is_terminating(*it));
    present.map(|it| Step::delete(Target::of(it), because)).collect()
}

/// Returns the condition of nodes that others have, or that the API server has `refused`.
pub fn condition(seen: &Observed, refused: Option<&RejectedWrite>) -> Option<ConditionDraft> {
    if !seen.nodes.are_made {
        return None;
    }
    // That another node set has the host is a condition of its own.
    let foreign = seen.nodes.foreign.iter().filter(|(_, it)| it.node_set().is_none());
    let names: Vec<&String> = foreign.map(|(name, _)| name).collect();
    if !names.is_empty() {
        let text = format!(
            "OpenStackDataPlaneNode {} is not one of OpenStackDataPlaneNodeSet {}, which has a host of \
             that name: the host is deployed all the same, and only the node set says how far it is. \
             Delete the node, or give the host another name.",
            first_names(&names, NAMED),
            seen.set.name_any()
        );
        return Some(reasons::node_set::NODE_NOT_OURS.condition(NODES_ACCEPTED, text));
    }
    let previous = seen.set.status.as_ref().map(|it| it.conditions.as_slice());
    let condition = refused?.condition(NODES_ACCEPTED, previous.unwrap_or_default());
    Some(condition.with_severity(Severity::Warning))
}
