//! Addresses of a node set's hosts, when the cluster has an operator that manages them: the
//! reservations requested per host, and the variables that plays get from them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use api::conditions::ConditionDraft;
use api::dataplane::NodeSet;
use api::dataplane::node_section::Network;
use api::infra::{DnsData, DnsMasq, IpSet, IpSetNetwork, NetConfig, Reservation, is_ready, ready};
use api::problem::Problem;
use kube::{Resource, ResourceExt};
use operator_core::finalizers::is_terminating;
use operator_core::node_set_host::{CTLPLANE, Host, HostNetworkValues};
use operator_core::plan::{Step, Target};
use operator_core::run_engine::build::owner;
use serde_json::{Value, json};

use crate::node_set::kept_hosts::KeptHosts;
use crate::reasons;

/// Condition type: every host has its addresses, or no operator manages addresses.
pub const IP_RESERVATION_READY: &str = "NodeSetIPReservationReady";
const KIND: &str = "OpenStackDataPlaneNodeSet";
/// The variable with the DNS servers of the control plane network.
pub const DNS_SERVERS: &str = "ctlplane_dns_nameservers";

/// What was observed of the operator that manages addresses and names. Empty when the cluster lacks
/// its kinds or the node set has never named a network.
#[derive(Clone, Debug, Default)]
pub struct Infra {
    /// Whether the cluster has the kinds and the node set names networks.
    pub is_used: bool,
    /// Whether the node set names networks and the cluster lacks the kinds.
    pub is_missed: bool,
    /// The `NetConfig` objects of the namespace.
    pub net_configs: Vec<Arc<NetConfig>>,
    /// The reservations (`IPSet`) of the namespace.
    pub ip_sets: Vec<Arc<IpSet>>,
    /// The DNS servers of the namespace.
    pub dns_masqs: Vec<Arc<DnsMasq>>,
    /// The DNS names of this node set's hosts, as last written.
    pub dns_data: Option<Arc<DnsData>>,
}

/// Returns whether a node set names any network. Otherwise no addresses are requested.
pub fn names_networks(set: &NodeSet) -> bool {
    !set.spec.node_template.networks.is_empty()
        || set.spec.nodes.values().any(|it| !it.networks.is_empty())
}

impl Infra {
    /// Returns the first `NetConfig` of the namespace by name; upstream supports only one as well.
    fn net_config(&self) -> Option<&NetConfig> {
        self.net_configs.first().map(|it| &**it)
    }

    /// Maps each network, in lower case, to its name in the variables of plays.
    pub fn service_networks(&self) -> BTreeMap<String, String> {
        let networks = self.net_config().into_iter().flat_map(|it| &it.spec.networks);
        networks.map(|it| (it.name.to_lowercase(), it.service_network())).collect()
    }

    /// Returns the reservations object of a host.
    pub fn ip_set(&self, host_name: &str) -> Option<&IpSet> {
        let found = self.ip_sets.iter().find(|it| it.metadata.name.as_deref() == Some(host_name));
        found.map(|it| &**it)
    }

    /// Returns the reservations of a host, once each of its networks has one.
    pub fn reservations(&self, host: &Host<'_>) -> Option<&[Reservation]> {
        let ip_set = self.ip_set(&host.host_name)?;
        let status = ip_set.status.as_ref()?;
        if status.observed_generation.is_some_and(|it| Some(it) != ip_set.metadata.generation) {
            return None;
        }
        let has = |it: &Network| {
            status.reservations.iter().any(|found| found.network.eq_ignore_ascii_case(&it.name))
        };
        (is_ready(&status.conditions, ip_set.metadata.generation) && host.networks.iter().all(has))
            .then_some(status.reservations.as_slice())
    }

    /// Returns the addresses of the DNS server that hosts can reach.
    pub fn dns_addresses(&self) -> &[String] {
        let status = self.dns_masq().and_then(|it| it.status.as_ref());
        status.map(|it| it.dns_addresses.as_slice()).unwrap_or_default()
    }

    /// Returns the DNS server, if it is the only one of the namespace.
    pub fn dns_masq(&self) -> Option<&DnsMasq> {
        self.dns_masqs.first().filter(|_| self.dns_masqs.len() == 1).map(|it| &**it)
    }
}

