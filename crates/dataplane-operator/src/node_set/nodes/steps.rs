//! The steps that make, mark, hand over and delete the nodes of a node set.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::dataplane::node_set::MAX_HOSTS;
use api::dataplane::{HostState, NODE_SET_UID, Node, NodeSet};
use api::names::is_dns_label;
use kube::ResourceExt;
use operator_core::finalizers::{add_finalizer, has_finalizer, is_terminating, remove_finalizer};
use operator_core::node_set_host::{hosts, taken_out};
use operator_core::plan::{Step, Target};
use serde_json::{Value, json};

use crate::finalizers::{INVENTORY_FINALIZER, is_used};
use crate::node_set::node_acceptance::{exists, missing, was_refused};
use crate::node_set::observed::Observed;
use crate::node_set::resolve::Resolved;
use crate::node_set::terminating::{has_machine, is_handed_over};

/// How many missing nodes are tried in one pass once one was refused: a quota refuses the others as
/// well.
const PROBES: usize = 20;

/// Returns the steps that create the missing nodes. They are no applies, which would take over a node
/// that another writer has made.
pub fn creations(seen: &Observed, resolved: &Resolved<'_>) -> Vec<Step> {
    let missing = missing(seen, &resolved.hosts).into_iter().map(|it| (it, false));
    let n_tried = if was_refused(seen) { PROBES } else { MAX_HOSTS };
    let left = left_without_node(seen).map(|it| (it, true));
    let step = |(name, is_leaving): (&str, bool)| {
        let mut object = fields(&seen.set, None, is_leaving);
        object["metadata"]["finalizers"] = json!([INVENTORY_FINALIZER]);
        let target = Target::named::<Node>(&seen.namespace, name);
        Step::create(target, object, "/spec/nodeSet", "the node set has that host")
    };
    missing.chain(left).take(n_tried).map(step).collect()
}

/// Returns the hosts that are cleaned up after and have no node any more, so that they are not
/// forgotten: their nodes were deleted by force, or an earlier release made none.
fn left_without_node(seen: &Observed) -> impl Iterator<Item = &str> {
    let gone = taken_out(&seen.set).into_iter();
    let leaving = gone.filter(|(_, it)| it.state == HostState::Terminating);
    leaving.map(|(name, _)| name).filter(|it| is_dns_label(it) && !exists(seen, it))
}

/// Returns what the operator writes into a node beside its status. A mark is taken back by `false`:
/// leaving it out takes back only what this operator has applied itself.
fn fields(set: &NodeSet, node: Option<&Node>, is_leaving: bool) -> Value {
    let mut fields = json!({
        "metadata": { "labels": { NODE_SET_UID: set.uid() } },
        "spec": { "nodeSet": set.name_any() },
    });
    if is_leaving || node.is_some_and(|it| it.spec.leaving == Some(true)) {
        fields["spec"]["leaving"] = json!(is_leaving);
    }
    fields
}

/// Returns the steps that label nodes of an earlier node set of the same name as this one's, as after
/// a restore, and that hold those that have no finalizer yet.
pub fn adoptions(seen: &Observed) -> Vec<Step> {
    if seen.is_namespace_terminating {
        return Vec::new();
    }
    let uid = seen.set.uid();
    let is_other = |it: &Node| it.labels().get(NODE_SET_UID) != uid.as_ref();
    let present = seen.nodes.all().map(|(_, it)| &**it).filter(|it| !is_terminating(*it));
    let mut steps = Vec::new();
    for node in present {
        if is_other(node) {
            let fields = fields(&seen.set, Some(node), node.is_leaving());
            let because = "its label names an earlier node set of that name";
            steps.push(Step::apply(Target::of(node), fields, because));
        }
        let because = "its host must not go before others have cleaned up after it";
        steps.extend(add_finalizer(node, INVENTORY_FINALIZER, because));
    }
    steps
}

