//! The decision on a data plane: what to apply, what to delete, and its status.

use jiff::Timestamp;
use operator_core::plan::{Plan, Step, WRITES_PER_PASS};
use operator_core::rejected_write::RejectedWrite;

use crate::data_plane::children::{self, ChildState, Entry};
use crate::data_plane::observed::Observed;
use crate::data_plane::orphans::{self, Orphan};
use crate::data_plane::rollup::Seen;
use crate::data_plane::status;

/// Decides what to write for a data plane.
///
/// # Guarantees
/// Nothing is written to an object with another owner, and nothing is deleted unless `spec.prune`
/// is set.
pub fn decide(seen: &Observed, rejected: Option<&RejectedWrite>, now: Timestamp) -> Plan {
    let mut plan = Plan::with_resync();
    if seen.data_plane.metadata.deletion_timestamp.is_some() {
        // Garbage collection deletes what belongs to it.
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
    if is_whole && entries.iter().any(is_pending) && rejected.is_none() {
        // The applied objects come back through the watch and change the status again: this saves
        // one write.
        return plan;
    }
    let evaluated = Seen { seen, entries: &entries, orphans: &orphans };
    plan.steps.extend(status::step(&evaluated, rejected, now));
    plan
}

/// Returns whether an apply only restores what the map states.
fn is_repair(entry: &Entry<'_>) -> bool {
    matches!(entry.state, ChildState::Ours { is_applied: true, .. })
}

/// Returns the deletions that `spec.prune` asks for. A role stays as long as nodes name it.
fn prunable(seen: &Observed, orphans: &[Orphan]) -> Vec<Step> {
    if !seen.data_plane.spec.prune {
        return Vec::new();
    }
    let may_go = |it: &&Orphan| !it.is_terminating && it.n_followers == 0;
    let because = "it was taken out of the map, and spec.prune is true";
    orphans.iter().filter(may_go).map(|it| Step::delete(it.target.clone(), because)).collect()
}
