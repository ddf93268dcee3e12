//! How far the removal of a compute is, as its status says.

use api::conditions::{Condition, ConditionStatus, Severity, find};
use api::nova::ExternalCompute;
use nova_config::conditions::{HOST_CLEANED, SERVICE_DELETED};
use operator_core::finalizers::is_terminating;

/// Returns the final `HostCleaned` condition of a terminating compute; `None` before it is final.
pub fn concluded(compute: &ExternalCompute) -> Option<&Condition> {
    if !is_terminating(compute) {
        return None;
    }
    let found = find(&compute.status.as_ref()?.conditions, HOST_CLEANED)?;
    let is_final = found.status == ConditionStatus::True || found.severity == Some(Severity::Error);
    is_final.then_some(found)
}

/// Whether the removal of a compute has begun through nova's API.
pub fn goes_by_api(compute: &ExternalCompute) -> bool {
    find(compute.conditions(), SERVICE_DELETED).is_some()
}
