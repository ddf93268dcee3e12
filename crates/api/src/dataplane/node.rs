//! `OpenStackDataPlaneNode`: one host, and how far its deployment is.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::EnvVar;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::disruption::{Disruption, DisruptionHolder, DisruptionTarget, SeenDeployment};
use super::host_machine::HostMachine;
use super::node_section::{DeployStrategy, NodeSection, max_unavailable_schema, strategy_of_node};
use super::node_set::HostState;
use super::role::Role;
use super::service_run::ServiceRun;
use crate::baremetal::BaremetalHost;
use crate::conditions::Condition;
use crate::shared::{AnyMap, DNS_SUBDOMAIN, VolMounts, optional_any_map};

/// Annotation on a role or a node; any new value asks for another attempt of every service.
pub const REDEPLOY: &str = "dataplane.openstack.org/redeploy";
/// End of the type of a condition on a node by which the operator of a service, under its own
/// prefix, requests another attempt of every service.
///
/// Only one that is True does; its reason and message are the value, and any new value is another
/// request.
pub const REDEPLOY_REQUESTED: &str = "/RedeployRequested";

/// Label of a node of a node set: the UID of that node set, and not of another one of the same name.
pub const NODE_SET_UID: &str = "dataplane.openstack.org/node-set-uid";

/// What is refused of an update while a machine is known by the host's name; what was accepted once
/// stays, so that a finalizer can be taken off whatever the host is called.
const HOST_KEEPS_ITS_NAME: &str = "\
    !has(self.status) || !has(self.status.machine) || !has(self.status.machine.host) \
    || (!has(self.status.machine.machine) && !has(self.status.machine.installation)) \
    || (has(self.spec.hostName) == has(oldSelf.spec.hostName) \
        && (!has(self.spec.hostName) || self.spec.hostName == oldSelf.spec.hostName)) \
    || (has(self.spec.hostName) ? self.spec.hostName : self.metadata.name) == self.status.machine.host \
    || (has(self.spec.hostName) ? self.spec.hostName : self.metadata.name)\
        .startsWith(self.status.machine.host + '.')";

/// What a node of a node set may not say, for its entry there says it.
const ENTRY_DESCRIBES: &str = "\
    !has(self.nodeSet) || !(has(self.hostName) || has(self.node) || has(self.role) \
        || has(self.baremetalSetTemplate) || has(self.baremetalHost) || has(self.ansibleHost) \
        || has(self.deployStrategy) || (has(self.services) && self.services.size() > 0) \
        || (has(self.env) && self.env.size() > 0) \
        || (has(self.networkAttachments) && self.networkAttachments.size() > 0))";

/// The host, and where it differs from its role.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[kube(
    group = "dataplane.openstack.org",
    version = "v1beta1",
    kind = "OpenStackDataPlaneNode",
    root = "Node",
    doc = "OpenStackDataPlaneNode describes one host outside the cluster and reports its \
           deployment progress.",
    namespaced,
    status = "NodeStatus",
    derive = "PartialEq",
    derive = "Default",
    category = "edpm",
    shortname = "osdpnode",
    shortname = "osdpnodes",
    label("edpm.openstack.org/managed-by", "edpm-operators"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#
    ),
    printcolumn(
        name = "UpToDate",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="UpToDate")].status"#
    ),
    printcolumn(name = "Group", type_ = "string", json_path = ".status.group"),
    printcolumn(name = "Address", type_ = "string", json_path = ".status.address"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        priority = 1
    ),
    validation = Rule::new(HOST_KEEPS_ITS_NAME)
        .message("the host has a machine that was requested under its name: it would be released, \
                  and another one deployed. Keep spec.hostName unchanged up to its first dot, or \
                  delete the node and create one with the new name")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.role) || !has(self.services) || self.services.size() == 0")
    .message("a node that names a role gets the role's services: leave out role or services"))]
#[x_kube(validation = Rule::new("!has(self.role) || !has(self.baremetalSetTemplate)")
    .message("a node that names a role gets its machine from the role's baremetalSetTemplate: \
              leave out role or baremetalSetTemplate, and put what differs for this host into \
              baremetalHost"))]
#[x_kube(validation = Rule::new(ENTRY_DESCRIBES)
    .message("a node of a node set is described by its entry in spec.nodes of the node set: change \
              that"))]
#[x_kube(validation = Rule::new("has(self.nodeSet) || !has(self.leaving)")
    .message("leaving is set by the operator on nodes of node sets alone"))]
#[x_kube(validation = Rule::new("has(self.nodeSet) == has(oldSelf.nodeSet)")
    .message("a node of a node set stays one, and no other node becomes one: delete it, and create \
              another"))]
