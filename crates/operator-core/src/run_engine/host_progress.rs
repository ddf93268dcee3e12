//! How far a host is with the services of a deployment, from what is known of them.
//!
//! A host is at one service at a time: those before it have succeeded, and those after it have at
//! most a first attempt.

use api::dataplane::{RunState, ServiceRun};

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
}

impl HostProgress {
    /// Returns the progress for the records of a deployment's services, in their order. Of a service
    /// without a record nothing has begun.
    pub fn of(services: &[ServiceRun], n_services: usize) -> Self {
        let done = services.iter().take_while(|it| it.state == RunState::Succeeded).count();
        let untouched =
            |state: RunState| Self { done, state, attempt: 0, failures: 0, reason: None };
        match services.get(done) {
            None if done < n_services => untouched(RunState::Pending),
            None => untouched(RunState::Succeeded),
            Some(it) => Self {
                done,
                state: it.state,
                attempt: it.attempt,
                failures: it.failures,
                reason: it.reason.clone(),
            },
        }
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

#[cfg(test)]
mod tests {
    use api::ansibleee::AnsibleEe;
    use jiff::Timestamp;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::run_engine::host_key::HostKeyTrust;
    use crate::run_engine::retry::Retries;
    use crate::run_engine::run::SERVICE_LABEL;
    use crate::run_engine::test_runs::{attempt, ended, record, run};
    use crate::run_engine::{DesiredService, Host, Run, service_sequence};

    const NAMES: [&str; 3] = ["a", "b", "c"];

    fn wanted() -> Vec<DesiredService> {
        let service = |name: &str| DesiredService {
            service: name.to_owned(),
            hash: "A".into(),
            run_hash: "A".into(),
            group: "g".into(),
        };
        NAMES.into_iter().map(service).collect()
    }

    /// First attempts of all services, as they are recorded when a deployment begins.
    fn begun(failures: i64) -> Vec<ServiceRun> {
        let first = |name: &str| ServiceRun {
            name: name.to_owned(),
            failures,
            ..record(RunState::Pending, "A", 1)
        };
        NAMES.into_iter().map(first).collect()
    }

    /// The first attempt of a service: over, or on its way.
    fn first(service: &str, is_over: bool) -> AnsibleEe {
        let status = if is_over {
            ended("Succeeded", "n0", "Ok", 1)
        } else {
            json!({ "JobStatus": "Running" })
        };
        let mut object = run(&format!("r-{service}"), &[("n0", attempt("A", 1))], &status);
        let label = (SERVICE_LABEL.to_owned(), service.to_owned());
        object.metadata.labels.get_or_insert_default().extend([label]);
        object
    }

    fn progress(recorded: &[ServiceRun], objects: &[AnsibleEe], may_run: bool) -> HostProgress {
        let (desired, runs) = (wanted(), objects.iter().filter_map(Run::of).collect::<Vec<_>>());
        let host = Host {
            name: "n0",
            desired: &desired,
            recorded,
            has_moved: false,
            records_begin: true,
            ssh_key: ("key", "1"),
            trust: &HostKeyTrust::default(),
            namespace: None,
            retries: Retries::Limited { attempts: 3, way_on: "another one" },
        };
        let sequence = service_sequence::evaluate(&host, &runs, Timestamp::UNIX_EPOCH);
        let sequence = if may_run { sequence } else { sequence.held() };
        HostProgress::of(sequence.standing(), desired.len())
    }

    #[test]
    fn a_host_of_which_nothing_is_recorded_is_untouched_until_it_may_begin() {
        let held = progress(&[], &[], false);
        assert_eq!((held.done, held.state, held.attempt), (0, RunState::Pending, 0));
        let begins = progress(&[], &[], true);
        assert_eq!((begins.done, begins.state, begins.attempt), (0, RunState::Pending, 1));
    }

    #[test]
    fn the_runs_tell_how_far_a_host_is_while_nothing_more_is_recorded() {
        let [over, running] = [first("a", true), first("b", false)];
        let at = progress(&begun(0), &[over.clone(), running], true);
        assert_eq!((at.done, at.state, at.attempt), (1, RunState::Running, 1));
        let at = progress(&begun(0), std::slice::from_ref(&over), true);
        assert_eq!((at.done, at.state), (1, RunState::Pending));
        let all: Vec<AnsibleEe> = NAMES.into_iter().map(|it| first(it, true)).collect();
        assert!(progress(&begun(0), &all, true).is_done());
    }

    #[test]
    fn a_failure_of_the_deployment_before_stays_known_until_the_host_is_done() {
        let runs: Vec<AnsibleEe> = NAMES.into_iter().map(|it| first(it, true)).collect();
        for n_over in 0..NAMES.len() {
            let at = progress(&begun(1), &runs[..n_over], true);
            assert!(at.done == n_over && at.is_corrected() && !at.is_failing(), "{at:?}");
        }
        assert!(!progress(&begun(1), &runs, true).is_corrected());
    }

    proptest! {
        #[test]
        fn a_host_is_at_the_first_service_that_has_not_succeeded(
            n_done in 0..=NAMES.len(),
            n_recorded in 0..=NAMES.len(),
            reason in proptest::option::of("[A-Z][a-z]+"),
        ) {
            let mut records = begun(1);
            for it in &mut records[..n_done] {
                it.state = RunState::Succeeded;
            }
            if let Some(next) = records.get_mut(n_done) {
                next.reason.clone_from(&reason);
            }
            let at = HostProgress::of(&records[..n_recorded], NAMES.len());
            prop_assert_eq!(at.done, n_done.min(n_recorded));
            prop_assert_eq!(at.is_done(), n_done == NAMES.len() && n_recorded == NAMES.len());
            let is_recorded = n_done < n_recorded;
            prop_assert_eq!(at.is_failing(), is_recorded && reason.is_some());
            prop_assert_eq!(at.is_corrected(), is_recorded && reason.is_none());
        }
    }
}
