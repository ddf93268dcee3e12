//! The nodes of a node set: an `OpenStackDataPlaneNode` for each entry, which says what is known of
//! its host.
//!
//! They are written and never read: the status of the node set is the truth, so that nothing changes
//! on a host where its node is refused, or deleted by hand.

use jiff::Timestamp;
use operator_core::plan::Step;

use crate::node_set::observed::Observed;
use crate::node_set::resolve::Resolved;

pub mod conditions;
pub mod description;
pub mod observed;
pub mod services;
pub mod steps;

/// Returns the steps that make, describe and delete nodes, each of which is tried whatever becomes of
/// the others.
pub fn all_steps(seen: &Observed, resolved: &Resolved<'_>, now: Timestamp) -> Vec<Step> {
    let mut all = steps::creations(seen, resolved);
    all.extend(steps::adoptions(seen));
    all.extend(steps::of_nameless(seen));
    all.extend(steps::of_left_hosts(seen, resolved));
    all.extend(description::steps(seen, resolved, now));
    all
}
