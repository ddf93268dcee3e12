//! `OpenStackDataPlaneNodeSet`: hosts that are deployed together, and how far each is.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::EnvVar;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::ansible_opts::AnsibleOpts;
use super::bare_metal::NodeSetMachines;
use super::execution_summary::ExecutionSummary;
use super::host_machine::HostMachine;
use super::node_section::Network;
use crate::baremetal::BaremetalHost;
use crate::conditions::Condition;
use crate::shared::{DNS_SUBDOMAIN, SecretReference, VolMounts, is_zero};

/// How many hosts one node set may have: its status lists each of them.
pub const MAX_HOSTS: usize = 500;

/// What is refused of an update while machines are known by the names of hosts; what was accepted once
/// stays. The name of a host is `hostName`, or its key; a template with a domain takes `hostName` only
/// where that has one of its own.
const HOSTS_KEEP_THEIR_NAMES: &str = "\
    !has(self.status) || !has(self.status.machines) || self.status.machines.all(it, \
        !has(self.status.machines[it].node) || !has(self.status.machines[it].host) \
        || (!has(self.status.machines[it].machine) && !has(self.status.machines[it].installation)) \
        || !(self.status.machines[it].node in self.spec.nodes) \
        || !(self.status.machines[it].node in oldSelf.spec.nodes) \
        || (has(self.spec.nodes[self.status.machines[it].node].hostName) == has(oldSelf.spec.nodes[self.status.machines[it].node].hostName) \
            && (!has(self.spec.nodes[self.status.machines[it].node].hostName) \
                || self.spec.nodes[self.status.machines[it].node].hostName == oldSelf.spec.nodes[self.status.machines[it].node].hostName)) \
        || (has(self.spec.nodes[self.status.machines[it].node].hostName) && self.spec.nodes[self.status.machines[it].node].hostName != '' \
                && (self.spec.nodes[self.status.machines[it].node].hostName.contains('.') \
                    || !has(self.spec.baremetalSetTemplate) || !has(self.spec.baremetalSetTemplate.domainName) \
                    || self.spec.baremetalSetTemplate.domainName == '') \
            ? self.spec.nodes[self.status.machines[it].node].hostName == self.status.machines[it].host \
                || self.spec.nodes[self.status.machines[it].node].hostName.startsWith(self.status.machines[it].host + '.') \
            : self.status.machines[it].node == self.status.machines[it].host \
                || self.status.machines[it].node.startsWith(self.status.machines[it].host + '.')))";

/// The hosts, what they have in common, and the services that are deployed to them.
#[derive(Clone, CustomResource, Debug, Deserialize, KubeSchema, PartialEq, Serialize)]
#[kube(
    group = "dataplane.openstack.org",
    version = "v1beta1",
    kind = "OpenStackDataPlaneNodeSet",
    root = "NodeSet",
    doc = "OpenStackDataPlaneNodeSet describes hosts outside the cluster that OpenStackDataPlaneDeployments deploy services to.",
    namespaced,
    status = "NodeSetStatus",
    derive = "PartialEq",
    derive = "Default",
    category = "edpm",
    shortname = "osdpns",
    shortname = "osdpnodeset",
    shortname = "osdpnodesets",
    label("edpm.openstack.org/managed-by", "edpm-operators"),
    label("backup.openstack.org/restore", "true"),
    label("backup.openstack.org/category", "dataplane"),
    label("backup.openstack.org/restore-order", "60"),
    validation = Rule::new("self.metadata.name.size() <= 63")
        .message("the name is also the value of labels: at most 63 characters"),
    validation = Rule::new(HOSTS_KEEP_THEIR_NAMES)
        .message("a host has a machine that was requested under its name, see status.machines: it \
                  would be released, and another one deployed. Keep hostName in spec.nodes \
                  unchanged up to its first dot, or remove the node and add it under another key"),
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Nodes", type_ = "integer", json_path = ".status.nodes"),
    printcolumn(name = "ReadyNodes", type_ = "integer", json_path = ".status.readyNodes"),
    printcolumn(
        name = "UpToDate",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="UpToDate")].status"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(
    "!self.preProvisioned || self.nodes.all(it, has(self.nodes[it].ansible) && has(self.nodes[it].ansible.ansibleHost) && isIP(self.nodes[it].ansible.ansibleHost))")
    .message("ansible.ansibleHost must be a valid IP address for each pre-provisioned node"))]
#[x_kube(validation = Rule::new(
    "self.preProvisioned || !has(self.baremetalSetTemplate) || (has(self.baremetalSetTemplate.ctlplaneInterface) && self.baremetalSetTemplate.ctlplaneInterface != '')")
    .message("baremetalSetTemplate.ctlplaneInterface is missing: name the interface of the machines on the control plane's network, or set preProvisioned to true"))]
