//! `NovaExternalCompute`: nova-compute on one host outside the cluster.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::{EnvVar, PodDNSConfig};
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::conditions::Condition;
use crate::dataplane::ServiceRun;
use crate::shared::{DNS_SUBDOMAIN, ID, VolMounts};

/// Who deploys a compute does not change: what the one has deployed is unknown to the other.
const MANAGEMENT_STAYS: &str = "\
    (has(self.management) ? self.management : 'Managed') \
    == (has(oldSelf.management) ? oldSelf.management : 'Managed')";

/// What an observed compute may not say, for nothing would use it.
const OBSERVED_HAS_NO_OPTIONS: &str = "\
    !has(self.management) || self.management != 'Observed' || !(has(self.customServiceConfig) \
        || (has(self.defaultConfigOverwrite) && self.defaultConfigOverwrite.size() > 0) \
        || has(self.novaComputeContainerImage) || has(self.novaLibvirtContainerImage))";

/// The host, its cell and its configuration.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[kube(
    group = "nova.openstack.org",
    version = "v1beta1",
    kind = "NovaExternalCompute",
    root = "ExternalCompute",
    doc = "NovaExternalCompute is nova-compute on one host outside the cluster. The operator creates \
           one for each node with a cell, deploys it, and takes the user's configuration from it; and \
           one for each node to which a service of type nova deploys it, and only looks after that.",
    namespaced,
    status = "ExternalComputeStatus",
    derive = "PartialEq",
    derive = "Default",
    category = "edpm",
    shortname = "nec",
    shortname = "necs",
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
    printcolumn(name = "Cell", type_ = "string", json_path = ".spec.cellName"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(MANAGEMENT_STAYS)
    .message("who deploys a compute is set once: delete it, and the operator creates it anew"))]
#[x_kube(validation = Rule::new("has(self.cellName) || has(self.management) && self.management == 'Observed'")
    .message("cellName is missing: name the NovaCell in the same namespace that the compute registers \
              in"))]
#[x_kube(validation = Rule::new("!has(oldSelf.cellName) || has(self.cellName)")
    .message("nova cannot move a compute between cells: delete it and create another one"))]
#[x_kube(validation = Rule::new(OBSERVED_HAS_NO_OPTIONS)
    .message("a service of type nova deploys this compute: leave out customServiceConfig, \
              defaultConfigOverwrite, novaComputeContainerImage and novaLibvirtContainerImage; options \
              belong into the Secret or ConfigMap that the service mounts"))]
pub struct ExternalComputeSpec {
    /// Name of the `OpenStackDataPlaneNode` in the same namespace that nova-compute runs on.
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_SUBDOMAIN))]
    #[x_kube(validation = Rule::new("self == oldSelf")
        .message("the node of a compute is immutable: delete it and create another one"))]
    pub dataplane_node_name: String,
    /// Who deploys nova-compute: the operator (`Managed`, the default), or a service of type nova
    /// (`Observed`), so that the operator only looks after it. It is set once.
    #[serde(default, skip_serializing_if = "Management::is_managed")]
    pub management: Management,
    /// Name of the `NovaCell` in the same namespace that the compute registers in; it is set once,
    /// for nova cannot move a compute between cells. An observed compute has none while its cell is
    /// unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_SUBDOMAIN))]
    #[x_kube(
        validation = Rule::new("self == oldSelf")
            .message("nova cannot move a compute between cells: delete it and create another one"),
        validation = Rule::new("!self.endsWith('cell0')")
            .message("cell0 holds instances that failed to schedule and never has computes: name \
                      another cell")
    )]
    pub cell_name: String,
    /// Options of nova-compute in the format of oslo.config; they win over what is generated, and
    /// belong to the user alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 131_072))]
    pub custom_service_config: Option<String>,
    /// Further files beside the options, by name: nova-compute reads `provider*.yaml` as its resource
    /// providers; options belong into `customServiceConfig`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "files")]
    pub default_config_overwrite: BTreeMap<String, String>,
    /// The ConfigMap with the node's inventory in the key `inventory`; filled from the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub inventory_config_map_name: Option<String>,
    /// `NetworkAttachmentDefinitions` for the pods of the runs; filled from the node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 253)))]
    pub network_attachments: Vec<String>,
    /// The Secret with the ssh key in `ssh-privatekey`; filled from the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub ssh_key_secret_name: Option<String>,
    /// Whether changes are deployed to the host; filled from the node. When false, the
    /// configuration is generated and no host is touched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deploy: Option<bool>,
    /// Image of the container `nova_compute`; the operator's default when created without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub nova_compute_container_image: Option<String>,
    /// Image of the libvirt containers; the operator's default when created without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub nova_libvirt_container_image: Option<String>,
    /// Image that runs Ansible; the operator's default when created without one.
    #[serde(rename = "ansibleEEContainerImage", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub ansible_ee_container_image: Option<String>,
    /// DNS of the pods of the runs; when given, nothing of the cluster's own DNS is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns_config: Option<PodDNSConfig>,
    /// Environment variables for the pods of the runs; filled from the node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200))]
    pub env: Vec<EnvVar>,
    /// Volumes for the pods of the runs; filled from the node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub extra_mounts: Vec<VolMounts>,
}

