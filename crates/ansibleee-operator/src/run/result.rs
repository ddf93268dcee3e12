//! The result of a finished Job: one result per host, a reason and a message.
//!
//! Nothing counts as a success without evidence.

use api::ansibleee::{
    AnsibleEe, AnsibleEeStatus, HostFailure, HostOutcome, HostResult, JobStatus, RunHost,
};
use api::conditions::{ConditionDraft, Reason, Severity, append_more_in_parentheses};
use k8s_openapi::api::core::v1::ContainerStateTerminated;
use kube::ResourceExt;
use operator_core::run_engine::outcome::FailureReason;
use operator_core::run_engine::{Run, limit};

use super::build::APP;
use super::host_keys;
use super::job_result::JobResult;
use super::status::{HASH_DONE, HASH_INPUT, JOB_READY, previous};
use super::summary::{self, Summary, Unchecked};
use crate::objects::{Job, Pod};
use crate::reasons;

/// The reason of a run that succeeded.
pub const SUCCEEDED: &str = "Succeeded";

/// How a run ended, before it is converted to a status.
struct RunResult {
    /// Why it failed; `None` if it succeeded.
    failed: Option<&'static Reason>,
    hosts: Vec<HostResult>,
    failures: Vec<HostFailure>,
    message: String,
}

/// Returns status and condition of a run whose Job has ended and whose pods are at rest.
pub fn of_job(run: &AnsibleEe, job: &Job, pods: &[Pod]) -> (AnsibleEeStatus, ConditionDraft) {
    let pod = last(job, pods);
    let ended = pod.and_then(|it| terminated(run, it));
    let summary = ended.and_then(|it| summary::parse(it.message.as_deref()?, &run.spec.hosts));
    let has_begun = summary.as_ref().is_some_and(|it| it.unfinished);
    let end = JobResult { run, job, pod, ended, has_begun };
    let report = summary.as_ref().and_then(|it| it.report.clone());
    let result = match summary {
        Some(summary) if summary.unfinished => interrupted_result(&end, summary),
        Some(summary) => reported_result(&end, summary),
        None => unreported_result(&end),
    };
    let mut next = concluded(run, result.failed);
    next.pod_name = pod.map(ResourceExt::name_any);
    next.exit_code = ended.map(|it| it.exit_code);
    next.hosts = result.hosts;
    next.failures = result.failures;
    next.report = report;
    // Also for a failed run: scanned keys need not be scanned again.
    next.host_keys = pod.map(|it| host_keys::reports(it, &run.spec.hosts)).unwrap_or_default();
    next.start_time.clone_from(&job.status.start_time);
    let ended_at = job.status.completion_time.clone();
    next.completion_time = ended_at.or_else(|| match job.end() {
        Some(end) => end.last_transition_time.clone(),
        None => ended?.finished_at.clone(),
    });
    let hint =
        outlived_hint(run, job, pod).unwrap_or_else(|| log_hint(run, pod, result.failed.is_none()));
    let message = format!("{}{hint}", result.message);
    (next, condition(result.failed, message))
}

/// Returns what a run reported about hosts whose own ssh keys it did not check, however it ended.
pub fn unchecked(run: &AnsibleEe, job: &Job, pods: &[Pod]) -> Option<Unchecked> {
    let ended = last(job, pods).and_then(|it| terminated(run, it))?;
    summary::parse(ended.message.as_deref()?, &run.spec.hosts)?.unchecked
}

/// Returns the status of a run that ended without a Job that could report.
pub fn without_job(
    run: &AnsibleEe,
    reason: FailureReason,
    message: String,
) -> (AnsibleEeStatus, ConditionDraft) {
    let failed = Some(reason.reason());
    let mut next = concluded(run, failed);
    next.hosts = unknown(&run.spec.hosts);
    (next, condition(failed, message))
}

fn concluded(run: &AnsibleEe, failed: Option<&Reason>) -> AnsibleEeStatus {
    let mut next = previous(run);
    next.job_status = Some(failed.map_or(JobStatus::Succeeded, |_| JobStatus::Failed));
    next.reason = Some(failed.map_or(SUCCEEDED, |it| it.word).into());
    let input = next.hash.get(HASH_INPUT).filter(|_| failed.is_none()).cloned();
    next.hash.extend(input.map(|it| (HASH_DONE.to_owned(), it)));
    next
}

