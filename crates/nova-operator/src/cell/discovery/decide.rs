//! The decisions on the discovery of a cell's hosts: the next attempt, its record, its Job, and the
//! condition.

use api::conditions::{Condition, ConditionDraft, ConditionStatus, find};
use api::nova::{Cell, DiscoveryAttempt, DiscoveryState};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use nova_config::annotations::{HOST_DISCOVERY, HOST_DISCOVERY_SECRET};
use nova_config::conditions::HOST_DISCOVERED;
use operator_core::finalizers::is_terminating;
use operator_core::plan::Step;

use crate::cell::credential_rotation::first_of;
use crate::cell::discovery::build::{discovery_job, inputs, job_name};
use crate::cell::discovery::failure::cause;
use crate::cell::observed::Observed;
use crate::cell::observed::discovery::{End, Seen, Unmapped, all_unmapped, deletions, end};
use crate::reasons;
use crate::requested::host_discovery::{Discovery, Settings, discovery};

/// The pause after the first attempt; it doubles with each further one.
const FIRST_PAUSE: SignedDuration = SignedDuration::from_mins(1);
/// The longest pause between two attempts.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_mins(30);

/// What follows for a cell.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The condition; `None` where the operator does not discover hosts.
    pub condition: Option<ConditionDraft>,
    /// The attempt to record in the status.
    pub record: Option<DiscoveryAttempt>,
    /// Writes of Jobs, to be made after the record is written.
    pub steps: Vec<Step>,
    /// When the next attempt is due; `None` when that depends on a change.
    pub next: Option<Timestamp>,
}

/// Returns what follows for a cell; an empty outcome if nova's API is not read. `is_taken` is
/// whether another Job of the cell is about to be created.
pub fn decide(seen: &Observed, is_taken: bool, now: Timestamp) -> Outcome {
    let Some(found) = &seen.discovery else { return Outcome::default() };
    let cell = &*seen.cell;
    let record = result(cell, found);
    let mut outcome = match discovery(cell) {
        Discovery::External => {
            Outcome { record: record.filter(|_| !found.jobs.is_empty()), ..Outcome::default() }
        }
        Discovery::Invalid(text) => held(found, record, text),
        Discovery::Operator(settings) => match &found.secret_version {
            Some(version) => {
                let is_busy = is_taken || found.is_busy();
                attempts(seen, (found, is_busy), record, &settings, version, now)
            }
            None => held(found, record, missing(cell, &settings.secret)),
        },
    };
    let is_ours = !matches!(discovery(cell), Discovery::External);
    let record = outcome.record.as_ref().filter(|_| is_ours);
    outcome.steps.extend(deletions(&found.jobs, |it| record.is_some_and(|of| keeps(of, it))));
    outcome
}

/// Returns the recorded attempt with the result of its Job.
fn result(cell: &Cell, found: &Seen) -> Option<DiscoveryAttempt> {
    let mut record = cell.status.as_ref()?.discovery.clone()?;
    if record.state != DiscoveryState::Running {
        return Some(record);
    }
    let ended = found.jobs.iter().find(|it| it.name_any() == record.job);
    match ended.and_then(|it| end(it)) {
        Some(End::Succeeded) => record.state = DiscoveryState::Succeeded,
        Some(End::Failed(words)) => {
            record.state = DiscoveryState::Failed;
            record.message = cause(found.termination_message.as_deref(), &words);
        }
        None => {}
    }
    Some(record)
}

/// Returns the outcome for a cell whose inputs are incomplete: no attempt begins.
fn held(found: &Seen, record: Option<DiscoveryAttempt>, text: String) -> Outcome {
    let condition = reasons::cell::DISCOVERY_INPUT_MISSING.condition(HOST_DISCOVERED, text);
    Outcome { condition: Some(condition), record: begun(found, record), ..Outcome::default() }
}

/// Returns the record without an attempt that has no Job yet: it is not to begin any more.
fn begun(found: &Seen, record: Option<DiscoveryAttempt>) -> Option<DiscoveryAttempt> {
    let exists = |name: &str| found.jobs.iter().any(|it| it.name_any() == name);
    record.filter(|it| it.state != DiscoveryState::Running || exists(&it.job))
}

fn missing(cell: &Cell, secret: &str) -> String {
    let (name, namespace) = (cell.name_any(), cell.namespace().unwrap_or_default());
    format!(
        "Secret {secret}, named in annotation {HOST_DISCOVERY_SECRET} of NovaCell {name}, does not \
         exist, so its hosts are not discovered: create it with kubectl create secret generic -n \
         {namespace} {secret} --from-file=nova.conf."
    )
}

fn attempts(
    seen: &Observed,
    (found, is_busy): (&Seen, bool),
    record: Option<DiscoveryAttempt>,
    settings: &Settings,
    secret_version: &str,
    now: Timestamp,
) -> Outcome {
    let cell = &*seen.cell;
    let hosts = all_unmapped(&seen.computes);
    if hosts.is_empty() || is_terminating(cell) {
        let record = begun(found, record);
        let condition = condition(cell, &hosts, record.as_ref());
        return Outcome { condition: Some(condition), record, ..Outcome::default() };
    }
    let inputs = inputs(settings, secret_version);
    let (attempt, due) = next(record.as_ref(), &hosts, &inputs, now);
    if is_busy || due > now {
        let mut condition = condition(cell, &hosts, record.as_ref());
        if due <= now && condition.holds() {
            condition = waiting(cell);
        }
        let next = (!is_busy).then_some(due);
        return Outcome { condition: Some(condition), record, next, ..Outcome::default() };
    }
    let is_begun = |it: &DiscoveryAttempt| it.state == DiscoveryState::Running;
    let names: Vec<&str> = hosts.iter().map(|it| it.host.as_str()).collect();
    let record = record.filter(is_begun).unwrap_or_else(|| DiscoveryAttempt {
        job: job_name(cell, "host-discovery", &names, attempt, now),
        attempt,
        inputs,
        state: DiscoveryState::Running,
        message: String::new(),
        since: Time(now),
    });
    let steps = vec![discovery_job(cell, settings, &record.job)];
    let condition = Some(condition(cell, &hosts, Some(&record)));
    Outcome { condition, record: Some(record), steps, next: None }
}

