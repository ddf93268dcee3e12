//! `OpenStackBaremetalSet`: machines that are given an operating system, one for each host.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ironic::{ConfigDriveFormat, Ironic, Machine};
use super::template::BaremetalSetTemplate;
use crate::conditions::Condition;
use crate::shared::SecretReference;

/// Label with the UID of the object that requests the set: a set with another one, or none, is left
/// alone.
pub const FOR: &str = "dataplane.openstack.org/machines-for";

/// The hosts, what they have in common, and who provisions their machines.
#[derive(Clone, CustomResource, Debug, Deserialize, KubeSchema, PartialEq, Serialize)]
#[kube(
    group = "baremetal.openstack.org",
    version = "v1beta1",
    kind = "OpenStackBaremetalSet",
    root = "BaremetalSet",
    doc = "OpenStackBaremetalSet describes hosts whose machines are provisioned with an operating \
           system before anything else is deployed.",
    namespaced,
    status = "BaremetalSetStatus",
    derive = "PartialEq",
    category = "edpm",
    shortname = "osbmset",
    shortname = "osbmsets",
    shortname = "osbms",
    label("edpm.openstack.org/managed-by", "edpm-operators"),
    // The status lists the hosts that have machines, also those that were taken out, until their
    // machines are given back. Where the spec names no provisioner,
    // `BaremetalSetSpec::effective_provisioner` does.
    validation = Rule::new(concat!(
        "(has(self.spec.provisioner) ? self.spec.provisioner : has(self.spec.ironic) ? 'ironic' : 'metal3')",
        " == (has(oldSelf.spec.provisioner) ? oldSelf.spec.provisioner : has(oldSelf.spec.ironic) ? 'ironic' : 'metal3')",
        " || !has(oldSelf.status) || !has(oldSelf.status.baremetalHosts)",
        " || oldSelf.status.baremetalHosts.all(it, oldSelf.status.baremetalHosts[it].bmhRef == 'unassigned')",
    ))
    .message("provisioner cannot be changed while hosts have machines, because their records would \
              be lost: remove the hosts, wait until status.baremetalHosts is empty, or create \
              another set"),
    validation = Rule::new(concat!(
        "!has(oldSelf.spec.ironic) || (has(self.spec.ironic) && self.spec.ironic.endpoint == oldSelf.spec.ironic.endpoint)",
        " || !has(oldSelf.status) || !has(oldSelf.status.baremetalHosts)",
        " || oldSelf.status.baremetalHosts.all(it, oldSelf.status.baremetalHosts[it].bmhRef == 'unassigned')",
    ))
    .message("ironic.endpoint cannot be changed while hosts have machines, because they are \
              registered there: remove the hosts, wait until status.baremetalHosts is empty, or \
              create another set"),
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.deploymentSSHSecret)")
    .message("deploymentSSHSecret is missing: name a Secret with public keys in authorized_keys"))]
#[x_kube(validation = Rule::new("!has(self.provisioner) || self.provisioner != 'ironic' || has(self.ironic)")
    .message("provisioner ironic needs spec.ironic with the endpoint of its API"))]
#[x_kube(validation = Rule::new("has(self.ctlplaneInterface) && self.ctlplaneInterface != ''")
    .message("ctlplaneInterface is missing: name the interface of the hosts on the control plane's network"))]
