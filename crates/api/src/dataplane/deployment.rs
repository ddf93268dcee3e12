//! `OpenStackDataPlaneDeployment`: one deployment of node sets, and what has become of it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::{CustomResource, KubeSchema, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::condition_types::READINESS_GATES_READY;
use super::execution_summary::ExecutionSummary;
use super::node_section::max_unavailable_schema;
use super::node_set::NodeSet;
use crate::conditions::{Condition, ConditionStatus, Severity, find};
use crate::rollout_limits::Limits;
use crate::shared::{
    AnyMap, DNS_SUBDOMAIN, any_map, default_backoff_limit, default_env_config_map_name,
    default_true,
};

/// What is deployed once; it cannot be changed afterwards.
#[derive(Clone, CustomResource, Debug, Deserialize, KubeSchema, PartialEq, Serialize)]
#[kube(
    group = "dataplane.openstack.org",
    version = "v1beta1",
    kind = "OpenStackDataPlaneDeployment",
    root = "Deployment",
    doc = "OpenStackDataPlaneDeployment deploys services to the hosts of node sets, once.",
    namespaced,
    status = "DeploymentStatus",
    derive = "PartialEq",
    derive = "Default",
    category = "edpm",
    shortname = "osdpd",
    shortname = "osdpdeployment",
    shortname = "osdpdeployments",
    label("edpm.openstack.org/managed-by", "edpm-operators"),
    validation = Rule::new("self.metadata.name.size() <= 63")
        .message("the name is also the value of labels: at most 63 characters"),
    printcolumn(name = "NodeSets", type_ = "string", json_path = ".spec.nodeSets"),
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self == oldSelf")
    .message("OpenStackDataPlaneDeployment Spec is immutable: create another deployment"))]
pub struct DeploymentSpec {
    /// Names of the `OpenStackDataPlaneNodeSets` in the same namespace that are deployed.
    #[schemars(length(min = 1, max = 64), inner(length(max = 253), regex(pattern = DNS_SUBDOMAIN)))]
    pub node_sets: Vec<String>,
    /// How often a service is tried again on a host before the host counts as failed.
    #[serde(default = "default_backoff_limit")]
    #[schemars(range(min = 0))]
    pub backoff_limit: i32,
    /// Whether the Jobs stay after their results were recorded; false lets them go ten minutes
    /// later.
    #[serde(default = "default_true")]
    pub preserve_jobs: bool,
    /// Only tasks with one of these tags run (`--tags`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub ansible_tags: Option<String>,
    /// Only these hosts are touched (`--limit`); the others keep their state.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub ansible_limit: Option<String>,
    /// Tasks with one of these tags do not run (`--skip-tags`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub ansible_skip_tags: Option<String>,
    /// Variables of any type that win over all others (`--extra-vars`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "any_map")]
    pub ansible_extra_vars: AnyMap,
    /// Names of the `OpenStackDataPlaneServices` that are deployed instead of those that the node
    /// sets list; none means that the node sets' lists hold.
    // The default is part of the schema, so that an absent list and an empty one are the same spec.
    #[serde(default)]
    #[schemars(length(max = 64), inner(length(max = 253), regex(pattern = DNS_SUBDOMAIN)))]
    pub services_override: Vec<String>,
    /// After how many seconds what is missing is looked for again; accepted without effect, for
    /// what is missing is noticed as it appears.
    #[serde(default = "default_requeue_time")]
    #[schemars(range(min = 1))]
    pub deployment_requeue_time: i64,
    /// Labels of the Kubernetes nodes that the pods of the runs may be on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub ansible_job_node_selector: BTreeMap<String, String>,
    /// A `ConfigMap` whose keys become environment variables of the runs, if it exists.
    #[serde(rename = "ansibleEEEnvConfigMapName", default = "default_env_config_map_name")]
    #[schemars(length(max = 253))]
    pub ansible_ee_env_config_map_name: String,
    /// How many hosts that were in service may be out of it at once, because they are deployed
    /// again, fail or are down: a number, or a share in percent of all hosts of the deployment,
    /// rounded down and at least one; 20% when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "max_unavailable_schema")]
    pub max_unavailable: Option<IntOrString>,
    /// Whether no further host is begun with while one of the deployment fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_on_failure: Option<bool>,
}

impl DeploymentSpec {
    /// Whether only tasks with some tags run, or on hosts that only Ansible can determine. Such a
    /// deployment completes no host.
    pub fn is_partial(&self) -> bool {
        let is_set = |it: &Option<String>| it.as_ref().is_some_and(|it| !it.is_empty());
        let is_open = |it: &String| it.contains(['~', '@', '[']);
        is_set(&self.ansible_tags)
            || is_set(&self.ansible_skip_tags)
            || self.ansible_limit.as_ref().is_some_and(is_open)
    }

