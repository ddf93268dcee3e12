//! The conditions and the status of a compute that is being deleted.

use api::conditions::{self, ConditionDraft, READY, Severity, merge_conditions};
use api::dataplane::ServiceRun;
use api::nova::ExternalCompute;
use jiff::Timestamp;
use nova_config::conditions::HOST_CLEANED;
use operator_core::plan::{EventDraft, Step, Target, Write, status_step};

use crate::compute::deploy::nova_matches;
use crate::compute::removal::observed::Observed;
use crate::nova::identity::Identity;

/// Returns the step that writes the status, with the identity that the host has in nova now, or `None`
/// when the status is up to date.
///
/// `steps` are the conditions of the deletion in their order; `Ready` repeats the first one that
/// does not hold, or the last one.
pub fn step(
    seen: &Observed,
    steps: &[ConditionDraft],
    services: &[ServiceRun],
    now: Timestamp,
) -> Option<Step> {
    let compute = &*seen.compute;
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
    let recorded = nova_matches::to_record(seen.identity_sources(), &[], now);
    let Identity { nova, service_id, compute_id } = recorded.clone();
    (expected.nova, expected.service_id, expected.compute_id) = (nova, service_id, compute_id);
    let mut step = status_step(Target::of::<ExternalCompute>(compute), observed, &expected)?;
    let was_cleaned = conditions::is_true(previous, HOST_CLEANED);
    let cleaned = steps.iter().find(|it| it.type_ == HOST_CLEANED && it.holds() && !was_cleaned);
    if let (Write::Status { notices, .. }, Some(cleaned)) = (&mut step.write, cleaned) {
        let note = cleaned.message.clone();
        notices.push(EventDraft { warning: false, reason: "HostCleaned".to_owned(), note });
    }
    Some(nova_matches::noticed(step, &Identity::recorded(compute), &recorded))
}