pub struct BaremetalSetSpec {
    /// What node sets say of their machines too.
    #[serde(flatten)]
    pub template: BaremetalSetTemplate,
    /// The hosts: each key is a host's name.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 500))]
    #[x_kube(validation = Rule::new("self.all(it, it.size() <= 63)")
        .message("the name of a host has at most 63 characters; put its domain into domainName"))]
    pub baremetal_hosts: BTreeMap<String, BaremetalHost>,
    /// The gateway of the hosts that name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 45))]
    pub ctlplane_gateway: Option<String>,
    /// The largest packet on the control plane's network, in bytes.
    #[serde(default = "default_mtu")]
    #[schemars(range(min = 576, max = 9216))]
    pub ctlplane_mtu: i64,
    /// Name servers that the hosts begin with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 3), inner(length(max = 45)))]
    pub bootstrap_dns: Vec<String>,
    /// Domains in which the hosts look up short names in the beginning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 6), inner(length(max = 253)))]
    pub dns_search_domains: Vec<String>,
    /// A Secret whose key `userData` takes the place of the cloud-config that is made for each host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_data: Option<SecretReference>,
    /// A Secret whose key `networkData` takes the place of the network data made for each host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_data: Option<SecretReference>,
    /// A Secret whose key `metaData` is added to the metadata of each host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta_data: Option<SecretReference>,
    /// A Secret whose key `vendorData` is the vendor data of each host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vendor_data: Option<SecretReference>,
    /// Who provisions the machines; where absent Ironic, if `ironic` is given, else Metal3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioner: Option<Provisioner>,
    /// The Ironic that provisions the machines, with `provisioner: ironic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ironic: Option<Ironic>,
    /// In which form Ironic gets the config drives.
    #[serde(default)]
    pub config_drive_format: ConfigDriveFormat,
    /// What becomes of the machine of a host that is taken out; where absent, an adopted one is
    /// retained, and what the set deployed is taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprovision_policy: Option<DeprovisionPolicy>,
}

fn default_mtu() -> i64 {
    1500
}

/// Who provisions machines.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Provisioner {
    /// Metal3, through its `BareMetalHosts`.
    Metal3,
    /// An Ironic of its own, through its API.
    Ironic,
}

/// What becomes of the machine of a host that is taken out.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
pub enum DeprovisionPolicy {
    /// The machine is undeployed, and cleaned as its provisioner is configured to.
    Deprovision,
    /// The machine keeps running as it is, and is not the set's any more.
    Retain,
}

/// A host, and where its machine differs from those of the others.
#[derive(Clone, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.adopt) || !self.adopt || (has(self.machine) && has(self.machine.node))")
    .message("a machine to be adopted must be named: set machine.node"))]
pub struct BaremetalHost {
    /// Its address on the control plane's network with the prefix length: `192.168.122.100/24`.
    #[serde(rename = "ctlPlaneIP", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 49))]
    #[x_kube(validation = Rule::new("self == '' || isCIDR(self)")
        .message("ctlPlaneIP must be an address with its prefix length, as in 192.168.122.100/24"))]
    pub ctl_plane_ip: Option<String>,
    /// Its gateway; the set's when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 45))]
    #[x_kube(validation = Rule::new("self == '' || isIP(self)")
        .message("ctlplaneGateway must be an IP address, as in 192.168.122.1"))]
    pub ctlplane_gateway: Option<String>,
    /// Its interface on the control plane's network; the set's when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub ctlplane_interface: Option<String>,
    /// The VLAN of the control plane's network; untagged when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4094))]
    pub ctlplane_vlan: Option<i64>,
    /// Labels that its `BareMetalHost` must have besides the set's, with Metal3.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub bmh_label_selector: BTreeMap<String, String>,
    /// Name of a Secret whose key `networkData` has the network data of the ramdisk; it stands in the
    /// namespace of the set with Ironic, and in that of the `BareMetalHost` with Metal3.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub preprovisioning_network_data_name: Option<String>,
    /// As `spec.userData`, for this host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_data: Option<SecretReference>,
    /// As `spec.networkData`, for this host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_data: Option<SecretReference>,
    /// As `spec.metaData`, for this host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta_data: Option<SecretReference>,
    /// As `spec.vendorData`, for this host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vendor_data: Option<SecretReference>,
    /// What its machine must have besides `spec.ironic.machine`, with Ironic; where both set a
    /// field, the host's value wins.
    #[serde(default, skip_serializing_if = "Machine::is_any")]
    pub machine: Machine,
    /// Whether its machine runs already and is only taken over: `machine.node` must name it.
    #[serde(default)]
    pub adopt: bool,
}

