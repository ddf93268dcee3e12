//! The next step of a machine whose host is removed.

use api::baremetal::DeprovisionPolicy;

use crate::instance::{DeployRecord, left};
use crate::node::Node;
use crate::ramdisk::is_left;
use crate::request::Verb;
use crate::state::State;
use crate::state_machine::{Next, Step};
use crate::wait_reason::Cause;

/// The polling interval during Ironic's work, in seconds.
const PACE: u32 = 10;

/// Returns what to do with a released machine.
///
/// It is the user's policy; without one, adopted machines are retained and deployed ones are
/// undeployed. A machine without a record is never wiped.
pub fn policy(node: &Node, wanted: Option<DeprovisionPolicy>) -> DeprovisionPolicy {
    let is_deployed = DeployRecord::of(node).is_some_and(|it| !it.is_of_adopted());
    let own = if is_deployed { DeprovisionPolicy::Deprovision } else { DeprovisionPolicy::Retain };
    wanted.unwrap_or(own)
}

/// Returns the next step for the machine of a removed host.
///
/// # Guarantees
/// [`Next::Done`] is returned only if no machine is reserved for the host any more, including a
/// machine that was removed or given to somebody else meanwhile, and never for one that could not
/// be undeployed.
/// Ironic removes the reservation before it cleans, so cleaning is awaited only if the ramdisk's
/// network has to be removed afterwards. A retained machine is never undeployed.
///
/// # Assumptions
/// The machine was read after the last request for it was answered.
pub fn release(node: &Node, instance: &str, policy: DeprovisionPolicy) -> Next {
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
        // Somebody may have redeployed the running machine.
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
            // Somebody who did not know of the release works on it.
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
        // It may be requested again, but the user has to correct what made it fail.
        (State::Error, _) => Next::Stop(Cause::UndeployFailed),
        (State::CleanHold | State::DeployHold, _) => Next::Stop(Cause::Held),
        (State::Other(_), _) => Next::Wait { seconds: PACE, cause: Cause::Unknown },
    }
}

/// Returns the next step for a machine that is not reserved for the host any more.
///
/// Ironic removes the reservation whether the undeployment succeeded or not. If the ramdisk's
/// network is still the host's, the clean machine is reserved once more, which removes the network,
/// and released then. Somebody else who reserved it meanwhile has replaced the network.
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
    if node.is_busy() {
        return wait(Cause::Locked);
    }
    if node.provision_state == State::CleanFailed {
        return Next::Stop(Cause::CleanFailed);
    }
    // The cleaning is over: a retired machine does not become available again.
    let end = if node.retired { State::Manageable } else { State::Available };
    if [State::Available, end].contains(&node.provision_state) {
        Next::Do(Step::Reserve(left(node, false)))
    } else {
        wait(Cause::Working)
    }
}
