//! The conditions and the status of a compute that is being deleted.

use api::conditions::{
    self, Condition, ConditionDraft, ConditionStatus, READY, Reason, Severity, find,
    merge_conditions,
};
use api::dataplane::ServiceRun;
use api::nova::ExternalCompute;
use jiff::Timestamp;
use nova_config::conditions::HOST_CLEANED;
use operator_core::finalizers::is_terminating;
use operator_core::plan::{EventDraft, Step, Target, Write, status_step};
use operator_core::run_engine::Run;
use operator_core::run_engine::outcome::FailureReason;

use crate::cleanup::messages;
use crate::reasons;

/// Reasons of a run that may last longer than the time limit of an attempt.
const TROUBLES: [&Reason; 4] = [
    &reasons::cleanup::RUNNER_LOST,
    &reasons::cleanup::UNSCHEDULABLE,
    &reasons::cleanup::JOB_REFUSED,
    &reasons::cleanup::INVALID_SPEC,
];

/// Returns the final `HostCleaned` condition of a terminating compute; `None` before it is final.
pub fn concluded(compute: &ExternalCompute) -> Option<&Condition> {
    if !is_terminating(compute) {
        return None;
    }
    let found = find(&compute.status.as_ref()?.conditions, HOST_CLEANED)?;
    let is_final = found.status == ConditionStatus::True || found.severity == Some(Severity::Error);
    is_final.then_some(found)
}

/// Returns the condition for a run that is blocked: only the user can end that wait early.
pub fn run_problem(compute: &ExternalCompute, run: &Run<'_>) -> Option<ConditionDraft> {
    let ready = find(&run.object.status.as_ref()?.conditions, READY)?;
    let reason = TROUBLES.into_iter().find(|it| it.word == ready.reason)?;
    let text = format!(
        "nova-compute could not be stopped on host {} yet: {}. {}",
        messages::host(compute),
        ready.message.trim_end_matches('.'),
        messages::skip(compute)
    );
    Some(reason.condition(HOST_CLEANED, text))
}

/// Returns the condition while the host is cleaned up, in at most so many attempts.
///
/// The cause of the last failure stays visible during the next attempt.
pub fn in_progress(
    compute: &ExternalCompute,
    record: Option<&ServiceRun>,
    runs: &[Run<'_>],
    attempts: i64,
) -> ConditionDraft {
    match record.and_then(|it| it.reason.as_deref()) {
        None => {
            reasons::cleanup::CLEANING_HOST.condition(HOST_CLEANED, messages::cleaning(compute))
        }
        Some(reason) => {
            let text = format!(
                "nova-compute could not be stopped on host {} yet: {}. It is tried {attempts} \
                 times. {}",
                messages::host(compute),
                cause(compute, record, runs),
                messages::skip(compute)
            );
            let reason = FailureReason::parse(reason).reason();
            reason.condition(HOST_CLEANED, text).with_severity(Severity::Warning)
        }
    }
}

/// Returns why the last attempt failed: the failure of this host in the run, or the record's
/// reason.
pub fn cause(compute: &ExternalCompute, record: Option<&ServiceRun>, runs: &[Run<'_>]) -> String {
    let host = &compute.spec.dataplane_node_name;
    let word = record.and_then(|it| it.reason.as_deref()).unwrap_or_default();
    let reason = FailureReason::parse(word).as_str();
    let name = record.and_then(|it| it.run.clone());
    let status = runs
        .iter()
        .filter(|it| name.as_ref().is_none_or(|name| *name == it.name()))
        .filter_map(|it| it.object.status.as_ref())
        .next_back();
    let failures = status.map(|it| it.failures.as_slice()).unwrap_or_default();
    match failures.iter().find(|it| it.host == *host).map(api::ansibleee::HostFailure::gist) {
        Some(gist) if !gist.is_empty() => format!("{reason}: {gist}"),
        _ => reason.to_owned(),
    }
}

/// Returns the step that writes the status, or `None` when the status is up to date.
///
/// `steps` are the conditions of the deletion in their order; `Ready` repeats the first one that
/// does not hold, or the last one.
pub fn step(
    compute: &ExternalCompute,
    steps: &[ConditionDraft],
    services: &[ServiceRun],
    now: Timestamp,
) -> Option<Step> {
    let observed = compute.status.as_ref();
    let previous = observed.map(|it| it.conditions.clone()).unwrap_or_default();
    let current = steps.iter().find(|it| !it.holds()).or_else(|| steps.last())?;
    let mut ready = current.clone().with_type(READY);
    if current.holds() {
        ready = ready.with_severity(Severity::Info);
    }
    let mut all = steps.to_vec();
    all.extend(conditions::kstatus(&ready));
    all.push(ready);
    let mut expected = observed.cloned().unwrap_or_default();
    expected.observed_generation = compute.metadata.generation;
    expected.conditions = merge_conditions(&previous, all, compute.metadata.generation, now);
    services.clone_into(&mut expected.services);
    let next = expected.conditions.clone();
    let mut step =
        status_step(Target::of::<ExternalCompute>(compute), observed, &expected, &previous, &next)?;
    let was_cleaned = conditions::is_true(&previous, HOST_CLEANED);
    let cleaned = steps.iter().find(|it| it.type_ == HOST_CLEANED && it.holds() && !was_cleaned);
    if let (Write::Status { notices, .. }, Some(cleaned)) = (&mut step.write, cleaned) {
        let note = cleaned.message.clone();
        notices.push(EventDraft { warning: false, reason: "HostCleaned".to_owned(), note });
    }
    Some(step)
}
