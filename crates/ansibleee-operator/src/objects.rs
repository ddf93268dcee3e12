//! Jobs and pods reduced to the fields that are evaluated, which are all that the caches hold.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::JobSpec;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStateTerminated};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Resource;
use serde::{Deserialize, Deserializer};

/// Name of the container that scans host keys.
pub const HOST_KEYS_CONTAINER: &str = "edpm-host-keys";

/// Annotation of a Job and its pods with the name of their AnsibleEE.
pub const RUN: &str = "edpm.openstack.org/run";
/// Annotation of a Job and its pods with the addresses of the run's hosts, as a JSON list.
pub const HOSTS: &str = "edpm.openstack.org/hosts";
/// Annotation of a Job with the digest of what it runs.
pub const IDENTITY: &str = "edpm.openstack.org/identity";
/// Label that the Job controller sets on pods.
pub const JOB_NAME: &str = "batch.kubernetes.io/job-name";

/// A Job.
#[derive(Clone, Debug, Default, Deserialize, Resource)]
#[resource(inherit = "k8s_openapi::api::batch::v1::Job")]
#[serde(default)]
pub struct Job {
    /// Metadata, with only the annotations that are evaluated.
    #[serde(deserialize_with = "lean")]
    pub metadata: ObjectMeta,
    /// The images of its containers.
    #[serde(rename = "spec", deserialize_with = "images")]
    pub images: Vec<String>,
    /// Its progress.
    pub status: JobStatus,
}

/// The progress of a Job.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct JobStatus {
    /// The conditions of the Job; `Complete` and `Failed` end it.
    pub conditions: Vec<JobCondition>,
    /// When the Job controller first saw it.
    pub start_time: Option<Time>,
    /// When it succeeded.
    pub completion_time: Option<Time>,
}

/// A condition of a Job or pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct JobCondition {
    /// Its type.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The cause as one word.
    pub reason: String,
    /// The cause as text.
    pub message: String,
    /// When `status` last changed.
    pub last_transition_time: Option<Time>,
}

/// A pod.
#[derive(Clone, Debug, Default, Deserialize, Resource)]
#[resource(inherit = "k8s_openapi::api::core::v1::Pod")]
#[serde(default)]
pub struct Pod {
    /// Metadata, with only the annotations that are evaluated.
    #[serde(deserialize_with = "lean")]
    pub metadata: ObjectMeta,
    /// Where the pod runs.
    pub spec: PodSpec,
    /// Its progress.
    pub status: PodStatus,
}

/// Where a pod runs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpec {
    /// The worker that it is bound to; empty while it is not scheduled.
    pub node_name: String,
}

/// The progress of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: String,
    /// Why the pod as a whole failed, as one word, for example `Evicted`.
    pub reason: String,
    /// Why the pod as a whole failed, as text.
    pub message: String,
    /// The conditions of the pod.
    pub conditions: Vec<JobCondition>,
    /// The containers that run before the runner.
    pub init_container_statuses: Vec<ContainerStatus>,
    /// The runner container.
    pub container_statuses: Vec<ContainerStatus>,
}

/// The state of one container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerStatus {
    /// Its name.
    pub name: String,
    /// Its present state.
    pub state: ContainerState,
    /// Its state before the last restart.
    pub last_state: ContainerState,
}

impl Job {
    /// Returns the condition that ended it: `Complete` or `Failed`.
    pub fn end(&self) -> Option<&JobCondition> {
        let ends = |it: &&JobCondition| ["Complete", "Failed"].contains(&it.type_.as_str());
        self.status.conditions.iter().filter(ends).find(|it| it.status == "True")
    }

    /// Returns whether its controller owner has that UID.
    pub fn is_owned_by(&self, uid: &str) -> bool {
        let owners = self.metadata.owner_references.iter().flatten();
        owners.into_iter().any(|it| it.controller == Some(true) && it.uid == uid)
    }

    /// Returns the digest of what it runs; empty without the annotation.
    pub fn identity(&self) -> &str {
        annotation(&self.metadata, IDENTITY)
    }
}

impl Pod {
    /// Returns the name of its Job, if any.
    pub fn job(&self) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(JOB_NAME).map(String::as_str)
    }

    /// Returns whether it has not ended, so that it may still act.
    pub fn is_live(&self) -> bool {
        !matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    /// Returns the condition of that type if it is True.
    pub fn true_condition(&self, type_: &str) -> Option<&JobCondition> {
        self.status.conditions.iter().find(|it| it.type_ == type_ && it.status == "True")
    }

    /// Returns the condition of that type if it is False.
    pub fn lacks(&self, type_: &str) -> Option<&JobCondition> {
        self.status.conditions.iter().find(|it| it.type_ == type_ && it.status == "False")
    }

    /// Returns all containers in the order in which they run.
    pub fn containers(&self) -> impl Iterator<Item = &ContainerStatus> {
        self.status.init_container_statuses.iter().chain(&self.status.container_statuses)
    }

    /// Returns whether any container that may change a host ever started.
    ///
    /// The container that scans host keys changes none, and must not hide that the runner cannot
    /// start.
    pub fn has_started(&self) -> bool {
        let acts = |it: &&ContainerStatus| it.name != HOST_KEYS_CONTAINER;
        self.containers().filter(acts).any(ContainerStatus::has_started)
    }

    /// Returns how the container of that name ended, with the name of another one that goes on: then
    /// the pod never ends by itself.
    pub fn outlived(&self, name: &str) -> Option<(&ContainerStateTerminated, &str)> {
        let all = &self.status.container_statuses;
        let own = all.iter().find(|it| it.name == name)?.state.terminated.as_ref()?;
        let other = all.iter().find(|it| it.state.terminated.is_none())?;
        Some((own, &other.name))
    }
}

impl ContainerStatus {
    /// Returns whether it ever started.
    fn has_started(&self) -> bool {
        let ran = |it: &ContainerState| {
            let since = it.terminated.as_ref().and_then(|it| it.started_at.as_ref());
            it.running.is_some() || since.is_some_and(|it| it.0 > Timestamp::UNIX_EPOCH)
        };
        ran(&self.state) || ran(&self.last_state)
    }
}

/// Returns an annotation's value; empty when it is absent.
pub fn annotation<'a>(metadata: &'a ObjectMeta, name: &str) -> &'a str {
    metadata.annotations.as_ref().and_then(|it| it.get(name)).map_or("", String::as_str)
}

/// Returns the addresses of the hosts that a Job or pod works on.
pub fn addresses(metadata: &ObjectMeta) -> Vec<String> {
    serde_json::from_str(annotation(metadata, HOSTS)).unwrap_or_default()
}

/// Drops all annotations that are not evaluated, such as those with a run's playbook and inventory.
fn lean<'de, D: Deserializer<'de>>(input: D) -> Result<ObjectMeta, D::Error> {
    let mut metadata = ObjectMeta::deserialize(input)?;
    if let Some(annotations) = &mut metadata.annotations {
        annotations.retain(|name, _| [RUN, HOSTS, IDENTITY].contains(&name.as_str()));
    }
    metadata.managed_fields = None;
    Ok(metadata)
}

/// Reads of the spec of a Job only the images of its containers.
fn images<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<String>, D::Error> {
    let pod = JobSpec::deserialize(input)?.template.spec.unwrap_or_default();
    Ok(pod.containers.into_iter().filter_map(|it| it.image).collect())
}
