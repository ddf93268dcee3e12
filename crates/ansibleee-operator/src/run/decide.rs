//! Decides what to do for one run, as a pure function of what was read.

use std::time::Duration;

use api::ansibleee::{AnsibleEe, AnsibleEeStatus, JobRef, JobStatus};
use api::conditions::{self, ConditionDraft};
use api::fault::Fault;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use operator_core::plan::{Plan, Step, Target};
use operator_core::reasons::INVALID;
use operator_core::rejected_write::RejectedWrite;
use operator_core::run_engine::outcome::FailureReason;

use super::pod_problems::{self, PodProblem};
use super::status::{self, JOB_READY, admitted_identity, good_input, previous};
use super::{build, content_digest, pod_spec_rules, result, validate};
use crate::objects::{Job, Pod};
use crate::reasons;
use crate::run::settings::{Settings, is_engines};

/// How long a finished Job is kept if `preserveJobs` is false; the same as upstream.
const KEPT: Duration = Duration::from_mins(10);
/// How long a pod may be missing from the cache before the API server is asked.
pub const LAG: Duration = Duration::from_secs(10);
/// Interval at which it is looked again why a Job has no pod.
const REFUSED: Duration = Duration::from_secs(30);

/// Everything that was read about one run.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The run.
    pub run: AnsibleEe,
    /// The Jobs that the run controls.
    pub jobs: Vec<Job>,
    /// The pods of those Jobs, and of the Job in the status.
    pub pods: Vec<Pod>,
    /// Whether the pods were read from the API server itself.
    pub pods_are_certain: bool,
    /// Why Kubernetes refuses the Job's pod, if it has none and that was found out.
    pub refusal: Option<String>,
    /// The operator's options.
    pub settings: Settings,
}

/// The stage of a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stage {
    /// Its present spec has not been admitted.
    Queued,
    /// It was admitted, and its result is not recorded.
    Admitted,
    /// Its result is recorded, and the spec asks for nothing else.
    Finished,
}

/// Returns the stage of a run; `has_job` says whether it has a known Job.
pub fn stage(run: &AnsibleEe, has_job: bool) -> Stage {
    let observed = run.status.as_ref().and_then(|it| it.observed_generation);
    let Some(admitted) = admitted_identity(run) else {
        let is_over = was_refused(run) && observed == run.metadata.generation;
        return if is_over { Stage::Finished } else { Stage::Queued };
    };
    let is_same = || {
        // The result is about this generation: no need to compute the identity again.
        observed == run.metadata.generation || admitted == content_digest::run_digest(run)
    };
    match status::result(run) {
        Some(_) if is_same() => Stage::Finished,
        Some(_) => Stage::Queued,
        // It was changed after admission and before it became a Job, so it is evaluated again.
        None if !has_job && recorded_uid(run).is_none() && !is_same() => Stage::Queued,
        None => Stage::Admitted,
    }
}

/// Returns whether a run of an operator was refused. It never begins, also where other options or a later
/// release would accept it: its parent may have gone on with other inputs.
fn was_refused(run: &AnsibleEe) -> bool {
    let reason = run.status.as_ref().and_then(|it| it.reason.as_deref());
    is_engines(&run.spec) && reason == Some(FailureReason::InvalidSpec.as_str())
}

/// Returns the UID of the run's Job; `None` until it is recorded.
pub fn recorded_uid(run: &AnsibleEe) -> Option<&str> {
    run.status.as_ref()?.job.as_ref()?.uid.as_deref()
}

/// Returns the name of the Job that was admitted last.
pub fn current_job(run: &AnsibleEe) -> Option<&str> {
    admitted_identity(run)?;
    Some(run.status.as_ref()?.job.as_ref()?.name.as_str())
}