#[x_kube(validation = Rule::new(
    "!has(self.baremetalSetTemplate) || !has(oldSelf.baremetalSetTemplate) || oldSelf.nodes.size() == 0 || (has(self.baremetalSetTemplate.bmhLabelSelector) == has(oldSelf.baremetalSetTemplate.bmhLabelSelector) && (!has(self.baremetalSetTemplate.bmhLabelSelector) || self.baremetalSetTemplate.bmhLabelSelector == oldSelf.baremetalSetTemplate.bmhLabelSelector) && has(self.baremetalSetTemplate.hardwareReqs) == has(oldSelf.baremetalSetTemplate.hardwareReqs) && (!has(self.baremetalSetTemplate.hardwareReqs) || self.baremetalSetTemplate.hardwareReqs == oldSelf.baremetalSetTemplate.hardwareReqs))")
    .message("bmhLabelSelector and hardwareReqs of baremetalSetTemplate cannot be changed while \
              there are nodes: remove the nodes first, or create another node set"))]
pub struct NodeSetSpec {
    /// How bare metal is provisioned for hosts that have no operating system yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baremetal_set_template: Option<NodeSetMachines>,
    /// What each node gets unless it says otherwise.
    pub node_template: NodeTemplate,
    /// The hosts: each key is a host's name unless `hostName` gives another one.
    #[schemars(extend("maxProperties" = 1000))]
    #[x_kube(validation = Rule::new("self.size() <= 500")
        .message("a node set has at most 500 nodes: divide them among several node sets"))]
    #[x_kube(validation = Rule::new("self.all(it, it.size() <= 253)")
        .message("the name of a node has at most 253 characters"))]
    pub nodes: BTreeMap<String, NodeSetNode>,
    /// Environment variables for the pods of the runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200))]
    pub env: Vec<EnvVar>,
    /// `NetworkAttachmentDefinitions` in the same namespace for the pods of the runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 253)))]
    pub network_attachments: Vec<String>,
    /// Names of the `OpenStackDataPlaneServices` that a deployment brings to each host, in this
    /// order.
    #[serde(default = "default_services")]
    #[schemars(length(max = 64), inner(length(max = 253), regex(pattern = DNS_SUBDOMAIN)))]
    pub services: Vec<String>,
    /// Words that plays find in the variable `nodeset_tags`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 253)))]
    pub tags: Vec<String>,
    /// How many bytes of certificates one Secret holds at most.
    #[serde(default = "default_secret_max_size")]
    #[schemars(range(min = 1))]
    pub secret_max_size: i64,
    /// Whether the hosts already have an operating system.
    #[serde(default)]
    pub pre_provisioned: bool,
    /// Whether hosts get certificates; where absent, they do if cert-manager is in the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_enabled: Option<bool>,
}

impl Default for NodeSetSpec {
    fn default() -> Self {
        serde_json::from_value(json!({ "nodes": {}, "nodeTemplate": NodeTemplate::default() }))
            .expect("every other field has a default")
    }
}

/// The services of a node set that names none.
fn default_services() -> Vec<String> {
    [
        "redhat",
        "download-cache",
        "bootstrap",
        "configure-network",
        "validate-network",
        "install-os",
        "configure-os",
        "ssh-known-hosts",
        "run-os",
        "reboot-os",
        "install-certs",
        "ovn",
        "neutron-metadata",
        "libvirt",
        "nova",
        "telemetry",
    ]
    .map(String::from)
    .into()
}

fn default_secret_max_size() -> i64 {
    1_048_576
}

/// What each node of a node set gets unless it says otherwise.
#[derive(Clone, Debug, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeTemplate {
    /// Volumes for the pods of the runs. Mounts over `/runner/env`, `/runner/inventory` and
    /// `/runner/project` are refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = Rule::new(
        r"self.all(it, it.mounts.all(m, !m.mountPath.matches('^/+runner(/*$|/+(env|inventory|project)(/|$))')))")
        .message("/runner and its env, inventory and project are reserved for the operator: mount \
                  elsewhere"))]
    pub extra_mounts: Vec<VolMounts>,
    /// The networks of the nodes that list none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub networks: Vec<Network>,
    /// A Secret with cloud-init user data, for bare metal; a node's own takes its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_data: Option<SecretReference>,
    /// A Secret with network data, for bare metal; a node's own takes its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_data: Option<SecretReference>,
    /// A Secret with the ssh key in `ssh-privatekey` and, if host keys are known in advance, lines
    /// for ssh in `known_hosts`; keys of hosts that it does not name are learned at first contact.
    #[serde(rename = "ansibleSSHPrivateKeySecret")]
    #[schemars(length(min = 1, max = 253))]
    pub ansible_ssh_private_key_secret: String,
    /// Name of the network over which the hosts are managed (variable `management_network`).
    #[serde(default = "default_management_network")]
    #[schemars(length(max = 63))]
    pub management_network: String,
    /// How Ansible reaches the hosts, and their common variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ansible: Option<AnsibleOpts>,
}

impl Default for NodeTemplate {
    fn default() -> Self {
        serde_json::from_value(json!({ "ansibleSSHPrivateKeySecret": "" }))
            .expect("every other field has a default")
    }
}

fn default_management_network() -> String {
    "ctlplane".into()
}

