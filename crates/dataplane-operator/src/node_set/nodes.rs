//! The nodes of a node set: an `OpenStackDataPlaneNode` for each entry, which says what is known of
//! its host, and on which other operators hold the host and say what they know.
//!
//! What deployments have done stands in the status of the node set, and is repeated on the nodes.

use std::time::Duration;

use jiff::Timestamp;
use operator_core::plan::{Plan, Step};

use crate::node_set::observed::Observed;
use crate::node_set::resolve::Resolved;

pub mod acceptance;
pub mod conditions;
pub mod description;
pub mod handover;
pub mod last_deployment;
pub mod observed;
pub mod services;
pub mod steps;

/// Limit of writes to nodes per pass, which stand before those of the node set; a pass has a deadline.
const WRITES_PER_PASS: usize = 100;
/// When the next pass writes what is left.
const REST: Duration = Duration::from_secs(1);

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
    all.extend(last(seen, resolved, now));
    add_some(plan, all);
}

/// Adds the steps that delete and describe the nodes of a node set that is being deleted. They have no
/// owner, so each way of deleting the node set does the same.
pub fn add_removals(plan: &mut Plan, seen: &Observed, resolved: &Resolved<'_>, now: Timestamp) {
    if resolved.is_frozen() {
        add_some(plan, description::steps(seen, resolved, now));
        return;
    }
    let mut all = steps::adoptions(seen);
    all.extend(steps::handovers(seen));
    all.extend(steps::deletions_of_all(seen));
    all.extend(last(seen, resolved, now));
    add_some(plan, all);
}

/// Returns the steps that release nodes, and that describe the others: a released one is gone. While
/// nodes are made there is no inventory to speak of.
fn last(seen: &Observed, resolved: &Resolved<'_>, now: Timestamp) -> Vec<Step> {
    let releases = steps::releases(seen);
    if resolved.lacks_nodes {
        return releases;
    }
    let mut descriptions = description::steps(seen, resolved, now);
    descriptions.retain(|it| releases.iter().all(|other| other.target != it.target));
    releases.into_iter().chain(descriptions).collect()
}

fn add_some(plan: &mut Plan, mut all: Vec<Step>) {
    if all.len() > WRITES_PER_PASS {
        all.truncate(WRITES_PER_PASS);
        plan.requeue_in(REST);
    }
    plan.independent.extend(all);
}
