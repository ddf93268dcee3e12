//! The kinds of others by which Metal3 provisions machines: `BareMetalHost`, and the server of an image.
//!
//! Only the fields that are used stand here, and no definition of them is ever installed.

use k8s_openapi::api::core::v1::{ObjectReference, SecretReference};
use kube::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A machine that Metal3 manages.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, PartialEq, Serialize)]
#[kube(
    group = "metal3.io",
    version = "v1alpha1",
    kind = "BareMetalHost",
    plural = "baremetalhosts",
    namespaced,
    schema = "disabled",
    status = "BareMetalHostStatus",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct BareMetalHostSpec {
    /// Whether it is to be powered on.
    #[serde(default)]
    pub online: bool,
    /// What is written to its disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
    /// The Secret with its user data, in `userData`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_data: Option<SecretReference>,
    /// The Secret with its network data, in `networkData`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_data: Option<SecretReference>,
    /// The Secret with its metadata, in `metaData`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta_data: Option<SecretReference>,
    /// The Secret with the network data of the ramdisk that deploys and cleans it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preprovisioning_network_data_name: Option<String>,
    /// Who uses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumer_ref: Option<ObjectReference>,
    /// What is cleaned from its disks: `metadata` or `disabled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automated_cleaning_mode: Option<String>,
    /// Whether it is restarted where it would be powered off: `online` must be true then.
    #[serde(default)]
    pub disable_power_off: bool,
    /// Whether another client has provisioned it.
    #[serde(default)]
    pub externally_provisioned: bool,
    /// Another way to deploy it than by an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_deploy: Option<Value>,
}

/// An image of an operating system.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// Where it is.
    #[serde(default)]
    pub url: String,
    /// Its checksum, or the URL of a file with checksums.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// Of which kind the checksum is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksum_type: Option<String>,
    /// The format of the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

/// What Metal3 says of a machine.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BareMetalHostStatus {
    /// How far it is.
    #[serde(default)]
    pub provisioning: Provisioning,
    /// `OK`, `discovered`, `error`, `delayed`, `detached` or `servicing`.
    #[serde(default)]
    pub operational_status: String,
    /// What kind of error it has; empty without one.
    #[serde(default)]
    pub error_type: String,
    /// The error in Metal3's own words.
    #[serde(default)]
    pub error_message: String,
    /// What an inspection found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware: Option<Hardware>,
    /// Whether it is powered on, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub powered_on: Option<bool>,
    /// When what was done to it last began.
    #[serde(default)]
    pub operation_history: OperationHistory,
}

/// When what was done to a machine last began.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct OperationHistory {
    /// Its provisioning.
    #[serde(default)]
    pub provision: Operation,
}

/// Something that was done to a machine.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Operation {
    /// When it began (RFC 3339), if it ever did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
}

/// How far a machine is.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Provisioning {
    /// The state: `available`, `provisioning`, `provisioned`, `deprovisioning`, …; empty at first.
    #[serde(default)]
    pub state: String,
}

/// The hardware of a machine.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hardware {
    /// Its processors.
    #[serde(default)]
    pub cpu: Cpu,
    /// Its memory in MiB.
    #[serde(default)]
    pub ram_mebibytes: i64,
    /// Its disks.
    #[serde(default)]
    pub storage: Vec<Disk>,
}

/// The processors of a machine.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cpu {
    /// Their architecture, as `x86_64`.
    #[serde(default)]
    pub arch: String,
    /// How many there are.
    #[serde(default)]
    pub count: i64,
    /// Their clock in MHz.
    #[serde(default)]
    pub clock_megahertz: f64,
}

/// A disk of a machine.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Disk {
    /// Its size in bytes.
    #[serde(default)]
    pub size_bytes: i64,
    /// Whether it turns.
    #[serde(default)]
    pub rotational: bool,
}

/// A server, another operator's, that has unpacked the image of an operating system.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, PartialEq, Serialize)]
#[kube(
    group = "baremetal.openstack.org",
    version = "v1beta1",
    kind = "OpenStackProvisionServer",
    root = "ProvisionServer",
    plural = "openstackprovisionservers",
    namespaced,
    schema = "disabled",
    status = "ProvisionServerStatus",
    derive = "PartialEq"
)]
pub struct ProvisionServerSpec {}

/// Where such a server serves the image.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProvisionServerStatus {
    /// URL of the image; empty before it is served.
    #[serde(default)]
    pub local_image_url: String,
    /// URL of the file with its checksum; empty before there is one.
    #[serde(default)]
    pub local_image_checksum_url: String,
    /// Of which kind the checksum is: `md5`, `sha256` or `sha512`.
    #[serde(default)]
    pub os_image_checksum_type: String,
}
