//! The last run on a host before it is let go: how it is made, and how often it is attempted.

use std::collections::{BTreeMap, BTreeSet};

use api::dataplane::service_run::{RunState, ServiceRun};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use crate::finalizers::is_terminating;
use crate::keyed::Digest;
use crate::plan::{Step, Target, Write};
use crate::run_engine::batches::batches;
use crate::run_engine::build;
use crate::run_engine::host::{DesiredService, Host};
use crate::run_engine::host_guests;
use crate::run_engine::host_key::HostKeyTrust;
use crate::run_engine::outcome::{FailureReason, Outcome, Remediation, failure_of, host_outcome};
use crate::run_engine::retry::Retries;
use crate::run_engine::run::Run;
use crate::run_engine::run_template::{HostConnection, RunTemplate};
use crate::run_engine::service_sequence::{self, NeededRun, SequenceState, ServiceSequence};

/// Maximum number of attempts: a host that cannot be reached must not be held for ever.
pub const ATTEMPTS: i64 = 3;
/// Time limit of one attempt: a host that hangs must not block the deletion of its object.
const DEADLINE_SECONDS: i64 = 600;
/// How many finished runs of a host are kept for their logs.
const KEPT: usize = 4;

/// The last run on a host.
pub struct LastRun<'a> {
    /// The service name of its attempts.
    pub service: &'a str,
    /// The host's name in the inventory.
    pub name: &'a str,
    /// Hash of what all attempts have in common.
    pub identity: &'a str,
    /// The recorded attempt, if there was one.
    pub recorded: &'a [ServiceRun],
    /// Name and resource version of the ssh Secret.
    pub ssh: (&'a str, &'a str),
    /// What is trusted as the host's own key.
    pub trust: &'a HostKeyTrust,
    /// Which failures hold the host, however many attempts have failed.
    pub holds: Holds,
}

/// Which failures of the last run hold a host, however many attempts have failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Holds {
    /// That guests are on the host.
    Guests,
    /// That too, and that the host records another owner.
    GuestsAndOwner,
    /// All of them: nothing but a success, or the caller, ends the attempts.
    All,
}

/// What has to happen next.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LastRunState {
    /// Nothing: an attempt has succeeded.
    Done,
    /// Nothing: no further attempt is made.
    Spent,
    /// A run waits for what is named.
    Waits(String),
    /// The run of that name is in progress.
    InRun(String),
    /// The next attempt is due at this time.
    RetryAt(Timestamp),
    /// A run has to be created.
    Due {
        /// The attempt.
        need: NeededRun,
        /// Whether the last attempt failed because of the host's own key.
        was_key_refused: bool,
    },
}

/// The result of the evaluation.
pub struct LastAttempt {
    /// The attempts to record.
    pub services: Vec<ServiceRun>,
    /// What has to happen next.
    pub state: LastRunState,
    /// What was found on the host and holds it, however many attempts have failed.
    pub held_by: Option<FailureReason>,
    /// How many attempts have failed.
    pub n_failed: i64,
}

