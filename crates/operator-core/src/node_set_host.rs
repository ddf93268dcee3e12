//! The hosts of a node set, their names and their addresses, derived from its spec.

use std::collections::BTreeMap;

use api::dataplane::node_section::Network;
use api::dataplane::{AnsibleOpts, Node, NodeSet, NodeSetHost, NodeSetMachines, NodeSetNode};
use k8s_openapi::api::core::v1::PodDNSConfig;
use kube::ResourceExt;
use serde_json::Value;

use crate::run_engine::connection_vars::{
    CLOUD_USER, HOST_VAR, PORT_VAR, SSH_PORT, plain_host, plain_port,
};
use crate::run_engine::host_key::{HostKeyTrust, recorded_trust};
use crate::run_engine::run_template::HostConnection;
use crate::run_engine::ssh_secret::SshSecret;

/// The control plane network, over which hosts are managed, as variables and statuses name it.
pub const CTLPLANE: &str = "ctlplane";

/// Host name → network name in lower case → value, as statuses record it.
///
/// The network over which a host is managed is also recorded under [`CTLPLANE`].
pub type HostNetworkValues = BTreeMap<String, BTreeMap<String, String>>;

/// A host of a node set.
#[derive(Clone, Debug, PartialEq)]
pub struct Host<'a> {
    /// Its key in `spec.nodes`.
    pub key: &'a str,
    /// The entry under that key.
    pub node: &'a NodeSetNode,
    /// The networks that it belongs to: its own, else the template's.
    pub networks: &'a [Network],
    /// The host's own name, with its domain if it has one.
    pub host_name: String,
    /// The inventory name: the host's own name up to the first dot.
    pub name: String,
    /// The address that ssh connects to.
    pub ansible_host: String,
    /// The port of its ssh server.
    pub ansible_port: i32,
}

impl Host<'_> {
    /// Returns `host:port`, which identifies the machine; no two owners may share it.
    pub fn address(&self) -> String {
        format!("{}:{}", self.ansible_host, self.ansible_port)
    }

    /// Returns the host with its address replaced by `address` (`host:port`).
    ///
    /// An address without a valid port leaves the host unchanged.
    #[must_use]
    pub fn at(mut self, address: &str) -> Self {
        if let Some((host, port)) = address.rsplit_once(':')
            && let Ok(port) = port.parse()
        {
            host.clone_into(&mut self.ansible_host);
            self.ansible_port = port;
        }
        self
    }
}

/// Returns the hosts in the order of their keys.
///
/// Addresses that the spec does not set come from the status.
pub fn hosts(set: &NodeSet) -> Vec<Host<'_>> {
    let none = HostNetworkValues::new();
    hosts_at(set, set.status.as_ref().map_or(&none, |it| &it.all_ips))
}

/// Returns the hosts like [`hosts`], with `reserved` instead of the status as fallback for
/// addresses.
pub fn hosts_at<'a>(set: &'a NodeSet, reserved: &HostNetworkValues) -> Vec<Host<'a>> {
    set.spec.nodes.iter().map(|(key, node)| host(set, key, node, reserved)).collect()
}

fn host<'a>(
    set: &'a NodeSet,
    key: &'a str,
    node: &'a NodeSetNode,
    reserved: &HostNetworkValues,
) -> Host<'a> {
    let host_name = host_name(set, key, node);
    let name = host_name.split('.').next().unwrap_or_default().to_owned();
    // Looks up the address on the control plane network.
    let reserved = || reserved.get(&host_name)?.get(CTLPLANE).cloned();
    let ansible_host = host_of(node).or_else(reserved);
    let ansible_host = ansible_host.unwrap_or_else(|| host_name.clone());
    let networks = Some(node.networks.as_slice()).filter(|it| !it.is_empty());
    let networks = networks.unwrap_or(&set.spec.node_template.networks);
    Host { key, node, networks, host_name, name, ansible_host, ansible_port: port(set, node) }
}

/// Returns the hosts that were taken out of `spec.nodes` and that the status still has, by their
/// inventory names, each with its entry in the status: those that are terminating, and those whose
/// removal was not observed yet.
pub fn taken_out(set: &NodeSet) -> BTreeMap<&str, &NodeSetHost> {
    let recorded = set.status.iter().flat_map(|it| &it.hosts);
    let mut found: BTreeMap<&str, &NodeSetHost> =
        recorded.map(|it| (it.name.as_str(), it)).collect();
    for host in hosts(set) {
        found.remove(host.name.as_str());
    }
    found
}

/// Returns the address (`host:port`) of a node's host, also while it is leaving; `None` if it is not
/// known.
pub fn address_of(set: &NodeSet, node: &Node) -> Option<String> {
    let name = node.name_any();
    let own = hosts(set).into_iter().find(|it| it.name == name).map(|it| it.address());
    own.or_else(|| node.status.as_ref()?.address.clone())
}

/// Returns the addresses (`host:port`) of all hosts, and of those whose nodes are `leaving`.
pub fn addresses<'a>(set: &NodeSet, leaving: impl IntoIterator<Item = &'a Node>) -> Vec<String> {
    let left = leaving.into_iter().filter_map(|it| it.status.as_ref()?.address.clone());
    hosts(set).iter().map(Host::address).chain(left).collect()
}

