//! `OpenStackAnsibleEE`: one run of Ansible in a Job, and what it did to each host.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, EnvVar, LocalObjectReference, PodDNSConfig, ResourceRequirements, Toleration,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shared::{
    AnyMap, MAX_EXTRA_MOUNTS, VolMounts, any_map, default_backoff_limit,
    default_env_config_map_name, default_true,
};
use crate::conditions::{Condition, has_conditions, truncated};
use crate::facts;

has_conditions!(AnsibleEe);

/// The longest deadline of a run, in seconds: a week.
pub const MAX_DEADLINE: i64 = 604_800;

/// What shall be run.
#[derive(Clone, CustomResource, Debug, Deserialize, KubeSchema, PartialEq, Serialize)]
#[kube(
    group = "ansibleee.openstack.org",
    version = "v1beta1",
    kind = "OpenStackAnsibleEE",
    root = "AnsibleEe",
    plural = "openstackansibleees",
    doc = "OpenStackAnsibleEE runs Ansible once in a Job and reports the result for each host.",
    namespaced,
    status = "AnsibleEeStatus",
    derive = "PartialEq",
    derive = "Default",
    category = "edpm",
    shortname = "osaee",
    shortname = "osaees",
    shortname = "osansible",
    shortname = "osansibles",
    label("edpm.openstack.org/managed-by", "edpm-operators"),
    printcolumn(name = "JobStatus", type_ = "string", json_path = ".status.JobStatus"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#
    ),
    // A column has one value.
    printcolumn(name = "FirstHost", type_ = "string", json_path = ".spec.hosts[0].name"),
    printcolumn(name = "Playbook", type_ = "string", json_path = ".spec.playbook"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Started", type_ = "date", json_path = ".status.startTime", priority = 1),
    printcolumn(name = "Ended", type_ = "date", json_path = ".status.completionTime"),
    printcolumn(
        name = "WaitingFor",
        type_ = "string",
        json_path = ".status.waitingFor",
        priority = 1
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(
    "!has(self.role) || !(has(self.playbook) || has(self.playbookContents) || has(self.play))")
    .message("role and a playbook are mutually exclusive: keep one"))]
pub struct AnsibleEeSpec {
    /// Name or path of the playbook, for example `osp.edpm.nova`; `playbook.yaml` when neither
    /// this nor `playbookContents`, `role` or `args` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub playbook: Option<String>,
    /// The playbook itself, as YAML text; it wins over `playbook`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 262_144))]
    pub playbook_contents: Option<String>,
    /// Deprecated, use `playbookContents`: the playbook itself, as YAML text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 262_144))]
    pub play: Option<String>,
    /// Name of an Ansible role that is run as it is on all hosts, for example
    /// `osp.edpm.edpm_nova`, or of a folder in `/usr/share/ansible/roles`; not together with a
    /// playbook.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub role: Option<String>,
    /// The runner image; the operator's default when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub image: Option<String>,
    /// All arguments of the container; when given, neither `playbook` nor `role` is passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(max = 4096)))]
    pub args: Vec<String>,
    /// Whether the pod sleeps for a day, so that a user can inspect it, and runs no Ansible.
    #[serde(default)]
    pub debug: bool,
    /// Name of the runner container in the pod.
    #[serde(default = "default_name")]
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// A ConfigMap whose keys become environment variables, if it exists when the run starts.
    #[serde(default = "default_env_config_map_name")]
    #[schemars(length(max = 253))]
    pub env_config_map_name: String,
    /// Environment variables of the runner container; they win over `envConfigMapName`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200))]
    #[x_kube(validation = Rule::new(
        "self.all(it, it.name != 'ANSIBLE_ENABLE_TASK_DEBUGGER')")
        .message("ansible-runner has no terminal for ANSIBLE_ENABLE_TASK_DEBUGGER: remove it"))]
    pub env: Vec<EnvVar>,
    /// Whether the pod's containers are started again in place after a failure.
    #[serde(default)]
    pub restart_policy: RestartPolicy,
    /// Whether the Job stays after its result was recorded; false lets it go ten minutes later.
    #[serde(default = "default_true")]
    pub preserve_jobs: bool,
    /// Accepted for compatibility and without effect: the image decides under which user it runs.
    #[serde(default = "default_uid")]
    pub uid: i64,
    /// The inventory, as text; a mounted one is used when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 262_144))]
    pub inventory: Option<String>,
    /// Volumes and where they are mounted in the runner container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_EXTRA_MOUNTS))]
    pub extra_mounts: Vec<VolMounts>,
    /// How often the Job starts another pod after a failed one.
    #[serde(default = "default_backoff_limit")]
    #[schemars(range(min = 0))]
    pub backoff_limit: i32,
    /// `NetworkAttachmentDefinitions` in the same namespace that the pod is connected to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 253)))]
    pub network_attachments: Vec<String>,
    /// Options for `ansible-playbook`, for example `--tags a --limit host1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32_768))]
    pub cmd_line: Option<String>,
    /// Containers that run to their end before Ansible starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub init_containers: Vec<Container>,
    /// The `ServiceAccount` of the pod, one of those that the operator's options allow; the
    /// namespace's default one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub service_account_name: Option<String>,
    /// DNS of the pod; when given, nothing of the cluster's own DNS is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns_config: Option<PodDNSConfig>,
    /// Variables that win over all others (`--extra-vars`), of any type.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "any_map")]
    pub extra_vars: AnyMap,
    /// Facts of the hosts that the plays read as variables, for example `ansible_interfaces`; without
    /// them facts are in `ansible_facts` alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 63)))]
    #[x_kube(validation = Rule::new(format!("self.all(it, it in {:?})", facts::NAMES))
        .message("a fact cannot be a variable: read it as ansible_facts[...] in the playbook"))]
    pub fact_variables: Vec<String>,
    /// The hosts that the run touches: it waits while another run touches one of them, and each
    /// gets a result of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500))]
    pub hosts: Vec<RunHost>,
    /// A digest of mounted inputs, set by the creator of this object: another digest is another
    /// run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub input_hash: Option<String>,
    /// Seconds after which a run that has not ended is stopped and counts as failed. Where absent,
    /// runs of the operators have 7200, and others what ansibleee-operator is configured with:
    /// 14400 by default. At most a week; a run that was stored with more is stopped after a week.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_DEADLINE))]
    pub active_deadline_seconds: Option<i64>,
    /// Labels of the Kubernetes nodes that the pod may run on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub node_selector: BTreeMap<String, String>,
    /// Taints of Kubernetes nodes that the pod tolerates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub tolerations: Vec<Toleration>,
    /// What the runner container requests of CPU and memory, and its limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// Secrets with credentials for the image's registry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub image_pull_secrets: Vec<LocalObjectReference>,
}

