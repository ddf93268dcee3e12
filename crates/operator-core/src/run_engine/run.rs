//! One run as its parent sees it: an AnsibleEE and the attempts that it carries.

use std::collections::BTreeMap;

use api::ansibleee::{AnsibleEe, HostKeyReport, HostOutcome, HostResult, JobStatus};
use api::conditions::{READY, Severity, find};
use api::dataplane::service_run::ServiceRun;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde::{Deserialize, Serialize};

/// Label with the name of the service that a run deploys.
pub const SERVICE_LABEL: &str = "edpm.openstack.org/service";
/// Annotation with the attempts that a run carries, as JSON: host name → [`Attempt`].
pub const ATTEMPTS: &str = "edpm.openstack.org/attempts";
/// Label of whether tags, skip-tags or a limit narrow a run: `true` or `false`.
pub const PARTIAL_LABEL: &str = "edpm.openstack.org/partial";
/// Annotation with the resource versions of the ssh Secrets at the time of the run's creation.
pub const SSH_KEYS: &str = "edpm.openstack.org/ssh-keys";
/// Annotation with a token of what the run trusts as each host's own key; see
/// [`crate::run_engine::host_key::HostKeyTrust::token`].
pub const HOST_KEYS: &str = "edpm.openstack.org/host-keys";

/// One try of one service on one host.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Attempt {
    /// Hash of the inputs that it deploys.
    pub hash: String,
    /// Its number, counted per host and service from 1.
    pub attempt: i64,
}

impl Attempt {
    /// Returns whether a status records this attempt.
    fn is_of(&self, recorded: &ServiceRun) -> bool {
        (&self.hash, self.attempt) == (&recorded.hash, recorded.attempt)
    }
}

/// A run, with the service and the attempts that it carries.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// The object.
    pub object: &'a AnsibleEe,
    /// The service that it deploys.
    pub service: String,
    /// Host name → attempt.
    pub attempts: BTreeMap<String, Attempt>,
}

impl<'a> Run<'a> {
    /// Reads a run of the engine; `None` for a hand-made one.
    pub fn of(object: &'a AnsibleEe) -> Option<Self> {
        let service = object.labels().get(SERVICE_LABEL)?.clone();
        let attempts = serde_json::from_str(object.annotations().get(ATTEMPTS)?).ok()?;
        Some(Self { object, service, attempts })
    }

    /// Returns whether it carries the recorded attempt of a host.
    pub fn carries(&self, host: &str, recorded: &ServiceRun) -> bool {
        self.service == recorded.name
            && self.attempts.get(host).is_some_and(|it| it.is_of(recorded))
    }

    /// Returns its name.
    pub fn name(&self) -> String {
        self.object.name_any()
    }

    /// Returns whether its result is final.
    pub fn is_finished(&self) -> bool {
        self.status().is_some_and(JobStatus::is_final)
    }

    /// Returns whether it may have changed a host: it was admitted or is past admission.
    pub fn has_begun(&self) -> bool {
        let status = self.object.status.as_ref();
        let is_admitted = status.is_some_and(|it| it.admission.is_some() || it.job.is_some());
        is_admitted || matches!(self.status(), Some(it) if it != JobStatus::Pending)
    }

    /// Returns whether the run as a whole succeeded.
    pub fn has_succeeded(&self) -> bool {
        self.status() == Some(JobStatus::Succeeded)
    }

    /// Returns when it ended; `None` when it has no status or no time is recorded.
    ///
    /// A run that never became a Job may have the time only in its `Ready` condition.
    pub fn ended(&self) -> Option<Time> {
        let status = self.object.status.as_ref()?;
        let ready = find(&status.conditions, READY);
        status.completion_time.clone().or_else(|| ready.map(|it| it.last_transition_time.clone()))
    }

    /// Returns whether tags, skip-tags or a limit narrow it.
    pub fn is_partial(&self) -> bool {
        self.object.labels().get(PARTIAL_LABEL).is_some_and(|it| it == "true")
    }

    /// Returns what it waits for; `None` when it does not wait.
    pub fn waiting_for(&self) -> Option<&str> {
        self.object.status.as_ref()?.waiting_for.as_deref()
    }

    /// Returns what keeps its Job or pod from being made, placed or ended; `None` when nothing does,
    /// or when the run is withdrawn for it.
    pub fn trouble(&self) -> Option<&str> {
        let status = self.object.status.as_ref()?;
        let is_over = status.reason.is_some() || self.is_finished();
        let ready = find(&status.conditions, READY).filter(|_| !is_over)?;
        let is_trouble = matches!(ready.severity, Some(Severity::Warning | Severity::Error));
        is_trouble.then_some(ready.message.as_str())
    }

    /// Returns the result for a host; `Unknown` when nothing was reported.
    pub fn outcome(&self, host: &str) -> HostOutcome {
        let find = |it: &&HostResult| it.name == host;
        let hosts = self.object.status.as_ref().map(|it| it.hosts.as_slice()).unwrap_or_default();
        hosts.iter().find(find).map_or(HostOutcome::Unknown, |it| it.result)
    }

    /// Returns the resource version of a host's ssh Secret when the run was created.
    ///
    /// Returns `None` when the run did not use that Secret.
    pub fn ssh_key_version(&self, secret: &str) -> Option<String> {
        let versions: BTreeMap<String, String> =
            serde_json::from_str(self.object.annotations().get(SSH_KEYS)?).ok()?;
        versions.get(secret).cloned()
    }

    /// Returns the token of what was trusted as the host's own key when the run was created.
    ///
    /// It is empty when only the known hosts of the ssh Secret decided.
    pub fn trusted(&self, host: &str) -> String {
        let words = self.object.annotations().get(HOST_KEYS);
        let words: Option<BTreeMap<String, String>> =
            words.and_then(|it| serde_json::from_str(it).ok());
        words.and_then(|mut it| it.remove(host)).unwrap_or_default()
    }

    /// Returns what scanning a host's own key found; `None` when it was not scanned.
    pub fn host_key(&self, host: &str) -> Option<&HostKeyReport> {
        self.object.status.as_ref()?.host_keys.iter().find(|it| it.name == host)
    }

    fn status(&self) -> Option<JobStatus> {
        self.object.status.as_ref()?.job_status
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::run_engine::test_runs;

    #[test]
    fn a_run_that_goes_on_is_in_trouble_where_its_condition_is_a_warning() {
        let trouble = |severity: &str, more: Value| {
            let mut status = json!({ "JobStatus": "Running", "conditions": [{
                "type": "Ready", "status": "False", "reason": "X", "severity": severity,
                "message": "no room", "lastTransitionTime": "2026-01-01T00:00:00Z",
            }] });
            status.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
            let object = test_runs::run("r", &[("n0", test_runs::attempt("A", 1))], &status);
            Run::of(&object).unwrap().trouble().map(str::to_owned)
        };
        let none = json!({});
        assert_eq!(trouble("Warning", none.clone()).as_deref(), Some("no room"));
        assert_eq!(trouble("Error", none.clone()).as_deref(), Some("no room"));
        assert_eq!(trouble("Info", none), None);
        // How it ended, or why it is withdrawn, is told as its failure.
        assert_eq!(trouble("Error", json!({ "JobStatus": "Failed" })), None);
        assert_eq!(trouble("Warning", json!({ "reason": "ImagePullFailed" })), None);
    }
}
