//! The decision on a node set: one condition on the computes of its hosts.

use api::conditions::ConditionDraft;
use jiff::Timestamp;
use nova_config::conditions::HOSTS_COMPUTES_UP;
use operator_core::plan::Plan;
use operator_core::rejected_write::RejectedWrite;

use crate::computes_up::{ComputeState, condition, own_condition, plan};
use crate::node_set_computes::observed::{HostReading, Observed};
use crate::nova_health::ServiceHealth;

/// Returns the plan for a node set; the condition is absent where nothing is counted.
pub fn decide(seen: &Observed, rejected: Option<&RejectedWrite>, now: Timestamp) -> Plan {
    let previous = own_condition(seen.set.status.as_ref().map(|it| &it.conditions));
    let draft = seen.hosts.as_ref().filter(|it| !it.is_empty()).and_then(|hosts| {
        let states: Option<Vec<_>> = hosts.iter().map(state).collect();
        // What was reported before stays until each host was read.
        let before = || previous.map(ConditionDraft::repeated);
        states.map(|it| condition(HOSTS_COMPUTES_UP, &it)).or_else(before)
    });
    plan(&*seen.set, previous, draft, rejected, now)
}

/// Returns a host with its state; `None` while not enough was read to say.
fn state(host: &HostReading) -> Option<(String, ComputeState)> {
    let state = match host.health {
        ServiceHealth::Pending => return None,
        ServiceHealth::Up { .. } => ComputeState::Up,
        ServiceHealth::Down { .. } => ComputeState::Down,
        ServiceHealth::NotFound => ComputeState::NotRegistered,
        ServiceHealth::ApiFails | ServiceHealth::CellNotAnswering => ComputeState::Unknown,
    };
    Some((host.name.clone(), state))
}
