//! The attempts to stop nova-compute on a host that is to be no compute any more.

use api::conditions::{ConditionDraft, READY, Reason, Severity, find};
use api::dataplane::ServiceRun;
use api::dataplane::service_run::RunState;
use jiff::Timestamp;
use nova_config::conditions::HOST_CLEANED;
use operator_core::hash;
use operator_core::keyed::Digest;
use operator_core::run_engine::host_key::HostKeyTrust;
use operator_core::run_engine::outcome::{FailureReason, Outcome, Remediation, host_outcome};
use operator_core::run_engine::retry::Retries;
use operator_core::run_engine::service_sequence::{self, NeededRun};
use operator_core::run_engine::{DesiredService, Host, Run, SequenceState, ServiceSequence};

use crate::cleanup::build::Extent;
use crate::cleanup::messages;
use crate::reasons;

/// The service name of cleanup runs.
pub const NOVA_CLEANUP: &str = "nova-cleanup";
/// Maximum number of attempts: an unreachable host must not block the removal of its compute.
const ATTEMPTS: i64 = 3;
/// Version of the play; a new version makes hosts that wait for their cleanup run it once more.
const VERSION: &str = "v1";

/// Reasons of a run that may last longer than the time limit of an attempt.
const TROUBLES: [&Reason; 4] = [
    &reasons::cleanup::RUNNER_LOST,
    &reasons::cleanup::UNSCHEDULABLE,
    &reasons::cleanup::JOB_REFUSED,
    &reasons::cleanup::INVALID_SPEC,
];

/// A host on which nova-compute is to be stopped.
pub struct HostCleanup<'a> {
    /// Its name in the inventory.
    pub name: &'a str,
    /// The name under which nova has it.
    pub host: &'a str,
    /// Hash of what all attempts have in common, from [`identity`].
    pub identity: String,
    /// The recorded attempt, if there was one.
    pub recorded: &'a [ServiceRun],
    /// Name and resource version of the ssh Secret.
    pub ssh: (&'a str, &'a str),
    /// What is trusted as its own key.
    pub trust: &'a HostKeyTrust,
    /// The command to proceed without the host, in a sentence.
    pub skip: &'a str,
    /// What nova still has of it, and how the user deletes it; empty where the operator does.
    pub left: &'a str,
    /// Whether the service of the host is deleted in nova afterwards: a host that records another
    /// owner is held then, because the service may be that owner's.
    pub deletes_service: bool,
}

/// The next action.
pub enum Next {
    /// The cleanup has ended.
    Conclude,
    /// A run has to be created.
    Run {
        /// The attempt.
        need: NeededRun,
        /// Whether the last attempt failed because of the host's own key.
        was_key_refused: bool,
    },
    /// A run is in progress, or the next attempt is due at this time.
    Wait(Option<Timestamp>),
}

/// The result of the evaluation.
pub struct Evaluation {
    /// The condition `HostCleaned`.
    pub condition: ConditionDraft,
    /// The attempts to record.
    pub services: Vec<ServiceRun>,
    /// What is to be done.
    pub next: Next,
}

/// Returns the hash of all attempts on a host, which the UIDs and names in `parts` identify. It shows
/// whether they stop the agents of neutron.
pub fn identity(parts: &impl serde::Serialize, extent: Extent) -> String {
    match extent {
        Extent::Units | Extent::Files => hash::digest(&(VERSION, parts)),
        Extent::Host => hash::digest(&(VERSION, parts, "host")),
    }
}

/// Returns what the cleanup of a host takes away, which is removed from nova; `begun` are the hashes of
/// its attempts. A cleanup that has begun without the agents of neutron ends without them.
pub fn extent<'a>(
    parts: &impl serde::Serialize,
    mut begun: impl Iterator<Item = &'a str>,
    host_leaves: bool,
) -> Extent {
    let without = identity(parts, Extent::Files);
    if host_leaves && !begun.any(|it| it == without) { Extent::Host } else { Extent::Files }
}

/// Whether recorded attempts on a host have stopped the agents of neutron, or have tried to.
pub fn stops_agents(parts: &impl serde::Serialize, recorded: &[ServiceRun]) -> bool {
    let with_agents = identity(parts, Extent::Host);
    recorded.iter().any(|it| it.hash == with_agents)
}

