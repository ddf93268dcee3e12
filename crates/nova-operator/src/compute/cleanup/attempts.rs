//! The attempts to stop nova-compute on a host that is to be no compute any more.

use api::conditions::{ConditionDraft, READY, Reason, Severity, find};
use api::dataplane::ServiceRun;
use jiff::Timestamp;
use nova_config::conditions::HOST_CLEANED;
use nova_config::services::NOVA_CLEANUP;
use operator_core::hash;
use operator_core::run_engine::Run;
use operator_core::run_engine::host_key::HostKeyTrust;
use operator_core::run_engine::last_run::{ATTEMPTS, Holds, LastAttempt, LastRun, LastRunState};
use operator_core::run_engine::outcome::FailureReason;
use operator_core::run_engine::service_sequence::NeededRun;

use crate::compute::cleanup::build::Extent;
use crate::compute::cleanup::messages;
use crate::reasons;

/// Version of the play; a new version makes hosts that wait for their cleanup run it once more.
const VERSION: &str = "v1";

/// Reasons of a run that may last longer than the time limit of an attempt.
const TROUBLES: [&Reason; 5] = [
    &reasons::cleanup::RUNNER_LOST,
    &reasons::cleanup::UNSCHEDULABLE,
    &reasons::cleanup::JOB_REFUSED,
    &reasons::cleanup::POD_REFUSED,
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
/// its attempts. A cleanup that has begun with the agents of neutron, or without them, ends so.
pub fn extent<'a>(
    parts: &impl serde::Serialize,
    begun: impl Iterator<Item = &'a str>,
    host_leaves: bool,
) -> Extent {
    let of = [Extent::Files, Extent::Host].map(|it| (identity(parts, it), it));
    let mut begun = begun.filter_map(|hash| of.iter().find(|it| it.0 == hash).map(|it| it.1));
    let anew = if host_leaves { Extent::Host } else { Extent::Files };
    begun.next().unwrap_or(anew)
}

/// Whether recorded attempts on a host have stopped the agents of neutron, or have tried to.
pub fn stops_agents(parts: &impl serde::Serialize, recorded: &[ServiceRun]) -> bool {
    let with_agents = identity(parts, Extent::Host);
    recorded.iter().any(|it| it.hash == with_agents)
}

impl HostCleanup<'_> {
    /// Evaluates the attempts; `runs` are those that clean up the host.
    pub fn evaluate(&self, runs: &[Run<'_>], now: Timestamp) -> Evaluation {
        let last = self.last_run();
        let attempt = last.evaluate(runs, now);
        let cause = || last.cause(&attempt, runs);
        let in_progress = || self.in_progress(&attempt, cause);
        let (condition, next) = match &attempt.state {
            LastRunState::Done => {
                let text = messages::cleaned(self.host, self.left);
                (reasons::cleanup::HOST_CLEANED.condition(HOST_CLEANED, text), Next::Conclude)
            }
            LastRunState::Waits(what) => {
                let text = format!("The run waits: {what}. {}", self.skip);
                (reasons::cleanup::QUEUED.condition(HOST_CLEANED, text), Next::Wait(None))
            }
            LastRunState::InRun(run) => {
                let held_up =
                    runs.iter().find(|it| it.name() == *run).and_then(|it| self.run_problem(it));
                (held_up.unwrap_or_else(in_progress), Next::Wait(None))
            }
            LastRunState::RetryAt(at) => (in_progress(), Next::Wait(Some(*at))),
            LastRunState::Due { need, was_key_refused } => {
                let (need, was_key_refused) = (need.clone(), *was_key_refused);
                (in_progress(), Next::Run { need, was_key_refused })
            }
            LastRunState::Spent => {
                let text = messages::not_cleaned(self.host, &cause(), self.left);
                (reasons::cleanup::HOST_NOT_CLEANED.condition(HOST_CLEANED, text), Next::Conclude)
            }
        };
        Evaluation { condition, services: attempt.services, next }
    }

    fn last_run(&self) -> LastRun<'_> {
        LastRun {
            service: NOVA_CLEANUP,
            name: self.name,
            identity: &self.identity,
            recorded: self.recorded,
            ssh: self.ssh,
            trust: self.trust,
            holds: if self.deletes_service { Holds::GuestsAndOwner } else { Holds::Guests },
        }
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
    fn in_progress(&self, attempt: &LastAttempt, cause: impl Fn() -> String) -> ConditionDraft {
        let (host, skip) = (self.host, self.skip);
        let record = attempt.services.first();
        let Some(word) = record.and_then(|it| it.reason.as_deref()) else {
            let text = messages::cleaning(host);
            return reasons::cleanup::CLEANING_HOST.condition(HOST_CLEANED, text);
        };
        let text = match attempt.held_by {
            Some(FailureReason::GuestsOnHost) => messages::guests(host, &cause(), skip),
            Some(_) => format!(
                "nova-compute was not stopped on host {host}, and its service stays in nova, because \
                 it may be that of another owner of the host: {}. It is tried again automatically. \
                 {skip}",
                cause()
            ),
            None => format!(
                "nova-compute could not be stopped on host {host} yet: {}. It is tried {ATTEMPTS} \
                 times. {skip}",
                cause()
            ),
        };
        let reason = FailureReason::parse(word).reason();
        reason.condition(HOST_CLEANED, text).with_severity(Severity::Warning)
    }
}

/// Whether a clean-up has found that the host records another owner: then nothing may be cleaned on it.
/// What an earlier deployment has found is no matter of the clean-up.
pub fn is_another_s(record: &ServiceRun) -> bool {
    let reason = record.reason.as_deref();
    record.name == NOVA_CLEANUP && reason == Some(FailureReason::HostNotOwned.as_str())
}