/// A host of a node set, and where it differs from the template.
#[derive(Clone, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSetNode {
    /// The host's own name, short or with its domain; the node's key when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253), regex(pattern = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$"))]
    pub host_name: Option<String>,
    /// How Ansible reaches the host, and its own variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ansible: Option<AnsibleOpts>,
    /// The networks that the host is part of; the list replaces the template's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub networks: Vec<Network>,
    /// Name of the network over which the host is managed (variable `management_network`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub management_network: Option<String>,
    /// Labels of the `BareMetalHosts` to choose from for this host.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub bmh_label_selector: BTreeMap<String, String>,
    /// The interface of this host on the control plane's network, for bare metal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub ctlplane_interface: Option<String>,
    /// A Secret with this host's cloud-init user data, for bare metal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_data: Option<SecretReference>,
    /// A Secret with this host's network data, for bare metal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_data: Option<SecretReference>,
    /// What else distinguishes this host's machine, for bare metal; the fields above win over it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baremetal_host: Option<BaremetalHost>,
}

/// What was seen of the hosts, and what others need to know of them.
#[derive(Clone, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSetStatus {
    /// The `metadata.generation` that the status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The aspects of the node set, `Ready` first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// How many hosts the node set has.
    #[serde(default)]
    pub nodes: i64,
    /// On how many of them the last deployment succeeded.
    #[serde(default)]
    pub ready_nodes: i64,
    /// Each host in short, in the order of names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub hosts: Vec<NodeSetHost>,
    /// What failed on the first five hosts that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<NodeSetFailure>,
    /// The Secret with the hosts' inventory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DNS_SUBDOMAIN))]
    pub inventory_secret_name: Option<String>,
    /// Digest of everything that the inventory was made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_hash: Option<String>,
    /// The digest of the last deployment that succeeded on all hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployed_config_hash: Option<String>,
    /// Digest of each part of what the inventory was made from, by the part's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub inputs: BTreeMap<String, String>,
    /// Digest of each part of what the last deployment that succeeded used.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub deployed_inputs: BTreeMap<String, String>,
    /// Digest of each `ConfigMap` that services were last deployed with, by its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub config_map_hashes: BTreeMap<String, String>,
    /// Digest of each Secret that services were last deployed with, by its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub secret_hashes: BTreeMap<String, String>,
    /// UIDs of the deployments that have ended and whose outcome is part of this status.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settled_deployments: Vec<String>,
    /// The conditions of each of the newest deployments for this node set, by the deployment's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub deployment_statuses: BTreeMap<String, Vec<Condition>>,
    /// What Ansible counted, by deployment and run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub deployment_execution_summaries: BTreeMap<String, BTreeMap<String, ExecutionSummary>>,
    /// The name of each host on each of its networks, by host and network.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub all_hostnames: BTreeMap<String, BTreeMap<String, String>>,
    /// The address of each host on each of its networks, by host and network.
    #[serde(rename = "allIPs", default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub all_ips: BTreeMap<String, BTreeMap<String, String>>,
    /// Addresses of the DNS servers inside the cluster that have the names of the hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dns_cluster_addresses: Vec<String>,
    /// The domain of the control plane's network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ctlplane_search_domain: Option<String>,
    /// The Secrets with the hosts' certificates, as deployments mount them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certificates: Vec<NodeSetCertificates>,
    /// Images of the control plane's version that were deployed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub container_images: BTreeMap<String, String>,
    /// The control plane's version that an update brought to the hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployed_version: Option<String>,
    /// The machine of each host that is provisioned for it, by the host's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 1000))]
    pub machines: BTreeMap<String, HostMachine>,
    /// Digest of the bare metal that the hosts are on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bmh_ref_hash: Option<String>,
    /// The digest of the bare metal that was deployed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployed_bmh_hash: Option<String>,
}

/// How far one host of a node set is.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSetHost {
    /// The host's name in the inventory.
    pub name: String,
    /// How far it is.
    pub state: HostState,
}

/// How far a host of a node set is.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
pub enum HostState {
    /// No deployment has succeeded there, or the last one was over before all of its services had run;
    /// and none is at it.
    Undeployed,
    /// A deployment is at it.
    Deploying,
    /// The last deployment succeeded there.
    Deployed,
    /// The last deployment failed there.
    Failed,
    /// It leaves the node set, and stays in the inventory until others have cleaned up after it.
    Terminating,
}

/// The certificates of all hosts that one entry of a service's `tlsCerts` asks for.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSetCertificates {
    /// The service, as the node set lists it.
    pub service: String,
    /// The name of the certificate, among the service's.
    pub key: String,
    /// The folder below `/var/lib/openstack/certs` whose folder of the certificate's name has them.
    pub directory: String,
    /// The Secrets with the files of all hosts.
    pub secrets: Vec<String>,
    /// How many hosts do not have theirs yet.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waiting_hosts: i64,
}

/// What failed on a host of a node set.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSetFailure {
    /// The host's name in the inventory.
    pub host: String,
    /// The deployment that failed there.
    pub deployment: String,
    /// The service that failed there.
    pub service: String,
    /// One CamelCase word for the cause.
    pub reason: String,
    /// What failed, and what to do next.
    pub message: String,
}