pub struct NodeSpec {
    /// The host's own name; it is also where the host is reached when `ansibleHost` is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_SUBDOMAIN))]
    pub host_name: Option<String>,
    /// Where this host differs from its role's `nodeTemplate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeSection>,
    /// Name of the `OpenStackDataPlaneRole` in the same namespace whose template the host follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_SUBDOMAIN))]
    pub role: Option<String>,
    /// Name of the `OpenStackDataPlaneNodeSet` in the same namespace whose entry describes the host.
    /// The operator makes such a node for each entry; every other field is then the entry's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_SUBDOMAIN))]
    pub node_set: Option<String>,
    /// Whether the entry is gone, so that the host is cleaned up and goes; the operator sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaving: Option<bool>,
    /// Names of the `OpenStackDataPlaneServices` that are deployed to a host without a role, in this
    /// order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 253), regex(pattern = DNS_SUBDOMAIN)))]
    #[x_kube(validation = Rule::new("self.all(it, self.exists_one(other, other == it))")
        .message("each service may be listed once"))]
    pub services: Vec<String>,
    /// How bare metal is provisioned for a host without a role that has no operating system yet: the
    /// fields of an `OpenStackBaremetalSet`'s spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "optional_any_map")]
    pub baremetal_set_template: Option<AnyMap>,
    /// Where this host's machine differs from those of the others, for bare metal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baremetal_host: Option<BaremetalHost>,
    /// The address or name by which the host is reached over ssh.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[A-Za-z0-9:][A-Za-z0-9.:%_-]*$"))]
    pub ansible_host: Option<String>,
    /// Environment variables for the pods of the runs; the list replaces the role's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200))]
    pub env: Vec<EnvVar>,
    /// How deployments to this host are steered; each field wins over the role's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "strategy_of_node")]
    pub deploy_strategy: Option<DeployStrategy>,
    /// `NetworkAttachmentDefinitions` for the pods of the runs; without any, the role's list holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 253)))]
    pub network_attachments: Vec<String>,
}

impl Node {
    /// Returns the node set whose entry describes the host; `None` for a node of a role or of its own.
    pub fn node_set(&self) -> Option<&str> {
        self.spec.node_set.as_deref().filter(|it| !it.is_empty())
    }

    /// Returns whether the host goes: its entry is gone, or the node is being deleted.
    pub fn is_leaving(&self) -> bool {
        self.spec.leaving == Some(true) || self.metadata.deletion_timestamp.is_some()
    }

    /// Returns the deployment that waits to disturb the host; `None` if there is none.
    pub fn disruption_target(&self) -> Option<&DisruptionTarget> {
        self.status.as_ref()?.disruption.as_ref()?.target.as_ref()
    }

    /// Returns what other operators say about disturbing the host.
    pub fn disruption_holders(&self) -> &[DisruptionHolder] {
        let disruption = self.status.as_ref().and_then(|it| it.disruption.as_ref());
        disruption.map(|it| it.holders.as_slice()).unwrap_or_default()
    }

    /// Environment of the runs on the host: the node's list if it has one, else its role's.
    ///
    /// No status repeats it, for values may be secret; so every operator uses this function.
    pub fn effective_env(&self, role: Option<&Role>) -> Vec<EnvVar> {
        let own = self.spec.env.as_slice();
        own_or(own, role.map(|it| it.spec.env.as_slice()))
    }

    /// Mounts of the runs on the host: the node's list if it has one, else its role's.
    pub fn effective_extra_mounts(&self, role: Option<&Role>) -> Vec<VolMounts> {
        let own = self.spec.node.as_ref().map(|it| it.extra_mounts.as_slice());
        let inherited = role.and_then(|it| it.spec.node_template.as_ref());
        own_or(own.unwrap_or_default(), inherited.map(|it| it.extra_mounts.as_slice()))
    }
}

fn own_or<T: Clone>(own: &[T], inherited: Option<&[T]>) -> Vec<T> {
    if own.is_empty() { inherited.unwrap_or_default().to_vec() } else { own.to_vec() }
}

