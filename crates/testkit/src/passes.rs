//! Runs the passes of a simulated cluster.

use operator_core::plan::{EventDraft, Plan, Write};

/// Runs passes until one writes nothing; returns the Events of the written statuses.
#[must_use]
pub fn notices<O>(mut pass: impl FnMut() -> Plan<O>) -> Vec<EventDraft> {
    let mut all = Vec::new();
    loop {
        let plan = pass();
        if plan.all().next().is_none() {
            return all;
        }
        for step in plan.steps {
            if let Write::Status { notices, .. } = step.write {
                all.extend(notices);
            }
        }
    }
}