impl AnsibleEeSpec {
    /// The inline playbook, under its present or its deprecated name.
    pub fn contents(&self) -> Option<&str> {
        self.playbook_contents.as_deref().or(self.play.as_deref())
    }
}

impl Default for AnsibleEeSpec {
    fn default() -> Self {
        serde_json::from_str("{}").expect("every field of the spec has a default")
    }
}

fn default_name() -> String {
    "openstackansibleee".into()
}

fn default_uid() -> i64 {
    1001
}

/// Whether a pod's containers are started again in place.
#[derive(
    Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
pub enum RestartPolicy {
    /// They are not: a failed pod stays as it is.
    #[default]
    Never,
    /// They are, after a failure.
    OnFailure,
}

/// A host that a run touches.
#[derive(
    Clone, Debug, Default, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "camelCase")]
pub struct RunHost {
    /// The host's name in the inventory.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Where it is reached, as `host:port`: two names of one address are one host.
    #[schemars(length(min = 1, max = 300))]
    pub address: String,
    /// Asks for the host's own ssh key before Ansible starts: a first container reads it with
    /// `ssh-keyscan` and puts it into `/runner/host_keys/known_hosts`; at most 80 hosts of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scan_host_key: Option<HostKeyScan>,
}

/// How the host's own ssh key is asked for.
#[derive(
    Clone, Debug, Default, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "camelCase")]
pub struct HostKeyScan {
    /// The only key that the run trusts, as `SHA256:…`; any key is trusted when absent. The status
    /// has the key that the host offers in either case.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub fingerprint: Option<String>,
}

/// What was seen of the run.
#[derive(Clone, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AnsibleEeStatus {
    /// The `metadata.generation` that the status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The aspects of the run, `Ready` first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// How far the run is.
    #[serde(rename = "JobStatus", skip_serializing_if = "Option::is_none")]
    pub job_status: Option<JobStatus>,
    /// Digests: `input` of what shall run, `ansibleee` of what last succeeded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hash: BTreeMap<String, String>,
    /// Addresses of the pod on each attached network.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub network_attachments: BTreeMap<String, Vec<String>>,
    /// The term of the leader that last reconciled the run while it waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub term: Option<String>,
    /// When and by which leader the run was let in, recorded before its Job is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admission: Option<Admission>,
    /// The run's Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<JobRef>,
    /// The pod that ran last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_name: Option<String>,
    /// How the runner container ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// One CamelCase word for why the run failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What happened on each of `spec.hosts`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub hosts: Vec<HostResult>,
    /// What the hosts whose key was asked for offered, trusted or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub host_keys: Vec<HostKeyReport>,
    /// The failed tasks, first one first; long lists are cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<HostFailure>,
    /// What the playbook itself says of the run: what it gave to `set_stats` as `edpm_report`,
    /// without `per_host`. Absent where it does not fit beside the results into 4,096 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub report: Option<String>,
    /// What the run waits for before it may start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<String>,
    /// When the run was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When the run ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
}

