//! The attempts to stop nova-compute on a host that is to be no compute any more.

use api::conditions::{ConditionDraft, READY, Reason, Severity, find};
use api::dataplane::ServiceRun;
use jiff::Timestamp;
use nova_config::annotations::SKIP_CLEANUP;
use nova_config::conditions::HOST_CLEANED;
use nova_config::services::NOVA_CLEANUP;
use operator_core::run_engine::Run;
use operator_core::run_engine::last_run::{ATTEMPTS, Holds, LastAttempt, LastRun, LastRunState};
use operator_core::run_engine::outcome::FailureReason;
use operator_core::run_engine::service_sequence::NeededRun;

use crate::compute::deploy::build::{ssh, trust};
use crate::compute::removal::build::identity;
use crate::compute::removal::messages;
use crate::compute::removal::resolve::Resolved;
use crate::compute_status::host_cleaned::goes_by_api;
use crate::reasons;

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

/// Evaluates the attempts on the host of a compute; while it is held, none begins.
pub fn evaluate(resolved: &Resolved<'_>, now: Timestamp) -> Evaluation {
    let services = resolved.compute.services();
    if resolved.lacks_inventory && resolved.concluded.is_none() && !resolved.is_skipped {
        let text = messages::lacks_inventory(resolved.compute, &resolved.skip);
        let condition = reasons::removal::INVENTORY_NOT_WRITTEN.condition(HOST_CLEANED, text);
        return Evaluation { condition, services: services.to_vec(), next: Next::Wait(None) };
    }
    let evaluated = match ended(resolved) {
        Some(condition) => {
            Evaluation { condition, services: services.to_vec(), next: Next::Conclude }
        }
        None => attempt(resolved, now),
    };
    let has_begun = services.iter().any(|it| it.name == NOVA_CLEANUP);
    let goes_on = has_begun && !matches!(evaluated.next, Next::Run { .. });
    if resolved.may_stop || goes_on || resolved.concluded.is_some() {
        return evaluated;
    }
    let once = if resolved.is_by_api() {
        "the host has no servers"
    } else {
        "nova has shown that the host is empty"
    };
    let text = format!("nova-compute is stopped once {once}; see Drained.");
    let condition = reasons::removal::WAITING_FOR_DRAIN.condition(HOST_CLEANED, text);
    Evaluation { condition, services: services.to_vec(), next: Next::Wait(None) }
}

/// Returns the condition of a cleanup that has ended, or cannot be tried; `None` while it is tried.
fn ended(resolved: &Resolved<'_>) -> Option<ConditionDraft> {
    let Resolved { host, left, .. } = resolved;
    if let Some(before) = resolved.concluded {
        if resolved.is_by_api() || !goes_by_api(resolved.compute) {
            return Some(ConditionDraft::repeated(before));
        }
        // The user lets the compute go during its removal from nova, where something may be left.
        if before.reason == reasons::cleanup::HOST_CLEANED.word {
            let text = messages::cleaned(host, left);
            return Some(reasons::cleanup::HOST_CLEANED.condition(HOST_CLEANED, text));
        }
    }
    let (reason, cause) = if resolved.is_skipped {
        (&reasons::cleanup::CLEANUP_SKIPPED, &format!("annotation {SKIP_CLEANUP} says so"))
    } else {
        (&reasons::cleanup::HOST_NOT_CLEANED, resolved.address.as_ref().err()?)
    };
    Some(reason.condition(HOST_CLEANED, messages::not_cleaned(host, cause, left)))
}

fn attempt(resolved: &Resolved<'_>, now: Timestamp) -> Evaluation {
    let Resolved { seen, compute, host, skip, left, cleanups: runs, .. } = resolved;
    let (ssh_secret, ssh_version) = ssh(compute, seen.ssh.as_ref());
    let last = LastRun {
        service: NOVA_CLEANUP,
        name: &compute.spec.dataplane_node_name,
        identity: &identity(compute, resolved.extent),
        recorded: compute.services(),
        ssh: (&ssh_secret, &ssh_version),
        trust: &trust(seen.node.as_deref()),
        // The service that is deleted may be that of another owner which the host records.
        holds: if resolved.is_by_api() { Holds::GuestsAndOwner } else { Holds::Guests },
    };
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
