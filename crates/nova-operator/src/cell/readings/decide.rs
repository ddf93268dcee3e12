//! The decision on the readings for a cell: one Event for each cause.

use operator_core::plan::{EventDraft, Plan, Target};

use crate::cell::readings::observed::Observed;

/// Returns the plan for a cell.
pub fn decide(seen: &Observed) -> Plan {
    let mut plan = Plan::with_resync();
    if let Some(problem) = seen.problem.as_ref().filter(|_| !seen.is_reported) {
        let (reason, note) = (problem.reason.clone(), problem.message.clone());
        let event = EventDraft { warning: true, reason, note };
        plan.events.push((Target::of(&*seen.cell), event));
    }
    plan
}
