//! The time at which the progress of hosts is written to the status: progress that runs report in
//! short order is written together, and failures are written at once.

use api::dataplane::{HostProgress, NodeSetProgress, RunState};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use operator_core::run_engine::host_progress::{from_service_runs, position};
use operator_core::run_engine::service_sequence::ServiceSequence;
use operator_core::run_engine::{Run, SequenceState};

use crate::deployment::node_set_part::{EvaluatedHost, PendingProgress};

/// How long progress of one run waits for that of the other runs of the same service.
const TOGETHER: SignedDuration = SignedDuration::from_secs(10);

/// Returns the progress of a host that the status does not contain yet, if there is any.
pub fn pending_progress(
    kept: &HostProgress,
    sequence: &ServiceSequence,
    runs: &[Run<'_>],
) -> Option<PendingProgress> {
    let next = from_service_runs(&sequence.services);
    (next != *kept).then(|| match (kept.state, next.state) {
        (RunState::Pending, RunState::Running) => {
            let run = runs.iter().find(|it| Some(it.name()) == next.run);
            let made = run.and_then(|it| it.object.creation_timestamp());
            PendingProgress::Begun(made.map(|it| it.0).unwrap_or_default())
        }
        (_, RunState::Succeeded) => {
            PendingProgress::Done(sequence.services.last().map(|it| it.since.0).unwrap_or_default())
        }
        _ => PendingProgress::Urgent,
    })
}

/// Returns when pending progress of hosts is to be written; `None` when there is none.
///
/// Runs of one service begin and end in short order. Their progress waits briefly for the last of
/// them, so that one write reports all.
pub fn reported_at(hosts: &[EvaluatedHost]) -> Option<Timestamp> {
    let last = hosts.iter().map(|it| position(&it.live)).max().unwrap_or_default();
    let is_going_on = |it: &&EvaluatedHost| match &it.sequence.state {
        SequenceState::NeedsRun(_) | SequenceState::InRun { waiting_for: None, .. } => true,
        SequenceState::InRun { .. }
        | SequenceState::Done
        | SequenceState::OutOfDate
        | SequenceState::Failed { .. } => false,
    };
    let going_on: Vec<&EvaluatedHost> = hosts.iter().filter(is_going_on).collect();
    let others_begin = going_on.iter().any(|it| it.live.state == RunState::Pending);
    let others_end = going_on.iter().any(|it| position(&it.live) + 1 >= last);
    let at = |pending: PendingProgress| match pending {
        PendingProgress::Begun(since) if others_begin => since + TOGETHER,
        PendingProgress::Done(since) if others_end => since + TOGETHER,
        PendingProgress::Begun(_) | PendingProgress::Done(_) | PendingProgress::Urgent => {
            Timestamp::UNIX_EPOCH
        }
    };
    hosts.iter().filter_map(|it| it.pending_progress.map(at)).min()
}

/// Returns whether all hosts have left a service, and the next runs have begun.
///
/// Progress in the middle of the service sequences is written only then: one write for each
/// service, which also names the runs at work. Blocked hosts do not delay it.
pub fn has_advanced(hosts: &[EvaluatedHost], kept: &NodeSetProgress) -> bool {
    let in_turn = || hosts.iter().filter(|it| it.blocked.is_none());
    let front = in_turn().map(|it| position(&it.live)).min().unwrap_or_default();
    let reported = in_turn().filter_map(|it| kept.hosts.get(&it.name));
    let reported = reported.map(position).min();
    let is_about_to_begin = |it: &EvaluatedHost| match &it.sequence.state {
        // Another node set may take long to reach the service.
        SequenceState::NeedsRun(need) => !kept.joined.contains(&need.service),
        SequenceState::InRun { waiting_for, .. } => {
            waiting_for.is_none() && it.live.state == RunState::Pending
        }
        SequenceState::Done | SequenceState::OutOfDate | SequenceState::Failed { .. } => false,
    };
    let at_front = |it: &&EvaluatedHost| position(&it.live) == front;
    reported.is_some_and(|it| it < front) && !in_turn().filter(at_front).any(is_about_to_begin)
}
