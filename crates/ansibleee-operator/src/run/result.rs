//! What a finished Job means: one result per host, a class, and words; nothing is guessed as good.

use common::api::ansibleee::{
    AnsibleEe, AnsibleEeStatus, HostFailure, HostOutcome, HostResult, JobStatus, RunHost,
};
use common::conditions::{Finding, READY};
use common::engine::Run;
use common::engine::outcome::Reason;
use kube::ResourceExt;
use serde::Deserialize;

use super::status::{HASH_DONE, HASH_INPUT, JOB_READY, previous};
use crate::objects::{Job, Pod, Terminated};

/// The word for a run that did what it should.
pub const SUCCEEDED: &str = "Succeeded";
/// The word for a run that told what it did, and failed on some host.
pub const HOSTS_FAILED: &str = "HostsFailed";

/// The callback's message, as the pod left it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    v: u32,
    hosts: String,
    changed: Vec<i64>,
    failures: Vec<HostFailure>,
    #[serde(default)]
    more: usize,
}

/// What a run told about its hosts.
#[derive(Debug, Default)]
struct Summary {
    hosts: Vec<HostResult>,
    failures: Vec<HostFailure>,
    more: usize,
}

/// How a run ended, before it is put into a status.
struct Verdict {
    succeeded: bool,
    reason: String,
    hosts: Vec<HostResult>,
    failures: Vec<HostFailure>,
    message: String,
}

/// The status of a run whose Job has ended and whose pods are at rest, and its Job's condition.
pub fn of_job(run: &AnsibleEe, job: &Job, pods: &[Pod]) -> (AnsibleEeStatus, Finding) {
    let pod = last(job, pods);
    let ended = pod.and_then(|it| terminated(run, it));
    let summary = ended.and_then(|it| parse(&it.message, &run.spec.hosts));
    let verdict = match summary {
        Some(summary) => told(run, job, pod, ended, summary),
        None => untold(run, job, pod, ended),
    };
    let end = job.end();
    let mut next = concluded(run, verdict.succeeded, &verdict.reason);
    next.pod_name = pod.map(ResourceExt::name_any);
    next.exit_code = ended.map(|it| it.exit_code);
    next.hosts = verdict.hosts;
    next.failures = verdict.failures;
    next.start_time.clone_from(&job.status.start_time);
    let ended_at = job.status.completion_time.clone();
    next.completion_time = ended_at.or_else(|| end.and_then(|it| it.last_transition_time.clone()));
    let message = format!("{}{}", verdict.message, log_hint(run, pod, verdict.succeeded));
    (next, condition(verdict.succeeded, &verdict.reason, message))
}

/// The status of a run that ended without a Job that could tell.
pub fn without_job(run: &AnsibleEe, reason: Reason, message: String) -> (AnsibleEeStatus, Finding) {
    let mut next = concluded(run, false, reason.as_str());
    next.hosts = unknown(&run.spec.hosts);
    (next, condition(false, reason.as_str(), message))
}

fn concluded(run: &AnsibleEe, succeeded: bool, reason: &str) -> AnsibleEeStatus {
    let mut next = previous(run);
    next.job_status = Some(if succeeded { JobStatus::Succeeded } else { JobStatus::Failed });
    next.reason = Some(reason.into());
    if succeeded {
        if let Some(input) = next.hash.get(HASH_INPUT).cloned() {
            next.hash.insert(HASH_DONE.into(), input);
        }
    }
    next
}

fn condition(succeeded: bool, reason: &str, message: String) -> Finding {
    if succeeded {
        Finding::good(JOB_READY, READY, message)
    } else {
        Finding::error(JOB_READY, reason, message)
    }
}

/// Reads the callback's message; anything that is not exactly that is none.
fn parse(text: &str, hosts: &[RunHost]) -> Option<Summary> {
    let message: Message = serde_json::from_str(text).ok()?;
    let letters: Vec<char> = message.hosts.chars().collect();
    let counts = message.changed.len();
    if message.v != 1 || letters.len() != hosts.len() || ![0, hosts.len()].contains(&counts) {
        return None;
    }
    let mut results = Vec::new();
    for (idx, (host, letter)) in hosts.iter().zip(letters).enumerate() {
        let result = match letter {
            'o' => HostOutcome::Ok,
            'f' => HostOutcome::Failed,
            'u' => HostOutcome::Unreachable,
            'k' => HostOutcome::KeyRefused,
            'h' => HostOutcome::HostKeyMismatch,
            'n' => HostOutcome::NotReached,
            '?' => HostOutcome::Unknown,
            _ => return None,
        };
        let changed = message.changed.get(idx).copied();
        results.push(HostResult { name: host.name.clone(), result, changed });
    }
    Some(Summary { hosts: results, failures: message.failures, more: message.more })
}

