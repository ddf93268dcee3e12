//! What a role's template and a node have in common, and how deployments are steered.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::rollout_limits::Limits;
use crate::shared::{AnyMap, DataSource, NEVER, SecretReference, VolMounts, any_map};

/// How many hosts share a run when `batchSize` is absent.
pub const DEFAULT_BATCH_SIZE: usize = 50;

/// The fields of `deployStrategy` that steer all hosts of a role together; a node has none of them.
pub const STRATEGY_OF_ROLES: [&str; 3] = ["batchSize", "maxUnavailable", "pauseOnFailure"];

/// Why a node is refused with one of [`STRATEGY_OF_ROLES`].
const NOT_OF_NODES: &str = "it steers all hosts of a role together, so a node has none: set it in \
                       deployStrategy of the OpenStackDataPlaneRole or OpenStackDataPlane";

/// How hosts are reached and configured; what a node sets wins over its role.
#[derive(Clone, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSection {
    /// The template from which the host's network is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_config: Option<NetworkConfig>,
    /// The networks that the host is part of; a node's list replaces its role's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub networks: Vec<Network>,
    /// Name of the network over which the host is managed (variable `management_network`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub management_network: Option<String>,
    /// The user with which Ansible logs in over ssh; it needs sudo without a password.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[^\s-][^\s]*$"))]
    pub ansible_user: Option<String>,
    /// The port of the host's ssh server; 22 when neither node nor role give one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub ansible_port: Option<i32>,
    /// Ansible variables of any type; a node's win over its role's, key by key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "any_map")]
    pub ansible_vars: AnyMap,
    /// `ConfigMaps` and Secrets whose keys become Ansible variables; later entries win over earlier
    /// ones, the fields and `ansibleVars` beside the list win over it, and a node's list wins over
    /// all that its role gives. A value that is JSON keeps its type; values of Secrets are data and
    /// never templates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = Rule::new(
        r"self.all(it, (has(it.configMapRef) && has(it.configMapRef.name)) || (!has(it.configMapRef) && has(it.secretRef) && has(it.secretRef.name)))")
        .message("each entry names a ConfigMap (configMapRef.name) or a Secret (secretRef.name)"))]
    pub ansible_vars_from: Vec<DataSource>,
    /// A Secret with the ssh key in `ssh-privatekey` and, if host keys are known in advance, lines
    /// for ssh in `known_hosts`; keys of hosts that it does not name are learned at first contact.
    #[serde(rename = "ansibleSSHPrivateKeySecret", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub ansible_ssh_private_key_secret: Option<String>,
    /// Volumes for the pods of the runs; a node's list replaces its role's. Mounts over
    /// `/runner/env`, `/runner/inventory` and `/runner/project` are refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = Rule::new(
        r"self.all(it, it.mounts.all(m, !m.mountPath.matches('^/+runner(/*$|/+(env|inventory|project)(/|$))')))")
        .message("/runner and its env, inventory and project are reserved for the operator: mount \
                  elsewhere"))]
    pub extra_mounts: Vec<VolMounts>,
    /// A Secret with this host's cloud-init user data, for bare metal provisioning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_data: Option<SecretReference>,
    /// A Secret with this host's network data, for bare metal provisioning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_data: Option<SecretReference>,
}

/// The template from which a host's network is configured.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkConfig {
    /// A Jinja2 template of an `os-net-config` configuration, filled from the Ansible variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 131_072))]
    pub template: Option<String>,
}

/// A network that a host is part of.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Network {
    /// Name of the network.
    #[schemars(length(max = 63), regex(pattern = r"^[a-zA-Z0-9][a-zA-Z0-9\-_]*[a-zA-Z0-9]$"))]
    pub name: String,
    /// Name of its subnet.
    #[schemars(length(max = 63), regex(pattern = r"^[a-zA-Z0-9][a-zA-Z0-9\-_]*[a-zA-Z0-9]$"))]
    pub subnet_name: String,
    /// The host's address on it; where absent, a node set's host gets one if the cluster manages
    /// addresses.
    #[serde(rename = "fixedIP", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 45))]
    pub fixed_ip: Option<String>,
    /// Whether the host's default route goes this way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_route: Option<bool>,
}

/// How deployments are steered.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeployStrategy {
    /// Whether changes are deployed: the node's value if present, else its role's, else its data
    /// plane's, else no.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deploy: Option<bool>,
    /// Only tasks with one of these tags run (`--tags`); such a run makes no host ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub ansible_tags: Option<String>,
    /// Only these hosts are touched (`--limit`); the others keep their state.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub ansible_limit: Option<String>,
    /// Tasks with one of these tags do not run (`--skip-tags`); such a run makes no host ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub ansible_skip_tags: Option<String>,
    /// How many hosts of a role share one run at most; 50 when absent. A node has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 500))]
    pub batch_size: Option<i32>,
    /// How many hosts of a role that were in service may be out of it at once, because they are
    /// deployed again, fail or are down: a number, or a share in percent, rounded down and at least
    /// one; 20% when absent. A node has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "max_unavailable_schema")]
    pub max_unavailable: Option<IntOrString>,
    /// Whether no further host of a role is begun with while one of them fails. A node has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_on_failure: Option<bool>,
}

/// The schema of a node's strategy: it refuses what steers all hosts of a role together.
pub(super) fn strategy_of_node(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = <Option<DeployStrategy>>::json_schema(generator);
    for field in STRATEGY_OF_ROLES {
        let found = schema.pointer_mut(&format!("/properties/{field}"));
        if let Some(found) = found.and_then(Value::as_object_mut) {
            let never = json!([{ "rule": NEVER, "message": NOT_OF_NODES }]);
            found.insert("x-kubernetes-validations".into(), never);
        }
    }
    schema
}

/// A positive number, or a share from 1% to 100%.
pub(super) fn max_unavailable_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "nullable": true,
        "x-kubernetes-validations": [{
            "rule": "type(self) == int ? self >= 1 && self <= 2147483647 : self.matches('^([1-9][0-9]?|100)%$')",
            "message": "must be a number of at least 1, or a percentage from 1% to 100%",
        }],
    })
}

impl DeployStrategy {
    /// What is allowed of a rollout.
    pub fn limits(&self) -> Limits {
        Limits {
            max_unavailable: self.max_unavailable.clone(),
            pause_on_failure: self.pause_on_failure.unwrap_or(false),
        }
    }

    /// How many hosts share one run at most.
    pub fn batch_size(&self) -> usize {
        let size = |it: i32| usize::try_from(it.clamp(1, 500)).unwrap_or(1);
        self.batch_size.map_or(DEFAULT_BATCH_SIZE, size)
    }

    /// These values, and the inherited one for each that is not set; an empty text is not set.
    #[must_use]
    pub fn over(self, inherited: Self) -> Self {
        let Self {
            deploy,
            ansible_tags,
            ansible_limit,
            ansible_skip_tags,
            batch_size,
            max_unavailable,
            pause_on_failure,
        } = inherited;
        let text = |own: Option<String>, inherited: Option<String>| {
            [own, inherited].into_iter().flatten().find(|it| !it.is_empty())
        };
        Self {
            deploy: self.deploy.or(deploy),
            ansible_tags: text(self.ansible_tags, ansible_tags),
            ansible_limit: text(self.ansible_limit, ansible_limit),
            ansible_skip_tags: text(self.ansible_skip_tags, ansible_skip_tags),
            batch_size: self.batch_size.or(batch_size),
            max_unavailable: self.max_unavailable.or(max_unavailable),
            pause_on_failure: self.pause_on_failure.or(pause_on_failure),
        }
    }
}
