//! The decisions on the readings of a cell's mappings: the next reading, its record, its Job, and
//! its result.

use api::conditions::one_line;
use api::nova::cell::READ_HOSTS;
use api::nova::{Cell, DiscoveryState, MappingReading};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use operator_core::finalizers::is_terminating;
use operator_core::plan::{Kind, Step};
use operator_core::rejected_write::RejectedWrite;

use crate::cell::discovery::build::job_name;
use crate::cell::discovery::decide::again;
use crate::cell::discovery::failure::cause;
use crate::cell::mappings::build::mappings_job;
use crate::cell::observed::Observed;
use crate::cell::observed::discovery::{End, Seen, deletions, end};
use crate::cell::observed::mappings::{AwaitedHost, awaited, still_mapped};
use crate::compute::removal::known_mappings::{Mapping, recorded};
use crate::requested::host_discovery::{Discovery, Settings, discovery};

/// Maximum length of a container's termination message, in bytes.
const MESSAGE_LIMIT: usize = 4096;
/// Maximum length of the words about a Job that was rejected, in bytes.
const WORDS_LIMIT: usize = 300;

/// What follows for a cell.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The reading to record in the status.
    pub record: Option<MappingReading>,
    /// The Job to create, after the record is written.
    pub job: Option<Step>,
    /// The Jobs that are not needed any more, to be deleted after the record is written.
    pub ended: Vec<Step>,
    /// When the next reading is due; `None` when that depends on a change.
    pub next: Option<Timestamp>,
}

/// Returns what follows for a cell; an empty outcome if nova's API is not read.
///
/// # Guarantees
/// A Job that was rejected for good counts as failed, so it holds no removal.
pub fn decide(seen: &Observed, rejected: Option<&RejectedWrite>, now: Timestamp) -> Outcome {
    let Some(found) = &seen.discovery else { return Outcome::default() };
    let cell = &*seen.cell;
    let record = result(cell, found);
    let is_possible = found.secret_version.is_some() && !is_terminating(cell);
    let mut outcome = match discovery(cell) {
        Discovery::Operator(settings) if is_possible => {
            readings(seen, found, record, &settings, now)
        }
        // A reading that has begun ends, and nothing waits for it.
        Discovery::Operator(_) | Discovery::External | Discovery::Invalid(_) => {
            Outcome { record: record.filter(|it| is_open(found, &it.job)), ..Outcome::default() }
        }
    };
    outcome.record = outcome.record.map(|it| refused(it, rejected));
    // The Job whose failure is recorded stays for its log.
    let failed = outcome.record.as_ref().filter(|it| it.state == DiscoveryState::Failed);
    outcome.ended = deletions(&found.mapping_jobs, |it| {
        failed.is_some_and(|record| record.job == it.name_any())
    });
    outcome
}

/// Returns the recorded reading with the result of its Job.
fn result(cell: &Cell, found: &Seen) -> Option<MappingReading> {
    let record = cell.status.as_ref()?.mapping_reading.clone()?;
    let job = found.mapping_jobs.iter().find(|it| it.name_any() == record.job);
    let ended = job.filter(|_| record.state == DiscoveryState::Running).and_then(|it| end(it));
    let message = found.mapping_message.as_deref();
    Some(match ended {
        None => record,
        Some(End::Failed(words)) => failed(record, cause(message, &words)),
        Some(End::Succeeded) => match message.and_then(|it| still_mapped(it, &record.hosts)) {
            Some(mapped) => succeeded(record, mapped),
            None => failed(record, "its pod has left no list of these hosts".to_owned()),
        },
    })
}

fn failed(record: MappingReading, message: String) -> MappingReading {
    MappingReading { state: DiscoveryState::Failed, message, ..record }
}

fn succeeded(mut record: MappingReading, mapped: Vec<String>) -> MappingReading {
    let hosts = &record.hosts;
    let unmapped = hosts.iter().filter(|it| !mapped.contains(it)).cloned();
    record.unmapped.extend(unmapped);
    record.mapped.retain(|it| !hosts.contains(it));
    record.mapped.extend(mapped);
    MappingReading { state: DiscoveryState::Succeeded, ..record }
}

