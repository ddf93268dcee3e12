//! The next step of a machine that is being provisioned for a host.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::desired_machine::DesiredMachine;
use crate::instance::{DeployRecord, agrees, info};
use crate::node::Node;
use crate::ramdisk::{RequestValues, changes};
use crate::request::{Request, Verb};
use crate::state::State;
use crate::wait_reason::Cause;

/// The polling interval of Ironic's short tasks, in seconds.
const SHORT_TASK_POLL: u32 = 5;
/// The polling interval of its long tasks, in seconds.
const LONG_TASK_POLL: u32 = 20;
/// The polling interval of others' tasks, in seconds.
const FOREIGN_TASK_POLL: u32 = 60;
/// The backoff after the first failed deployment, in seconds; each further one doubles.
const FIRST_BACKOFF: i64 = 60;
/// The maximum backoff, also between attempts to reach a machine.
const LONGEST_PAUSE: i64 = 600;

/// The next step of a machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Send a request, and read the machine again a few seconds later.
    Do(Step),
    /// Read the machine again after some time.
    Wait {
        /// The time in seconds.
        seconds: u32,
        /// What it waits for.
        cause: Cause,
    },
    /// Do nothing until the user acts.
    Stop(Cause),
    /// It is provisioned as desired.
    Done {
        /// Whether it was deployed with the present config drive. Another one takes effect only if
        /// the user has the machine deployed again.
        is_current: bool,
    },
}

/// A request that advances a machine; it is idempotent.
///
/// Ironic rejects with 400, not 409, what is not possible in a machine's state. After a rejection,
/// read the machine again; it is an error only if the state is still the same.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Reserve it, with this `instance_info`.
    Reserve(Map<String, Value>),
    /// Write this `instance_info`.
    Record(Map<String, Value>),
    /// Start this transition.
    Tell(Verb),
    /// Deploy it with its config drive.
    Deploy,
    /// Power it on.
    PowerOn,
    /// Release it, with this `instance_info`.
    Unreserve(Map<String, Value>),
}

impl Step {
    /// Returns the request of this step; pass empty `given` for a host that has no machine any
    /// more.
    pub fn request(&self, node: &Node, instance: &str, given: &RequestValues) -> Request {
        let uuid = &node.uuid;
        let more = || changes(node, instance, given.ramdisk.as_ref());
        match self {
            Self::Reserve(info) => Request::reserve(uuid, instance, info, more()),
            Self::Record(info) => Request::record(uuid, info, more()),
            Self::Tell(verb) => Request::provision(uuid, *verb),
            Self::Deploy => Request::deploy(uuid, &given.drive),
            Self::PowerOn => Request::power_on(uuid),
            Self::Unreserve(info) => Request::unreserve(uuid, info, more()),
        }
    }
}

/// Returns the next step of a machine that is reserved for a host, or was chosen for it.
///
/// # Guarantees
/// After a crash at any point the same steps follow, because the machine itself shows what was
/// done. A failed deployment is counted before it is retried, so no crash leads to more than
/// [`DesiredMachine::attempts`].
/// Only a change of the input allows new ones.
///
/// # Assumptions
/// Only Ironic changes `instance_uuid` of a machine that is reserved by [`DesiredMachine::instance`].
/// A stale read is harmless to the reservation. For the count of attempts, the machine must have
/// been read after the last request for it was answered.
pub fn next(node: &Node, desired: &DesiredMachine, now: Timestamp) -> Next {
    if !node.is_of(&desired.instance) {
        return begin(node, desired);
    }
    if node.provision_state == State::Active {
        return arrived(node, desired);
    }
    if node.maintenance {
        return Next::Stop(Cause::Maintenance);
    }
    let is_silent = node.last_error.as_ref().is_none_or(String::is_empty);
    match on_the_way(node, desired, now) {
        // Ironic would reject it with 409.
        Next::Do(_) if node.is_busy() => {
            Next::Wait { seconds: SHORT_TASK_POLL, cause: Cause::Locked }
        }
        // The conductor that works on it may still report an error.
        Next::Stop(_) if node.is_busy() && is_silent => {
            Next::Wait { seconds: SHORT_TASK_POLL, cause: Cause::Locked }
        }
        next @ (Next::Do(_) | Next::Wait { .. } | Next::Stop(_) | Next::Done { .. }) => next,
    }
}

/// Returns the next step of a machine that is not reserved yet.
fn begin(node: &Node, desired: &DesiredMachine) -> Next {
    if node.instance_uuid.is_some() {
        return Next::Stop(Cause::Taken);
    }
    if node.maintenance {
        return Next::Stop(Cause::Maintenance);
    }
    if node.is_busy() {
        return Next::Wait { seconds: SHORT_TASK_POLL, cause: Cause::Locked };
    }
    let reserve =
        || Next::Do(Step::Reserve(info(node, desired, &DeployRecord::first(node, desired))));
    match (&node.provision_state, desired.adopt) {
        (State::Active | State::Manageable, true) | (State::Available, false) => reserve(),
        (State::Available, true) => Next::Stop(Cause::NotRunning),
        (State::Manageable | State::Enroll, false) if desired.provide => reserve(),
        _ => Next::Stop(Cause::NotProvided),
    }
}

