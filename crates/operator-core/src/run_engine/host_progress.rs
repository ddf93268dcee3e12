//! The compact progress of a host in a status, and its conversion from and to the engine's records.
//!
//! A host is at one service at a time: those before it have succeeded, and those after it have at
//! most a first attempt.

use api::dataplane::{HostProgress, RunState, ServiceRun};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::reasons::AWAITING_DISRUPTION;
use crate::run_engine::{DesiredService, Run, SequenceState, ServiceSequence};

/// The attempt number of a finished service, which no longer matters.
const DONE: i64 = i64::MAX;

/// Returns the records of all services of a host; empty when nothing has begun.
///
/// `text` is the reported failure message, which the compact form does not contain.
pub fn to_service_runs(
    host: &str,
    desired: &[DesiredService],
    kept: Option<&HostProgress>,
    runs: &[Run<'_>],
    text: Option<&str>,
) -> Vec<ServiceRun> {
    let Some(kept) = kept else { return Vec::new() };
    let done = position(kept);
    let record = |(idx, desired): (usize, &DesiredService)| {
        let untouched = record(desired);
        if idx < done {
            let hash = Some(desired.hash.text());
            let (state, attempt) = (RunState::Succeeded, DONE);
            return ServiceRun { state, attempt, deployed_hash: hash, ..untouched };
        }
        if idx > done {
            return untouched;
        }
        let mut present = ServiceRun {
            state: kept.state,
            attempt: kept.attempt,
            run: kept.run.clone(),
            failures: kept.failures,
            since: kept.since.clone().unwrap_or_else(|| untouched.since.clone()),
            // Such a host waits for no attempt of its own.
            reason: kept.reason.clone().filter(|_| !awaits_disruption(kept)),
            message: text.map(str::to_owned),
            ..untouched
        };
        if present.state == RunState::Failed {
            let carries = |it: &&Run<'_>| it.carries(host, &present);
            present.run = runs.iter().find(carries).map(Run::name);
        }
        present
    };
    desired.iter().enumerate().map(record).collect()
}

/// Returns the record of a service without history: its first attempt is due.
fn record(desired: &DesiredService) -> ServiceRun {
    ServiceRun {
        name: desired.service.clone(),
        state: RunState::Pending,
        hash: desired.run_hash.text(),
        attempt: 1,
        run: None,
        deployed_hash: None,
        failures: 0,
        since: Time(Timestamp::UNIX_EPOCH),
        reason: None,
        message: None,
    }
}

/// Returns how many services of a host are done.
pub fn position(kept: &HostProgress) -> usize {
    usize::try_from(kept.done).unwrap_or_default()
}

/// Returns the compact progress for a host's records.
pub fn from_service_runs(services: &[ServiceRun]) -> HostProgress {
    let is_open = |it: &&ServiceRun| it.state != RunState::Succeeded;
    let done = services.iter().take_while(|it| !is_open(it)).count();
    match services.get(done) {
        None => HostProgress {
            done: count(done),
            state: RunState::Succeeded,
            attempt: 0,
            failures: 0,
            reason: None,
            since: None,
            run: None,
        },
        Some(it) => HostProgress {
            done: count(done),
            state: it.state,
            attempt: it.attempt,
            failures: it.failures,
            reason: it.reason.clone(),
            // Only the backoff after a failure needs it.
            since: (it.state == RunState::Failed).then(|| it.since.clone()),
            run: it.run.clone().filter(|_| it.state == RunState::Running),
        },
    }
}

/// Returns whether a deployment has not begun with a host: no run was created for it.
pub fn is_untouched(kept: &HostProgress) -> bool {
    kept.done == 0 && kept.state == RunState::Pending && kept.attempt == 0
}

/// Returns the progress of a host whose deployment begins: its first attempt is due.
pub fn started(kept: &HostProgress) -> HostProgress {
    let attempt = if is_untouched(kept) { 1 } else { kept.attempt };
    HostProgress { attempt, ..kept.clone() }
}

/// Returns whether the previous deployment failed on a host and this one is not finished there.
pub fn is_corrected(kept: &HostProgress) -> bool {
    let is_open = kept.state != RunState::Succeeded;
    is_open && kept.failures > 0 && (kept.reason.is_none() || awaits_disruption(kept))
}

/// Returns whether a host holds a place in its rollout, and is deployed only once it may be
/// disturbed.
pub fn awaits_disruption(kept: &HostProgress) -> bool {
    kept.state == RunState::Pending && kept.reason.as_deref() == Some(AWAITING_DISRUPTION.word)
}

/// Returns whether the present service of a host failed in its last attempt; it may be retried now.
pub fn is_failing(kept: &HostProgress) -> bool {
    kept.state != RunState::Succeeded && kept.reason.is_some() && !awaits_disruption(kept)
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
    let kept = from_service_runs(&sequence.services);
    let at =
        |service: &str| desired.iter().position(|it| it.service == service).unwrap_or_default();
    let moved = |done: usize, attempt: i64, run: Option<String>| HostProgress {
        done: count(done),
        state: if run.is_some() { RunState::Running } else { RunState::Pending },
        attempt,
        // The failure of the previous deployment stays known through all services.
        failures: if is_corrected(&kept) { kept.failures } else { 0 },
        reason: None,
        since: None,
        run,
    };
    match &sequence.state {
        SequenceState::NeedsRun(need) if at(&need.service) > position(&kept) => {
            moved(at(&need.service), need.attempt.attempt, None)
        }
        SequenceState::InRun { run, .. } => {
            let Some(run) = runs.iter().find(|it| it.name() == *run) else { return kept };
            let Some(attempt) = run.attempts.get(host) else { return kept };
            if at(&run.service) <= position(&kept) {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wanted(n_services: usize) -> Vec<DesiredService> {
        let service = |idx: usize| DesiredService {
            service: format!("s{idx}"),
            hash: format!("h{idx}").into(),
            run_hash: format!("h{idx}").into(),
            group: "g".into(),
        };
        (0..n_services).map(service).collect()
    }

    fn any_progress() -> impl Strategy<Value = (usize, HostProgress)> {
        let states = prop_oneof![
            Just(RunState::Pending),
            Just(RunState::Running),
            Just(RunState::Failed),
            Just(RunState::Succeeded),
        ];
        (1_usize..6, 0_usize..6, states, 1_i64..9, 0_i64..9, 0_i64..99).prop_map(
            |(n_services, done, state, attempt, failures, second)| {
                let done =
                    if state == RunState::Succeeded { n_services } else { done % n_services };
                let is_done = state == RunState::Succeeded;
                let since = Time(Timestamp::from_second(second).unwrap());
                let progress = HostProgress {
                    done: count(done),
                    state,
                    attempt: if is_done { 0 } else { attempt },
                    failures: if is_done { 0 } else { failures },
                    reason: (state == RunState::Failed).then(|| "TaskFailed".to_owned()),
                    since: (state == RunState::Failed).then_some(since),
                    run: (state == RunState::Running).then(|| "r".to_owned()),
                };
                (n_services, progress)
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_kept_of_a_host_stands_for_its_records((n_services, kept) in any_progress()) {
            let records = to_service_runs("n0", &wanted(n_services), Some(&kept), &[], None);
            prop_assert_eq!(records.len(), n_services);
            prop_assert_eq!(from_service_runs(&records), kept);
        }

        #[test]
        fn a_host_costs_a_hundred_bytes_at_most((_, kept) in any_progress()) {
            // A run's name is included only while the run is active.
            let text = serde_json::to_string(&HostProgress { run: None, ..kept }).unwrap();
            prop_assert!(text.len() <= 110, "{} {}", text.len(), text);
        }
    }
}