/// Returns the plan for a run; `rejected` is its Job, if the API server rejected it.
pub fn decide(seen: &Observed, rejected: Option<&RejectedWrite>, now: Timestamp) -> Plan {
    if let Some(rejected) = rejected {
        return report_rejection(seen, rejected, now);
    }
    let run = &seen.run;
    if run.metadata.deletion_timestamp.is_some() {
        return Plan::default();
    }
    match stage(run, !seen.jobs.is_empty()) {
        Stage::Queued => queued(seen, now),
        Stage::Admitted => admitted(seen, now),
        Stage::Finished => finished(seen, now),
    }
}

/// Reports the faults of a queued run that can never run; admission is up to the scheduler.
fn queued(seen: &Observed, now: Timestamp) -> Plan {
    let run = &seen.run;
    let faults = faults_of(run, &seen.settings);
    let before = previous(run);
    let had_faults = before.conditions.iter().any(|it| it.reason == reasons::INVALID_SPEC.word);
    let input = match (faults.is_empty(), had_faults) {
        (false, _) => status::bad_input(&faults),
        (true, true) => good_input(),
        (true, false) => return Plan::default(),
    };
    let mut next = AnsibleEeStatus {
        observed_generation: run.metadata.generation,
        hash: before.hash,
        term: before.term,
        ..AnsibleEeStatus::default()
    };
    if !faults.is_empty() && is_engines(&run.spec) {
        // Its parent creates another one as soon as its own input changes, and until then waits for
        // the end of this one.
        next.job_status = Some(JobStatus::Failed);
        next.reason = Some(FailureReason::InvalidSpec.as_str().into());
        next.hosts = result::unknown(&run.spec.hosts);
        next.completion_time = before.completion_time.filter(|_| had_faults).or(Some(Time(now)));
    }
    let conditions = [input, status::not_started()];
    let next = status::with_conditions(run, next, conditions, None, now);
    plan(status::write(run, &next, "the spec was judged"))
}

/// Returns everything that keeps a run from being admitted with these options.
pub fn faults_of(run: &AnsibleEe, settings: &Settings) -> Vec<Fault> {
    let mut faults = validate::faults(&run.spec);
    faults.extend(pod_spec_rules::faults(&run.spec, settings));
    if build::image(&run.spec, settings).is_empty() {
        let message = "no image is given, and the operator has no default: set it here, or start \
                       the operator with --runner-image";
        faults.push(Fault::new("spec.image", message));
    }
    faults
}

fn admitted(seen: &Observed, now: Timestamp) -> Plan {
    let run = &seen.run;
    let name = current_job(run).unwrap_or_default();
    let Some(job) = seen.jobs.iter().find(|it| it.name_any() == name) else {
        return match recorded_uid(run) {
            Some(_) => job_is_gone(seen, now),
            None => start(seen),
        };
    };
    let pods = pods_of(seen, name);
    let live: Vec<&Pod> = pods.iter().filter(|it| it.is_live()).collect();
    let is_outlived = || !live.is_empty() && live.iter().all(|it| is_outlived(run, it, now));
    match job.end() {
        Some(_) if live.is_empty() => end(seen, job, &pods, now),
        None if is_outlived() => end(seen, job, &pods, now),
        Some(_) | None => going(seen, job, &pods, now),
    }
}

/// Returns whether a run has ended in a pod that goes on with another container.
fn is_outlived(run: &AnsibleEe, pod: &Pod, now: Timestamp) -> bool {
    pod_problems::grace(pod, &run.spec.name, now) == Some(Duration::ZERO)
}

/// Creates the Job, unless one of an earlier identity still exists.
fn start(seen: &Observed) -> Plan {
    let run = &seen.run;
    let identity = content_digest::run_digest(run);
    if admitted_identity(run) != Some(identity.as_str()) {
        return Plan::default();
    }
    let mut plan = Plan::default();
    for old in &seen.jobs {
        if old.end().is_none() || pods_of(seen, &old.name_any()).iter().any(Pod::is_live) {
            return Plan::default();
        }
        plan.push(Step::delete(Target::of(old), "another run has been requested since"));
    }
    plan.push(build::creation(run, &identity, &seen.settings));
    plan
}