/// Returns the steps that mark the nodes of hosts whose entries are gone, and take the mark back where
/// an entry is there again; a host that another node set has an entry of is handed over instead.
///
/// An entry that goes counts only when no deployment is under way, whose inventory still has the host.
pub fn marks(seen: &Observed, resolved: &Resolved<'_>) -> Vec<Step> {
    let is_in_use = seen.is_in_use();
    let mut steps = if is_in_use { Vec::new() } else { handovers(seen) };
    let listed: BTreeSet<&str> = resolved.hosts.iter().map(|it| it.name.as_str()).collect();
    for (name, node) in seen.nodes.leaving.iter().filter(|(_, it)| !is_terminating(&***it)) {
        if is_handed_over(seen, name) {
            continue;
        }
        let is_listed = listed.contains(name.as_str());
        if is_listed && !may_come_back(node) {
            continue;
        }
        if is_listed == node.is_leaving() && (is_listed || !is_in_use) {
            let because = if is_listed { "its entry is there again" } else { "its entry is gone" };
            let fields = fields(&seen.set, Some(&**node), !is_listed);
            steps.push(Step::apply(Target::of(&**node), fields, because));
        }
    }
    steps
}

/// Returns whether a host that was to leave is deployed again when it comes back: its node says first
/// that what ran there may have been stopped.
pub fn may_come_back(node: &Node) -> bool {
    !node.is_leaving() || node.status.as_ref().is_none_or(|it| it.deployed.is_none())
}

/// Returns the steps that hand nodes over to other node sets, with everything that is on them.
pub fn handovers(seen: &Observed) -> Vec<Step> {
    let step = |(name, other): (&String, &Arc<NodeSet>)| {
        let node = seen.nodes.get(name).filter(|_| is_handed_over(seen, name))?;
        if !may_come_back(node) {
            return None;
        }
        let because = format!("OpenStackDataPlaneNodeSet {} has its entry now", other.name_any());
        Some(Step::apply(Target::of(&**node), fields(other, Some(&**node), false), because))
    };
    seen.nodes.other_sets.iter().filter_map(step).collect()
}

/// Returns the deletions of the nodes of hosts that have left the node set: no others hold them, and
/// their machines are given back.
pub fn deletions(seen: &Observed) -> Vec<Step> {
    let listed = listed(seen);
    let leaving = seen.nodes.leaving.iter().filter(|(_, it)| it.is_leaving() && !is_used(&***it));
    let stays = |it: &str| listed.contains(it) || has_machine(seen, it) || is_handed_over(seen, it);
    let left = leaving.filter(|(name, _)| !stays(name));
    deletions_of(left.map(|(_, it)| &**it), "its host has left the node set")
}

/// Returns the names of the hosts that have an entry.
fn listed(seen: &Observed) -> BTreeSet<String> {
    hosts(&seen.set).into_iter().map(|it| it.name).collect()
}

/// Returns the deletions of all nodes of a node set that goes, but for those that are handed over.
pub fn deletions_of_all(seen: &Observed) -> Vec<Step> {
    let own = seen.nodes.all().filter(|(name, _)| !is_handed_over(seen, name));
    deletions_of(own.map(|(_, it)| &**it), "its node set is being deleted")
}

fn deletions_of<'a>(nodes: impl Iterator<Item = &'a Node>, because: &str) -> Vec<Step> {
    // One without the finalizer gets it first, so that others clean up before it is gone.
    let present =
        nodes.filter(|it| !is_terminating(*it) && has_finalizer(*it, INVENTORY_FINALIZER));
    present.map(|it| Step::delete(Target::of(it), because)).collect()
}

/// Returns the steps that remove the finalizer from nodes that are being deleted and that no others
/// hold; in a namespace that is being deleted, from all. One whose entry stands was deleted by hand:
/// its machine stays, for the node is made anew.
pub fn releases(seen: &Observed) -> Vec<Step> {
    let (is_going, listed) = (is_terminating(&*seen.set), listed(seen));
    let is_free = |name: &String, node: &Node| {
        let is_alone = is_terminating(node) && !is_used(node);
        let keeps_machine = (is_going || !listed.contains(name)) && has_machine(seen, name);
        is_going && seen.is_namespace_terminating || is_alone && !keeps_machine
    };
    let free = seen.nodes.all().filter(|(name, it)| is_free(name, it));
    let because = "its host has left, and it has no other finalizer";
    free.filter_map(|(_, it)| remove_finalizer(&**it, INVENTORY_FINALIZER, because)).collect()
}
