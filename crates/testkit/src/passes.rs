//! Runs the passes of a simulated cluster.

use std::fmt::Debug;

use api::conditions::Reason;
use operator_core::plan::{EventDraft, Plan, Step, Write};
use operator_core::rejected_write::RejectedWrite;

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

/// Runs passes until one adds nothing to what `writes` returns.
///
/// # Panics
///
/// When there is no such pass.
#[track_caller]
pub fn to_rest<W, T: Debug + PartialEq>(
    world: &mut W,
    writes: impl Fn(&W) -> T,
    mut pass: impl FnMut(&mut W),
) {
    for n_passes in 0.. {
        let before = writes(world);
        pass(world);
        if writes(world) == before {
            return;
        }
        assert!(n_passes < 40, "no rest: {:?}", writes(world));
    }
}

/// Returns the writes of a pass in which the API server rejects the one that `refuses` picks: those
/// before it, and the statuses that `tell` has of it beside them.
///
/// # Panics
///
/// When none is picked.
#[track_caller]
pub fn refused<O>(
    plan: &Plan<O>,
    refuses: impl Fn(&Step) -> bool,
    reason: &'static Reason,
    tell: impl FnOnce(&RejectedWrite) -> Plan<O>,
) -> Vec<Step> {
    let all: Vec<&Step> = plan.all().collect();
    let at = all.iter().position(|it| refuses(it)).expect("one is refused");
    let mut written: Vec<Step> = all[..at].iter().map(|it| (*it).clone()).collect();
    let telling = tell(&RejectedWrite::of(all[at], reason, "exceeded quota: q"));
    written
        .extend(telling.steps.into_iter().filter(|it| !written.contains(it)).collect::<Vec<_>>());
    written
}
