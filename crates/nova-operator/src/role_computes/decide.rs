//! The decision on a role: one condition on the computes of its nodes.

use jiff::Timestamp;
use nova_config::conditions::HOSTS_COMPUTES_UP;
use operator_core::finalizers::is_terminating;
use operator_core::plan::Plan;
use operator_core::rejected_write::RejectedWrite;

use crate::computes_up::{condition, own_condition, plan};
use crate::role_computes::observed::Observed;

/// Returns the plan for a role; the condition is absent without computes.
pub fn decide(seen: &Observed, rejected: Option<&RejectedWrite>, now: Timestamp) -> Plan {
    let draft = (!seen.states.is_empty()).then(|| condition(HOSTS_COMPUTES_UP, &seen.states));
    let previous = own_condition(seen.role.status.as_ref().map(|it| &it.conditions));
    let previous: Vec<_> = previous.into_iter().collect();
    if is_terminating(&*seen.role) {
        return Plan::with_resync();
    }
    plan(&*seen.role, &previous, draft.into_iter().collect(), rejected, now)
}