/// Returns the plan after the API server rejected the Job.
fn report_rejection(seen: &Observed, rejected: &RejectedWrite, now: Timestamp) -> Plan {
    let run = &seen.run;
    if stage(run, !seen.jobs.is_empty()) != Stage::Admitted || recorded_uid(run).is_some() {
        return Plan::default();
    }
    let (name, cause) = (current_job(run).unwrap_or_default(), &rejected.message);
    if is_engines(&run.spec) && is_invalid(rejected) {
        // No user corrects a run of the engine: its parent creates another one when its own input
        // changes, and until then waits for the end of this one.
        let message =
            conditions::truncated(&format!("Job {name} cannot be created: {cause}"), 1000);
        let (mut next, condition) = result::without_job(run, FailureReason::InvalidSpec, message);
        next.observed_generation = generation(run);
        next.completion_time = Some(Time(now));
        let next = status::conclude(run, next, condition, now);
        return plan(status::write(run, &next, "the Job can never be created"));
    }
    let next_step = rejected.next_step();
    let message =
        format!("Job {name} cannot be created: {cause}. {next_step}; it is retried automatically.");
    let condition =
        reasons::JOB_REFUSED.condition(JOB_READY, conditions::shortened(&message, 1000));
    let next = status::conclude(run, previous(run), condition, now);
    plan(status::write(run, &next, "the Job was refused"))
}

/// Returns whether the API server itself rejects the Job; a policy that rejects it may change.
fn is_invalid(rejected: &RejectedWrite) -> bool {
    *rejected.reason == INVALID && rejected.message.contains(" is invalid: ")
}

/// Updates the status while the Job or its pods have not ended.
fn going(seen: &Observed, job: &Job, pods: &[Pod], now: Timestamp) -> Plan {
    let run = &seen.run;
    let Some(since) = &job.status.start_time else {
        // The Job controller's update enqueues the run; start and UID are recorded in one write.
        return Plan::default();
    };
    let mut plan = Plan::default();
    let mut troubles = Vec::new();
    for pod in pods.iter().filter(|it| it.is_live()) {
        let (problem, pause) = pod_problems::pod_problem(pod, now);
        troubles.extend(problem);
        let grace = pod_problems::grace(pod, &run.spec.name, now).filter(|it| !it.is_zero());
        for pause in pause.into_iter().chain(grace) {
            plan.requeue_in(pause);
        }
    }
    if pods.is_empty() && job.end().is_none() {
        plan.requeue_in(pod_problems::left(since.0, LAG, now).unwrap_or(REFUSED));
        troubles.extend(seen.refusal.clone().map(PodProblem::Refused));
    }
    let mut next = previous(run);
    next.observed_generation = generation(run);
    next.job_status = Some(JobStatus::Running);
    next.job = Some(JobRef { name: job.name_any(), uid: job.uid() });
    next.start_time.clone_from(&job.status.start_time);
    next.waiting_for = None;
    next.reason = None;
    let is_deleting = job.metadata.deletion_timestamp.is_some();
    let (withdrawal, condition) = evaluate(seen, job, troubles.into_iter().next());
    if let Some(reason) = withdrawal {
        next.reason = Some(reason.as_str().into());
    }
    let next = status::conclude(run, next, condition, now);
    plan.steps.extend(status::write(run, &next, "what the Job does has changed"));
    if withdrawal.is_some() && !is_deleting {
        plan.push(Step::delete(Target::of(job), "none of its containers can start"));
    }
    plan
}