fn on_the_way(node: &Node, desired: &DesiredMachine, now: Timestamp) -> Next {
    let wait = |seconds| Next::Wait { seconds, cause: Cause::Working };
    match &node.provision_state {
        State::Enroll if !desired.provide && !desired.adopt => Next::Stop(Cause::NotProvided),
        State::Enroll => reach(node, now),
        State::Manageable if desired.adopt => prepared(node, desired, Step::Tell(Verb::Adopt)),
        // Its ramdisk may be needed for cleaning.
        State::Manageable if desired.provide => prepared(node, desired, Step::Tell(Verb::Provide)),
        State::Manageable => Next::Stop(Cause::NotProvided),
        State::Available | State::DeployFailed if desired.adopt => Next::Stop(Cause::NotRunning),
        State::Available => prepared(node, desired, Step::Deploy),
        State::DeployFailed => again(node, desired, now),
        State::Verifying | State::Adopting => wait(SHORT_TASK_POLL),
        State::Deploying
        | State::WaitCallBack
        | State::Deleting
        | State::Cleaning
        | State::CleanWait
        | State::Inspecting
        | State::InspectWait => wait(LONG_TASK_POLL),
        State::Rescue(_) | State::Service(_) => wait(FOREIGN_TASK_POLL),
        State::CleanHold | State::DeployHold => Next::Stop(Cause::Held),
        State::CleanFailed => Next::Stop(Cause::CleanFailed),
        State::InspectFailed => Next::Stop(Cause::InspectFailed),
        State::AdoptFailed => Next::Stop(Cause::AdoptFailed),
        State::RescueFailed(_) | State::ServiceFailed => Next::Stop(Cause::CareFailed),
        State::Error => Next::Stop(Cause::UndeployFailed),
        State::Active => arrived(node, desired),
        State::Other(_) => Next::Wait { seconds: FOREIGN_TASK_POLL, cause: Cause::Unknown },
    }
}

/// Returns the next step of a machine that was never reached, or not at the last attempt.
fn reach(node: &Node, now: Timestamp) -> Next {
    let failed = node.last_error.as_ref().is_some_and(|it| !it.is_empty());
    match failed.then(|| left(node, LONGEST_PAUSE, now)).flatten() {
        Some(seconds) => Next::Wait { seconds, cause: Cause::Unreached },
        None => Next::Do(Step::Tell(Verb::Manage)),
    }
}

/// Returns the step, preceded by the record of what the machine is deployed from.
fn prepared(node: &Node, desired: &DesiredMachine, step: Step) -> Next {
    if agrees(node, desired) {
        return Next::Do(step);
    }
    Next::Do(Step::Record(info(node, desired, &DeployRecord::first(node, desired))))
}

/// Returns the next step after a failed deployment: count it, wait for the backoff, deploy again.
fn again(node: &Node, desired: &DesiredMachine, now: Timestamp) -> Next {
    let failure = node.provision_updated_at.clone();
    let counted = |attempt| {
        let ledger =
            DeployRecord { attempt, after: failure.clone(), ..DeployRecord::first(node, desired) };
        Next::Do(Step::Record(info(node, desired, &ledger)))
    };
    let Some(ledger) = DeployRecord::of(node).filter(|_| agrees(node, desired)) else {
        // The input is another one: earlier failures do not count.
        return counted(1);
    };
    if failure.is_some() && ledger.after == failure {
        return Next::Do(Step::Deploy);
    }
    if failure.is_none() || ledger.attempt >= desired.attempts {
        return Next::Stop(Cause::DeployFailed);
    }
    let doubled = FIRST_BACKOFF << ledger.attempt.saturating_sub(1).min(8);
    match left(node, doubled.min(LONGEST_PAUSE), now) {
        Some(seconds) => Next::Wait { seconds, cause: Cause::Retrying },
        None => counted(ledger.attempt + 1),
    }
}

/// Returns the next step of an active machine, which should be powered on.
fn arrived(node: &Node, desired: &DesiredMachine) -> Next {
    let is_moving = node.target_power_state.as_ref().is_some_and(|it| !it.is_empty());
    let wait = |cause| Next::Wait { seconds: SHORT_TASK_POLL, cause };
    match node.power_state.as_deref() {
        Some("power on") => {
            let is_current = DeployRecord::of(node).is_none_or(|it| desired.drive.is(&it.drive));
            Next::Done { is_current: desired.adopt || is_current }
        }
        _ if is_moving => wait(Cause::Working),
        _ if node.maintenance => Next::Stop(Cause::Maintenance),
        _ if node.is_busy() => wait(Cause::Locked),
        // Ironic does not know the power state of a machine that it has not polled yet.
        Some("power off") | None => Next::Do(Step::PowerOn),
        Some(_) => Next::Stop(Cause::PowerFailed),
    }
}

/// Returns how many seconds of a backoff are left; `None` when it is over.
fn left(node: &Node, pause: i64, now: Timestamp) -> Option<u32> {
    let since: Timestamp = node.provision_updated_at.as_deref()?.parse().ok()?;
    // A clock that is ahead does not make the backoff longer.
    let left = (since.as_second() + pause - now.as_second()).min(pause);
    u32::try_from(left).ok().filter(|it| *it > 0)
}
