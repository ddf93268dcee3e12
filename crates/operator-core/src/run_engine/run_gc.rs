//! Garbage collection of runs: which runs are no longer needed.

use std::collections::BTreeMap;

use api::dataplane::service_run::{RunState, ServiceRun};
use kube::ResourceExt;

use crate::plan::{Step, Target, Write};
use crate::run_engine::run::Run;

/// Deletes superseded runs, all of whose results are recorded in the parent's status.
///
/// Kept are the last success and the last failure of each service, for their logs, and every run
/// whose failure is the present state of a host: the next attempt is compared with the ssh Secret
/// it used.
///
/// `recorded` has the status that the API server has, by host, not the one about to be written.
pub fn superseded(runs: &[Run<'_>], recorded: &BTreeMap<&str, &[ServiceRun]>) -> Vec<Step> {
    let mut kept: BTreeMap<(&str, bool), &Run<'_>> = BTreeMap::new();
    for run in runs.iter().filter(|it| it.is_finished()) {
        let place = kept.entry((&run.service, run.has_succeeded())).or_insert(run);
        if age(run) > age(place) {
            *place = run;
        }
    }
    let is_kept = |run: &Run<'_>| kept.values().any(|it| it.name() == run.name());
    runs.iter()
        .filter(|it| it.is_finished() && !is_kept(it) && !is_current_failure(it, recorded))
        .filter(|it| is_recorded(it, recorded))
        .filter(|it| it.object.metadata.deletion_timestamp.is_none())
        .map(|it| Step::delete(Target::of(it.object), "its results stand in the status"))
        .collect()
}

/// Deletes waiting runs that no host needs; `needs` says whether a run is to deploy the named host.
///
/// The deletions precede all writes about their hosts, and have the resource version as precondition: a
/// run that was admitted meanwhile stays, and is evaluated again.
pub fn withdrawn(runs: &[Run<'_>], needs: impl Fn(&Run<'_>, &str) -> bool) -> Vec<Step> {
    let is_needed = |run: &Run<'_>| run.attempts.keys().any(|host| needs(run, host));
    let is_waiting =
        |run: &&Run<'_>| !run.has_begun() && run.object.metadata.deletion_timestamp.is_none();
    runs.iter()
        .filter(|it| is_waiting(it) && !is_needed(it))
        .map(|it| {
            let mut step =
                Step::delete(Target::of(it.object), "it has not begun, and is not needed now");
            step.write = Write::Delete { resource_version: it.object.resource_version() };
            step
        })
        .collect()
}

fn age(run: &Run<'_>) -> (Option<jiff::Timestamp>, String) {
    let created = run.object.creation_timestamp().map(|it| it.0);
    let ended = run.object.status.as_ref().and_then(|it| it.completion_time.clone());
    (ended.map(|it| it.0).or(created), run.name())
}

/// Returns whether the run's failure is the present state of a host.
fn is_current_failure(run: &Run<'_>, recorded: &BTreeMap<&str, &[ServiceRun]>) -> bool {
    run.attempts.keys().any(|host| {
        let services = recorded.get(host.as_str()).copied().unwrap_or_default();
        services.iter().any(|it| it.state == RunState::Failed && run.carries(host, it))
    })
}

fn is_recorded(run: &Run<'_>, recorded: &BTreeMap<&str, &[ServiceRun]>) -> bool {
    run.attempts.iter().all(|(host, attempt)| {
        // A host that was removed has no status to record a result in.
        let Some(services) = recorded.get(host.as_str()) else { return true };
        let Some(service) = services.iter().find(|it| it.name == run.service) else { return true };
        let is_final = matches!(service.state, RunState::Succeeded | RunState::Failed);
        service.attempt > attempt.attempt || (service.attempt == attempt.attempt && is_final)
    })
}

#[cfg(test)]
#[path = "run_gc_tests.rs"]
mod tests;