/// Returns why the Job is withdrawn, if it is, and its condition.
fn evaluate(
    seen: &Observed,
    job: &Job,
    fault: Option<PodProblem>,
) -> (Option<FailureReason>, ConditionDraft) {
    match fault {
        None => (None, reasons::REQUESTED.condition(JOB_READY, "Job in progress")),
        Some(PodProblem::Unplaced(message)) => {
            (None, reasons::UNSCHEDULABLE.condition(JOB_READY, message))
        }
        Some(PodProblem::Refused(cause)) => (None, refused(seen, &cause)),
        Some(PodProblem::WorkerLost { pod, worker }) => {
            let message = format!(
                "Worker {worker} does not answer, so it is unknown whether pod {pod} still works \
                 on the hosts. If that machine is permanently off: kubectl taint node {worker} \
                 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
            );
            (None, reasons::RUNNER_LOST.condition(JOB_READY, message))
        }
        Some(PodProblem::Stuck { reason, message }) => {
            let spec = &seen.run.spec;
            // Nothing has happened on any host: the parent may retry, or the user has set another
            // image.
            // For a hand-made run kubelet keeps retrying.
            let desired = build::image(spec, &seen.settings);
            let is_other = job.images.iter().all(|it| it != desired);
            let is_withdrawn = is_engines(spec) || is_other;
            // kubelet's messages alternate between the error and its backoff.
            let message = message_as(&seen.run, reason).unwrap_or_else(|| {
                // For a run of the engine, the parent reports what the user can do.
                if is_engines(spec) { message } else { with_next_step(reason, &message) }
            });
            (is_withdrawn.then_some(reason), reason.reason().condition(JOB_READY, message))
        }
    }
}

/// Returns the condition of a Job whose pod Kubernetes refuses.
fn refused(seen: &Observed, cause: &str) -> ConditionDraft {
    let resources = if is_engines(&seen.run.spec) {
        "runner.resources in the values of the chart"
    } else {
        "spec.resources"
    };
    let message = format!(
        "The Job has no pod: {cause}. Change what refuses it or, if it asks for requests or limits, \
         set {resources}; Kubernetes keeps trying."
    );
    reasons::POD_REFUSED.condition(JOB_READY, message)
}

/// Adds what the user of a hand-made run can do about a pod that cannot start.
fn with_next_step(reason: FailureReason, message: &str) -> String {
    let next_step = if reason == FailureReason::ImagePullFailed {
        "Correct spec.image, or its registry"
    } else {
        "Create what is missing, or correct the spec"
    };
    format!("{}. {next_step}; kubelet keeps retrying.", message.trim_end_matches('.'))
}

/// Returns the Job condition's present message, if it has the same reason.
fn message_as(run: &AnsibleEe, reason: FailureReason) -> Option<String> {
    let reported = conditions::find(run.conditions(), JOB_READY)?;
    (reported.reason == reason.as_str()).then(|| reported.message.clone())
}

/// Handles a recorded Job that no longer exists: it was withdrawn, or deleted by somebody.
fn job_is_gone(seen: &Observed, now: Timestamp) -> Plan {
    let run = &seen.run;
    let before = previous(run);
    let name = current_job(run).unwrap_or_default();
    let pods = pods_of(seen, name);
    let has_started = pods.iter().any(Pod::has_started);
    let withdrawn = before.reason.as_deref().map(FailureReason::parse);
    if withdrawn.is_some_and(never_started) && has_started {
        // It started at the moment at which it was withdrawn.
        let mut next = before;
        next.reason = Some(FailureReason::PodEvicted.as_str().into());
        let message = format!("Job {name} was withdrawn while it started");
        let condition = FailureReason::PodEvicted.reason().condition(JOB_READY, message);
        let next = status::conclude(run, next, condition, now);
        return plan(status::write(run, &next, "a withdrawn pod had started"));
    }
    if pods.iter().any(Pod::is_live) {
        return Plan::default();
    }
    let is_replaced = withdrawn.is_some_and(never_started) && !is_engines(&run.spec);
    if is_replaced {
        let mut next = before;
        next.job = Some(JobRef { name: name.into(), uid: None });
        next.job_status = Some(JobStatus::Pending);
        next.reason = None;
        let condition = reasons::REQUESTED.condition(JOB_READY, "Job in progress");
        let next = status::conclude(run, next, condition, now);
        return plan(status::write(run, &next, "a Job that never started is replaced"));
    }
    let (reason, message) = match withdrawn {
        Some(reason) => (reason, status::message(&before).to_owned()),
        None => (FailureReason::ResultUnknown, gone(run, name)),
    };
    let (mut next, condition) = result::without_job(run, reason, message);
    next.observed_generation = generation(run);
    next.completion_time = Some(Time(now));
    let next = status::conclude(run, next, condition, now);
    plan(status::write(run, &next, "the Job is gone"))
}