/// Returns the number of the next attempt, and when it is due.
///
/// A host that nova reports as not mapped since the last attempt, and a corrected input, are no
/// reason to wait.
fn next(
    record: Option<&DiscoveryAttempt>,
    hosts: &[Unmapped],
    inputs: &str,
    now: Timestamp,
) -> (i64, Timestamp) {
    let Some(last) = record else { return (1, now) };
    if last.state == DiscoveryState::Running {
        return (last.attempt, now);
    }
    let is_new = hosts.iter().any(|it| it.since > last.since.0);
    if is_new || last.inputs != inputs {
        return (1, now);
    }
    again(last.attempt, last.since.0, now)
}

/// Returns the number of the attempt after one that began at that time, and when it is due.
pub(crate) fn again(attempt: i64, since: Timestamp, now: Timestamp) -> (i64, Timestamp) {
    (attempt.saturating_add(1), since.saturating_add(pause(attempt)).unwrap_or(now))
}

/// Returns the pause after the n-th attempt (n ≥ 1): 1, 2, 4 … 30 minutes.
pub(crate) fn pause(attempt: i64) -> SignedDuration {
    let doublings = u32::try_from(attempt.saturating_sub(1).clamp(0, 5)).unwrap_or_default();
    (FIRST_PAUSE * (1_i32 << doublings)).min(LONGEST_PAUSE)
}

/// Whether a Job that has ended is kept: the one whose failure is recorded, and all while the next one
/// runs, because the condition still names the failed one.
fn keeps(record: &DiscoveryAttempt, job: &Job) -> bool {
    match record.state {
        DiscoveryState::Running => true,
        DiscoveryState::Succeeded => false,
        DiscoveryState::Failed => record.job == job.name_any(),
    }
}

fn condition(cell: &Cell, hosts: &[Unmapped], record: Option<&DiscoveryAttempt>) -> ConditionDraft {
    let name = cell.name_any();
    let Some(record) = record.filter(|_| !hosts.is_empty()) else {
        let text = format!("No registered host of NovaCell {name} is without a mapping.");
        return reasons::cell::HOSTS_MAPPED.condition(HOST_DISCOVERED, text);
    };
    match record.state {
        DiscoveryState::Running => running(cell, record),
        DiscoveryState::Failed => failed(cell, record),
        DiscoveryState::Succeeded if record.attempt <= 1 => {
            let text = format!(
                "Job {} has discovered hosts of NovaCell {name}; HostMapped of its computes \
                 reports what nova's API says next.",
                record.job
            );
            reasons::cell::HOSTS_DISCOVERED.condition(HOST_DISCOVERED, text)
        }
        DiscoveryState::Succeeded => {
            let hosts: Vec<&str> = hosts.iter().map(|it| it.host.as_str()).collect();
            let text = format!(
                "Jobs succeed, and nova's API lists hosts of NovaCell {name} still as not mapped: \
                 {}. Look whether the Secret that annotation {HOST_DISCOVERY_SECRET} names has the \
                 API database of this nova, and whether nova-manage cell_v2 list_cells names the \
                 database of the cell. It is tried again automatically.",
                first_of(&hosts)
            );
            reasons::cell::HOSTS_STILL_UNMAPPED.condition(HOST_DISCOVERED, text)
        }
    }
}

/// Returns the condition while a Job of the cell runs that does not map its hosts.
fn waiting(cell: &Cell) -> ConditionDraft {
    let text = format!(
        "Hosts of NovaCell {} are discovered once another Job of the cell has ended.",
        cell.name_any()
    );
    reasons::cell::DISCOVERING.condition(HOST_DISCOVERED, text)
}

/// Returns the condition while a Job runs: after a failure that one, until it is known better.
fn running(cell: &Cell, record: &DiscoveryAttempt) -> ConditionDraft {
    let text = format!("Job {} discovers hosts of NovaCell {}.", record.job, cell.name_any());
    let is_failure = |it: &&Condition| it.status == ConditionStatus::False && record.attempt > 1;
    let failure =
        find(cell.conditions(), HOST_DISCOVERED).filter(is_failure).map(ConditionDraft::repeated);
    failure.unwrap_or_else(|| reasons::cell::DISCOVERING.condition(HOST_DISCOVERED, text))
}

fn failed(cell: &Cell, record: &DiscoveryAttempt) -> ConditionDraft {
    let (namespace, job) = (cell.namespace().unwrap_or_default(), &record.job);
    let text = format!(
        "Job {job}, which discovers hosts of NovaCell {}, has failed: {}. Look at its log: kubectl \
         logs -n {namespace} job/{job}. Correct what annotations {HOST_DISCOVERY}-* name; it is \
         tried again automatically.",
        cell.name_any(),
        record.message.trim_end_matches('.')
    );
    reasons::cell::DISCOVERY_FAILED.condition(HOST_DISCOVERED, text)
}