/// What was seen of the host, and what others need to know of it.
#[derive(Clone, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    /// The `metadata.generation` that the status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What the host belongs to, `Role/NAME` or `NodeSet/NAME`; absent for a host on its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The role that the status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_role: Option<ObservedRole>,
    /// The node set that the status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_node_set: Option<ObservedNodeSet>,
    /// The aspects of the node, `Ready` first; other operators may add one of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// The name of the ConfigMap with the inventory of this host alone. That of a host of a role is there
    /// once another operator has held its node by a finalizer, or where it has a machine, and once its
    /// ssh host key is known or its first deployment has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DNS_SUBDOMAIN))]
    pub inventory_config_map_name: Option<String>,
    /// The Secret with those of its variables that come from Secrets, where there are any; it is
    /// mounted beside the inventory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DNS_SUBDOMAIN))]
    pub inventory_secret_name: Option<String>,
    /// The ConfigMap with the inventory of hosts of the node's role, this one among them, for runs on
    /// several of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DNS_SUBDOMAIN))]
    pub shared_inventory_config_map_name: Option<String>,
    /// The Secret with those of their variables that come from Secrets, where there are any; it is
    /// mounted beside that inventory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DNS_SUBDOMAIN))]
    pub shared_inventory_secret_name: Option<String>,
    /// The Secret with the ssh key that is in effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh_key_secret_name: Option<String>,
    /// The network attachments that are in effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network_attachments: Vec<String>,
    /// Whether changes are deployed, from the node, its role or its data plane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deploy: Option<bool>,
    /// True when every service has succeeded on the host; absent before. On nodes of node sets also
    /// absent after a failure and while the host leaves; a deployment of some tasks alone does not
    /// change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployed: Option<bool>,
    /// The deployment that is at the host, or was last; only on nodes of node sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment: Option<NodeDeployment>,
    /// The first eight digits of the `configHash` with which all services last succeeded on the host:
    /// it was in service. Only on nodes of node sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployed_config_hash: Option<String>,
    /// Where the host was reached when all services last succeeded on it, as `host:port`. Only on
    /// nodes of node sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployed_address: Option<String>,
    /// Which deployment waits to disturb the host, and which operators allow that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disruption: Option<Disruption>,
    /// Variables of the host that other operators give. They are data and no templates, and a change
    /// of them asks for no deployment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    #[schemars(length(max = 8))]
    pub host_vars: Vec<HostVars>,
    /// How many hosts of the role that were in service may be out of it at once; 20% when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "max_unavailable_schema")]
    pub max_unavailable: Option<IntOrString>,
    /// Whether no further host of the role is begun with while one of them fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_on_failure: Option<bool>,
    /// The host's name in the inventory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_name: Option<String>,
    /// Where the host is reached, as `host:port`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The host's own ssh key as it was learned, `ssh-ed25519 AAAA…`; absent where `known_hosts`
    /// of the ssh Secret has the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_key: Option<String>,
    /// Which installation of the host this is: another value is another host under the same name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_instance: Option<String>,
    /// The host's machine, where one is provisioned for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<HostMachine>,
    /// How far each service is on this host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub services: Vec<ServiceRun>,
    /// What the host's certificates carry; absent unless `tlsEnabled` of its role is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<HostTls>,
    /// Digest of each input of the last completed deployment, by the input's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub deployed_inputs: BTreeMap<String, String>,
}

/// What the certificates of a host carry.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostTls {
    /// The host's name on each network, by the network's name in lower case.
    pub names: BTreeMap<String, String>,
    /// The host's address on each network, by the network's name in lower case.
    pub addresses: BTreeMap<String, String>,
}

/// The role that a node's status describes.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObservedRole {
    /// Name of the role.
    pub name: String,
    /// UID of the role.
    pub uid: String,
    /// The role's `metadata.generation`.
    pub generation: i64,
}

impl ObservedRole {
    /// Returns what a status says of a role that it describes.
    pub fn of(role: &Role) -> Self {
        let role = &role.metadata;
        Self {
            name: role.name.clone().unwrap_or_default(),
            uid: role.uid.clone().unwrap_or_default(),
            generation: role.generation.unwrap_or_default(),
        }
    }
}

/// The node set that a node's status describes.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObservedNodeSet {
    /// Name of the node set.
    pub name: String,
    /// UID of the node set.
    pub uid: String,
    /// The node set's `metadata.generation`.
    pub generation: i64,
    /// The host's key in `spec.nodes`, which may differ from the host's name; absent once the entry is
    /// gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// The deployment that is at a host of a node set, or was last.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeDeployment {
    /// Name of the deployment.
    pub name: String,
    /// UID of the deployment.
    pub uid: String,
    /// How far the host is.
    pub state: HostState,
    /// How many times a deployment has begun or was tried again on the host; it falls only where the
    /// host is installed anew.
    pub attempt: i64,
    /// When the state was entered.
    pub since: Time,
    /// Whether it runs only some tasks, so that its success is none of the whole host.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
}

impl NodeDeployment {
    /// Returns the attempt if it has ended well on the host.
    #[must_use]
    pub fn succeeded(&self) -> Option<SeenDeployment> {
        let attempt = || SeenDeployment { deployment: self.uid.clone(), attempt: self.attempt };
        (self.state == HostState::Deployed).then(attempt)
    }
}

/// Variables of a host that one operator gives.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostVars {
    /// The prefix of the operator's conditions, for example `nova.openstack.org`.
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_SUBDOMAIN))]
    pub name: String,
    /// The variables by their names.
    #[schemars(extend(
        "x-kubernetes-map-type" = "atomic",
        "maxProperties" = 16,
        "additionalProperties" = { "type": "string", "maxLength": 256 }
    ))]
    pub vars: BTreeMap<String, String>,
}