    /// Whether it leaves hosts out.
    pub fn is_limited(&self) -> bool {
        self.ansible_limit.as_ref().is_some_and(|it| !it.is_empty() && it != "*")
    }

    /// What is allowed of a rollout.
    pub fn limits(&self) -> Limits {
        Limits {
            max_unavailable: self.max_unavailable.clone(),
            pause_on_failure: self.pause_on_failure.unwrap_or(false),
        }
    }
}

impl Default for DeploymentSpec {
    fn default() -> Self {
        serde_json::from_str(r#"{"nodeSets": []}"#).expect("every other field has a default")
    }
}

fn default_requeue_time() -> i64 {
    15
}

/// What was seen of the deployment.
#[derive(Clone, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentStatus {
    /// The `metadata.generation` that the status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The aspects of the deployment, `Ready` first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// The conditions of each node set's part, by the node set's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_set_conditions: BTreeMap<String, Vec<Condition>>,
    /// What the deployment does with each node set, from its beginning on, by the node set's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub node_sets: BTreeMap<String, DeploymentNodeSet>,
    /// What failed on the first five hosts that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<DeploymentFailure>,
    /// Digest of the inputs of each run, by the run's name.
    #[serde(rename = "ansibleEEHashes", default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub ansible_ee_hashes: BTreeMap<String, String>,
    /// What Ansible counted in each run that ended, by the run's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub ansible_execution_summaries: BTreeMap<String, ExecutionSummary>,
    /// Digest of each `ConfigMap` that was used, by its name; `mixed` where hosts or services were
    /// given different contents.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub config_map_hashes: BTreeMap<String, String>,
    /// Digest of each Secret that was used, by its name; `mixed` where hosts or services were given
    /// different contents.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub secret_hashes: BTreeMap<String, String>,
    /// The `configHash` of each node set that was deployed, by its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub node_set_hashes: BTreeMap<String, String>,
    /// Digest of the bare metal of each node set that was deployed, by its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub bmh_ref_hashes: BTreeMap<String, String>,
    /// Images of the control plane's version that were deployed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub container_images: BTreeMap<String, String>,
    /// The control plane's version that was deployed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployed_version: Option<String>,
    /// Whether everything was deployed: nothing happens afterwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployed: Option<bool>,
}

/// The type of a deployment's condition that reports how far it is.
pub const DEPLOYMENT_READY: &str = "DeploymentReady";
/// The reason of [`DEPLOYMENT_READY`] of a deployment that failed for good.
pub const BACKOFF_LIMIT_EXCEEDED: &str = "BackoffLimitExceeded";

impl Deployment {
    /// Whether it is over, well or not: nothing of it runs any more, and nothing ever will.
    pub fn has_ended(&self) -> bool {
        let Some(status) = &self.status else { return false };
        let has_failed = find(&status.conditions, DEPLOYMENT_READY).is_some_and(|it| {
            it.status == ConditionStatus::False
                && it.severity == Some(Severity::Error)
                && it.reason == BACKOFF_LIMIT_EXCEEDED
        });
        status.deployed == Some(true) || has_failed
    }

    /// Whether nothing of it runs any more: it has ended, or only readiness gates keep it open, which
    /// have their condition once every service has succeeded on every host.
    pub fn has_run(&self) -> bool {
        let gates = find(self.conditions(), READINESS_GATES_READY);
        self.has_ended() || gates.is_some()
    }

    /// What it does with a node set; `None` if it has not begun there, or began with another one of
    /// that name.
    pub fn part_of(&self, node_set: &NodeSet) -> Option<&DeploymentNodeSet> {
        let part = self.status.as_ref()?.node_sets.get(&node_set.name_any())?;
        part.is_of(node_set).then_some(part)
    }
}

/// What a deployment does with one node set.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentNodeSet {
    /// UID of the node set with which the deployment began: another one of its name is not meant.
    pub uid: String,
    /// When the deployment began with it: a host whose node or machine is younger takes no part.
    pub since: Time,
    /// The services that run on this node set's hosts, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<String>,
    /// Those of them that begin with another node set and are for all: they come last here, and what
    /// precedes them does not wait for the other node set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joined: Vec<String>,
    /// The node set's `configHash` when its deployment began.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub config_hash: String,
    /// The hosts that take part, by their names in the inventory, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
}

impl DeploymentNodeSet {
    /// Whether it is about this node set, and not about one that had its name before.
    pub fn is_of(&self, node_set: &NodeSet) -> bool {
        node_set.uid().is_some_and(|it| it == self.uid)
    }
}

/// What failed on a host.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentFailure {
    /// The host's node set.
    pub node_set: String,
    /// The host's name in the inventory.
    pub host: String,
    /// The service that failed there.
    pub service: String,
    /// One CamelCase word for the cause.
    pub reason: String,
    /// What failed, and what to do next.
    pub message: String,
}
