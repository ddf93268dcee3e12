//! The next step of a machine whose host is taken out.

use api::baremetal::DeprovisionPolicy;

use crate::instance::{DeployRecord, left};
use crate::node::Node;
use crate::ramdisk::is_left;
use crate::request::Verb;
use crate::state::State;
use crate::state_machine::{Next, Step};
use crate::wait_reason::Cause;

/// The pace at which Ironic's works are looked at meanwhile, in seconds.
const PACE: u32 = 10;

/// What becomes of a machine: what the human says, else what was adopted is retained, and what was
/// deployed is taken back. A machine on which nothing is noted is nobody's to wipe.
pub fn policy(node: &Node, wanted: Option<DeprovisionPolicy>) -> DeprovisionPolicy {
    let is_deployed = DeployRecord::of(node).is_some_and(|it| !it.is_of_adopted());
    let own = if is_deployed { DeprovisionPolicy::Deprovision } else { DeprovisionPolicy::Retain };
    wanted.unwrap_or(own)
}

/// What comes next for the machine that was a host's.
///
/// # Guarantees
/// [`Next::Done`] is said only if no machine is reserved for the host any more, also if the machine is
/// gone or was given to somebody else behind our back, and not of one that could not be undeployed.
/// Ironic takes the reservation away before it cleans, so cleaning is waited for only where the network
/// of the ramdisk has to be taken off then. What is retained is never undeployed.
///
/// # Assumptions
/// The machine was read after the last request for it was answered.
pub fn release(node: Option<&Node>, instance: &str, policy: DeprovisionPolicy) -> Next {
    let Some(node) = node else { return Next::Done { is_current: true } };
    if !node.is_of(instance) {
        return undeployed(node, instance);
    }
    if node.is_busy() {
        return Next::Wait { seconds: PACE, cause: Cause::Locked };
    }
    let wait = || Next::Wait { seconds: PACE, cause: Cause::Working };
    let give_up = |is_deployed| Next::Do(Step::Unreserve(left(node, is_deployed)));
    match (&node.provision_state, policy) {
        (
            State::Enroll
            | State::Manageable
            | State::Available
            | State::InspectFailed
            | State::CleanFailed
            | State::AdoptFailed,
            _,
        )
        // Somebody may have deployed anew what ran.
        | (State::DeployFailed, DeprovisionPolicy::Retain) => give_up(false),
        (
            State::Active | State::RescueFailed(_) | State::ServiceFailed,
            DeprovisionPolicy::Retain,
        ) => give_up(true),
        (
            State::Verifying
            | State::Inspecting
            | State::InspectWait
            | State::Cleaning
            | State::CleanWait
            | State::Deploying
            | State::Deleting
            | State::Adopting
            // Somebody works on it who did not know that it goes.
            | State::Rescue(_)
            | State::Service(_),
            _,
        )
        | (State::WaitCallBack, DeprovisionPolicy::Retain) => wait(),
        (
            State::Active
            | State::WaitCallBack
            | State::DeployFailed
            | State::RescueFailed(_)
            | State::ServiceFailed,
            DeprovisionPolicy::Deprovision,
        ) => Next::Do(Step::Tell(Verb::Deleted)),
        // It may be asked again, but what made it fail needs a human.
        (State::Error, _) => Next::Stop(Cause::UndeployFailed),
        (State::CleanHold | State::DeployHold, _) => Next::Stop(Cause::Held),
        (State::Other(_), _) => Next::Wait { seconds: PACE, cause: Cause::Unknown },
    }
}

/// A machine that is not reserved for the host any more: Ironic takes the reservation away whether it
/// could undeploy the machine or not. Where its ramdisk's network is still the host's, it is reserved once
/// more when it is clean, by which that network goes, and given up then: whoever else reserved it
/// meanwhile has replaced the network.
fn undeployed(node: &Node, instance: &str) -> Next {
    let done = Next::Done { is_current: true };
    if node.instance_uuid.is_some() {
        return done;
    }
    let wait = |cause| Next::Wait { seconds: PACE, cause };
    if node.provision_state == State::Error {
        return Next::Stop(Cause::UndeployFailed);
    }
    if node.provision_state == State::Deleting {
        return wait(Cause::Working);
    }
    if !is_left(node, instance) {
        return done;
    }
    match &node.provision_state {
        _ if node.is_busy() => wait(Cause::Locked),
        State::Available => Next::Do(Step::Reserve(left(node, false))),
        // After its cleaning, which is over: a retired one becomes available no more.
        State::Manageable if node.retired => Next::Do(Step::Reserve(left(node, false))),
        State::CleanFailed => Next::Stop(Cause::CleanFailed),
        State::Enroll
        | State::Verifying
        | State::Manageable
        | State::Inspecting
        | State::InspectWait
        | State::InspectFailed
        | State::Cleaning
        | State::CleanWait
        | State::CleanHold
        | State::Deploying
        | State::WaitCallBack
        | State::DeployHold
        | State::DeployFailed
        | State::Active
        | State::Deleting
        | State::Error
        | State::Adopting
        | State::AdoptFailed
        | State::Rescue(_)
        | State::RescueFailed(_)
        | State::Service(_)
        | State::ServiceFailed
        | State::Other(_) => wait(Cause::Working),
    }
}
