//! The decision on a role or node set: one condition on the computes of its nodes, and one on its
//! annotations.

use api::conditions::Condition;
use jiff::Timestamp;
use nova_config::conditions::{ANNOTATIONS_IGNORED, HOSTS_COMPUTES_UP};
use operator_core::plan::Plan;
use operator_core::rejected_write::RejectedWrite;

use crate::compute::lifecycle::ignored_annotations;
use crate::compute_status::computes_up::condition;
use crate::rollup::foreign_condition::step;
use crate::rollup::group_computes::observed::Observed;

/// Returns the plan for a role or node set. Each condition is absent where it has nothing to say; they
/// are the only write, so a rejection is not reported.
pub fn decide(seen: &Observed, rejected: Option<&RejectedWrite>, now: Timestamp) -> Plan {
    let mut plan = Plan::with_resync();
    if seen.group.is_terminating() || rejected.is_some() {
        return plan;
    }
    let states = seen.states.as_ref().filter(|it| !it.is_empty());
    let drafts = states.map(|it| condition(HOSTS_COMPUTES_UP, it)).into_iter();
    let ignored = ignored_annotations::of_group(&seen.group, &seen.nodes);
    let drafts = drafts.chain(ignored).collect();
    let own = |it: &&Condition| [HOSTS_COMPUTES_UP, ANNOTATIONS_IGNORED].contains(&&*it.type_);
    let previous: Vec<Condition> = seen.group.conditions().iter().filter(own).cloned().collect();
    let because = "what is known of the hosts differs from the conditions";
    plan.steps.extend(step(seen.group.target(), &previous, drafts, because, now));
    plan
}