/// Returns the condition; a failed run is always an error, and so `Stalled`.
///
/// A run happens once, so this object does not become ready by itself, and kstatus calls a failed
/// Job failed too. If the reason heals, the parent creates another run and reports `Reconciling`
/// itself.
fn condition(failed: Option<&Reason>, message: String) -> ConditionDraft {
    match failed {
        None => reasons::READY.condition(JOB_READY, message),
        Some(reason) => reason.condition(JOB_READY, message).with_severity(Severity::Error),
    }
}

/// Evaluates a run that reported about its hosts.
fn reported_result(end: &JobResult<'_>, summary: Summary) -> RunResult {
    let Summary { mut hosts, failures, more, unmatched, .. } = summary;
    if unmatched {
        return unmatched_result(end, hosts);
    }
    let count = |desired: HostOutcome| hosts.iter().filter(|it| it.result == desired).count();
    let (ok, not_reached) = (count(HostOutcome::Ok), count(HostOutcome::NotReached));
    let (total, in_trouble) = (hosts.len(), hosts.len() - ok - not_reached);
    // The callback counts a failure of localhost for all hosts; where some are done, it did not.
    let is_counted = |it: &HostFailure| ok == 0 && limit::is_localhost(&it.host);
    let is_other =
        |it: &HostFailure| !is_counted(it) && hosts.iter().all(|host| host.name != it.host);
    let elsewhere = total > 0 && failures.iter().any(is_other);
    if end.is_good() && in_trouble == 0 && !elsewhere {
        let is_partial = Run::of(end.run).is_some_and(|it| it.is_partial());
        let is_empty = total > 0 && ok == 0 && !is_partial;
        let (failed, message) = if is_empty {
            let message = "No play reached any of the hosts: check the playbook's hosts and the \
                           inventory";
            (Some(FailureReason::NoHostMatched.reason()), message.into())
        } else {
            (None, completed(&hosts, ok))
        };
        return RunResult { failed, hosts, failures, message };
    }
    if total > 0 && (in_trouble == 0 || elsewhere) {
        // Something other than the run's hosts ended the playbook: the rest of it did not happen.
        for host in hosts.iter_mut().filter(|it| it.result == HostOutcome::Ok) {
            host.result = HostOutcome::Unknown;
        }
    }
    let (reason, message) = match failures.first().map(words) {
        None if in_trouble == 0 => {
            let (reason, message) = end.class();
            (reason.reason(), message)
        }
        first => {
            let others = failures.len().saturating_sub(1).saturating_add(more);
            let first = append_more_in_parentheses(first.unwrap_or_default(), others);
            let many = format!("{in_trouble} of {total} hosts failed: {first}");
            match (total, in_trouble) {
                (0, _) => (&reasons::HOSTS_FAILED, first),
                (_, 0) => (FailureReason::TaskFailed.reason(), first),
                _ if elsewhere => (&reasons::HOSTS_FAILED, many),
                _ => (common_reason(&hosts), many),
            }
        }
    };
    RunResult { failed: Some(reason), hosts, failures, message }
}

/// Evaluates a run whose limit matched no host, so that Ansible ended before any play.
fn unmatched_result(end: &JobResult<'_>, hosts: Vec<HostResult>) -> RunResult {
    // The limit of a run of the engine is the user's: excluded hosts keep their state.
    let (failed, message) = if Run::of(end.run).is_some_and(|it| it.is_partial()) {
        (None, "Job completed: the limit excludes all hosts")
    } else {
        let message = "--limit in spec.cmdLine matches no host of the inventory, so Ansible ended \
                       before any play: correct the limit or the inventory";
        (Some(FailureReason::NoHostMatched.reason()), message)
    };
    RunResult { failed, hosts, failures: Vec::new(), message: message.into() }
}

/// Returns why hosts failed: the reason that they share, if they do.
fn common_reason(hosts: &[HostResult]) -> &'static Reason {
    let class = |it: &HostResult| match it.result {
        HostOutcome::Ok | HostOutcome::NotReached => None,
        HostOutcome::Failed => Some(FailureReason::TaskFailed.reason()),
        HostOutcome::Unreachable => Some(FailureReason::HostUnreachable.reason()),
        HostOutcome::KeyRefused => Some(FailureReason::KeyRefused.reason()),
        HostOutcome::HostKeyMismatch => Some(FailureReason::HostKeyMismatch.reason()),
        HostOutcome::Unknown => Some(&reasons::HOSTS_FAILED),
    };
    let mut classes = hosts.iter().filter_map(class);
    let first = classes.next().unwrap_or(&reasons::HOSTS_FAILED);
    if classes.all(|it| it == first) { first } else { &reasons::HOSTS_FAILED }
}

