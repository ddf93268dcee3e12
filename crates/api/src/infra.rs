//! Kinds of network.openstack.org, which another operator serves: addresses and names of hosts.
//!
//! Only the fields that are used stand here, and no definition of them is ever installed.

use kube::CustomResource;
use serde::{Deserialize, Serialize};

use crate::conditions::READY;

/// Which networks there are.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, PartialEq, Serialize)]
#[kube(
    group = "network.openstack.org",
    version = "v1beta1",
    kind = "NetConfig",
    plural = "netconfigs",
    namespaced,
    schema = "disabled",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct NetConfigSpec {
    /// The networks.
    #[serde(default)]
    pub networks: Vec<NetConfigNetwork>,
}

/// A network.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NetConfigNetwork {
    /// Its name.
    pub name: String,
    /// What it is called in variables of plays; its name in lower case when absent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub service_network: String,
}

/// The addresses that are reserved for one host.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, PartialEq, Serialize)]
#[kube(
    group = "network.openstack.org",
    version = "v1beta1",
    kind = "IPSet",
    root = "IpSet",
    plural = "ipsets",
    namespaced,
    schema = "disabled",
    status = "IpSetStatus",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct IpSetSpec {
    /// The networks on which addresses are asked for.
    #[serde(default)]
    pub networks: Vec<IpSetNetwork>,
}

/// A network on which an address is asked for.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IpSetNetwork {
    /// Its name.
    pub name: String,
    /// Name of its subnet.
    pub subnet_name: String,
    /// The address that is wanted; any when absent.
    #[serde(rename = "fixedIP", skip_serializing_if = "Option::is_none")]
    pub fixed_ip: Option<String>,
    /// Whether the default route goes this way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_route: Option<bool>,
}

/// What was reserved.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IpSetStatus {
    /// The `metadata.generation` that the status describes, where it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The reservations, in the order of the networks.
    #[serde(default)]
    pub reservations: Vec<Reservation>,
    /// Its conditions.
    #[serde(default)]
    pub conditions: Vec<ForeignCondition>,
}

/// An address that is reserved on a network.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reservation {
    /// The network's name.
    pub network: String,
    /// The subnet's name.
    pub subnet: String,
    /// The address.
    pub address: String,
    /// The network's MTU; 0 where it has none.
    #[serde(default)]
    pub mtu: i64,
    /// The subnet, as `192.0.2.0/24`.
    #[serde(default)]
    pub cidr: String,
    /// The subnet's VLAN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vlan: Option<i64>,
    /// The subnet's gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<String>,
    /// What is reached through other gateways.
    #[serde(default)]
    pub routes: Vec<Route>,
    /// The network's domain.
    #[serde(default)]
    pub dns_domain: String,
    /// What the network is called in variables of plays; its name in lower case when absent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub service_network: String,
}

/// What is reached through another gateway.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    /// Where to, as `192.0.2.0/24`.
    pub destination: String,
    /// By which gateway.
    pub nexthop: String,
}

/// A DNS server inside the cluster.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, PartialEq, Serialize)]
#[kube(
    group = "network.openstack.org",
    version = "v1beta1",
    kind = "DNSMasq",
    root = "DnsMasq",
    plural = "dnsmasqs",
    namespaced,
    schema = "disabled",
    status = "DnsMasqStatus",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct DnsMasqSpec {
    /// By which word it finds its data.
    #[serde(default)]
    pub dns_data_label_selector_value: String,
}

/// What a DNS server reports of itself.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DnsMasqStatus {
    /// Its addresses, as hosts outside the cluster reach it.
    #[serde(default)]
    pub dns_addresses: Vec<String>,
    /// Its addresses inside the cluster; absent until they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns_cluster_addresses: Option<Vec<String>>,
    /// Its conditions.
    #[serde(default)]
    pub conditions: Vec<ForeignCondition>,
}

/// Names that a DNS server is to serve.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, PartialEq, Serialize)]
#[kube(
    group = "network.openstack.org",
    version = "v1beta1",
    kind = "DNSData",
    root = "DnsData",
    plural = "dnsdata",
    namespaced,
    schema = "disabled",
    status = "DnsDataStatus",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct DnsDataSpec {
    /// The addresses and their names.
    #[serde(default)]
    pub hosts: Vec<DnsHost>,
    /// By which word the DNS server finds it.
    #[serde(default)]
    pub dns_data_label_selector_value: String,
}

/// An address and its names.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DnsHost {
    /// The address.
    pub ip: String,
    /// Its names.
    pub hostnames: Vec<String>,
}

/// What became of the names.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DnsDataStatus {
    /// Its conditions.
    #[serde(default)]
    pub conditions: Vec<ForeignCondition>,
}

/// A condition, as far as it is read: others' lists may lack what ours always have.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ForeignCondition {
    /// Name of the aspect.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    #[serde(default)]
    pub status: String,
    /// The cause in words.
    #[serde(default)]
    pub message: String,
    /// The generation of the object that it is about, where its author names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// What conditions say of their object as a whole.
pub fn ready(conditions: &[ForeignCondition]) -> Option<&ForeignCondition> {
    conditions.iter().find(|it| it.type_ == READY)
}

/// Whether conditions say that their object is ready, in this generation where they name one.
pub fn is_ready(conditions: &[ForeignCondition], generation: Option<i64>) -> bool {
    ready(conditions).is_some_and(|it| {
        let is_present = it.observed_generation.is_none_or(|about| Some(about) >= generation);
        it.status == "True" && is_present
    })
}

impl NetConfigNetwork {
    /// What the network is called in variables of plays.
    pub fn service_network(&self) -> String {
        service_network(&self.service_network, &self.name)
    }
}

impl Reservation {
    /// What the network is called in variables of plays.
    pub fn service_network(&self) -> String {
        service_network(&self.service_network, &self.network)
    }
}

fn service_network(own: &str, name: &str) -> String {
    if own.is_empty() { name.to_lowercase() } else { own.to_owned() }
}
