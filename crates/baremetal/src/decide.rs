//! The judgement on a set: what is written, and when to look again.

use std::time::Duration;

use ironic::{Next, Step};
use jiff::Timestamp;
use operator_core::finalizers::{add_finalizer, is_terminating, remove_finalizer};
use operator_core::plan::Plan;
use operator_core::rejected_write::RejectedWrite;

use crate::backoff::{AGAIN, SELDOM};
use crate::finalizers::MACHINES;
use crate::ironic::hosts::{EvaluatedHost, Host, HostState, evaluate};
use crate::metal3;
use crate::observe::{Observed, Unseen};
use crate::status;

/// After a request that Ironic answers when it is done.
const AT_ONCE: Duration = Duration::from_secs(1);
/// Where others are waited for first.
const BEHIND_OTHERS: Duration = Duration::from_secs(2);
/// After a request that begins something.
const SOON: Duration = Duration::from_secs(5);
/// Where only an edit helps, which wakes the set.
const RARELY: Duration = Duration::from_mins(5);

/// Judges a set, after what was asked of Ironic.
///
/// # Guarantees
/// The finalizer stands before the first machine is taken, and goes when the last one is given back.
pub fn decide(seen: &Observed, now: Timestamp) -> Plan {
    if !seen.is_of_ironic() {
        return metal3::decide::decide(seen, now);
    }
    let mut plan = Plan::default();
    if matches!(seen.machines, Err(Unseen::NotYet)) {
        plan.requeue_in(BEHIND_OTHERS);
        return plan;
    }
    let evaluated = evaluate(seen, now);
    if may_go(seen, &evaluated) {
        let because = "no machine is the set's any more";
        plan.steps.extend(remove_finalizer(&*seen.set, MACHINES, because));
        return plan;
    }
    // Whoever has never seen a machine has taken none, and need not be held: its Ironic may never answer.
    if seen.machines.is_ok() || seen.has_machines() {
        plan.steps.extend(add_finalizer(
            &*seen.set,
            MACHINES,
            "machines are given back before it goes",
        ));
    }
    plan.steps.extend(status::step(seen, &evaluated, None, now));
    plan.requeue_in(pace(seen, &evaluated, now));
    plan
}

/// The status that tells that a write was refused.
pub fn refused(seen: &Observed, rejected: &RejectedWrite, now: Timestamp) -> Plan {
    if !seen.is_of_ironic() {
        return metal3::decide::refused(seen, rejected, now);
    }
    let steps = status::step(seen, &evaluate(seen, now), Some(rejected), now);
    Plan { steps: steps.into_iter().collect(), ..Plan::default() }
}

/// Whether a set that goes has given all back, or nobody can be asked for it.
fn may_go(seen: &Observed, evaluated: &EvaluatedHost<'_>) -> bool {
    let is_done = match &seen.machines {
        Ok(_) => evaluated.hosts.iter().all(|it| matches!(it.state, HostState::Released)),
        Err(Unseen::NotAsked) => !seen.has_machines(),
        Err(Unseen::NoSecret { .. } | Unseen::NotYet | Unseen::Error(_)) => false,
    };
    is_terminating(&*seen.set) && (is_done || seen.is_abandoned)
}

/// When to look again: machines change without telling anybody, so seldom where nothing is expected.
fn pace(seen: &Observed, evaluated: &EvaluatedHost<'_>, now: Timestamp) -> Duration {
    match &seen.machines {
        Err(Unseen::NotAsked | Unseen::NoSecret { .. }) => return RARELY,
        Err(Unseen::NotYet) => return BEHIND_OTHERS,
        Err(Unseen::Error(error)) => return if error.heals() { AGAIN } else { SELDOM },
        Ok(_) => {}
    }
    let of_host = |host: &Host<'_>| match &host.state {
        HostState::At(_, Next::Do(_)) if !seen.is_held() => AT_ONCE,
        HostState::At(node, Next::Do(step)) => {
            match seen.refused.get(&node.uuid).and_then(|it| it.left(now)) {
                Some(left) => left.max(AT_ONCE),
                None => match step {
                    Step::Reserve(_) | Step::Record(_) | Step::Unreserve(_) => AT_ONCE,
                    Step::Tell(_) | Step::Deploy | Step::PowerOn => SOON,
                },
            }
        }
        HostState::At(_, Next::Wait { seconds, .. }) => Duration::from_secs((*seconds).into()),
        HostState::Unseen
        | HostState::Faulty(_)
        | HostState::Without(_)
        | HostState::Lost(..)
        | HostState::Kept(_)
        | HostState::At(_, Next::Stop(_) | Next::Done { .. })
        | HostState::Released => SELDOM,
    };
    evaluated.hosts.iter().map(of_host).min().unwrap_or(SELDOM)
}
