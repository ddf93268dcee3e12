//! Ironic's state machine: the states that a machine goes through after a provisioning request.

use std::collections::VecDeque;

/// Error of a deployment with a config drive when there is no storage for it.
pub(crate) const NO_STORE: &str = "Failed to prepare the configdrive. Exception: An auth plugin is required to determine endpoint URL";

/// What overwrites the error of a deployment that timed out.
const AFTERMATH: &str = "Async execution of cleanup_after_timeout failed with error: Can not transition from state 'deploy failed' on event 'fail' (no defined transition)";

/// One state of a transition.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Stop {
    pub(crate) state: &'static str,
    /// The target provisioning state while it is in this state.
    pub(crate) target: Option<&'static str>,
    /// The error that led to this state, as the machine's history has it.
    pub(crate) error: Option<String>,
    /// What `last_error` still has of it.
    pub(crate) left: Option<String>,
}

/// Returns the states from `state` to the requested target; `None` when Ironic does not allow the
/// request.
pub(crate) fn path(target: &str, state: &str) -> Option<VecDeque<Stop>> {
    let (works, end): (&[&str], &str) = match (target, state) {
        ("manage", "enroll") => (&["verifying"], "manageable"),
        ("manage", "available" | "clean failed" | "adopt failed" | "inspect failed") => {
            (&[], "manageable")
        }
        ("provide", "manageable") => (&["cleaning"], "available"),
        ("adopt", "manageable" | "adopt failed") => (&["adopting"], "active"),
        ("active", "available" | "deploy failed") => (&["deploying"], "active"),
        ("deleted", "active" | "deploy failed" | "wait call-back" | "error") => {
            (&["deleting", "cleaning"], "available")
        }
        _ => return None,
    };
    let end = *["manageable", "available", "active"].iter().find(|it| **it == end)?;
    let stop = |it: &&'static str| Stop { state: it, target: Some(end), error: None, left: None };
    let works: VecDeque<Stop> = WORKS.iter().filter(|it| works.contains(it)).map(stop).collect();
    let last = Stop { state: end, target: None, error: None, left: None };
    Some(works.into_iter().chain([last]).collect())
}

/// The transitional states, in the order in which they occur.
const WORKS: [&str; 5] = ["verifying", "adopting", "deploying", "deleting", "cleaning"];

/// Lets a transition fail after a state with this error, if it goes through that state.
pub(crate) fn fails_at(way: &mut VecDeque<Stop>, state: &str, words: &str) {
    let Some(place) = way.iter().position(|it| it.state == state) else { return };
    let target = way[place].target;
    let left = if state == "deploying" { left_of(words) } else { Some(words.to_owned()) };
    let (state, target) = match state {
        // A machine that cannot be verified stays enrolled.
        "verifying" => ("enroll", None),
        "adopting" => ("adopt failed", target),
        "deploying" => ("deploy failed", target),
        "cleaning" => ("clean failed", target),
        "deleting" => ("error", target),
        _ => return,
    };
    way.truncate(place + 1);
    way.push_back(Stop { state, target, error: Some(words.to_owned()), left });
}

/// Returns what `last_error` has of a failed deployment at its end: switching the machine off clears
/// the error of a step, and cleaning up after a timeout fails in its turn.
fn left_of(words: &str) -> Option<String> {
    if words == NO_STORE {
        // No step has begun.
        return Some(words.to_owned());
    }
    words.starts_with("Timeout reached while waiting for callback").then(|| AFTERMATH.to_owned())
}

/// Returns the error of a cleaning whose ramdisk cannot find Ironic.
pub(crate) fn no_ramdisk(uuid: &str) -> String {
    format!(
        "Failed to prepare node {uuid} for cleaning: Couldn't get the URL of the Ironic API service \
         from the configuration file or keystone catalog. Keystone error: Service type baremetal with \
         endpoint type internal not found in keystone service catalog."
    )
}