impl HostCleanup<'_> {
    /// Evaluates the attempts; `runs` are those that clean up the host.
    pub fn evaluate(&self, runs: &[Run<'_>], now: Timestamp) -> Evaluation {
        let mut sequence = self.sequence(runs, now);
        self.keep_owner(&mut sequence.services);
        let record = sequence.services.first();
        let is_another_s = record.is_some_and(is_another_s);
        let is_held = is_another_s && self.deletes_service;
        let has_failed = record.is_some_and(|it| failed_attempts(it) >= ATTEMPTS);
        let is_spent = !is_held && (has_failed || is_another_s);
        let in_progress = || self.in_progress(record, runs);
        let was_key_refused = sequence.was_key_refused();
        let (condition, next) = match sequence.state {
            SequenceState::Done => {
                let text = messages::cleaned(self.host, self.left);
                (reasons::cleanup::HOST_CLEANED.condition(HOST_CLEANED, text), Next::Conclude)
            }
            SequenceState::InRun { waiting_for: Some(what), .. } => {
                let text = format!("The run waits: {what}. {}", self.skip);
                (reasons::cleanup::QUEUED.condition(HOST_CLEANED, text), Next::Wait(None))
            }
            SequenceState::InRun { run, .. } => {
                let held_up =
                    runs.iter().find(|it| it.name() == run).and_then(|it| self.run_problem(it));
                (held_up.unwrap_or_else(in_progress), Next::Wait(None))
            }
            SequenceState::Failed { retry_at: Some(at), .. } if !is_spent => {
                (in_progress(), Next::Wait(Some(at)))
            }
            SequenceState::NeedsRun(need) if !is_spent => {
                (in_progress(), Next::Run { need, was_key_refused })
            }
            SequenceState::NeedsRun(_)
            | SequenceState::Failed { .. }
            | SequenceState::OutOfDate => {
                let text = messages::not_cleaned(self.host, &self.cause(record, runs), self.left);
                (reasons::cleanup::HOST_NOT_CLEANED.condition(HOST_CLEANED, text), Next::Conclude)
            }
        };
        Evaluation { condition, services: sequence.services, next }
    }

    /// Keeps that the host records another owner: a later attempt that fails otherwise, because the host
    /// is not reached, says nothing of that.
    fn keep_owner(&self, services: &mut [ServiceRun]) {
        let Some(before) = self.recorded.iter().find(|it| is_another_s(it)) else { return };
        let others = services.iter_mut().filter(|it| it.state != RunState::Succeeded);
        for service in others.filter(|it| !is_another_s(it)) {
            service.reason.clone_from(&before.reason);
            service.failures = before.failures + 1;
        }
    }

    /// Returns the service sequence of the cleanup, which has one service.
    fn sequence(&self, runs: &[Run<'_>], now: Timestamp) -> ServiceSequence {
        let expected = [DesiredService {
            service: NOVA_CLEANUP.to_owned(),
            run_hash: Digest::from(&*self.identity),
            hash: Digest::from(&*self.identity),
            group: String::new(),
        }];
        let host = Host {
            name: self.name,
            desired: &expected,
            recorded: self.recorded,
            may_run: true,
            has_moved: false,
            ssh_key: self.ssh,
            trusted: &self.trust.token(),
            accept: None,
            take_over: "",
            retries: Retries::Healing(""),
        };
        service_sequence::evaluate(&host, runs, now)
    }

    /// Returns the condition for a run that is blocked: only the user can end that wait early.
    fn run_problem(&self, run: &Run<'_>) -> Option<ConditionDraft> {
        let ready = find(&run.object.status.as_ref()?.conditions, READY)?;
        let reason = TROUBLES.into_iter().find(|it| it.word == ready.reason)?;
        let text = format!(
            "nova-compute could not be stopped on host {} yet: {}. {}",
            self.host,
            ready.message.trim_end_matches('.'),
            self.skip
        );
        Some(reason.condition(HOST_CLEANED, text))
    }

    /// Returns the condition while the host is cleaned up.
    ///
    /// The cause of the last failure stays visible during the next attempt.
    fn in_progress(&self, record: Option<&ServiceRun>, runs: &[Run<'_>]) -> ConditionDraft {
        let is_held = self.deletes_service && record.is_some_and(is_another_s);
        match record.and_then(|it| it.reason.as_deref()) {
            Some(reason) if is_held => {
                let text = format!(
                    "nova-compute was not stopped on host {}, and its service stays in nova, because \
                     it may be that of another owner of the host: {}. It is tried again \
                     automatically. {}",
                    self.host,
                    self.cause(record, runs),
                    self.skip
                );
                let reason = FailureReason::parse(reason).reason();
                reason.condition(HOST_CLEANED, text).with_severity(Severity::Warning)
            }
            None => reasons::cleanup::CLEANING_HOST
                .condition(HOST_CLEANED, messages::cleaning(self.host)),
            Some(reason) => {
                let text = format!(
                    "nova-compute could not be stopped on host {} yet: {}. It is tried {ATTEMPTS} \
                     times. {}",
                    self.host,
                    self.cause(record, runs),
                    self.skip
                );
                let reason = FailureReason::parse(reason).reason();
                reason.condition(HOST_CLEANED, text).with_severity(Severity::Warning)
            }
        }
    }

    /// Returns why the last attempt failed: the failure of this host in the run, or the record's
    /// reason.
    fn cause(&self, record: Option<&ServiceRun>, runs: &[Run<'_>]) -> String {
        let word = record.and_then(|it| it.reason.as_deref()).unwrap_or_default();
        let reason = FailureReason::parse(word).as_str();
        let name = record.and_then(|it| it.run.clone());
        // Later attempts may have failed otherwise.
        let is_held = record.is_some_and(is_another_s);
        let status = runs
            .iter()
            .filter(|it| {
                if is_held {
                    return has_found_owner(it, self.name) == Some(true);
                }
                name.as_ref().is_none_or(|name| *name == it.name())
            })
            .filter_map(|it| it.object.status.as_ref())
            .next_back();
        let failures = status.map(|it| it.failures.as_slice()).unwrap_or_default();
        let own = failures.iter().find(|it| it.host == self.name);
        match own.map(api::ansibleee::HostFailure::gist) {
            Some(gist) if !gist.is_empty() => format!("{reason}: {gist}"),
            _ => reason.to_owned(),
        }
    }
}

/// Whether a clean-up has found that the host records another owner: then nothing may be cleaned on it.
/// What an earlier deployment has found is no matter of the clean-up.
pub fn is_another_s(record: &ServiceRun) -> bool {
    let reason = record.reason.as_deref();
    record.name == NOVA_CLEANUP && reason == Some(FailureReason::HostNotOwned.as_str())
}

/// Returns whether attempts show that a host records another owner: one has found it so, and none has
/// succeeded since. `before` is what is known of attempts whose runs are gone.
pub fn has_another_owner(runs: &[Run<'_>], name: &str, before: bool) -> bool {
    let attempt = |it: &&Run<'_>| it.attempts.get(name).map(|it| it.attempt);
    let mut all: Vec<&Run<'_>> = runs.iter().filter(|it| attempt(it).is_some()).collect();
    all.sort_by_key(attempt);
    all.iter().fold(before, |known, it| has_found_owner(it, name).unwrap_or(known))
}

/// Returns whether a run has found that the host records another owner; `None` where it says nothing
/// of that.
fn has_found_owner(run: &Run<'_>, name: &str) -> Option<bool> {
    let remediation = Remediation { retries: Retries::Healing(""), accept: None, take_over: "" };
    match host_outcome(run, name, run.is_partial(), remediation) {
        _ if !run.is_finished() => None,
        Outcome::Succeeded | Outcome::LeftOut => Some(false),
        Outcome::Failed { reason: FailureReason::HostNotOwned, .. } => Some(true),
        Outcome::Failed { .. } => None,
    }
}

/// Counts failed attempts of every class; the record counts each class on its own.
fn failed_attempts(record: &ServiceRun) -> i64 {
    match record.state {
        RunState::Failed => record.attempt,
        RunState::Pending | RunState::Running | RunState::Succeeded => record.attempt - 1,
    }
}
