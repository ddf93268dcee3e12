//! The judgement on a data plane: what to apply, what to delete, and what its status says.

use std::time::Duration;

use jiff::Timestamp;
use operator_core::plan::{Plan, Step};
use operator_core::rejected_write::RejectedWrite;

use crate::data_plane::children::{self, ChildState, Entry};
use crate::data_plane::observe::Observed;
use crate::data_plane::orphans::{self, Orphan};
use crate::data_plane::rollup::Seen;
use crate::data_plane::status;

/// A look without a cause, for whatever no watch tells.
const RESYNC: Duration = Duration::from_mins(15);
/// How many writes one pass makes: a pass has a deadline, and whoever wrote the maps may want to
/// change them while thousands of nodes are still being made.
const WRITES_PER_PASS: usize = 250;

/// Judges a data plane.
///
/// # Guarantees
/// Nothing is written to an object that belongs to something else, and nothing is deleted unless
/// `spec.prune` says so.
pub fn decide(seen: &Observed, now: Timestamp) -> Plan {
    let mut plan = Plan { requeue_after: Some(RESYNC), ..Plan::default() };
    if seen.data_plane.metadata.deletion_timestamp.is_some() {
        // Kubernetes deletes what belongs to it.
        return plan;
    }
    let entries = children::entries(seen);
    let orphans = orphans::orphans(seen);
    let applied = entries.iter().filter_map(|it| it.step.clone());
    let mut writes: Vec<Step> = applied.chain(prunable(seen, &orphans)).collect();
    let is_whole = writes.len() <= WRITES_PER_PASS;
    writes.truncate(WRITES_PER_PASS);
    plan.independent = writes;
    let is_pending = |it: &Entry<'_>| it.step.is_some() && !is_repair(it);
    if is_whole && entries.iter().any(is_pending) {
        // What is applied comes back by its watch, and the status then says more: one write less.
        return plan;
    }
    let evaluated = Seen { seen, entries: &entries, orphans: &orphans };
    plan.steps.extend(status::step(&evaluated, None, now));
    plan
}

/// The status that tells that a write was refused.
pub fn refused(seen: &Observed, rejected: &RejectedWrite, now: Timestamp) -> Plan {
    let (entries, orphans) = (children::entries(seen), orphans::orphans(seen));
    let seen = Seen { seen, entries: &entries, orphans: &orphans };
    let steps = status::step(&seen, Some(rejected), now).into_iter().collect();
    Plan { steps, ..Plan::default() }
}

/// An apply that brings back what the map states, without anything new.
fn is_repair(entry: &Entry<'_>) -> bool {
    matches!(entry.state, ChildState::Ours { is_applied: true, .. })
}

/// The deletions that `spec.prune` asks for; a role stays for as long as nodes follow it.
fn prunable(seen: &Observed, orphans: &[Orphan]) -> Vec<Step> {
    if !seen.data_plane.spec.prune {
        return Vec::new();
    }
    let may_go = |it: &&Orphan| !it.is_terminating && it.n_followers == 0;
    let because = "it was taken out of the map, and spec.prune is true";
    orphans.iter().filter(may_go).map(|it| Step::delete(it.target.clone(), because)).collect()
}