/// How far a run is.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
pub enum JobStatus {
    /// It has not started.
    Pending,
    /// It has started.
    Running,
    /// It ended well on every host.
    Succeeded,
    /// It ended otherwise.
    Failed,
}

impl JobStatus {
    /// Returns whether the run has ended.
    pub const fn is_final(self) -> bool {
        match self {
            Self::Succeeded | Self::Failed => true,
            Self::Pending | Self::Running => false,
        }
    }
}

/// The decision that a run may start.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Admission {
    /// The term of the leader that decided.
    pub term: String,
    /// When it decided.
    pub time: Time,
}

/// A run's Job.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobRef {
    /// Name of the Job.
    pub name: String,
    /// UID of the Job, once it was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

/// What a run did to one host.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostResult {
    /// The host's name in the inventory.
    pub name: String,
    /// How the run ended there.
    pub result: HostOutcome,
    /// How many tasks changed something there, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<i64>,
}

/// How a run ended on one host.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
pub enum HostOutcome {
    /// Every task succeeded.
    Ok,
    /// A task failed.
    Failed,
    /// The host did not answer.
    Unreachable,
    /// The host refused the ssh key.
    KeyRefused,
    /// The host's own key is unknown or has changed.
    HostKeyMismatch,
    /// No task was tried on the host.
    NotReached,
    /// The run did not report it.
    Unknown,
}

/// What a host offered as its own ssh key.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostKeyReport {
    /// The host's name in the inventory.
    pub name: String,
    /// The key, as `ssh-ed25519 AAAA…`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<HostKeyProblem>,
}

/// Why a host's own ssh key was not learned.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
pub enum HostKeyProblem {
    /// The host did not answer.
    NoAnswer,
    /// The host has keys, and none of type ed25519.
    NoEd25519Key,
    /// The runner image has no `ssh-keyscan`.
    NoScanner,
}

/// A task that failed on a host.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostFailure {
    /// The host's name in the inventory.
    pub host: String,
    /// Name of the play.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub play: String,
    /// Name of the task.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub task: String,
    /// File and line of the task.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The first lines of what the task said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl HostFailure {
    /// The path of a playbook whose text is a part of its run.
    pub const PLAYBOOK: &str = "/runner/project/playbook.yaml";

    /// Returns the file of the task; `None` where the path is not one of a file and a line.
    pub fn file(&self) -> Option<&str> {
        let (file, line) = self.path.rsplit_once(':')?;
        let is_line = !line.is_empty() && line.bytes().all(|it| it.is_ascii_digit());
        is_line.then_some(file)
    }

    /// What the task said in one line: its first two lines of text, without the frames and full
    /// stops that ssh puts around its warnings.
    pub fn gist(&self) -> String {
        let text = |line: &str| line.trim_matches(|it: char| " @.:…".contains(it)).to_owned();
        let without_frame = self.message.replace("@@", " ");
        let lines = without_frame.lines().map(text).filter(|it| !it.is_empty());
        let line = lines.take(2).collect::<Vec<_>>().join(": ");
        truncated(&line, GIST_LIMIT)
    }
}

/// How long the gist of a failure may be.
const GIST_LIMIT: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gist_of_a_failure_is_one_line_that_tells_the_cause() {
        let gist = |message: &str| {
            HostFailure { message: message.into(), ..HostFailure::default() }.gist()
        };
        assert_eq!(
            gist("non-zero return code\ncat: /x: No such file\n"),
            "non-zero return code: cat: /x: No such file"
        );
        assert_eq!(
            gist("a@b: Permission denied (publickey)."),
            "a@b: Permission denied (publickey)"
        );
        let changed = "Failed to connect: @@@@@@\n@    WARNING: HAS CHANGED!     @\nIT IS";
        assert_eq!(gist(changed), "Failed to connect: WARNING: HAS CHANGED!");
        assert_eq!(gist(""), "");
        assert!(gist(&"x".repeat(900)).len() <= GIST_LIMIT);
    }
}
