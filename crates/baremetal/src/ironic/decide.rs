//! The decision on a set whose machines Ironic provisions: what to write, and when to requeue it.

use std::time::Duration;

use ironic::{Next, Step};
use jiff::Timestamp;
use operator_core::finalizers::{add_finalizer, is_terminating, remove_finalizer};
use operator_core::plan::Plan;
use operator_core::rejected_write::RejectedWrite;

use crate::backoff::{AGAIN, SELDOM};
use crate::finalizers::MACHINES;
use crate::ironic::hosts::{EvaluatedHost, Host, HostState, evaluate};
use crate::ironic::status;
use crate::observe::{Observed, Unseen};

/// Requeue interval after a request that Ironic completes before it answers.
const AT_ONCE: Duration = Duration::from_secs(1);
/// Requeue interval while requests of other sets come first.
const BEHIND_OTHERS: Duration = Duration::from_secs(2);
/// Requeue interval after a request that starts an operation.
const SOON: Duration = Duration::from_secs(5);
/// Requeue interval while only an edit helps, which enqueues the set anyway.
const RARELY: Duration = Duration::from_mins(5);

/// Decides what to write for a set, after its Ironic requests.
///
/// # Guarantees
/// The finalizer is added before the first machine is taken, and removed after the last one is
/// given back.
pub fn decide(seen: &Observed, now: Timestamp) -> Plan {
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
    // A set that has never seen machines has taken none. It needs no finalizer, because its Ironic
    // may never answer.
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

/// Returns the status step that reports a rejected write.
pub fn refused(seen: &Observed, rejected: &RejectedWrite, now: Timestamp) -> Plan {
    let steps = status::step(seen, &evaluate(seen, now), Some(rejected), now);
    Plan { steps: steps.into_iter().collect(), ..Plan::default() }
}

/// Returns whether a set that is being deleted has given back all machines, or can no longer do so.
fn may_go(seen: &Observed, evaluated: &EvaluatedHost<'_>) -> bool {
    let is_done = match &seen.machines {
        Ok(_) => evaluated.hosts.iter().all(|it| matches!(it.state, HostState::Released)),
        Err(Unseen::NotAsked) => !seen.has_machines(),
        Err(Unseen::NoSecret { .. } | Unseen::NotYet | Unseen::Error(_)) => false,
    };
    is_terminating(&*seen.set) && (is_done || seen.is_abandoned)
}

/// Returns the requeue interval. Ironic sends no events, so machines are polled, rarely if no
/// change is expected.
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