/// Returns the record of a reading whose Job may have been rejected.
fn refused(record: MappingReading, rejected: Option<&RejectedWrite>) -> MappingReading {
    let is_its =
        |it: &&RejectedWrite| it.target.kind == Kind::of::<Job>() && it.target.name == record.job;
    match rejected.filter(is_its) {
        Some(rejected) => {
            let words = format!("it cannot be created: {}", rejected.message);
            failed(record, one_line(&words, WORDS_LIMIT))
        }
        None => record,
    }
}

fn is_open(found: &Seen, job: &str) -> bool {
    found.mapping_jobs.iter().any(|it| it.name_any() == job && end(it).is_none())
}

fn readings(
    seen: &Observed,
    found: &Seen,
    record: Option<MappingReading>,
    settings: &Settings,
    now: Timestamp,
) -> Outcome {
    let hosts = all_awaited(seen);
    // A failed Job stays for its log.
    let has_job = |name: &str| found.mapping_jobs.iter().any(|it| it.name_any() == name);
    let record = record.filter(|it| !hosts.is_empty() || has_job(&it.job));
    let begun = record.clone().filter(|it| it.state == DiscoveryState::Running);
    let next = begun.map(|it| (it, now)).or_else(|| next(&seen.cell, record.as_ref(), &hosts, now));
    match next.filter(|_| !found.is_busy()) {
        None => Outcome { record, ..Outcome::default() },
        Some((_, due)) if due > now => Outcome { record, next: Some(due), ..Outcome::default() },
        Some((reading, _)) => {
            let job = Some(mappings_job(&seen.cell, settings, &reading));
            Outcome { record: Some(reading), job, ..Outcome::default() }
        }
    }
}

/// Returns the hosts whose removals wait for their mappings, by name.
fn all_awaited(seen: &Observed) -> Vec<AwaitedHost> {
    let mut hosts: Vec<AwaitedHost> = seen.computes.iter().filter_map(|it| awaited(it)).collect();
    // Of a host that is there twice, the later time counts.
    hosts.sort_by(|a, b| b.cmp(a));
    hosts.dedup_by(|a, b| a.host == b.host);
    hosts.reverse();
    hosts
}

/// Returns the next reading, and when it is due; `None` if there is none.
///
/// A host that was not read yet is no reason to wait. Hosts that are still mapped are read again
/// with it, and else after a pause. So are those of a reading that failed: their removals go on
/// with that, so until then no other reading takes its place.
fn next(
    cell: &Cell,
    record: Option<&MappingReading>,
    hosts: &[AwaitedHost],
    now: Timestamp,
) -> Option<(MappingReading, Timestamp)> {
    let known = |it: &AwaitedHost| {
        record.map_or(Mapping::Unread, |reading| recorded(reading, &it.host, it.since))
    };
    let (mut unread, mut failed, mut mapped, mut unmapped) = (vec![], vec![], vec![], vec![]);
    for host in hosts {
        let of = match known(host) {
            Mapping::Unread => &mut unread,
            Mapping::NotRead(_) => &mut failed,
            Mapping::Present | Mapping::PresentThenFailed(_) => &mut mapped,
            Mapping::Absent => &mut unmapped,
        };
        of.push(host.host.clone());
    }
    let (attempt, due) = match record.filter(|_| unread.is_empty() || !failed.is_empty()) {
        Some(last) => again(last.attempt, last.since.0, now),
        None => (1, now),
    };
    let last = record.and_then(|it| it.hosts.last());
    let hosts = unread.into_iter().chain(failed).chain(in_turn(mapped.clone(), last));
    let hosts = batch(hosts);
    let names: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let reading = MappingReading {
        job: job_name(cell, "host-mappings", &names, attempt, now),
        attempt,
        state: DiscoveryState::Running,
        mapped,
        unmapped,
        message: String::new(),
        since: Time(now),
        hosts,
    };
    (!reading.hosts.is_empty()).then_some((reading, due))
}

/// Returns sorted hosts, those after the last one that was read first, so that each has its turn.
fn in_turn(mut hosts: Vec<String>, last: Option<&String>) -> Vec<String> {
    let at = hosts.partition_point(|it| last.is_some_and(|last| it <= last));
    hosts.rotate_left(at);
    hosts
}

/// Returns the first hosts: as many as one reading may be about, and as a message may name.
fn batch(hosts: impl Iterator<Item = String>) -> Vec<String> {
    let mut n_bytes = 0;
    let fits = |it: &String| {
        n_bytes += it.len() + 1;
        n_bytes <= MESSAGE_LIMIT
    };
    hosts.take(READ_HOSTS).take_while(fits).collect()
}
