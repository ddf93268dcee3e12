//! `OpenStackDataPlaneRole`: what a group of hosts has in common.

use k8s_openapi::api::core::v1::EnvVar;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use super::node_section::{DeployStrategy, NodeSection};
use crate::conditions::Condition;
use crate::shared::{AnyMap, DNS_SUBDOMAIN, optional_any_map};

/// What the role's hosts have in common.
#[derive(Clone, CustomResource, Debug, Deserialize, KubeSchema, PartialEq, Serialize)]
#[kube(
    group = "dataplane.openstack.org",
    version = "v1beta1",
    kind = "OpenStackDataPlaneRole",
    root = "Role",
    doc = "OpenStackDataPlaneRole describes what a group of hosts outside the cluster has in common, and which services are deployed to them.",
    namespaced,
    status = "RoleStatus",
    derive = "PartialEq",
    derive = "Default",
    category = "edpm",
    shortname = "osdprole",
    shortname = "osdproles",
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
    printcolumn(name = "Nodes", type_ = "integer", json_path = ".status.nodes"),
    printcolumn(name = "ReadyNodes", type_ = "integer", json_path = ".status.readyNodes"),
    printcolumn(name = "UpToDate", type_ = "integer", json_path = ".status.upToDateNodes"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct RoleSpec {
    /// Name of the `OpenStackDataPlane` that the role is part of, and whose `deployStrategy` holds
    /// where role and node leave it open.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub data_plane: Option<String>,
    /// How bare metal is provisioned for hosts that have no operating system yet: the fields of an
    /// `OpenStackBaremetalSet`'s spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "optional_any_map")]
    pub baremetal_set_template: Option<AnyMap>,
    /// What each node of the role gets unless it says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_template: Option<NodeSection>,
    /// Whether the hosts already have an operating system.
    #[serde(default)]
    pub pre_provisioned: bool,
    /// Environment variables for the pods of the runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200))]
    pub env: Vec<EnvVar>,
    /// How deployments are steered; each field wins over the data plane's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deploy_strategy: Option<DeployStrategy>,
    /// `NetworkAttachmentDefinitions` in the same namespace for the pods of the runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 253)))]
    pub network_attachments: Vec<String>,
    /// Names of the `OpenStackDataPlaneServices` that are deployed to each host, in this order.
    #[serde(default = "default_services")]
    #[schemars(length(max = 64), inner(length(max = 253), regex(pattern = DNS_SUBDOMAIN)))]
    #[x_kube(validation = Rule::new("self.all(it, self.exists_one(other, other == it))")
        .message("each service may be listed once"))]
    pub services: Vec<String>,
    /// Whether the hosts get the certificates that the services name, from cert-manager: those of
    /// listed services, which one with `addCertMounts` brings, and libvirt's of computes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_enabled: Option<bool>,
}

impl Default for RoleSpec {
    fn default() -> Self {
        serde_json::from_str("{}").expect("every field of the spec has a default")
    }
}

/// The services of a role that names none.
fn default_services() -> Vec<String> {
    ["configure-network", "validate-network", "install-os", "configure-os", "run-os"]
        .map(String::from)
        .into()
}

/// What was seen of the role's hosts.
#[derive(Clone, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RoleStatus {
    /// The `metadata.generation` that the status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The aspects of the role, `Ready` first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// True when every service has succeeded on all nodes; absent before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployed: Option<bool>,
    /// How many nodes name this role.
    #[serde(default)]
    pub nodes: i64,
    /// How many of them are ready.
    #[serde(default)]
    pub ready_nodes: i64,
    /// How many of them carry the present configuration.
    #[serde(default)]
    pub up_to_date_nodes: i64,
    /// How many of them have their machine; absent where none is provisioned for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioned_nodes: Option<i64>,
}