/// A run that told about its hosts.
fn told(
    run: &AnsibleEe,
    job: &Job,
    pod: Option<&Pod>,
    ended: Option<&Terminated>,
    summary: Summary,
) -> Verdict {
    let Summary { mut hosts, failures, more } = summary;
    let count = |wanted: HostOutcome| hosts.iter().filter(|it| it.result == wanted).count();
    let (ok, not_reached) = (count(HostOutcome::Ok), count(HostOutcome::NotReached));
    let in_trouble = hosts.len() - ok - not_reached;
    let is_complete = job.end().is_some_and(|it| it.type_ == "Complete");
    let exit = ended.map_or(-1, |it| it.exit_code);
    let is_other = |it: &HostFailure| hosts.iter().all(|host| host.name != it.host);
    let elsewhere = failures.iter().any(is_other);
    let is_partial = Run::of(run).is_some_and(|it| it.is_partial());
    if exit == 0 && is_complete && in_trouble == 0 && !(elsewhere && !hosts.is_empty()) {
        if !hosts.is_empty() && ok == 0 && !is_partial {
            let reason = Reason::NoHostMatched.as_str().into();
            let message = "No play reached any of the hosts: check the playbook's hosts and the \
                           inventory"
                .into();
            return Verdict { succeeded: false, reason, hosts, failures, message };
        }
        let message = completed(&hosts, ok);
        return Verdict { succeeded: true, reason: SUCCEEDED.into(), hosts, failures, message };
    }
    let total = hosts.len();
    if total > 0 && (in_trouble == 0 || elsewhere) {
        // Something outside of the run's hosts ended the playbook: what came after did not happen.
        for host in hosts.iter_mut().filter(|it| it.result == HostOutcome::Ok) {
            host.result = HostOutcome::Unknown;
        }
    }
    let first = failures.first().map(words).unwrap_or_default();
    let others = failures.len().saturating_sub(1) + more;
    let others = if others == 0 { String::new() } else { format!(" (and {others} more)") };
    let (reason, message) = if in_trouble > 0 {
        let start = format!("{in_trouble} of {total} hosts failed");
        (HOSTS_FAILED.to_owned(), format!("{start}: {first}{others}"))
    } else if !failures.is_empty() {
        let reason = if total == 0 { HOSTS_FAILED } else { Reason::TaskFailed.as_str() };
        (reason.to_owned(), format!("{first}{others}"))
    } else {
        let (reason, message) = class(run, job, pod, ended);
        (reason.as_str().to_owned(), message)
    };
    Verdict { succeeded: false, reason, hosts, failures, message }
}

fn completed(hosts: &[HostResult], ok: usize) -> String {
    if hosts.is_empty() {
        return "Job completed".into();
    }
    let changes: i64 = hosts.iter().filter_map(|it| it.changed).sum();
    format!("Job completed: {ok} of {} hosts done, {changes} changes", hosts.len())
}

/// A run that told nothing, or nothing that can be read.
fn untold(run: &AnsibleEe, job: &Job, pod: Option<&Pod>, ended: Option<&Terminated>) -> Verdict {
    let hosts = unknown(&run.spec.hosts);
    let is_complete = job.end().is_some_and(|it| it.type_ == "Complete");
    if is_complete && hosts.is_empty() {
        let (reason, message) = (SUCCEEDED.into(), "Job completed".into());
        return Verdict { succeeded: true, reason, hosts, failures: Vec::new(), message };
    }
    let (reason, message) = class(run, job, pod, ended);
    let reason = reason.as_str().into();
    Verdict { succeeded: false, reason, hosts, failures: Vec::new(), message }
}

/// Why a run that did not tell failed: from Kubernetes' and ansible-runner's own words.
fn class(
    run: &AnsibleEe,
    job: &Job,
    pod: Option<&Pod>,
    ended: Option<&Terminated>,
) -> (Reason, String) {
    let end = job.end().cloned().unwrap_or_default();
    let name = job.name_any();
    if end.reason == "DeadlineExceeded" {
        let message = format!("Job {name} was stopped at its deadline ({})", end.message);
        return (Reason::DeadlineExceeded, message);
    }
    if let Some(cause) = eviction(&end.message, pod) {
        return (Reason::PodEvicted, format!("The runner pod was stopped: {cause}"));
    }
    let Some(pod) = pod else {
        let message = format!("Job {name} ended, but its pods were gone before they were read");
        return (Reason::ResultUnknown, message);
    };
    if let Some(first) = broken_init(pod) {
        return (Reason::ResultUnknown, first);
    }
    let Some(ended) = ended else {
        let message = format!("The runner container of pod {} left no result", pod.name_any());
        return (Reason::ResultUnknown, message);
    };
    exit_class(run, pod, ended)
}

