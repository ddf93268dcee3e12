//! `NovaCell`: how computes reach one cell of a nova control plane.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::Condition;
use crate::shared::{AnyMap, ID, any_map, optional_any_map};

/// Where the cell's services are, and with which credentials they are used.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[kube(
    group = "nova.openstack.org",
    version = "v1beta1",
    kind = "NovaCell",
    root = "Cell",
    doc = "NovaCell describes how computes reach one cell of a nova control plane, and reports \
           whether it is reachable.",
    namespaced,
    status = "CellStatus",
    derive = "PartialEq",
    derive = "Default",
    category = "edpm",
    shortname = "ncell",
    shortname = "ncells",
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
    printcolumn(name = "Cell", type_ = "string", json_path = ".spec.cellName"),
    printcolumn(name = "Computes", type_ = "integer", json_path = ".status.computes"),
    printcolumn(name = "UpToDate", type_ = "integer", json_path = ".status.upToDateComputes"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct CellSpec {
    /// The cell's short name, for example `cell1`.
    #[schemars(length(min = 1, max = 35))]
    pub cell_name: String,
    /// The Secret with nova's password in the key `ServicePassword`.
    #[schemars(length(min = 1, max = 253))]
    pub secret: String,
    /// The Secret with the cell's message bus in the key `transport_url`.
    #[schemars(length(min = 1, max = 253))]
    pub cell_message_bus_secret_name: String,
    /// Where Keystone answers, as computes reach it.
    #[serde(rename = "keystoneAuthURL")]
    #[schemars(length(min = 1, max = 2048))]
    #[x_kube(validation = Rule::new("isURL(self) && (self.startsWith('http://') || self.startsWith('https://'))")
        .message("keystoneAuthURL must be a URL that starts with http:// or https://"))]
    pub keystone_auth_url: String,
    /// The user with which nova's services log in to Keystone.
    #[serde(default = "default_user")]
    #[schemars(length(min = 1, max = 255))]
    pub service_user: String,
    /// Host of the cell's database; computes do not use it.
    #[schemars(length(max = 253))]
    pub cell_database_hostname: String,
    /// User of the cell's database; computes do not use it.
    #[serde(default = "default_user")]
    #[schemars(length(max = 255))]
    pub cell_database_user: String,
    /// Host of the API database; computes do not use it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub api_database_hostname: Option<String>,
    /// User of the API database; computes do not use it.
    #[serde(default = "default_user")]
    #[schemars(length(max = 255))]
    pub api_database_user: String,
    /// How nova-conductor is deployed in the cluster; not deployed by this operator.
    #[schemars(schema_with = "any_map")]
    pub conductor_service_template: AnyMap,
    /// How the metadata service is deployed in the cluster; not deployed by this operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "optional_any_map")]
    pub metadata_service_template: Option<AnyMap>,
    /// How the console proxy is deployed in the cluster; not deployed by this operator.
    #[serde(rename = "noVNCProxyServiceTemplate")]
    #[schemars(schema_with = "any_map")]
    pub no_vnc_proxy_service_template: AnyMap,
    /// Labels of the Kubernetes nodes for the cell's own pods; computes do not use it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Switches for debugging the cell's own pods; computes do not use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "optional_any_map")]
    pub debug: Option<AnyMap>,
    /// The `ServiceAccount` of the cell's own pods; computes do not use it.
    #[schemars(length(max = 253))]
    pub service_account: String,
}

fn default_user() -> String {
    "nova".into()
}

impl Cell {
    /// Returns what removed computes have left in nova, as it is recorded.
    pub fn leftovers(&self) -> &[Leftover] {
        self.status.as_ref().map(|it| it.leftovers.as_slice()).unwrap_or_default()
    }
}

/// What was seen of the cell.
#[derive(Clone, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CellStatus {
    /// The `metadata.generation` that the status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The aspects of the cell, `Ready` first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// Digests: `<name>-compute-config` of the Secret of that name, and `credentials` of what the
    /// last login to the cell's services was made with.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hash: BTreeMap<String, String>,
    /// How many computes that the operator deploys name this cell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub computes: Option<i64>,
    /// How many of them were last deployed with the cell's present credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_to_date_computes: Option<i64>,
    /// Computes that were removed and of which nova still has its records: at most fifty, of which
    /// those with UUIDs are never dropped for others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["uid".into()]))]
    #[schemars(length(max = 50))]
    pub leftovers: Vec<Leftover>,
    /// The newest attempt to discover hosts; only where the operator discovers them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery: Option<DiscoveryAttempt>,
    /// The newest reading of which hosts nova maps, for hosts that are removed; only where the
    /// operator discovers hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapping_reading: Option<MappingReading>,
}

/// An attempt to map the hosts of a cell, which is recorded before its Job exists.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiscoveryAttempt {
    /// Name of its Job.
    pub job: String,
    /// How many attempts there were for the same hosts with the same inputs, with this one; from 1.
    pub attempt: i64,
    /// Digest of the names and versions of what the Job was made from.
    pub inputs: String,
    /// What became of it.
    pub state: DiscoveryState,
    /// Why it failed, in one line; empty unless it did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When it was recorded.
    pub since: Time,
}

/// A reading of which hosts nova maps, for hosts that are removed; it is recorded before its Job
/// exists.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MappingReading {
    /// Name of its Job.
    pub job: String,
    /// How many readings in a row were about no other hosts than those that are still mapped, with
    /// this one; from 1.
    pub attempt: i64,
    /// What became of it.
    pub state: DiscoveryState,
    /// The hosts that it is about, named as their services are registered; at most 32.
    pub hosts: Vec<String>,
    /// The hosts that were still mapped when they were last read, while their removal waits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mapped: Vec<String>,
    /// The hosts that were not mapped any more when they were read, while their removal waits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmapped: Vec<String>,
    /// Why it failed, in one line; empty unless it did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When it was recorded.
    pub since: Time,
}

/// How many hosts one reading of mappings is about at most.
pub const READ_HOSTS: usize = 32;

/// What became of an attempt to discover hosts, or of a reading of mappings.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub enum DiscoveryState {
    /// Its Job is to be created, or has not ended.
    Running,
    /// Its Job has succeeded.
    Succeeded,
    /// Its Job has failed.
    Failed,
}

/// How many leftovers a cell remembers.
pub const LEFTOVERS: usize = 50;

/// A compute that was removed and of which nova still has its records.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Leftover {
    /// The host name under which the compute was registered.
    pub host_name: String,
    /// Name that the `NovaExternalCompute` had.
    pub compute: String,
    /// UID that the `NovaExternalCompute` had.
    pub uid: String,
    /// Whether nova-compute was stopped and disabled on the host.
    pub stopped: bool,
    /// When the host was done with.
    pub since: Time,
    /// UUID of its service in nova; absent where it was never read.
    #[serde(rename = "serviceID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = ID))]
    pub service_id: Option<String>,
    /// UUID of its compute node in nova, under which placement has its resource provider too; absent
    /// where it was never read. With a UUID, the operator deletes what is left.
    #[serde(rename = "computeID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = ID))]
    pub compute_id: Option<String>,
    /// Why what is left is not deleted yet; empty until nova's API was asked, and without UUIDs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}
