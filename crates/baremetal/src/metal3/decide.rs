//! The decision on a set whose machines are Metal3's.

use std::time::Duration;

use api::baremetal::UNASSIGNED;
use jiff::Timestamp;
use operator_core::finalizers::{add_finalizer, is_terminating, remove_finalizer};
use operator_core::plan::Plan;
use operator_core::rejected_write::RejectedWrite;

use super::hosts::evaluate;
use super::{status, writes};
use crate::finalizers::MACHINES;
use crate::metal3::host::EvaluatedHost;
use crate::observe::Observed;

/// Requeue interval. Machines and Secrets are watched; this notices CRDs, whose arrival no watch
/// reports.
const SELDOM: Duration = Duration::from_mins(1);

/// Decides what to write for a set.
///
/// # Guarantees
/// The finalizer is added before the first Secret is written, and removed after the last machine is
/// given back and the last Secret is gone.
pub fn decide(seen: &Observed, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let evaluated = evaluate(seen);
    if may_go(seen, &evaluated) {
        plan.steps.extend(remove_finalizer(
            &*seen.set,
            MACHINES,
            "no machine is the set's any more",
        ));
        return plan;
    }
    if seen.metal3.machines.is_some() {
        plan.steps.extend(add_finalizer(
            &*seen.set,
            MACHINES,
            "machines are given back before it goes",
        ));
        if seen.is_held() {
            plan.independent = writes::steps(seen, &evaluated);
        }
    }
    plan.steps.extend(status::step(seen, &evaluated, None, now));
    plan.requeue_in(SELDOM);
    plan
}

/// Returns the status step that reports a rejected write.
pub fn refused(seen: &Observed, rejected: &RejectedWrite, now: Timestamp) -> Plan {
    let steps = status::step(seen, &evaluate(seen), Some(rejected), now);
    Plan { steps: steps.into_iter().collect(), ..Plan::default() }
}

/// Returns whether the set may go. Without the CRD there are neither machines nor their Secrets.
fn may_go(seen: &Observed, evaluated: &EvaluatedHost<'_>) -> bool {
    let is_done = evaluated.hosts.is_empty() && seen.metal3.secrets.is_empty();
    let is_over = seen.metal3.machines.is_none() || is_done;
    is_terminating(&*seen.set) && is_over && !has_anothers(seen)
}

/// Returns whether the status has machines of another provisioner, which must give them back.
/// Metal3's have a namespace in their reference.
fn has_anothers(seen: &Observed) -> bool {
    let reported = seen.set.status.iter().flat_map(|it| it.baremetal_hosts.values());
    reported.into_iter().any(|it| it.bmh_ref != UNASSIGNED && !it.bmh_ref.contains('/'))
}
