//! What sets of machines and node sets both say of their machines: image, disks, network, hardware.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::shared::{SecretReference, is_zero};

/// How bare metal is chosen and provisioned for the hosts of a node set.
#[derive(Clone, Debug, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BaremetalSetTemplate {
    /// File name of the operating system's image in its container.
    #[serde(default = "default_os_image", deserialize_with = "os_image")]
    #[schemars(length(max = 253))]
    pub os_image: String,
    /// The container image that holds the operating system's image; with `PassThrough` any URL that
    /// the provisioner supports.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub os_container_image_url: Option<String>,
    /// The checksum of the image at `osContainerImageUrl`, or the URL of a file with it, with Metal3 and
    /// `PassThrough`: needed but for an `oci://` URL. MD5, SHA-256 and SHA-512 are recognized
    /// automatically.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub os_image_checksum: Option<String>,
    /// How the operating system's image reaches the host.
    #[serde(default)]
    pub os_image_deployment_type: ImageDeployment,
    /// The web server's image of the provisioning server.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub apache_image_url: Option<String>,
    /// The agent's image of the provisioning server.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub agent_image_url: Option<String>,
    /// What is cleaned from the disks of a host that is given back.
    #[serde(default)]
    pub automated_cleaning_mode: CleaningMode,
    /// Name of an existing provisioning server to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub provision_server_name: Option<String>,
    /// Labels of the Kubernetes nodes that the provisioning server may run on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub provision_server_node_selector: BTreeMap<String, String>,
    /// The interface over which hosts are provisioned; found out when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub provisioning_interface: Option<String>,
    /// A Secret with the public keys of the user that is made on the hosts, in `authorized_keys`;
    /// `ansibleSSHPrivateKeySecret` when absent or empty.
    #[serde(
        default,
        rename = "deploymentSSHSecret",
        deserialize_with = "not_empty",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(length(max = 253))]
    pub deployment_ssh_secret: Option<String>,
    /// The interface of the hosts on the control plane's network; needed where machines are asked
    /// for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub ctlplane_interface: String,
    /// The bond of interfaces on the control plane's network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ctlplane_bond: Option<Bond>,
    /// Namespace of the `BareMetalHosts` to choose from.
    #[serde(default = "default_bmh_namespace", deserialize_with = "bmh_namespace")]
    #[schemars(length(max = 63))]
    pub bmh_namespace: String,
    /// Labels of the `BareMetalHosts` to choose from; it stays once the node set has nodes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub bmh_label_selector: BTreeMap<String, String>,
    /// The hardware that a host must have; it stays once the node set has nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware_reqs: Option<HardwareReqs>,
    /// A Secret with the password of root in `NodeRootPassword`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_secret: Option<SecretReference>,
    /// The user that is made on the hosts, with which Ansible logs in; an empty one counts as absent.
    #[serde(default = "default_cloud_user", deserialize_with = "cloud_user")]
    #[schemars(length(max = 64), regex(pattern = r"^([^\s-][^\s]*)?$"))]
    pub cloud_user_name: String,
    /// The domain of the hosts' names.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub domain_name: Option<String>,
}

fn default_os_image() -> String {
    "edpm-hardened-uefi.qcow2".into()
}

fn default_bmh_namespace() -> String {
    "openshift-machine-api".into()
}

fn default_cloud_user() -> String {
    "cloud-admin".into()
}

/// Clients in Go write an empty text for one that is absent.
fn not_empty<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(from)?.filter(|it| !it.is_empty()))
}

fn os_image<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(not_empty(from)?.unwrap_or_else(default_os_image))
}

fn bmh_namespace<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(not_empty(from)?.unwrap_or_else(default_bmh_namespace))
}

fn cloud_user<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(not_empty(from)?.unwrap_or_else(default_cloud_user))
}

/// How the operating system's image reaches a host.
#[derive(
    Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
pub enum ImageDeployment {
    /// Its container unpacks it for the provisioning server.
    #[default]
    SelfExtracting,
    /// The provisioner gets the URL as it is.
    PassThrough,
}

/// What is cleaned from the disks of a host that is given back.
#[derive(
    Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "lowercase")]
pub enum CleaningMode {
    /// The partition tables.
    #[default]
    Metadata,
    /// Nothing.
    Disabled,
}

/// Interfaces that are used as one.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Bond {
    /// The interfaces.
    #[schemars(length(min = 2, max = 16), inner(length(max = 63)))]
    pub bond_interfaces: Vec<String>,
    /// How they are used.
    #[serde(default = "default_bond_mode")]
    #[schemars(length(max = 63))]
    pub bond_mode: String,
    /// Further options of the bond.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub bond_options: BTreeMap<String, String>,
}

fn default_bond_mode() -> String {
    "active-backup".into()
}

/// The hardware that a host must have.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HardwareReqs {
    /// Its processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_reqs: Option<CpuReqs>,
    /// Its memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mem_reqs: Option<MemReqs>,
    /// Its disks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_reqs: Option<DiskReqs>,
}

/// The processors that a host must have.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CpuReqs {
    /// Their architecture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arch: Option<Arch>,
    /// How many there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count_req: Option<CountReq>,
    /// How fast they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mhz_req: Option<MhzReq>,
}

/// An architecture of processors.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Arch {
    /// 64-bit x86.
    #[serde(rename = "x86_64")]
    X86,
    /// 64-bit POWER, little endian.
    Ppc64le,
}

/// A number of processors.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CountReq {
    /// How many a host has at least; any number when absent.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = 1))]
    pub count: i64,
    /// Whether it may not have more.
    #[serde(default)]
    pub exact_match: bool,
}

/// A speed of processors.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MhzReq {
    /// How many megahertz they have at least; any number when absent.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = 1))]
    pub mhz: i64,
    /// Whether they may not have more.
    #[serde(default)]
    pub exact_match: bool,
}

/// The memory that a host must have.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemReqs {
    /// How much there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gb_req: Option<GbReq>,
}

/// The disks that a host must have.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiskReqs {
    /// How large they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gb_req: Option<GbReq>,
    /// Whether they are solid state disks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssd_req: Option<SsdReq>,
}

/// A size.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GbReq {
    /// How many gigabytes there are at least; any number when absent.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = 1))]
    pub gb: i64,
    /// Whether there may not be more.
    #[serde(default)]
    pub exact_match: bool,
}

/// A kind of disk.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SsdReq {
    /// Whether a solid state disk is wanted.
    #[serde(default)]
    pub ssd: bool,
    /// Whether the other kind is refused.
    #[serde(default)]
    pub exact_match: bool,
}
