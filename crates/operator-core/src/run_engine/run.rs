//! One run as its parent sees it: an AnsibleEE and the attempts that it carries.

use std::collections::BTreeMap;

use api::ansibleee::{AnsibleEe, HostKeyReport, HostOutcome, HostResult, JobStatus};
use api::conditions::{READY, find};
use api::dataplane::service_run::ServiceRun;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde::{Deserialize, Serialize};

/// Label with the name of the service that a run deploys.
pub const SERVICE_LABEL: &str = "edpm.openstack.org/service";
/// Annotation with the attempts that a run carries, as JSON: host name → [`Attempt`].
pub const ATTEMPTS: &str = "edpm.openstack.org/attempts";
/// Label of a run that tags, skip-tags or a limit narrow.
pub const PARTIAL_LABEL: &str = "edpm.openstack.org/partial";
/// Annotation with the resource versions of the ssh Secrets at the time of the run's creation.
pub const SSH_KEYS: &str = "edpm.openstack.org/ssh-keys";
/// Annotation with what the run trusts as each host's own key, in a word: see
/// [`crate::engine::host_key::Trust::token`].
pub const HOST_KEYS: &str = "edpm.openstack.org/host-keys";

/// One try of one service on one host.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Attempt {
    /// Hash of the inputs that it deploys.
    pub hash: String,
    /// Its number, counted per host and service.
    pub attempt: i64,
}

impl Attempt {
    /// Whether it is the attempt that a status records.
    fn is_of(&self, recorded: &ServiceRun) -> bool {
        (&self.hash, self.attempt) == (&recorded.hash, recorded.attempt)
    }
}

/// A run of a parent.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// The object.
    pub object: &'a AnsibleEe,
    /// The service that it deploys.
    pub service: String,
    /// What it deploys on which host.
    pub attempts: BTreeMap<String, Attempt>,
}

impl<'a> Run<'a> {
    /// Reads a run of the engine; `None` for a hand-made one.
    pub fn of(object: &'a AnsibleEe) -> Option<Self> {
        let service = object.labels().get(SERVICE_LABEL)?.clone();
        let attempts = serde_json::from_str(object.annotations().get(ATTEMPTS)?).ok()?;
        Some(Self { object, service, attempts })
    }

    /// Whether it carries the attempt that a status records of a host.
    pub fn carries(&self, host: &str, recorded: &ServiceRun) -> bool {
        self.service == recorded.name
            && self.attempts.get(host).is_some_and(|it| it.is_of(recorded))
    }

    /// Its name.
    pub fn name(&self) -> String {
        self.object.name_any()
    }

    /// Whether its result is final.
    pub fn is_finished(&self) -> bool {
        matches!(self.status(), Some(JobStatus::Succeeded | JobStatus::Failed))
    }

    /// Whether it may have touched a host: it was admitted, or is further.
    pub fn has_begun(&self) -> bool {
        let status = self.object.status.as_ref();
        let is_admitted = status.is_some_and(|it| it.admission.is_some() || it.job.is_some());
        is_admitted || matches!(self.status(), Some(it) if it != JobStatus::Pending)
    }

    /// Whether the run as a whole succeeded.
    pub fn has_succeeded(&self) -> bool {
        self.status() == Some(JobStatus::Succeeded)
    }

    /// When it ended. A run that never became a Job may have told that by its condition alone.
    pub fn ended(&self) -> Option<Time> {
        let status = self.object.status.as_ref()?;
        let ready = find(&status.conditions, READY);
        status.completion_time.clone().or_else(|| ready.map(|it| it.last_transition_time.clone()))
    }

    /// Whether tags, skip-tags or a limit narrow what it does.
    pub fn is_partial(&self) -> bool {
        self.object.labels().get(PARTIAL_LABEL).is_some_and(|it| it == "true")
    }

    /// What it waits for, while it does.
    pub fn waiting_for(&self) -> Option<&str> {
        self.object.status.as_ref()?.waiting_for.as_deref()
    }

    /// What happened on a host; `Unknown` where nothing was reported.
    pub fn outcome(&self, host: &str) -> HostOutcome {
        let find = |it: &&HostResult| it.name == host;
        let hosts = self.object.status.as_ref().map(|it| it.hosts.as_slice()).unwrap_or_default();
        hosts.iter().find(find).map_or(HostOutcome::Unknown, |it| it.result)
    }

    /// The resource version of the host's ssh Secret when the run was created.
    pub fn ssh_key_version(&self, secret: &str) -> Option<String> {
        let versions: BTreeMap<String, String> =
            serde_json::from_str(self.object.annotations().get(SSH_KEYS)?).ok()?;
        versions.get(secret).cloned()
    }

    /// What was trusted as the host's own key when the run was created; empty where known hosts of
    /// the ssh Secret decided alone.
    pub fn trusted(&self, host: &str) -> String {
        let words = self.object.annotations().get(HOST_KEYS);
        let words: Option<BTreeMap<String, String>> =
            words.and_then(|it| serde_json::from_str(it).ok());
        words.and_then(|mut it| it.remove(host)).unwrap_or_default()
    }

    /// What a host offered as its own key, if it was asked.
    pub fn host_key(&self, host: &str) -> Option<&HostKeyReport> {
        self.object.status.as_ref()?.host_keys.iter().find(|it| it.name == host)
    }

    fn status(&self) -> Option<JobStatus> {
        self.object.status.as_ref()?.job_status
    }
}
