//! The hosts of a node set that other deployments have begun and not finished.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::dataplane::{Deployment, HostProgress, NodeSet, RunState};
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::finalizers::is_terminating;
use operator_core::run_engine::host_progress::{
    awaits_disruption, current, is_failing, is_untouched, position, started, to_service_runs,
};
use operator_core::run_engine::retry::Retries;
use operator_core::run_engine::{Host, Run, SequenceState};

use crate::deployment::evaluate::{attempts_of, is_given_up, runs_of};
use crate::deployment::observed::{Begun, OwnProgress};
use crate::deployment::service_schedule::ServiceSchedule;

/// Another deployment with its runs.
#[derive(Clone, Debug)]
pub struct ConcurrentDeployment {
    /// The deployment.
    pub deployment: Arc<Deployment>,
    /// The runs that it owns.
    pub runs: Vec<Arc<AnsibleEe>>,
}

/// Returns the hosts of a node set that other deployments have begun and not finished.
///
/// Their position is computed from the runs. The statuses are updated only when all hosts of a wave
/// have left a service, which does not happen while hosts wait at a service for all node sets.
/// `is_for_all` identifies such services: hosts that wait there, or right behind one, are in
/// service.
pub fn begun_hosts(
    others: &[ConcurrentDeployment],
    ours: &Deployment,
    set: &NodeSet,
    is_for_all: impl Fn(&str) -> bool,
) -> BTreeMap<String, Begun> {
    let mut all: BTreeMap<String, Begun> = BTreeMap::new();
    for other in others {
        let is_older = age(&other.deployment) < age(ours);
        for (host, doing) in hosts_of(other, set, &is_for_all) {
            if all.get(&host).is_none_or(|it| it.doing < doing) {
                let deployment = other.deployment.name_any();
                all.insert(host, Begun { deployment, doing, is_older });
            }
        }
    }
    all
}

/// Returns by what deployments are ordered: the time of their creation, and their names.
pub fn age(deployment: &Deployment) -> (Option<Timestamp>, String) {
    (deployment.creation_timestamp().map(|it| it.0), deployment.name_any())
}

fn hosts_of(
    other: &ConcurrentDeployment,
    set: &NodeSet,
    is_for_all: impl Fn(&str) -> bool,
) -> BTreeMap<String, OwnProgress> {
    let Some(progress) = other.deployment.progress_of(set) else { return BTreeMap::new() };
    let name = set.name_any();
    let runs: Vec<Run<'_>> = other.runs.iter().filter_map(|it| Run::of(it)).collect();
    let runs = runs_of(&runs, &name, progress);
    let schedule = ServiceSchedule::of(&other.deployment, &runs, &name, progress);
    let attempts = attempts_of(&other.deployment);
    let rests = |place: usize| {
        let is_for_all = |it: usize| progress.services.get(it).is_some_and(|it| is_for_all(it));
        is_for_all(place) || place.checked_sub(1).is_some_and(is_for_all)
    };
    // After its end only its failures count, until the node set's status reports them.
    let has_ended = other.deployment.has_ended();
    // From its admission on such a host holds a place, unless nothing new begins any more.
    let is_going = is_terminating(&*other.deployment);
    let is_awaiting = |kept: &HostProgress| !is_going && awaits_disruption(kept);
    let of_host = |(host, kept): (&String, &HostProgress)| {
        let (live, state) = at(&schedule, &runs, host, kept, attempts);
        let doing = match state {
            SequenceState::InRun { .. } => OwnProgress::InRun,
            _ if live.state == RunState::Succeeded => return None,
            _ if is_given_up(&live, attempts) => OwnProgress::GivenUp,
            _ if is_failing(&live) && has_ended => OwnProgress::GivenUp,
            _ if is_failing(&live) => OwnProgress::Failing,
            _ if has_ended => return None,
            SequenceState::NeedsRun(_) if is_awaiting(kept) => OwnProgress::GoingOn,
            SequenceState::NeedsRun(_) if is_untouched(kept) && live.done == 0 => return None,
            SequenceState::NeedsRun(_) if !rests(position(&live)) => OwnProgress::GoingOn,
            SequenceState::NeedsRun(_)
            | SequenceState::Done
            | SequenceState::OutOfDate
            | SequenceState::Failed { .. } => {
                return None;
            }
        };
        Some((host.clone(), doing))
    };
    progress.hosts.iter().filter_map(of_host).collect()
}

/// Returns the present progress of a host of another deployment.
fn at(
    schedule: &ServiceSchedule<'_>,
    runs: &[Run<'_>],
    host: &str,
    kept: &HostProgress,
    attempts: i64,
) -> (HostProgress, SequenceState) {
    let evaluated = Host {
        name: host,
        desired: &schedule.desired,
        recorded: &to_service_runs(host, &schedule.desired, Some(&started(kept)), runs, None),
        has_moved: false,
        // Only the text of a failure and the time of the next attempt depend on these.
        ssh_key: ("", ""),
        trusted: "",
        accept: None,
        take_over: "",
        retries: Retries::Limited { attempts, way_on: "" },
    };
    let (sequence, runs) = schedule.evaluate(&evaluated, position(kept), Timestamp::UNIX_EPOCH);
    (current(host, &schedule.desired, &sequence, runs), sequence.state)
}