/// What was seen of the set.
#[derive(Clone, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BaremetalSetStatus {
    /// The `metadata.generation` that the status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The aspects of the set, `Ready` first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// The hosts by name, and the machine of each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 5000))]
    pub baremetal_hosts: BTreeMap<String, HostStatus>,
    /// The value of the annotation `dataplane.openstack.org/applied`, with which operators state
    /// what they request of the set: a host that goes without a change of it was taken out by
    /// another client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<String>,
}

/// What was seen of a host's machine.
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own that a status reports")]
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostStatus {
    /// The host's name.
    pub hostname: String,
    /// Namespace and name of the `BareMetalHost`, or UUID of Ironic's node; `unassigned` without a machine.
    #[serde(default = "unassigned")]
    pub bmh_ref: String,
    /// The host's addresses by network.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ip_addresses: BTreeMap<String, String>,
    /// The machine's state, in the provisioner's words: `active` with Ironic and `provisioned` with
    /// Metal3 once it is a host. `powering on` is one that is deployed and not powered on yet, and `gone`
    /// is one that the host lost: its error says how.
    #[serde(default)]
    pub provisioning_state: String,
    /// Whether the host was taken out of the set, and its machine is being given back.
    #[serde(default)]
    pub annotated_for_deletion: bool,
    /// Name of the Secret with the host's user data, with Metal3.
    #[serde(default)]
    pub user_data_secret_name: String,
    /// Name of the Secret with the host's network data, with Metal3.
    #[serde(default)]
    pub network_data_secret_name: String,
    /// Which installation this is; each deployment of a machine is another one. With Ironic, the UUID by
    /// which a machine is reserved for the host; once one is, `@` follows and the time at which its
    /// deployment was noted. With Metal3, the time at which the machine's provisioning began; absent
    /// before it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Hash of the config drive that the machine was deployed with; the drive itself stands nowhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_drive_hash: Option<String>,
    /// Whether the machine has an operating system, as far as it was seen: it may answer at the host's
    /// addresses, so that no other one is taken before this one is given back, or forgotten by hand.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub installed: bool,
    /// Whether the provisioner reads the power of the machine, which has its system, as off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub powered_off: bool,
    /// Whether the machine was deployed with the present config drive; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_current: Option<bool>,
    /// Whether only a user can resolve it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_human: bool,
    /// What keeps the machine from being a host: the provisioner's own words, trimmed, and what the
    /// user does next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What Ironic reported of a failure in the machine's present state: Ironic clears it when it
    /// next reads the machine's power state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// Why a machine is in a state that was not requested.
#[derive(Clone, Debug, Deserialize, Eq, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The provisioner's own words, trimmed.
    pub said: String,
    /// Since when the machine is in that state, by the provisioner's clock.
    pub since: String,
}

fn unassigned() -> String {
    UNASSIGNED.into()
}

/// What [`HostStatus::bmh_ref`] says without a machine.
pub const UNASSIGNED: &str = "unassigned";

impl BaremetalSet {
    /// What the status reports of a host.
    pub fn host_status(&self, host: &str) -> Option<&HostStatus> {
        self.status.as_ref()?.baremetal_hosts.get(host)
    }
}

impl HostStatus {
    /// Of a host without a machine, of which nothing else is known.
    pub fn unassigned(host: &str) -> Self {
        Self { hostname: host.to_owned(), bmh_ref: unassigned(), ..Self::default() }
    }
}

impl BaremetalSetSpec {
    /// Who provisions the machines.
    pub fn effective_provisioner(&self) -> Provisioner {
        let of_ironic =
            if self.ironic.is_some() { Provisioner::Ironic } else { Provisioner::Metal3 };
        self.provisioner.unwrap_or(of_ironic)
    }
}
