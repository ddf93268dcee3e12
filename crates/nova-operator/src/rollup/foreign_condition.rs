//! The conditions that this operator writes on an object of another operator.

use api::conditions::{Condition, ConditionDraft, merge_conditions};
use jiff::Timestamp;
use operator_core::plan::{Step, Target, Write, transition_events};
use serde_json::json;

/// Returns the step that makes `conditions` the only conditions of this operator on the object, or
/// `None` when the status is already so. `previous` are the present ones; without `conditions`, the
/// step removes them.
pub fn step(
    object: Target,
    previous: &[Condition],
    conditions: Vec<ConditionDraft>,
    because: &str,
    now: Timestamp,
) -> Option<Step> {
    let desired = merge_conditions(previous, conditions, None, now);
    if desired == previous {
        return None;
    }
    let write = Write::Status {
        status: json!({ "conditions": desired }),
        resource_version: None,
        notices: transition_events(previous, &desired),
    };
    Some(Step { target: object, write, reason: because.to_owned() })
}
