//! Ironic's state machine: through which states a machine goes where it is told something.

use std::collections::VecDeque;

/// Why a deployment with a config drive fails where there is nowhere to keep it.
pub(crate) const NO_STORE: &str = "Failed to prepare the configdrive. Exception: An auth plugin is required to determine endpoint URL";

/// A state on a way.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Stop {
    pub(crate) state: &'static str,
    /// Where it is on its way to.
    pub(crate) target: Option<&'static str>,
    /// What went wrong before it.
    pub(crate) error: Option<String>,
}

/// The way of a machine in a state that is told so; `None` where that cannot be.
pub(crate) fn of(target: &str, state: &str) -> Option<VecDeque<Stop>> {
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
    let stop = |it: &&'static str| Stop { state: it, target: Some(end), error: None };
    let works: VecDeque<Stop> = WORKS.iter().filter(|it| works.contains(it)).map(stop).collect();
    Some(works.into_iter().chain([Stop { state: end, target: None, error: None }]).collect())
}

/// The states that machines do not stay in, in the order in which they follow each other.
const WORKS: [&str; 5] = ["verifying", "adopting", "deploying", "deleting", "cleaning"];

/// Lets a way end after a state, with what is said of it, if the way leads there.
pub(crate) fn fails_at(way: &mut VecDeque<Stop>, state: &str, words: &str) {
    let Some(place) = way.iter().position(|it| it.state == state) else { return };
    let target = way[place].target;
    let (state, target) = match state {
        // What could not be reached is where it was.
        "verifying" => ("enroll", None),
        "adopting" => ("adopt failed", target),
        "deploying" => ("deploy failed", target),
        "cleaning" => ("clean failed", target),
        "deleting" => ("error", target),
        _ => return,
    };
    way.truncate(place + 1);
    way.push_back(Stop { state, target, error: Some(words.to_owned()) });
}

/// Why the cleaning of a machine fails whose ramdisk cannot find Ironic.
pub(crate) fn no_ramdisk(uuid: &str) -> String {
    format!(
        "Failed to prepare node {uuid} for cleaning: Couldn't get the URL of the Ironic API service \
         from the configuration file or keystone catalog. Keystone error: Service type baremetal with \
         endpoint type internal not found in keystone service catalog."
    )
}