fn exit_class(run: &AnsibleEe, pod: &Pod, ended: &Terminated) -> (Reason, String) {
    let code = ended.exit_code;
    let image = run.spec.image.as_deref().unwrap_or("the default image");
    match (ended.reason.as_str(), code) {
        ("OOMKilled", _) => {
            let message = "The runner container ran out of memory: raise spec.resources";
            (Reason::ResultUnknown, message.into())
        }
        ("StartError" | "ContainerCannotRun", _) => {
            let message = format!("The runner container cannot start: {}", one_line(&ended.message));
            (Reason::ResultUnknown, message)
        }
        (_, 0) => {
            let message = format!("Ansible ended well, but told no result: {image} did not load the \
                                   callback, or a play ended it early");
            (Reason::ResultUnknown, message)
        }
        (_, 254) => {
            let message = "ansible-runner stopped Ansible: RUNNER_JOB_TIMEOUT or \
                           RUNNER_IDLE_TIMEOUT ran out";
            (Reason::DeadlineExceeded, message.into())
        }
        (_, 137 | 143) => {
            let deleted = pod.metadata.deletion_timestamp.is_some();
            let how = if deleted { "it was deleted" } else { "its process was killed" };
            (Reason::PodEvicted, format!("The runner pod was stopped: {how} (exit code {code})"))
        }
        (_, 1 | 4 | 5 | 250) => {
            let message = format!("Ansible gave up before any host (exit code {code}): it cannot \
                                   read the playbook, the inventory or the options");
            (Reason::InvalidPlaybook, message)
        }
        _ => {
            let message = format!("Ansible ended with exit code {code} and told no result");
            (Reason::ResultUnknown, message)
        }
    }
}

/// Who took the pod away, where someone did.
fn eviction(end: &str, pod: Option<&Pod>) -> Option<String> {
    if let Some(disrupted) = pod.and_then(|it| it.holds("DisruptionTarget")) {
        return Some(format!("{}: {}", disrupted.reason, one_line(&disrupted.message)));
    }
    let status = pod.map(|it| &it.status);
    let taken = ["Evicted", "Preempting", "NodeLost", "NodeShutdown", "Shutdown", "Terminated"];
    if let Some(status) = status.filter(|it| taken.contains(&it.reason.as_str())) {
        return Some(format!("{}: {}", status.reason, one_line(&status.message)));
    }
    end.contains("DisruptionTarget").then(|| one_line(end))
}

fn broken_init(pod: &Pod) -> Option<String> {
    let failed = pod.status.init_container_statuses.iter().find_map(|it| {
        let ended = it.state.terminated.as_ref().filter(|it| it.exit_code != 0)?;
        Some((&it.name, ended.exit_code))
    });
    failed.map(|(name, code)| format!("Init container {name} failed with exit code {code}"))
}

/// The pod that decides: of a successful Job the successful one, else the newest.
fn last<'a>(job: &Job, pods: &'a [Pod]) -> Option<&'a Pod> {
    let is_complete = job.end().is_some_and(|it| it.type_ == "Complete");
    let rank = |it: &Pod| {
        let fits = is_complete && it.status.phase == "Succeeded";
        (fits, it.creation_timestamp().map(|it| it.0), it.name_any())
    };
    pods.iter().max_by_key(|it| rank(it))
}

fn terminated<'a>(run: &AnsibleEe, pod: &'a Pod) -> Option<&'a Terminated> {
    let runner = pod.status.container_statuses.iter().find(|it| it.name == run.spec.name)?;
    runner.state.terminated.as_ref()
}

fn unknown(hosts: &[RunHost]) -> Vec<HostResult> {
    let unknown = |it: &RunHost| HostResult {
        name: it.name.clone(),
        result: HostOutcome::Unknown,
        changed: None,
    };
    hosts.iter().map(unknown).collect()
}

/// One line about a failed task.
fn words(failure: &HostFailure) -> String {
    let HostFailure { host, play, task, path, message } = failure;
    let what = match (task.is_empty(), path.is_empty()) {
        (true, _) => format!("play '{play}'"),
        (false, true) => format!("task '{task}'"),
        (false, false) => format!("task '{task}' ({path})"),
    };
    format!("{host}, {what}: {}", message.lines().next().unwrap_or_default())
}

fn log_hint(run: &AnsibleEe, pod: Option<&Pod>, succeeded: bool) -> String {
    let Some(pod) = pod.filter(|_| !succeeded) else { return String::new() };
    let namespace = run.namespace().unwrap_or_default();
    format!(". Log: kubectl logs -n {namespace} {}", pod.name_any())
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|it| !it.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
#[path = "result_tests.rs"]
mod tests;
