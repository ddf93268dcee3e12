//! The nodes of a node set: an `OpenStackDataPlaneNode` for each entry, which says what is known of
//! its host, and on which other operators hold the host and say what they know.
//!
//! What deployments have done is recorded there by their controller, and stays as it is here but for
//! what is no longer so.

use std::collections::BTreeSet;

use jiff::Timestamp;
use operator_core::plan::{Plan, REST_OF_WRITES, Step, WRITES_PER_PASS};

use crate::node_set::observed::Observed;
use crate::node_set::resolve::Resolved;

pub mod conditions;
pub mod description;
pub mod steps;

/// Adds the steps that make, mark, describe and delete nodes, each of which is tried whatever becomes of
/// the others.
pub fn add(plan: &mut Plan, seen: &Observed, resolved: &Resolved<'_>, now: Timestamp) {
    if !seen.nodes.are_made {
        return;
    }
    let mut all = steps::creations(seen, resolved);
    all.extend(steps::adoptions(seen));
    all.extend(steps::marks(seen, resolved));
    all.extend(steps::deletions(seen));
    add_with_descriptions(plan, seen, resolved, all, now);
}

/// Adds the steps that delete and describe the nodes of a node set that is being deleted. They have no
/// owner, so each way of deleting the node set does the same.
pub fn add_removals(plan: &mut Plan, seen: &Observed, resolved: &Resolved<'_>, now: Timestamp) {
    if seen.is_in_use() {
        add_some(plan, description::steps(seen, resolved, now));
        return;
    }
    let mut all = steps::adoptions(seen);
    all.extend(steps::handovers(seen));
    all.extend(steps::deletions_of_all(seen));
    add_with_descriptions(plan, seen, resolved, all, now);
}

/// Adds these steps, those that release nodes, and those that describe the nodes that are not written
/// otherwise: a status is made from the node as it is. While nodes are made there is no inventory to
/// speak of.
fn add_with_descriptions(
    plan: &mut Plan,
    seen: &Observed,
    resolved: &Resolved<'_>,
    mut all: Vec<Step>,
    now: Timestamp,
) {
    all.extend(steps::releases(seen));
    if !resolved.lacks_nodes {
        let written: BTreeSet<String> = all.iter().map(|it| it.target.name.clone()).collect();
        let mut descriptions = description::steps(seen, resolved, now);
        descriptions.retain(|it| !written.contains(&it.target.name));
        all.extend(descriptions);
    }
    add_some(plan, all);
}

fn add_some(plan: &mut Plan, mut all: Vec<Step>) {
    if all.len() > WRITES_PER_PASS {
        all.truncate(WRITES_PER_PASS);
        plan.requeue_in(REST_OF_WRITES);
    }
    plan.independent.extend(all);
}
