//! The attempts to stop nova-compute on a host that is to be no compute any more.

use api::conditions::{ConditionDraft, READY, Reason, Severity, find};
use api::dataplane::ServiceRun;
use api::nova::ExternalCompute;
use jiff::Timestamp;
use kube::ResourceExt;
use nova_config::conditions::HOST_CLEANED;
use nova_config::services::NOVA_CLEANUP;
use operator_core::hash;
use operator_core::run_engine::Run;
use operator_core::run_engine::last_run::{ATTEMPTS, LastAttempt, LastRun, LastRunState};
use operator_core::run_engine::outcome::FailureReason;
use operator_core::run_engine::service_sequence::NeededRun;

use crate::compute::removal::build::Extent;
use crate::compute::removal::messages;
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

/// Returns the hash of all attempts on the host of a compute. It shows whether they stop the agents of
/// neutron.
pub fn identity(compute: &ExternalCompute, extent: Extent) -> String {
    match extent {
        Extent::Units | Extent::Files => hash::digest(&(VERSION, compute.uid())),
        Extent::Host => hash::digest(&(VERSION, compute.uid(), "host")),
    }
}

/// Evaluates the attempts on the host of a compute; `left` is what nova still has of it, and how the user
/// deletes it, and `runs` are those that clean up the host.
pub fn evaluate(
    compute: &ExternalCompute,
    last: &LastRun<'_>,
    left: &str,
    runs: &[Run<'_>],
    now: Timestamp,
) -> Evaluation {
    let (host, skip) = (&messages::host(compute), &messages::skip(compute));
    let attempt = last.evaluate(runs, now);
    let cause = || last.cause(&attempt, runs);
    let in_progress = || in_progress(&attempt, host, skip, cause);
    let (condition, next) = match &attempt.state {
        LastRunState::Done => {
            let text = messages::cleaned(host, left);
            (reasons::cleanup::HOST_CLEANED.condition(HOST_CLEANED, text), Next::Conclude)
        }
        LastRunState::Waits(what) => {
            let text = format!("The run waits: {what}. {skip}");
            (reasons::cleanup::QUEUED.condition(HOST_CLEANED, text), Next::Wait(None))
        }
        LastRunState::InRun(run) => {
            let run = runs.iter().find(|it| it.name() == *run);
            let held_up = run.and_then(|it| run_problem(it, host, skip));
            (held_up.unwrap_or_else(in_progress), Next::Wait(None))
        }
        LastRunState::RetryAt(at) => (in_progress(), Next::Wait(Some(*at))),
        LastRunState::Due { need, was_key_refused } => {
            let (need, was_key_refused) = (need.clone(), *was_key_refused);
            (in_progress(), Next::Run { need, was_key_refused })
        }
        LastRunState::Spent => {
            let text = messages::not_cleaned(host, &cause(), left);
            (reasons::cleanup::HOST_NOT_CLEANED.condition(HOST_CLEANED, text), Next::Conclude)
        }
    };
    Evaluation { condition, services: attempt.services, next }
}

/// Returns the condition for a run that is blocked: only the user can end that wait early.
fn run_problem(run: &Run<'_>, host: &str, skip: &str) -> Option<ConditionDraft> {
    let ready = find(&run.object.status.as_ref()?.conditions, READY)?;
    let reason = TROUBLES.into_iter().find(|it| it.word == ready.reason)?;
    let cause = ready.message.trim_end_matches('.');
    let text = format!("nova-compute could not be stopped on host {host} yet: {cause}. {skip}");
    Some(reason.condition(HOST_CLEANED, text))
}

/// Returns the condition while the host is cleaned up.
///
/// The cause of the last failure stays visible during the next attempt.
fn in_progress(
    attempt: &LastAttempt,
    host: &str,
    skip: &str,
    cause: impl Fn() -> String,
) -> ConditionDraft {
    let record = attempt.services.first();
    let Some(word) = record.and_then(|it| it.reason.as_deref()) else {
        let text = messages::cleaning(host);
        return reasons::cleanup::CLEANING_HOST.condition(HOST_CLEANED, text);
    };
    let text = match attempt.held_by {
        Some(FailureReason::GuestsOnHost) => messages::guests(host, &cause(), skip),
        Some(_) => format!(
            "nova-compute was not stopped on host {host}, and its service stays in nova, because it may \
             be that of another owner of the host: {}. It is tried again automatically. {skip}",
            cause()
        ),
        None => format!(
            "nova-compute could not be stopped on host {host} yet: {}. It is tried {ATTEMPTS} times. \
             {skip}",
            cause()
        ),
    };
    let reason = FailureReason::parse(word).reason();
    reason.condition(HOST_CLEANED, text).with_severity(Severity::Warning)
}

/// Whether a clean-up has found that the host records another owner: then nothing may be cleaned on it.
/// What an earlier deployment has found is no matter of the clean-up.
pub fn is_another_s(record: &ServiceRun) -> bool {
    let reason = record.reason.as_deref();
    record.name == NOVA_CLEANUP && reason == Some(FailureReason::HostNotOwned.as_str())
}
