//! Which computes of a cell have registered under other identities than its nova has them.

use std::sync::Arc;

use api::conditions::ConditionDraft;
use api::nova::{Cell, ExternalCompute};
use kube::ResourceExt;
use nova_config::conditions::{NOVA_MATCHES, SERVICE_UP};

use crate::cell::credential_rotation::first_of;
use crate::reasons;

/// Returns the condition, or `None` when no compute reports another identity.
pub fn condition(cell: &Cell, computes: &[Arc<ExternalCompute>]) -> Option<ConditionDraft> {
    let others: Vec<(String, &str)> =
        computes.iter().filter_map(|it| Some((it.name_any(), reported(it)?))).collect();
    let (first, message) = others.first()?;
    let names: Vec<&str> = others.iter().map(|it| it.0.as_str()).collect();
    let text = format!(
        "NovaCell {} has {} of {} computes under other identities than they have registered with: {}. \
         NovaExternalCompute {first} says: {message}",
        cell.name_any(),
        names.len(),
        computes.len(),
        first_of(&names),
    );
    Some(reasons::cell::OTHER_IDENTITIES.condition(NOVA_MATCHES, text))
}

/// Returns the message of a compute whose host nova has under another identity; `None` where it has
/// not. One that is being deleted has it in the step that is held.
pub fn reported(compute: &ExternalCompute) -> Option<&str> {
    let conditions = compute.conditions().iter();
    // `ServiceUp` only refers to the condition with the identities.
    let mut told = conditions.filter(|it| it.type_ != SERVICE_UP);
    let found = told.find(|it| it.reason == reasons::compute::OTHER_IDENTITY.word)?;
    Some(&found.message)
}
