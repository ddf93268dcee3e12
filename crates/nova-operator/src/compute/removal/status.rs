//! The conditions and the status of a compute that is being deleted.

use api::conditions::{self, ConditionDraft, READY, Severity, merge_conditions};
use api::dataplane::ServiceRun;
use api::nova::ExternalCompute;
use jiff::Timestamp;
use nova_config::conditions::HOST_CLEANED;
use operator_core::plan::{EventDraft, Step, Target, Write, status_step};

use crate::nova::identity::Identity;

/// Returns the step that writes the status, or `None` when the status is up to date.
///
/// `steps` are the conditions of the deletion in their order; `Ready` repeats the first one that
/// does not hold, or the last one; `recorded` is the identity that is recorded now.
pub fn step(
    compute: &ExternalCompute,
    steps: &[ConditionDraft],
    services: &[ServiceRun],
    recorded: Identity,
    now: Timestamp,
) -> Option<Step> {
    let observed = compute.status.as_ref();
    let previous = compute.conditions();
    let current = steps.iter().find(|it| !it.holds()).or_else(|| steps.last())?;
    let mut ready = current.clone().with_type(READY);
    if current.holds() {
        ready = ready.with_severity(Severity::Info);
    }
    let mut all = steps.to_vec();
    all.push(ready);
    let mut expected = observed.cloned().unwrap_or_default();
    expected.observed_generation = compute.metadata.generation;
    expected.conditions = merge_conditions(previous, all, compute.metadata.generation, now);
    services.clone_into(&mut expected.services);
    let Identity { nova, service_id, compute_id } = recorded;
    (expected.nova, expected.service_id, expected.compute_id) = (nova, service_id, compute_id);
    let mut step = status_step(Target::of::<ExternalCompute>(compute), observed, &expected)?;
    let was_cleaned = conditions::is_true(previous, HOST_CLEANED);
    let cleaned = steps.iter().find(|it| it.type_ == HOST_CLEANED && it.holds() && !was_cleaned);
    if let (Write::Status { notices, .. }, Some(cleaned)) = (&mut step.write, cleaned) {
        let note = cleaned.message.clone();
        notices.push(EventDraft { warning: false, reason: "HostCleaned".to_owned(), note });
    }
    Some(step)
}