/// Returns the steps that reserve the addresses of all hosts, and release those of removed hosts
/// except for the `kept` ones.
pub fn desired(set: &NodeSet, hosts: &[Host<'_>], infra: &Infra, kept: KeptHosts<'_>) -> Asked {
    let problems = faults(set, hosts, infra);
    if !problems.is_empty() {
        return Err(problems);
    }
    let hosts = if infra.is_used { hosts } else { &[] };
    let names: BTreeSet<&str> = hosts.iter().map(|it| it.host_name.as_str()).collect();
    let is_left = |it: &&Arc<IpSet>| {
        let name = it.name_any();
        is_standing(&***it, set) && !names.contains(name.as_str()) && !kept.has(&name)
    };
    let because = "its host is not in the node set any more, or on no network";
    let left = infra.ip_sets.iter().filter(is_left);
    let mut steps: Vec<Step> = left.map(|it| Step::delete(Target::of(&**it), because)).collect();
    steps.extend(hosts.iter().filter_map(|it| request(set, it, infra)));
    Ok(steps)
}

/// Returns whether a node set is the controller of an object.
pub fn is_of<K: Resource>(object: &K, set: &NodeSet) -> bool {
    Target::of(set).controls(object)
}

/// Returns whether a node set controls an object that is not being deleted already, so that each
/// object is deleted once.
pub fn is_standing<K: Resource>(object: &K, set: &NodeSet) -> bool {
    is_of(object, set) && !is_terminating(object)
}

fn is_others<K: Resource>(object: &K, set: &NodeSet) -> bool {
    let mut owners = object.meta().owner_references.iter().flatten();
    owners.any(|it| it.controller == Some(true) && Some(&it.uid) != set.metadata.uid.as_ref())
}

fn request(set: &NodeSet, host: &Host<'_>, infra: &Infra) -> Option<Step> {
    let networks = requested(set, host, infra);
    let seen = infra.ip_set(&host.host_name);
    if seen.is_some_and(|it| it.spec.networks == networks && is_of(it, set)) {
        return None;
    }
    let object = json!({
        "metadata": {
            "labels": labels(set),
            "ownerReferences": [owner(&Target::of(set))],
        },
        "spec": { "networks": networks },
    });
    let target = Target::named::<IpSet>(set.namespace().unwrap_or_default(), &host.host_name);
    Some(Step::apply(target, object, "a host needs addresses on its networks"))
}

/// Returns the labels by which other tools select a node set's objects.
pub fn labels(set: &NodeSet) -> BTreeMap<String, String> {
    let values = [
        ("uid", set.uid().unwrap_or_default()),
        ("namespace", set.namespace().unwrap_or_default()),
        ("name", set.name_any()),
    ];
    values.into_iter().map(|(name, it)| (format!("osdpns.openstack.org/{name}"), it)).collect()
}

/// Returns the networks to request for one host. The address that the user gave becomes the fixed
/// IP on the control plane network of pre-provisioned hosts, unless a fixed IP is set.
fn requested(set: &NodeSet, host: &Host<'_>, infra: &Infra) -> Vec<IpSetNetwork> {
    let given = host.node.ansible.as_ref().and_then(|it| it.ansible_host.as_deref());
    let given = given.filter(|it| set.spec.pre_provisioned && it.parse::<IpAddr>().is_ok());
    let network = |it: &Network| {
        let given = given.filter(|_| is_ctlplane(&it.name, infra)).map(str::to_owned);
        IpSetNetwork {
            name: it.name.clone(),
            subnet_name: it.subnet_name.clone(),
            fixed_ip: it.fixed_ip.clone().filter(|it| !it.is_empty()).or(given),
            default_route: it.default_route,
        }
    };
    host.networks.iter().map(network).collect()
}

fn is_ctlplane(network: &str, infra: &Infra) -> bool {
    network.eq_ignore_ascii_case(CTLPLANE)
        || infra.service_networks().get(&network.to_lowercase()).is_some_and(|it| it == CTLPLANE)
}

fn faults(set: &NodeSet, hosts: &[Host<'_>], infra: &Infra) -> Vec<Problem> {
    if !infra.is_used {
        return Vec::new();
    }
    let (name, namespace) = (set.name_any(), set.namespace().unwrap_or_default());
    let Some(config) = infra.net_config() else {
        let text = format!(
            "{KIND} {name} names networks, and namespace {namespace} has no NetConfig that says what \
             they are: create one, or take the networks out."
        );
        return vec![Problem::new(&reasons::external::NET_CONFIG_NOT_FOUND, text)];
    };
    hosts.iter().flat_map(|it| of_host(set, it, config, infra)).collect()
}

fn of_host(set: &NodeSet, host: &Host<'_>, config: &NetConfig, infra: &Infra) -> Vec<Problem> {
    let (name, key) = (set.name_any(), host.key);
    if host.networks.is_empty() {
        let text = format!(
            "Node {key} of {KIND} {name} has no networks, and neither has the template, while other \
             nodes have: list them in spec.nodes[{key}].networks or spec.nodeTemplate.networks."
        );
        return vec![Problem::new(&reasons::external::NETWORK_MISSING, text)];
    }
    let known: BTreeSet<String> =
        config.spec.networks.iter().map(|it| it.name.to_lowercase()).collect();
    let unknown = host.networks.iter().filter(|it| !known.contains(&it.name.to_lowercase()));
    let unknown = unknown.map(|it| {
        let text = format!(
            "Node {key} of {KIND} {name} is part of network {}, which NetConfig {} does not have: \
             add it there, or correct the node's networks.",
            it.name,
            config.name_any()
        );
        Problem::new(&reasons::external::NETWORK_UNKNOWN, text)
    });
    let mut problems: Vec<Problem> = unknown.collect();
    if !host.networks.iter().any(|it| is_ctlplane(&it.name, infra)) {
        let text = format!(
            "Node {key} of {KIND} {name} is not part of the network {CTLPLANE}, over which hosts are \
             managed: add it to its networks."
        );
        problems.push(Problem::new(&reasons::external::NETWORK_MISSING, text));
    }
    if infra.ip_set(&host.host_name).is_some_and(|it| is_others(it, set)) {
        let text = format!(
            "IPSet {} for node {key} of {KIND} {name} belongs to another object: take the host out \
             there, or give it another name here.",
            host.host_name
        );
        problems.push(Problem::new(&reasons::external::NAME_TAKEN, text));
    }
    problems
}

/// The steps for external objects in this pass, or the faults that prevent them.
pub type Asked = Result<Vec<Step>, Vec<Problem>>;

/// Returns a condition with the first faults; `None` if there are none.
pub fn problem_condition(type_: &str, problems: &[Problem]) -> Option<ConditionDraft> {
    let worst = Problem::worst(problems)?;
    let texts: Vec<&str> = problems.iter().take(5).map(|it| it.message.as_str()).collect();
    Some(worst.reason.condition(type_, texts.join(" ")))
}

/// Reports the progress of the address reservations.
pub fn condition(hosts: &[Host<'_>], infra: &Infra, asked: &Asked) -> ConditionDraft {
    if !infra.is_used {
        let why = if infra.is_missed {
            "The cluster has no operator that reserves addresses"
        } else {
            "No addresses are requested"
        };
        let text = format!("{why}: they come from ansibleHost and the variables.");
        return reasons::external::NOT_REQUIRED.condition(IP_RESERVATION_READY, text);
    }
    if let Some(found) =
        asked.as_ref().err().and_then(|it| problem_condition(IP_RESERVATION_READY, it))
    {
        return found;
    }
    let asks: BTreeSet<&str> = asked.iter().flatten().map(|it| it.target.name.as_str()).collect();
    let is_open =
        |it: &&Host<'_>| asks.contains(&*it.host_name) || infra.reservations(it).is_none();
    let open: Vec<&Host<'_>> = hosts.iter().filter(is_open).collect();
    let Some(first) = open.first() else {
        let text = "Every host has an address on each of its networks.";
        return reasons::external::RESERVED.condition(IP_RESERVATION_READY, text);
    };
    let status = infra.ip_set(&first.host_name).and_then(|it| it.status.as_ref());
    let reported = status.and_then(|it| ready(&it.conditions)).filter(|it| !it.message.is_empty());
    let reported = reported.map(|it| format!(": {}", it.message)).unwrap_or_default();
    let text = format!(
        "{} of {} hosts wait for their addresses, the first one for IPSet {}{reported}.",
        open.len(),
        hosts.len(),
        first.host_name
    );
    reasons::external::RESERVING.condition(IP_RESERVATION_READY, text)
}

/// Returns the variables that plays get from a host's reservations. They override the user's.
pub fn host_vars(host: &Host<'_>, infra: &Infra) -> BTreeMap<String, Value> {
    let reservations = infra.reservations(host).unwrap_or_default();
    let host_name = &host.host_name;
    let mut vars = BTreeMap::new();
    let mut domains: Vec<&str> = Vec::new();
    for it in reservations {
        let network = it.service_network();
        let mut var = |name: &str, value: Value| vars.insert(format!("{network}_{name}"), value);
        var("ip", json!(it.address));
        var("cidr", json!(prefix_length(&it.cidr)));
        var("mtu", json!(it.mtu));
        var("gateway_ip", json!(it.gateway));
        var("host_routes", json!(it.routes));
        if let Some(vlan) = it.vlan {
            var("vlan_id", json!(vlan));
        }
        if network == CTLPLANE {
            vars.insert(DNS_SERVERS.to_owned(), json!(infra.dns_addresses()));
            let own = host_name.split_once('.').map(|it| it.1);
            domains.extend(own.filter(|own| is_fqdn(host_name) && *own != it.dns_domain));
            vars.insert("canonical_hostname".into(), json!(full_name(host_name, it)));
        }
        domains.push(&it.dns_domain);
    }
    if !reservations.is_empty() {
        vars.insert("dns_search_domains".into(), json!(domains));
    }
    vars
}

/// Parses the prefix length of a CIDR such as `192.0.2.0/24`.
fn prefix_length(cidr: &str) -> Option<u8> {
    cidr.split_once('/')?.1.parse().ok()
}

/// Returns the host name, completed with the domain of the control plane network if it has none.
fn full_name(host_name: &str, reservation: &Reservation) -> String {
    if is_fqdn(host_name) {
        return host_name.to_owned();
    }
    format!("{host_name}.{}", reservation.dns_domain)
}

/// Returns whether a host name has a domain that ends in letters.
pub fn is_fqdn(name: &str) -> bool {
    let is_label =
        |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-');
    let is_top = |it: &str| it.len() >= 2 && it.bytes().all(|it| it.is_ascii_alphabetic());
    name.rsplit_once('.').is_some_and(|(rest, top)| is_top(top) && rest.split('.').all(is_label))
}

/// Maps host → network → address, for the hosts that have all of their addresses.
pub fn all_ips(hosts: &[Host<'_>], infra: &Infra) -> HostNetworkValues {
    on_networks(hosts, infra, |_, it| it.address.clone())
}

/// Maps host → network → name, for the hosts that have all of their addresses.
pub fn all_hostnames(hosts: &[Host<'_>], infra: &Infra) -> HostNetworkValues {
    on_networks(hosts, infra, |host, it| {
        if it.service_network() == CTLPLANE && is_fqdn(&host.host_name) {
            return host.host_name.clone();
        }
        short_name(&host.host_name, it)
    })
}

fn on_networks(
    hosts: &[Host<'_>],
    infra: &Infra,
    value: impl Fn(&Host<'_>, &Reservation) -> String,
) -> HostNetworkValues {
    let of = |host: &Host<'_>| {
        let found = infra.reservations(host)?;
        let named = found.iter().map(|it| (it.network.to_lowercase(), value(host, it)));
        let mut all: BTreeMap<String, String> = named.collect();
        if let Some(it) = found.iter().find(|it| it.service_network() == CTLPLANE) {
            all.entry(CTLPLANE.to_owned()).or_insert_with(|| value(host, it));
        }
        Some((host.host_name.clone(), all))
    };
    hosts.iter().filter_map(of).collect()
}

/// Returns the name of a host on a network: the host name up to the first dot, with the network's
/// domain.
pub fn short_name(host_name: &str, reservation: &Reservation) -> String {
    let short = host_name.split('.').next().unwrap_or_default();
    format!("{short}.{}", reservation.dns_domain)
}

/// Returns the domain of the control plane network, from the first host that has one.
pub fn search_domain(hosts: &[Host<'_>], infra: &Infra) -> Option<String> {
    let all = hosts.iter().filter_map(|it| infra.reservations(it)).flatten();
    let mut domains = all.filter(|it| it.service_network() == CTLPLANE).map(|it| &it.dns_domain);
    domains.find(|it| !it.is_empty()).cloned()
}

#[cfg(test)]
#[path = "ipam_tests.rs"]
pub(super) mod tests;
