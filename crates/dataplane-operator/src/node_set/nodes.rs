//! The nodes of a node set: an `OpenStackDataPlaneNode` for each entry, which says what is known of
//! its host.
//!
//! They are written and never read: the status of the node set is the truth, so that nothing changes
//! on a host where its node is refused, or deleted by hand.

use std::time::Duration;

use jiff::Timestamp;
use operator_core::plan::{Plan, Step};

use crate::node_set::observed::Observed;
use crate::node_set::resolve::Resolved;

pub mod conditions;
pub mod description;
pub mod observed;
pub mod services;
pub mod steps;

/// Limit of writes to nodes per pass, which stand before those of the node set; a pass has a deadline.
const WRITES_PER_PASS: usize = 100;
/// When the next pass writes what is left.
const REST: Duration = Duration::from_secs(1);

/// Adds the steps that make, describe and delete nodes, each of which is tried whatever becomes of the
/// others.
pub fn add(plan: &mut Plan, seen: &Observed, resolved: &Resolved<'_>, now: Timestamp) {
    if !seen.nodes.are_made {
        return;
    }
    let mut all = steps::creations(seen, resolved);
    all.extend(steps::adoptions(seen));
    all.extend(steps::of_left_hosts(seen, resolved));
    all.extend(description::steps(seen, resolved, now));
    add_some(plan, all);
}

/// Adds the steps that describe the nodes of a node set that is being deleted.
pub fn add_descriptions(plan: &mut Plan, seen: &Observed, resolved: &Resolved<'_>, now: Timestamp) {
    add_some(plan, description::steps(seen, resolved, now));
}

fn add_some(plan: &mut Plan, mut all: Vec<Step>) {
    if all.len() > WRITES_PER_PASS {
        all.truncate(WRITES_PER_PASS);
        plan.requeue_in(REST);
    }
    plan.independent.extend(all);
}
