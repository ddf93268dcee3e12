//! How many computes of an object are up, in the words of one condition on cells, roles and node
//! sets.

use std::sync::Arc;

use api::conditions::{Condition, ConditionDraft, ConditionStatus, find, first_names};
use api::nova::ExternalCompute;
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use kube::{Resource, ResourceExt};
use nova_config::conditions::{HOSTS_COMPUTES_UP, SERVICE_UP};
use operator_core::plan::Plan;
use operator_core::rejected_write::RejectedWrite;

use crate::foreign_condition::step;
use crate::nova_health::ServiceHealth;
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
    /// No cell has a service of its host.
    NotRegistered,
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

/// Returns the state of a host of a node set; `None` while not enough was read to say.
pub const fn state_of(service: &ServiceHealth) -> Option<ComputeState> {
    match service {
        ServiceHealth::Pending => None,
        ServiceHealth::Up { .. } => Some(ComputeState::Up),
        ServiceHealth::Down { .. } => Some(ComputeState::Down),
        ServiceHealth::NotFound => Some(ComputeState::NotRegistered),
        ServiceHealth::ApiFails | ServiceHealth::CellNotAnswering => Some(ComputeState::Unknown),
    }
}

/// Returns the status of the condition that says whether a compute is up; `None` without it.
pub fn service_up(compute: &ExternalCompute) -> Option<ConditionStatus> {
    Some(find(&compute.status.as_ref()?.conditions, SERVICE_UP)?.status)
}

/// Returns the condition: how many are up, the first ones that are not, and how many are unknown.
///
/// It is False where one is down or not registered, else Unknown where one is.
pub fn condition(type_: &str, states: &[(String, ComputeState)]) -> ConditionDraft {
    let named = |wanted: ComputeState| -> Vec<&str> {
        let found = states.iter().filter(|(_, state)| *state == wanted);
        found.map(|(name, _)| name.as_str()).collect()
    };
    let (down, missing) = (named(ComputeState::Down), named(ComputeState::NotRegistered));
    let n_unknown = named(ComputeState::Unknown).len();
    let mut text = format!("{} of {} computes are up", named(ComputeState::Up).len(), states.len());
    for (what, names) in [("down", &down), ("not registered", &missing)] {
        if !names.is_empty() {
            text = format!("{text}; {what}: {}", first_names(names, NAMED));
        }
    }
    if n_unknown > 0 {
        text = format!("{text}; {n_unknown} unknown");
    }
    let reason = match (down.is_empty(), missing.is_empty(), n_unknown) {
        (false, ..) => &reasons::COMPUTES_DOWN,
        (true, false, _) => &reasons::COMPUTES_NOT_REGISTERED,
        (true, true, 1..) => &reasons::COMPUTES_NOT_READ,
        (true, true, 0) => &reasons::COMPUTES_UP,
    };
    reason.condition(type_, format!("{text}."))
}

/// Returns this operator's condition among those of a role or node set, or `None` without one.
pub fn own_condition(conditions: Option<&Vec<Condition>>) -> Option<&Condition> {
    find(conditions?, HOSTS_COMPUTES_UP)
}

/// Returns the plan that makes `drafts` this operator's only conditions on a role or node set,
/// where `previous` are the present ones. The only write is that of the conditions, so a rejection
/// is not reported.
pub fn plan<K, O>(
    object: &K,
    previous: &[&Condition],
    drafts: Vec<ConditionDraft>,
    rejected: Option<&RejectedWrite>,
    now: Timestamp,
) -> Plan<O>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    let mut plan = Plan::with_resync();
    if rejected.is_none() {
        let previous: Vec<Condition> = previous.iter().copied().cloned().collect();
        let because = "what nova reports of the hosts differs from the conditions";
        plan.steps.extend(step(object, &previous, drafts, because, now));
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(states: &[(&str, ComputeState)]) -> (ConditionStatus, String, String) {
        let states: Vec<_> = states.iter().map(|(name, it)| ((*name).to_owned(), *it)).collect();
        let found = condition(HOSTS_COMPUTES_UP, &states);
        (found.status, found.reason, found.message)
    }

    #[test]
    fn the_message_has_each_count_and_at_most_five_names_of_a_state() {
        use ComputeState::{Down, NotRegistered, Unknown, Up};
        let check = |states: &[(&str, ComputeState)], status, reason: &str, text: &str| {
            assert_eq!(said(states), (status, reason.to_owned(), text.to_owned()));
        };
        let (up, down, unknown) = (("a", Up), ("b", Down), ("c", Unknown));
        let missing = ("d", NotRegistered);
        let is = ConditionStatus::True;
        check(&[up, ("b", Up)], is, "ComputesUp", "2 of 2 computes are up.");
        let is = ConditionStatus::Unknown;
        check(&[up, unknown], is, "ComputesUnknown", "1 of 2 computes are up; 1 unknown.");
        let is = ConditionStatus::False;
        let text = "1 of 3 computes are up; not registered: d; 1 unknown.";
        check(&[up, unknown, missing], is, "ComputesNotRegistered", text);
        let text = "1 of 4 computes are up; down: b; not registered: d; 1 unknown.";
        check(&[up, down, unknown, missing], is, "ComputesDown", text);
        let many = ["a", "b", "c", "d", "e", "f", "g"].map(|it| (it, Down));
        let text = "0 of 7 computes are up; down: a, b, c, d, e and 2 more.";
        check(&many, is, "ComputesDown", text);
    }
}
