//! The condition that this operator writes on an object of another operator.

use api::conditions::{Condition, ConditionDraft, merge_conditions};
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use kube::Resource;
use operator_core::plan::{Step, Target, Write, transition_events};
use serde_json::json;

/// Returns the step that makes `condition` the only condition of this operator on the object, or
/// `None` when the status is already so. Without `condition`, the step removes it.
pub fn step<K>(
    object: &K,
    previous: Option<&Condition>,
    condition: Option<ConditionDraft>,
    because: &str,
    now: Timestamp,
) -> Option<Step>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    let previous: Vec<Condition> = previous.into_iter().cloned().collect();
    let desired = merge_conditions(&previous, condition.into_iter().collect(), None, now);
    if desired == previous {
        return None;
    }
    let write = Write::Status {
        status: json!({ "conditions": desired }),
        resource_version: None,
        notices: transition_events(&previous, &desired),
    };
    Some(Step { target: Target::of(object), write, reason: because.to_owned() })
}