fn completed(hosts: &[HostResult], ok: usize) -> String {
    if hosts.is_empty() {
        return "Job completed".into();
    }
    // Somebody on a host may have written the message.
    let changes = hosts.iter().filter_map(|it| it.changed).fold(0, i64::saturating_add);
    format!("Job completed: {ok} of {} hosts done, {changes} changes", hosts.len())
}

/// Evaluates a run that was interrupted.
///
/// Failing hosts keep their reported results; the others get the reason why the run ended.
fn interrupted_result(end: &JobResult<'_>, summary: Summary) -> RunResult {
    let mut result = unreported_result(end);
    if result.failed.is_none() {
        return result;
    }
    let Summary { hosts, failures, .. } = summary;
    let in_trouble = hosts.iter().filter(|it| it.result != HostOutcome::Unknown).count();
    if let Some(first) = failures.first().map(words) {
        let total = hosts.len();
        let before = format!(". Before that, {in_trouble} of {total} hosts failed: {first}");
        result.message.push_str(&before);
    }
    RunResult { hosts, failures, ..result }
}

/// Evaluates a run without a readable report.
fn unreported_result(end: &JobResult<'_>) -> RunResult {
    let hosts = unknown(&end.run.spec.hosts);
    let (failed, message) = if end.is_complete() && hosts.is_empty() {
        (None, "Job completed".into())
    } else {
        let (reason, message) = end.class();
        (Some(reason.reason()), message)
    };
    RunResult { failed, hosts, failures: Vec::new(), message }
}

/// Returns the pod that decides: the successful one of a successful Job, otherwise the newest.
fn last<'a>(job: &Job, pods: &'a [Pod]) -> Option<&'a Pod> {
    let is_complete = job.end().is_some_and(|it| it.type_ == "Complete");
    let rank = |it: &Pod| {
        let fits = is_complete && it.status.phase == "Succeeded";
        (fits, it.creation_timestamp().map(|it| it.0), it.name_any())
    };
    pods.iter().max_by_key(|it| rank(it))
}

fn terminated<'a>(run: &AnsibleEe, pod: &'a Pod) -> Option<&'a ContainerStateTerminated> {
    let runner = pod.status.container_statuses.iter().find(|it| it.name == run.spec.name)?;
    runner.state.terminated.as_ref()
}

/// Returns the results of a run without a report.
pub fn unknown(hosts: &[RunHost]) -> Vec<HostResult> {
    let unknown = |it: &RunHost| HostResult {
        name: it.name.clone(),
        result: HostOutcome::Unknown,
        changed: None,
    };
    hosts.iter().map(unknown).collect()
}

/// Returns one line about a failed task.
fn words(failure: &HostFailure) -> String {
    let HostFailure { host, play, task, path, .. } = failure;
    let what = match (task.is_empty(), path.is_empty()) {
        (true, _) => format!("play '{play}'"),
        (false, true) => format!("task '{task}'"),
        (false, false) => format!("task '{task}' ({path})"),
    };
    format!("{host}, {what}: {}", failure.gist())
}

fn log_hint(run: &AnsibleEe, pod: Option<&Pod>, succeeded: bool) -> String {
    let Some(pod) = pod.filter(|_| !succeeded) else { return String::new() };
    let namespace = run.namespace().unwrap_or_default();
    format!(". Log: kubectl logs -n {namespace} {}", pod.name_any())
}

/// Returns why there is no log of a run whose pod would never end; `None` where it ends.
fn outlived_hint(run: &AnsibleEe, job: &Job, pod: Option<&Pod>) -> Option<String> {
    let (_, other) = pod.filter(|_| job.end().is_none())?.outlived(&run.spec.name)?;
    Some(format!(
        ". Its Job is deleted, and with it the log: container {other}, which something has added to \
         the pod, goes on after the run. Keep it away from pods with the label {}={}.",
        APP.0, APP.1
    ))
}

#[cfg(test)]
#[path = "result_tests.rs"]
mod tests;
