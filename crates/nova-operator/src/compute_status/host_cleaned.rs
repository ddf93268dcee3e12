//! Whether the clean-up of a host has ended, as the status of its compute says.

use api::conditions::{Condition, ConditionStatus, Severity, find};
use api::nova::ExternalCompute;
use nova_config::conditions::HOST_CLEANED;
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
