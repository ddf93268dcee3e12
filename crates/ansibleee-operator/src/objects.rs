//! Jobs and pods with only the fields that are judged: the caches hold nothing else.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Resource;
use serde::{Deserialize, Deserializer};

/// Name of the container.
pub const HOST_KEYS_CONTAINER: &str = "edpm-host-keys";

/// Annotation of a Job and its pods: the name of their AnsibleEE.
pub const RUN: &str = "edpm.openstack.org/run";
/// Annotation of a Job and its pods: the addresses of the run's hosts, as a JSON list.
pub const HOSTS: &str = "edpm.openstack.org/hosts";
/// Annotation of a Job: what it runs, as a digest.
pub const IDENTITY: &str = "edpm.openstack.org/identity";
/// Label that the Job controller puts on pods.
pub const JOB_NAME: &str = "batch.kubernetes.io/job-name";

/// A Job.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Job {
    /// Name, owner, and of the annotations only those that are judged.
    #[serde(deserialize_with = "lean")]
    pub metadata: ObjectMeta,
    /// What it runs.
    pub spec: JobSpec,
    /// How far it is.
    pub status: JobStatus,
}

/// What a Job runs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct JobSpec {
    /// The pod that it makes.
    pub template: Template,
}

/// The pod that a Job makes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Template {
    /// Its content.
    pub spec: TemplateSpec,
}

/// The content of the pod that a Job makes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct TemplateSpec {
    /// The containers.
    pub containers: Vec<ContainerImage>,
}

/// A container's image.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ContainerImage {
    /// The image.
    pub image: String,
}

/// How far a Job is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct JobStatus {
    /// The aspects of the Job; `Complete` and `Failed` end it.
    pub conditions: Vec<Aspect>,
    /// When the Job controller first saw it.
    pub start_time: Option<Time>,
    /// When it succeeded.
    pub completion_time: Option<Time>,
}

/// A condition of a Job or pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Aspect {
    /// Its name.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One word for the cause.
    pub reason: String,
    /// The cause in words.
    pub message: String,
    /// When `status` last changed.
    pub last_transition_time: Option<Time>,
}

/// A pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// Name, labels, and of the annotations only those that are judged.
    #[serde(deserialize_with = "lean")]
    pub metadata: ObjectMeta,
    /// Where it runs.
    pub spec: PodSpec,
    /// How far it is.
    pub status: PodStatus,
}

/// Where a pod runs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpec {
    /// The worker that it is bound to.
    pub node_name: String,
}

/// How far a pod is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: String,
    /// One word for why the pod as a whole failed, for example `Evicted`.
    pub reason: String,
    /// The same in words.
    pub message: String,
    /// The aspects of the pod.
    pub conditions: Vec<Aspect>,
    /// The containers that run before the runner.
    pub init_container_statuses: Vec<ContainerStatus>,
    /// The runner container.
    pub container_statuses: Vec<ContainerStatus>,
}

/// How far a container is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerStatus {
    /// Its name.
    pub name: String,
    /// How it is now.
    pub state: ContainerState,
    /// How it was before it was started again.
    pub last_state: ContainerState,
}

/// How a container is: one of the three.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ContainerState {
    /// It has not started.
    pub waiting: Option<Waiting>,
    /// It runs.
    pub running: Option<Running>,
    /// It has ended.
    pub terminated: Option<Terminated>,
}

/// Why a container has not started.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Waiting {
    /// One word.
    pub reason: String,
    /// The same in words.
    pub message: String,
}

/// A container that runs.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Running {}

/// How a container ended.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Terminated {
    /// What its process returned.
    pub exit_code: i32,
    /// One word.
    pub reason: String,
    /// What the process left as its last words.
    pub message: String,
    /// When it had started; the epoch, or absent, where it had not.
    pub started_at: Option<Time>,
    /// When it ended.
    pub finished_at: Option<Time>,
}

impl Job {
    /// The condition that ended it: `Complete` or `Failed`.
    pub fn end(&self) -> Option<&Aspect> {
        let ends = |it: &&Aspect| ["Complete", "Failed"].contains(&it.type_.as_str());
        self.status.conditions.iter().filter(ends).find(|it| it.status == "True")
    }

    /// Whether its owner, the controller, has that UID.
    pub fn is_owned_by(&self, uid: &str) -> bool {
        let owners = self.metadata.owner_references.iter().flatten();
        owners.into_iter().any(|it| it.controller == Some(true) && it.uid == uid)
    }

    /// What it runs.
    pub fn identity(&self) -> &str {
        annotation(&self.metadata, IDENTITY)
    }
}

impl Pod {
    /// Whether it may still do something: it has not ended.
    pub fn is_live(&self) -> bool {
        !matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    /// The condition of that type, where it holds.
    pub fn holds(&self, type_: &str) -> Option<&Aspect> {
        self.status.conditions.iter().find(|it| it.type_ == type_ && it.status == "True")
    }

    /// The condition of that type, where it does not hold.
    pub fn lacks(&self, type_: &str) -> Option<&Aspect> {
        self.status.conditions.iter().find(|it| it.type_ == type_ && it.status == "False")
    }

    /// All containers, those that run first in front.
    pub fn containers(&self) -> impl Iterator<Item = &ContainerStatus> {
        self.status.init_container_statuses.iter().chain(&self.status.container_statuses)
    }

    /// Whether any of its containers ever started that may change a host: the one that asks for host
    /// keys does not, and must not hide that the runner cannot start.
    pub fn has_started(&self) -> bool {
        let acts = |it: &&ContainerStatus| it.name != HOST_KEYS_CONTAINER;
        self.containers().filter(acts).any(ContainerStatus::has_started)
    }
}

impl ContainerStatus {
    /// Whether it ever started.
    fn has_started(&self) -> bool {
        let ran = |it: &ContainerState| {
            let since = it.terminated.as_ref().and_then(|it| it.started_at.as_ref());
            it.running.is_some() || since.is_some_and(|it| it.0 > Timestamp::UNIX_EPOCH)
        };
        ran(&self.state) || ran(&self.last_state)
    }
}

/// An annotation's value; empty where there is none.
pub fn annotation<'a>(metadata: &'a ObjectMeta, name: &str) -> &'a str {
    metadata.annotations.as_ref().and_then(|it| it.get(name)).map_or("", String::as_str)
}

/// The addresses of the hosts that a Job or pod works on.
pub fn addresses(metadata: &ObjectMeta) -> Vec<String> {
    serde_json::from_str(annotation(metadata, HOSTS)).unwrap_or_default()
}

/// A run's playbook and inventory stand in its pod's annotations: they are not kept.
fn lean<'de, D: Deserializer<'de>>(input: D) -> Result<ObjectMeta, D::Error> {
    let mut metadata = ObjectMeta::deserialize(input)?;
    if let Some(annotations) = &mut metadata.annotations {
        annotations.retain(|name, _| [RUN, HOSTS, IDENTITY].contains(&name.as_str()));
    }
    metadata.managed_fields = None;
    Ok(metadata)
}

macro_rules! resource {
    ($type:ty, $group:literal, $plural:literal, $kind:literal) => {
        impl Resource for $type {
            type DynamicType = ();
            type Scope = NamespaceResourceScope;

            fn kind((): &()) -> Cow<'_, str> {
                $kind.into()
            }

            fn group((): &()) -> Cow<'_, str> {
                $group.into()
            }

            fn version((): &()) -> Cow<'_, str> {
                "v1".into()
            }

            fn plural((): &()) -> Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

resource!(Job, "batch", "jobs", "Job");
resource!(Pod, "", "pods", "Pod");
