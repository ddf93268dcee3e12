//! Builds a run's status: its conditions, and the step that writes it.

use api::ansibleee::{Admission, AnsibleEe, AnsibleEeStatus, JobRef, JobStatus};
use api::conditions::{
    self, ConditionDraft, READY, append_more_in_parentheses, merge_conditions, ready,
};
use api::fault::Fault;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use operator_core::plan::{Step, Target, Write, status_step};

use super::summary::Unchecked;
use super::{content_digest, key_checks, scheduling_policy};
use crate::reasons;

/// Condition type: the spec can be run.
pub const INPUT_READY: &str = "InputReady";
/// Condition type: the Job has succeeded.
pub const JOB_READY: &str = "JobReady";

/// The key of `status.hash` for what was admitted last.
pub const HASH_INPUT: &str = "input";
/// The key of `status.hash` for what succeeded last.
pub const HASH_DONE: &str = "ansibleee";

/// Returns the status of a run as it was read.
pub fn previous(run: &AnsibleEe) -> AnsibleEeStatus {
    run.status.clone().unwrap_or_default()
}

/// Returns the digest of what was admitted last.
pub fn admitted_identity(run: &AnsibleEe) -> Option<&str> {
    let status = run.status.as_ref()?;
    status.admission.as_ref()?;
    status.hash.get(HASH_INPUT).map(String::as_str)
}

/// Returns the recorded result of what was admitted last; `None` until it has ended.
pub fn result(run: &AnsibleEe) -> Option<JobStatus> {
    admitted_identity(run)?;
    let recorded = run.status.as_ref()?.job_status;
    recorded.filter(|it| it.is_final())
}

/// Returns the condition of a spec that can be run.
pub fn good_input() -> ConditionDraft {
    reasons::INPUT_VALID.condition(INPUT_READY, "Input data complete")
}

/// Returns the condition of a spec that cannot be run: the first fault, and how many more there
/// are.
pub fn bad_input(faults: &[Fault]) -> ConditionDraft {
    let first = faults.first().map(ToString::to_string).unwrap_or_default();
    let text = append_more_in_parentheses(first, faults.len().saturating_sub(1));
    reasons::INVALID_SPEC.condition(INPUT_READY, text)
}

/// Returns the condition of a run whose Job does not exist yet.
pub fn not_started() -> ConditionDraft {
    reasons::INIT.condition(JOB_READY, "Job not started")
}

/// Sets the conditions of the status of a run whose spec can be run.
pub fn conclude(
    run: &AnsibleEe,
    status: AnsibleEeStatus,
    job: ConditionDraft,
    now: Timestamp,
) -> AnsibleEeStatus {
    with_conditions(run, status, [good_input(), job], None, now)
}

/// Sets all conditions of a status; `unchecked` is what a finished run reported about host keys.
pub fn with_conditions(
    run: &AnsibleEe,
    mut status: AnsibleEeStatus,
    [input, job]: [ConditionDraft; 2],
    unchecked: Option<&Unchecked>,
    now: Timestamp,
) -> AnsibleEeStatus {
    let good = reasons::READY.condition(READY, job.message.clone());
    let mut conditions = vec![ready([&input, &job], good), input, job];
    conditions.extend(key_checks::condition(&run.spec, unchecked));
    status.conditions =
        merge_conditions(run.conditions(), conditions, status.observed_generation, now);
    status
}

/// Returns the status of an admitted run; of earlier runs only the last success is kept.
pub fn admitted(run: &AnsibleEe, term: &str, now: Timestamp) -> AnsibleEeStatus {
    let identity = content_digest::run_digest(run);
    let job = content_digest::job_name(&run.name_any(), &identity);
    let mut hash = previous(run).hash;
    hash.insert(HASH_INPUT.into(), identity);
    let status = AnsibleEeStatus {
        observed_generation: run.metadata.generation,
        job_status: Some(JobStatus::Pending),
        hash,
        term: Some(term.into()),
        admission: Some(Admission { term: term.into(), time: Time(now) }),
        job: Some(JobRef { name: job, uid: None }),
        ..AnsibleEeStatus::default()
    };
    let job = reasons::REQUESTED.condition(JOB_READY, "Job in progress");
    conclude(run, status, job, now)
}

/// Returns the status of a run that waits, for another one if that is known.
pub fn queued(
    run: &AnsibleEe,
    waiting_for: Option<String>,
    term: &str,
    now: Timestamp,
) -> AnsibleEeStatus {
    let job = match &waiting_for {
        Some(what) => reasons::QUEUED.condition(JOB_READY, scheduling_policy::message(what)),
        None => not_started(),
    };
    let status = AnsibleEeStatus {
        observed_generation: run.metadata.generation,
        job_status: Some(JobStatus::Pending),
        hash: previous(run).hash,
        term: Some(term.into()),
        waiting_for,
        ..AnsibleEeStatus::default()
    };
    conclude(run, status, job, now)
}

/// Returns the step that writes a status; `None` when the object has it already.
///
/// Every write carries the version that was read, because the scheduler, the run's own controller
/// and a former leader may write the same fields.
pub fn write(run: &AnsibleEe, next: &AnsibleEeStatus, because: &str) -> Option<Step> {
    let target = Target::of(run);
    let mut step = status_step(target, run.status.as_ref(), next)?;
    because.clone_into(&mut step.reason);
    if let Write::Status { resource_version, .. } = &mut step.write {
        *resource_version = run.resource_version();
    }
    Some(step)
}

/// Returns the message that the Job's condition has.
pub fn message(status: &AnsibleEeStatus) -> &str {
    conditions::find(&status.conditions, JOB_READY).map_or("", |it| it.message.as_str())
}
