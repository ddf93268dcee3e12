//! Whether a Secret with rendered files was created by this operator.

use api::conditions::ConditionDraft;
use kube::Resource;
use nova_config::conditions::SERVICE_CONFIG_READY;
use nova_config::rendered_secret::CONFIG_HASH;
use operator_runtime::managed_fields::ManagedFields;

use crate::reasons;

/// Whether a Secret was not created by this operator for that object: a user may own it.
pub fn is_of_others(
    parent: &impl Resource,
    controller: Option<&str>,
    managed_fields: &ManagedFields,
) -> bool {
    let is_parents = controller.is_some() && controller == parent.meta().uid.as_deref();
    !is_parents && !managed_fields.has([CONFIG_HASH], [])
}

/// Returns the condition on the object whose Secret name is taken.
pub fn not_ours(parent: &impl Resource, name: &str) -> ConditionDraft {
    let namespace = parent.meta().namespace.as_deref().unwrap_or_default();
    let text = format!(
        "Secret {name} was not made by the operator and is left alone: if it is not needed, delete \
         it with kubectl delete -n {namespace} secret {name}, and it is made anew."
    );
    reasons::SECRET_NOT_OURS.condition(SERVICE_CONFIG_READY, text)
}
