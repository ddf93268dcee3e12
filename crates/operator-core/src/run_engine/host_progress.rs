//! How far a host is with the services of a deployment, from what is recorded of them and from its runs.
//!
//! A host is at one service at a time: those before it have succeeded, and those after it have at
//! most a first attempt.

use api::dataplane::{RunState, ServiceRun};

use crate::run_engine::{DesiredService, Run, SequenceState, ServiceSequence};

/// How far a host is with the services of a deployment: at most one of them is on its way.
#[derive(Clone, Debug, PartialEq)]
pub struct HostProgress {
    /// How many of the services have succeeded.
    pub done: usize,
    /// How the newest attempt of the next service stands; of the last one where all are done.
    pub state: RunState,
    /// Number of the newest attempt of that service; 0 where the host is not begun with yet, and where
    /// all services are done.
    pub attempt: i64,
    /// How many attempts of that service failed; without a reason, that the deployment before failed
    /// on this host.
    pub failures: i64,
    /// One CamelCase word for why the newest attempt failed.
    pub reason: Option<String>,
    /// Name of the `OpenStackAnsibleEE` that is on its way.
    pub run: Option<String>,
}

impl HostProgress {
    /// Returns the progress for the records of a deployment's services, in their order. Of a service
    /// without a record nothing has begun.
    pub fn of(services: &[ServiceRun], n_services: usize) -> Self {
        let done = services.iter().take_while(|it| it.state == RunState::Succeeded).count();
        let untouched = |state: RunState| Self {
            done,
            state,
            attempt: 0,
            failures: 0,
            reason: None,
            run: None,
        };
        match services.get(done) {
            None if done < n_services => untouched(RunState::Pending),
            None => untouched(RunState::Succeeded),
            Some(it) => Self {
                done,
                state: it.state,
                attempt: it.attempt,
                failures: it.failures,
                reason: it.reason.clone(),
                run: it.run.clone().filter(|_| it.state == RunState::Running),
            },
        }
    }

    /// Returns whether the deployment has not begun with the host: no run was created for it.
    pub fn is_untouched(&self) -> bool {
        self.done == 0 && self.state == RunState::Pending && self.attempt == 0
    }

    /// Returns whether the deployment before failed on the host and this one is not finished there.
    pub fn is_corrected(&self) -> bool {
        !self.is_done() && self.failures > 0 && self.reason.is_none()
    }

    /// Returns whether the present service failed in its last attempt; it may be retried now.
    pub fn is_failing(&self) -> bool {
        !self.is_done() && self.reason.is_some()
    }

    /// Returns whether every service has succeeded on the host.
    pub fn is_done(&self) -> bool {
        self.state == RunState::Succeeded
    }
}

/// Converts a number to a status field.
pub fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns a host's present progress.
///
/// In the middle of a sequence the engine leaves its records unchanged; the runs tell the position.
pub fn current(
    host: &str,
    desired: &[DesiredService],
    sequence: &ServiceSequence,
    runs: &[Run<'_>],
) -> HostProgress {
    let kept = HostProgress::of(&sequence.services, desired.len());
    let at =
        |service: &str| desired.iter().position(|it| it.service == service).unwrap_or_default();
    let is_ahead = |service: &str| kept.is_untouched() || at(service) > kept.done;
    let moved = |done: usize, attempt: i64, run: Option<String>| HostProgress {
        done,
        state: if run.is_some() { RunState::Running } else { RunState::Pending },
        attempt,
        // The failure of the previous deployment stays known through all services.
        failures: if kept.is_corrected() { kept.failures } else { 0 },
        reason: None,
        run,
    };
    match &sequence.state {
        SequenceState::NeedsRun(need) if is_ahead(&need.service) => {
            moved(at(&need.service), need.attempt.attempt, None)
        }
        SequenceState::InRun { run, .. } => {
            let Some(run) = runs.iter().find(|it| it.name() == *run) else { return kept };
            let Some(attempt) = run.attempts.get(host) else { return kept };
            if !is_ahead(&run.service) {
                return kept;
            }
            moved(at(&run.service), attempt.attempt, run.has_begun().then(|| run.name()))
        }
        SequenceState::NeedsRun(_)
        | SequenceState::Done
        | SequenceState::OutOfDate
        | SequenceState::Failed { .. } => kept,
    }
}
