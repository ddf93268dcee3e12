//! What a node set says of hosts that have no operating system yet.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::baremetal::{
    BaremetalSetTemplate, ConfigDriveFormat, DeprovisionPolicy, Ironic, Provisioner,
};

/// What a node set says of its machines: what they are, who provisions them, and how.
#[derive(Clone, Debug, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSetMachines {
    /// What sets of machines say too.
    #[serde(flatten)]
    pub template: BaremetalSetTemplate,
    /// Who provisions the machines; where absent Ironic, if `ironic` is given, else Metal3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioner: Option<Provisioner>,
    /// The Ironic that provisions the machines, with `provisioner: ironic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ironic: Option<Ironic>,
    /// In which form Ironic gets the config drives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_drive_format: Option<ConfigDriveFormat>,
    /// What becomes of the machine of a node that is taken out; where absent, an adopted one is
    /// retained, and what was deployed is taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprovision_policy: Option<DeprovisionPolicy>,
}
