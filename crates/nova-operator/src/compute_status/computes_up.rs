//! How many computes of an object are up, in the words of one condition on cells, roles and node
//! sets.

use std::sync::Arc;

use api::conditions::{ConditionDraft, ConditionStatus, find, first_names};
use api::nova::ExternalCompute;
use kube::ResourceExt;
use nova_config::conditions::SERVICE_UP;

use crate::reasons;

/// The number of names that a message lists.
const NAMED: usize = 5;

/// Whether a condition has the reason of a service that is not up.
pub fn is_not_up(reason: &str) -> bool {
    let all = [
        &reasons::compute::SERVICE_DOWN,
        &reasons::compute::FORCED_DOWN,
        &reasons::compute::SERVICE_NOT_FOUND,
    ];
    all.iter().any(|it| it.word == reason)
}

/// What is known of one compute.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ComputeState {
    /// Its service is up.
    Up,
    /// Its service is down, or was deleted.
    Down,
    /// Nova's API or the database of a cell does not answer, or was not read yet.
    Unknown,
}

/// Returns the computes by name, each with the state that its condition reports.
pub fn states(computes: &[Arc<ExternalCompute>]) -> Vec<(String, ComputeState)> {
    computes.iter().map(|it| (it.name_any(), state(it))).collect()
}

fn state(compute: &ExternalCompute) -> ComputeState {
    match service_up(compute) {
        Some(ConditionStatus::True) => ComputeState::Up,
        Some(ConditionStatus::False) => ComputeState::Down,
        Some(ConditionStatus::Unknown) | None => ComputeState::Unknown,
    }
}

/// Returns the status of the condition that says whether a compute is up; `None` without it.
pub fn service_up(compute: &ExternalCompute) -> Option<ConditionStatus> {
    Some(find(&compute.status.as_ref()?.conditions, SERVICE_UP)?.status)
}

/// Returns the condition: how many are up, the first ones that are not, and how many are unknown.
///
/// It is False where one is down, else Unknown where one is.
pub fn condition(type_: &str, states: &[(String, ComputeState)]) -> ConditionDraft {
    let named = |wanted: ComputeState| -> Vec<&str> {
        let found = states.iter().filter(|(_, state)| *state == wanted);
        found.map(|(name, _)| name.as_str()).collect()
    };
    let down = named(ComputeState::Down);
    let n_unknown = named(ComputeState::Unknown).len();
    let mut text = format!("{} of {} computes are up", named(ComputeState::Up).len(), states.len());
    if !down.is_empty() {
        text = format!("{text}; down: {}", first_names(&down, NAMED));
    }
    if n_unknown > 0 {
        text = format!("{text}; {n_unknown} unknown");
    }
    let reason = match (down.is_empty(), n_unknown) {
        (false, _) => &reasons::COMPUTES_DOWN,
        (true, 1..) => &reasons::COMPUTES_NOT_READ,
        (true, 0) => &reasons::COMPUTES_UP,
    };
    reason.condition(type_, format!("{text}."))
}

#[cfg(test)]
mod tests {
    use nova_config::conditions::HOSTS_COMPUTES_UP;

    use super::*;

    fn said(states: &[(&str, ComputeState)]) -> (ConditionStatus, String, String) {
        let states: Vec<_> = states.iter().map(|(name, it)| ((*name).to_owned(), *it)).collect();
        let found = condition(HOSTS_COMPUTES_UP, &states);
        (found.status, found.reason, found.message)
    }

    #[test]
    fn the_message_has_each_count_and_at_most_five_names_of_a_state() {
        use ComputeState::{Down, Unknown, Up};
        let check = |states: &[(&str, ComputeState)], status, reason: &str, text: &str| {
            assert_eq!(said(states), (status, reason.to_owned(), text.to_owned()));
        };
        let (up, down, unknown) = (("a", Up), ("b", Down), ("c", Unknown));
        let is = ConditionStatus::True;
        check(&[up, ("b", Up)], is, "ComputesUp", "2 of 2 computes are up.");
        let is = ConditionStatus::Unknown;
        check(&[up, unknown], is, "ComputesUnknown", "1 of 2 computes are up; 1 unknown.");
        let is = ConditionStatus::False;
        let text = "1 of 3 computes are up; down: b; 1 unknown.";
        check(&[up, down, unknown], is, "ComputesDown", text);
        let many = ["a", "b", "c", "d", "e", "f", "g"].map(|it| (it, Down));
        let text = "0 of 7 computes are up; down: a, b, c, d, e and 2 more.";
        check(&many, is, "ComputesDown", text);
    }
}
