//! DNS names of a node set's hosts, when the cluster has a `DNSMasq` of the control plane.

use api::conditions::ConditionDraft;
use api::dataplane::NodeSet;
use api::infra::{DnsData, DnsDataSpec, DnsHost, DnsMasq, is_ready};
use api::problem::Problem;
use kube::ResourceExt;
use operator_core::node_set_host::{CTLPLANE, Host};
use operator_core::plan::{Step, Target};
use operator_core::run_engine::build::owner;
use serde_json::json;

use crate::node_set::ipam::{
    Asked, Infra, is_fqdn, is_standing, labels, problem_condition, short_name,
};
use crate::node_set::kept_hosts::KeptHosts;
use crate::reasons;

/// Condition type: the DNS server has the names of all hosts, or no names are needed.
pub const DNS_DATA_READY: &str = "NodeSetDNSDataReady";

/// Returns the step that writes the names of all hosts, if they differ.
///
/// Returns no step while the DNS server is not ready or a host has no address yet. When the node
/// set uses no networks, returns the step that deletes the names, unless any host is `kept`. Fails
/// when the namespace has several `DNSMasq`.
pub fn desired(set: &NodeSet, hosts: &[Host<'_>], infra: &Infra, kept: KeptHosts<'_>) -> Asked {
    if !infra.is_used {
        let left = infra.dns_data.iter();
        let left = left.filter(|it| !kept.are_any() && is_standing(&***it, set));
        let because = "the node set names no networks any more";
        return Ok(left.map(|it| Step::delete(Target::of(&**it), because)).collect());
    }
    if infra.dns_masqs.len() > 1 {
        return Err(vec![several(infra)]);
    }
    let has_all = hosts.iter().all(|it| infra.reservations(it).is_some());
    let Some(server) = server(infra).filter(|_| has_all) else { return Ok(Vec::new()) };
    let mut hosts = entries(hosts, infra);
    let terminating = written_names(infra, kept).filter(|it| !hosts.contains(it));
    let terminating: Vec<DnsHost> = terminating.cloned().collect();
    hosts.extend(terminating);
    let spec = DnsDataSpec {
        hosts,
        dns_data_label_selector_value: server.spec.dns_data_label_selector_value.clone(),
    };
    if infra.dns_data.as_ref().is_some_and(|it| it.spec == spec) {
        return Ok(Vec::new());
    }
    let object = json!({
        "metadata": { "labels": labels(set), "ownerReferences": [owner(&Target::of(set))] },
        "spec": spec,
    });
    let target = Target::named::<DnsData>(set.namespace().unwrap_or_default(), set.name_any());
    Ok(vec![Step::apply(target, object, "the DNS server is to have the names of the hosts")])
}

/// Returns the entries of terminating hosts, as they were written.
fn written_names<'a>(infra: &'a Infra, kept: KeptHosts<'a>) -> impl Iterator<Item = &'a DnsHost> {
    let written = infra.dns_data.iter().flat_map(|it| &it.spec.hosts);
    written.filter(move |it| it.hostnames.iter().any(|name| kept.is_terminating(name)))
}

fn several(infra: &Infra) -> Problem {
    let names: Vec<String> = infra.dns_masqs.iter().map(|it| it.name_any()).collect();
    let text = format!(
        "The namespace has several DNSMasq ({}), and it is unknown which one is to have the names \
         of the hosts: delete all but one.",
        names.join(", ")
    );
    Problem::new(&reasons::external::SEVERAL_DNS_SERVERS, text)
}

/// Returns the DNS server once it is ready and reports its addresses.
fn server(infra: &Infra) -> Option<&DnsMasq> {
    infra.dns_masq().filter(|it| {
        let status = it.status.as_ref();
        status.is_some_and(|reported| {
            is_ready(&reported.conditions, it.metadata.generation)
                && reported.dns_cluster_addresses.is_some()
        })
    })
}

/// Returns one entry per reservation, sorted by node key. Reservations without a name are omitted.
fn entries(hosts: &[Host<'_>], infra: &Infra) -> Vec<DnsHost> {
    let mut sorted: Vec<&Host<'_>> = hosts.iter().collect();
    sorted.sort_by_key(|it| it.key);
    let mut entries = Vec::new();
    for host in sorted {
        let name = &host.host_name;
        for it in infra.reservations(host).unwrap_or_default() {
            let on_network = short_name(name, it);
            let is_own = on_network == *name;
            let is_first = it.service_network() == CTLPLANE && is_fqdn(name);
            let mut hostnames: Vec<String> = (!is_own).then_some(on_network).into_iter().collect();
            hostnames.extend(is_first.then(|| name.clone()));
            if !hostnames.is_empty() {
                entries.push(DnsHost { ip: it.address.clone(), hostnames });
            }
        }
    }
    entries
}

/// Returns the addresses of the DNS server inside the cluster.
pub fn cluster_addresses(infra: &Infra) -> Vec<String> {
    let status = infra.dns_masq().and_then(|it| it.status.as_ref());
    status.and_then(|it| it.dns_cluster_addresses.clone()).unwrap_or_default()
}

/// Reports whether the DNS server has the names of the hosts.
pub fn condition(infra: &Infra, asked: &Asked) -> ConditionDraft {
    if !infra.is_used {
        let text = "No DNS server gets the names of the hosts: they need names that can be \
                    resolved, or addresses.";
        return reasons::external::NOT_REQUIRED.condition(DNS_DATA_READY, text);
    }
    if let Some(found) = asked.as_ref().err().and_then(|it| problem_condition(DNS_DATA_READY, it)) {
        return found;
    }
    if server(infra).is_none() {
        let text = match infra.dns_masq() {
            Some(it) => format!("DNSMasq {} is not ready yet.", it.name_any()),
            None => "The namespace has no DNSMasq: create one, or have the control plane make it."
                .to_owned(),
        };
        return reasons::external::DNS_SERVER_NOT_READY.condition(DNS_DATA_READY, text);
    }
    let is_complete = asked.as_ref().is_ok_and(Vec::is_empty);
    let is_served = infra.dns_data.as_ref().is_some_and(|it| {
        let status = it.status.as_ref();
        status.is_some_and(|reported| is_ready(&reported.conditions, it.metadata.generation))
    });
    if is_complete && is_served {
        return reasons::external::NAMED
            .condition(DNS_DATA_READY, "The DNS server has the names of the hosts.");
    }
    let text = "The DNS server does not have the names of the hosts yet.";
    reasons::external::NAMING.condition(DNS_DATA_READY, text)
}

#[cfg(test)]
#[path = "dns_tests.rs"]
mod tests;