impl LastRun<'_> {
    /// Evaluates the attempts; `runs` are those of the last run.
    pub fn evaluate(&self, runs: &[Run<'_>], now: Timestamp) -> LastAttempt {
        let mut sequence = self.sequence(self.recorded, runs, now);
        if self.keep_finding(&mut sequence.services, runs) {
            // What was found decides on the next attempt, not how a later one failed.
            sequence = self.sequence(&sequence.services, runs, now);
        }
        let record = sequence.services.first();
        let found = record.and_then(|it| self.finding_of(it));
        let is_another_s = found == Some(FailureReason::HostNotOwned);
        let held_by = found.filter(|_| !is_another_s || self.holds != Holds::Guests);
        let n_failed = record.map_or(0, failed_attempts);
        let is_over = n_failed >= ATTEMPTS || is_another_s;
        let is_spent = is_over && held_by.is_none() && self.holds != Holds::All;
        let was_key_refused = sequence.was_key_refused();
        let state = match sequence.state {
            SequenceState::Done => LastRunState::Done,
            SequenceState::InRun { waiting_for: Some(what), .. } => LastRunState::Waits(what),
            SequenceState::InRun { run, .. } => LastRunState::InRun(run),
            SequenceState::Failed { retry_at: Some(at), .. } if !is_spent => {
                LastRunState::RetryAt(at)
            }
            SequenceState::NeedsRun(need) if !is_spent => {
                LastRunState::Due { need, was_key_refused }
            }
            SequenceState::NeedsRun(_)
            | SequenceState::Failed { .. }
            | SequenceState::OutOfDate => LastRunState::Spent,
        };
        LastAttempt { services: sequence.services, state, held_by, n_failed }
    }

    /// Returns the service sequence, which has one service.
    fn sequence(
        &self,
        recorded: &[ServiceRun],
        runs: &[Run<'_>],
        now: Timestamp,
    ) -> ServiceSequence {
        let expected = [DesiredService {
            service: self.service.to_owned(),
            run_hash: Digest::from(self.identity),
            hash: Digest::from(self.identity),
            group: String::new(),
        }];
        let host = Host {
            name: self.name,
            desired: &expected,
            recorded,
            has_moved: false,
            records_begin: true,
            ssh_key: self.ssh,
            trust: self.trust,
            namespace: None,
            retries: match self.holds {
                Holds::Guests | Holds::GuestsAndOwner => Retries::Healing(""),
                Holds::All => Retries::Limited { attempts: i64::MAX, way_on: "" },
            },
        };
        service_sequence::evaluate(&host, runs, now)
    }

    /// Keeps what an attempt has found on the host, and returns whether that was necessary: a later
    /// one that fails otherwise says nothing of that, unless it has come past the look.
    fn keep_finding(&self, services: &mut [ServiceRun], runs: &[Run<'_>]) -> bool {
        let Some((before, found)) =
            self.recorded.iter().find_map(|it| Some((it, self.finding_of(it)?)))
        else {
            return false;
        };
        let is_over = |it: &ServiceRun| {
            let run = runs.iter().find(|run| Some(run.name()) == it.run);
            run.is_some_and(|run| shown_by(run, self.name).after(Some(found)).is_none())
        };
        let is_open = |it: &&mut ServiceRun| {
            it.state != RunState::Succeeded && self.finding_of(it).is_none() && !is_over(it)
        };
        let mut is_kept = false;
        for service in services.iter_mut().filter(is_open) {
            service.reason = Some(found.as_str().to_owned());
            service.failures = before.failures + 1;
            is_kept = true;
        }
        is_kept
    }

    /// Returns what a recorded attempt has found on the host. What earlier runs of other services have
    /// found does not matter.
    fn finding_of(&self, record: &ServiceRun) -> Option<FailureReason> {
        let word = record.reason.as_deref().filter(|_| record.name == self.service)?;
        Some(FailureReason::parse(word)).filter(|it| is_finding(*it))
    }

    /// Returns why the last attempt failed: the failure of this host in the run, or the record's
    /// reason.
    pub fn cause(&self, attempt: &LastAttempt, runs: &[Run<'_>]) -> String {
        let record = attempt.services.first();
        let word = record.and_then(|it| it.reason.as_deref()).unwrap_or_default();
        let reason = FailureReason::parse(word);
        let name = record.and_then(|it| it.run.clone());
        let found = record.and_then(|it| self.finding_of(it));
        // Later attempts may have failed otherwise.
        let is_of = |it: &&Run<'_>| match found {
            Some(found) => shown_by(it, self.name) == Shown::Finding(found),
            None => name.as_ref().is_none_or(|name| *name == it.name()),
        };
        let run = runs.iter().rfind(|it| is_of(it) && it.object.status.is_some());
        match run.and_then(|it| failure_of(it, self.name)).map(api::ansibleee::HostFailure::gist) {
            Some(gist) if !gist.is_empty() => format!("{}: {gist}", reason.as_str()),
            _ => reason.as_str().to_owned(),
        }
    }
}

/// Whether a failure says something of the host that stays true while the host is not reached: it
/// records another owner, or guests are there.
const fn is_finding(reason: FailureReason) -> bool {
    matches!(reason, FailureReason::HostNotOwned | FailureReason::GuestsOnHost)
}

/// Returns what attempts have found on a host, of which none has shown the opposite since. `before` is
/// what is known of attempts whose runs are gone.
pub fn finding(
    runs: &[Run<'_>],
    name: &str,
    before: Option<FailureReason>,
) -> Option<FailureReason> {
    let attempt = |it: &&Run<'_>| it.attempts.get(name).map(|it| it.attempt);
    let mut all: Vec<&Run<'_>> = runs.iter().filter(|it| attempt(it).is_some()).collect();
    all.sort_by_key(attempt);
    all.iter().fold(before, |known, it| shown_by(it, name).after(known))
}

/// What a run shows of the findings on a host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Shown {
    /// There is this one.
    Finding(FailureReason),
    /// There is none any more.
    NoFinding,
    /// There are no guests any more: a task has failed that comes after the look for them.
    NoGuests,
    /// Nothing.
    Nothing,
}

impl Shown {
    /// Returns what is known of the findings after the run, of what was `known` before it.
    fn after(self, known: Option<FailureReason>) -> Option<FailureReason> {
        match self {
            Self::Finding(found) => Some(found),
            Self::NoFinding => None,
            Self::NoGuests => known.filter(|it| *it != FailureReason::GuestsOnHost),
            Self::Nothing => known,
        }
    }
}

/// Returns what a run shows of the findings on a host.
fn shown_by(run: &Run<'_>, name: &str) -> Shown {
    let remediation =
        Remediation { retries: Retries::Healing(""), namespace: None, is_learned: false };
    match host_outcome(run, name, remediation) {
        _ if !run.is_finished() => Shown::Nothing,
        Outcome::Succeeded | Outcome::LeftOut => Shown::NoFinding,
        Outcome::Failed { reason, .. } if is_finding(reason) => Shown::Finding(reason),
        Outcome::Failed { reason: FailureReason::TaskFailed, .. }
            if failure_of(run, name).is_some_and(host_guests::is_after) =>
        {
            Shown::NoGuests
        }
        Outcome::Failed { .. } => Shown::Nothing,
    }
}

/// Returns the newest attempt as the engine records it, for an object whose status does not: the runs
/// alone are its record. `before` is what is known of attempts whose runs are gone.
pub fn newest(
    (service, name): (&str, &str),
    runs: &[Run<'_>],
    before: Option<FailureReason>,
) -> Option<ServiceRun> {
    let found = finding(runs, name, before);
    let attempts = runs.iter().filter_map(|it| Some((it, it.attempts.get(name)?)));
    let (run, attempt) = attempts.max_by_key(|(_, attempt)| attempt.attempt)?;
    Some(ServiceRun {
        name: service.to_owned(),
        state: RunState::Running,
        hash: attempt.hash.clone(),
        attempt: attempt.attempt,
        run: Some(run.name()),
        deployed_hash: None,
        // As many as are needed for the pause to grow; each attempt but this one has failed.
        failures: attempt.attempt - 1,
        since: run.object.creation_timestamp().unwrap_or(Time(Timestamp::UNIX_EPOCH)),
        reason: found.map(|it| it.as_str().to_owned()),
        message: None,
    })
}

/// Returns the step that creates the run of an attempt on one host, by its name in the inventory.
pub fn step(
    template: &RunTemplate,
    host: &str,
    need: NeededRun,
    connection: HostConnection,
) -> Option<Step> {
    let needs = BTreeMap::from([(host.to_owned(), need)]);
    let batch = batches(needs, 1, &BTreeSet::new()).into_iter().next()?;
    let connections = BTreeMap::from([(host.to_owned(), connection)]);
    let mut step = build::run(template, &batch, &connections);
    if let Write::Create { object, .. } = &mut step.write {
        object["spec"]["activeDeadlineSeconds"] = DEADLINE_SECONDS.into();
    }
    Some(step)
}

/// Returns the deletions of old runs of a host that is held for long: all but the newest ones, and the
/// one whose finding holds it.
pub fn superseded(runs: &[Run<'_>], name: &str) -> Vec<Step> {
    let attempt = |it: &&Run<'_>| it.attempts.get(name).map(|it| it.attempt);
    let mut old: Vec<&Run<'_>> = runs.iter().filter(|it| it.is_finished()).collect();
    old.sort_by_key(attempt);
    old.truncate(old.len().saturating_sub(KEPT));
    let is_kept = |it: &&Run<'_>| matches!(shown_by(it, name), Shown::Finding(_));
    let kept = runs.iter().filter(is_kept).max_by_key(attempt).map(Run::name);
    old.retain(|it| Some(it.name()) != kept && !is_terminating(it.object));
    let because = "newer attempts on its host have ended";
    old.iter().map(|it| Step::delete(Target::of(it.object), because)).collect()
}

/// Counts failed attempts of every class; the record counts each class on its own.
fn failed_attempts(record: &ServiceRun) -> i64 {
    match record.state {
        RunState::Failed => record.attempt,
        RunState::Pending | RunState::Running | RunState::Succeeded => record.attempt - 1,
    }
}