impl ExternalCompute {
    /// Returns whether a service of type nova deploys the compute, and the operator only looks after it.
    pub fn is_observed(&self) -> bool {
        self.spec.management == Management::Observed
    }

    /// Returns the name under which nova knows the host, once it is recorded.
    pub fn host_name(&self) -> Option<&str> {
        self.status.as_ref()?.host_name.as_deref()
    }

    /// Returns the recorded attempts.
    pub fn services(&self) -> &[ServiceRun] {
        self.status.as_ref().map(|it| it.services.as_slice()).unwrap_or_default()
    }
}

/// Who deploys nova-compute to a host.
#[derive(
    Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
pub enum Management {
    /// The operator does.
    #[default]
    Managed,
    /// A service of type nova does.
    Observed,
}

impl Management {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    fn is_managed(&self) -> bool {
        *self == Self::Managed
    }
}

/// The schema of texts by the names of their files.
fn files(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 32,
        "additionalProperties": { "type": "string", "maxLength": 131_072 }
    })
}

/// What was seen of the compute.
#[derive(Clone, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExternalComputeStatus {
    /// The `metadata.generation` that the status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The aspects of the compute, `Ready` first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// Digests: `input` of everything that the configuration is made from.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hash: BTreeMap<String, String>,
    /// The files of nova's configuration, in the order in which they are read: a later one wins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub config_files: Vec<ConfigFile>,
    /// The host name under which the compute registers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_name: Option<String>,
    /// The UUID of the host's compute node in nova, as nova's API has it; placement has the host's
    /// resource provider under the same one.
    #[serde(rename = "computeID", skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = ID))]
    pub compute_id: Option<String>,
    /// The UUID of the host's service in nova, as nova's API has it.
    #[serde(rename = "serviceID", skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = ID))]
    pub service_id: Option<String>,
    /// The nova that has the host under these UUIDs; absent where a release before has recorded them,
    /// until that nova is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nova: Option<RegisteredNova>,
    /// Where the last attempt reached the host, as `host:port`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Which installation of the host the compute was deployed to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_instance: Option<String>,
    /// How far each service is on this host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub services: Vec<ServiceRun>,
    /// Digest of each input of the last completed deployment, by the input's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub deployed_inputs: BTreeMap<String, String>,
    /// Digest of each file of nova's configuration that the last attempt which succeeded has put on the
    /// host, by the file's name; none where a release before has deployed it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub deployed_files: BTreeMap<String, String>,
    /// What nova-compute on the host may log in with: the credentials of the last completed
    /// deployment, and of attempts since then. Their objects are held until no compute uses them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub credentials: Vec<Credential>,
}

/// How many credentials a compute records.
pub const CREDENTIALS: usize = 16;

/// A credential of a cell by the name of its object, without anything secret.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Credential {
    /// What kind of object it is.
    #[serde(rename = "type")]
    pub kind: CredentialKind,
    /// Name of the object.
    #[schemars(length(max = 253), regex(pattern = DNS_SUBDOMAIN))]
    pub name: String,
}

/// The kinds of objects that credentials of a cell belong to.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
pub enum CredentialKind {
    /// The `RabbitMQUser` that computes log in to the message bus as.
    #[serde(rename = "RabbitMQUser")]
    RabbitMqUser,
    /// The Secret of a `TransportURL`, where no such user is known.
    TransportSecret,
    /// The Secret with an application credential of Keystone.
    ApplicationCredential,
}

impl CredentialKind {
    /// All kinds.
    pub const ALL: [Self; 3] =
        [Self::RabbitMqUser, Self::TransportSecret, Self::ApplicationCredential];
}

impl fmt::Display for CredentialKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RabbitMqUser => "RabbitMQUser",
            Self::TransportSecret => "TransportSecret",
            Self::ApplicationCredential => "ApplicationCredential",
        })
    }
}

impl fmt::Display for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind =
            if self.kind == CredentialKind::RabbitMqUser { "RabbitMQUser" } else { "Secret" };
        write!(f, "{kind} {}", self.name)
    }
}

/// Which nova a compute has registered in.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RegisteredNova {
    /// Where its Keystone answers, without a version or a slash at the end.
    #[serde(rename = "keystoneAuthURL")]
    #[schemars(length(max = 2048))]
    pub keystone_auth_url: String,
    /// The region.
    #[schemars(length(max = 255))]
    pub region: String,
}

/// A file of nova's configuration.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigFile {
    /// Name of the file.
    #[schemars(length(max = 253), regex(pattern = r"^[-._A-Za-z0-9]+$"))]
    pub name: String,
    /// Kind, namespace and name of the object that it comes from.
    pub source: String,
    /// Digest of its content.
    pub hash: String,
}