/// Returns the host's `canonical_hostname`, under which its services register: with the domain of
/// the control plane network where addresses are reserved there, else as the host's own variable
/// says.
///
/// A variable that is a template, or comes from a Secret or ConfigMap, is not looked at.
pub fn canonical_host_name(set: &NodeSet, host: &Host<'_>) -> String {
    let reserved = set.status.as_ref().and_then(|it| it.all_hostnames.get(&host.host_name));
    if let Some(name) = reserved.and_then(|it| it.get(CTLPLANE)) {
        return match name.split_once('.') {
            Some((_, domain)) if *name != host.host_name => format!("{}.{domain}", host.host_name),
            _ => host.host_name.clone(),
        };
    }
    let own = host.node.ansible.as_ref().and_then(|it| it.ansible_vars.get("canonical_hostname"));
    own.and_then(plain_host).unwrap_or(&host.host_name).to_owned()
}

/// Returns the host's own name; a provisioned machine gets the domain of its machine template.
fn host_name(set: &NodeSet, key: &str, node: &NodeSetNode) -> String {
    let own = node.host_name.as_deref().filter(|it| !it.is_empty()).unwrap_or(key);
    let template = machine_template(set).map(|it| &it.template);
    let domain = template.and_then(|it| it.domain_name.as_deref()).filter(|it| !it.is_empty());
    match domain {
        Some(domain) if !own.contains('.') => format!("{key}.{domain}"),
        _ => own.to_owned(),
    }
}

/// Returns the address in the spec. A variable takes precedence over the field, as in the
/// inventory.
fn host_of(node: &NodeSetNode) -> Option<String> {
    let opts = node.ansible.as_ref()?;
    let var = opts.ansible_vars.get(HOST_VAR).and_then(plain_host);
    var.map(str::to_owned).or_else(|| opts.ansible_host.clone()).filter(|it| !it.is_empty())
}

fn port(set: &NodeSet, node: &NodeSetNode) -> i32 {
    node.ansible.as_ref().and_then(port_of).unwrap_or_else(|| template_port(set))
}

/// Returns the port of the ssh servers of hosts that set none themselves.
pub fn template_port(set: &NodeSet) -> i32 {
    set.spec.node_template.ansible.as_ref().and_then(port_of).unwrap_or(SSH_PORT)
}

fn port_of(opts: &AnsibleOpts) -> Option<i32> {
    let var = opts.ansible_vars.get(PORT_VAR).and_then(plain_port);
    var.or_else(|| opts.ansible_port.filter(|it| *it > 0))
}

/// Returns the variables of a level that set address or port to something other than a plain value.
pub fn undecided(opts: &AnsibleOpts) -> Vec<&'static str> {
    let is_bad = |name: &str, is_good: fn(&Value) -> bool| {
        opts.ansible_vars.get(name).is_some_and(|it| !is_good(it))
    };
    let host = is_bad(HOST_VAR, |it| plain_host(it).is_some()).then_some(HOST_VAR);
    let port = is_bad(PORT_VAR, |it| plain_port(it).is_some()).then_some(PORT_VAR);
    host.into_iter().chain(port).collect()
}

/// Returns the template by which the machines of a node set are provisioned.
///
/// Returns `None` when the machines are pre-provisioned or there is no template.
pub fn machine_template(set: &NodeSet) -> Option<&NodeSetMachines> {
    set.spec.baremetal_set_template.as_ref().filter(|_| !set.spec.pre_provisioned)
}

/// Returns the user that ssh logs in as.
pub fn user(set: &NodeSet) -> String {
    let provisioned = machine_template(set).map(|it| it.template.cloud_user_name.clone());
    let opts = set.spec.node_template.ansible.as_ref();
    let own = || opts.and_then(|it| it.ansible_user.clone());
    provisioned.or_else(own).unwrap_or_else(|| CLOUD_USER.to_owned())
}

/// Returns how a run connects to a node's host at an address (`host:port`), with the node set's ssh
/// Secret.
///
/// A key that an earlier run learned is scanned again, pinned to that key, until the node's status
/// reports it. From then on the inventory contains it; before, ssh uses the run's own file.
pub fn connection(
    node: Option<&Node>,
    address: String,
    ssh: SshSecret<'_>,
    trust: &HostKeyTrust,
    was_key_refused: bool,
) -> HostConnection {
    let is_in_inventory = node.and_then(|it| recorded_trust(it).key) == trust.key;
    HostConnection::new(address, ssh, trust, was_key_refused || !is_in_inventory)
}

/// Returns the control plane's DNS; `None` while the node set's status lacks servers or domain.
pub fn dns_config(node_set: &NodeSet) -> Option<PodDNSConfig> {
    let status = node_set.status.as_ref()?;
    let domain = status.ctlplane_search_domain.clone().filter(|it| !it.is_empty())?;
    (!status.dns_cluster_addresses.is_empty()).then(|| PodDNSConfig {
        nameservers: Some(status.dns_cluster_addresses.clone()),
        searches: Some(vec![domain]),
        ..PodDNSConfig::default()
    })
}

/// How many characters of a digest a host's state contains.
pub const PREFIX: usize = 8;

/// Returns the part of a digest that is recorded with a host.
pub fn prefix(hash: &str) -> String {
    crate::keyed::cut_text(hash, PREFIX)
}