fn never_started(reason: FailureReason) -> bool {
    matches!(reason, FailureReason::ImagePullFailed | FailureReason::InputMissing)
}

fn gone(run: &AnsibleEe, job: &str) -> String {
    let what = format!("Job {job} was deleted before its result was recorded");
    if is_engines(&run.spec) {
        return what;
    }
    let (name, namespace) = (run.name_any(), run.namespace().unwrap_or_default());
    format!(
        "{what}; it is not rerun automatically. To run it again: kubectl delete osaee -n \
         {namespace} {name}, then apply it again"
    )
}

/// Records the result of a Job that has ended and whose pods are at rest.
fn end(seen: &Observed, job: &Job, pods: &[Pod], now: Timestamp) -> Plan {
    if pods.is_empty() && !seen.pods_are_certain {
        // The Job's end may have arrived before its pods.
        let mut plan = Plan::default();
        plan.requeue_in(LAG);
        return plan;
    }
    let run = &seen.run;
    let (mut next, condition) = result::of_job(run, job, pods);
    next.observed_generation = generation(run);
    next.job = Some(JobRef { name: job.name_any(), uid: job.uid() });
    let unchecked = result::unchecked(run, job, pods);
    let conditions = [good_input(), condition];
    let next = status::with_conditions(run, next, conditions, unchecked.as_ref(), now);
    plan(status::write(run, &next, "the Job has ended"))
}

/// Deletes Jobs of finished runs that are no longer needed.
fn finished(seen: &Observed, now: Timestamp) -> Plan {
    let run = &seen.run;
    let mut next = previous(run);
    next.observed_generation = run.metadata.generation;
    for condition in &mut next.conditions {
        condition.observed_generation = run.metadata.generation;
    }
    let mut plan = plan(status::write(run, &next, "the change requires no new run"));
    let current = current_job(run).unwrap_or_default();
    for old in seen.jobs.iter().filter(|it| it.metadata.deletion_timestamp.is_none()) {
        let is_current = old.name_any() == current;
        let is_open = old.end().is_none();
        if is_open && is_current && has_outlived_pod(seen, current, now) {
            plan.push(Step::delete(Target::of(old), "its pod would never end"));
        }
        if is_current && run.spec.preserve_jobs || is_open {
            continue;
        }
        let left = old.end().filter(|_| is_current).and_then(|end| {
            let since = end.last_transition_time.as_ref()?.0;
            let elapsed = Duration::try_from(now.duration_since(since)).unwrap_or_default();
            KEPT.checked_sub(elapsed).filter(|it| !it.is_zero())
        });
        match left {
            Some(pause) => plan.requeue_in(pause),
            None => plan.push(Step::delete(Target::of(old), "its result is recorded")),
        }
    }
    plan
}

/// Returns whether a pod of a Job goes on only because another container outlives the run's own.
fn has_outlived_pod(seen: &Observed, job: &str, now: Timestamp) -> bool {
    pods_of(seen, job).iter().any(|it| it.is_live() && is_outlived(&seen.run, it, now))
}

/// Returns the generation for the status: the present one only if it asks for what was admitted.
fn generation(run: &AnsibleEe) -> Option<i64> {
    let observed = run.status.as_ref().and_then(|it| it.observed_generation);
    let present = run.metadata.generation;
    let is_same =
        observed == present || admitted_identity(run) == Some(&content_digest::run_digest(run));
    if is_same { present } else { observed }
}

fn pods_of(seen: &Observed, job: &str) -> Vec<Pod> {
    seen.pods.iter().filter(|it| it.job() == Some(job)).cloned().collect()
}

fn plan(step: Option<Step>) -> Plan {
    Plan { steps: step.into_iter().collect(), ..Plan::default() }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
