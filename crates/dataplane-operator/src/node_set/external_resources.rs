//! What external operators provide for a node set, evaluated together: addresses, then names, then
//! certificates.

use std::collections::{BTreeMap, BTreeSet};

use api::conditions::ConditionDraft;
use api::dataplane::condition_types::CERTIFICATES_READY;
use api::dataplane::node_set::NodeSetCertificates;
use api::dataplane::{NodeSetStatus, Service};
use api::fault::Fault;
use api::problem::Problem;
use kube::ResourceExt;
use operator_core::certificate_networks::unknown_networks;
use operator_core::certificates::{self, CertificateRequest, DesiredCertificates, Hosts};
use operator_core::finalizers::is_terminating;
use operator_core::node_set_host;
use operator_core::node_set_host::{Host, HostNetworkValues};
use operator_core::plan::Step;
use operator_core::run_engine::host_progress::count;
use serde_json::{Value, json};

use crate::host::inputs::{Inputs, insert_unless_empty};
use crate::node_set::ipam::{self, Asked};
use crate::node_set::kept_hosts::KeptHosts;
use crate::node_set::observed::Observed;
use crate::node_set::{certificate_bundles, dns, tls};
use crate::reasons;

/// Limit of writes per pass. The events that they cause enqueue the next pass, which continues.
const ONE_PASS: usize = 500;

/// Prefix of the input for the DNS server.
const DNS_SERVER: &str = "DNSMasq ";

/// Name of the input for certificates.
const CERTIFICATES: &str = "certificates";

/// What external operators provide, and what is requested of them.
#[derive(Clone, Debug, Default)]
pub struct ExternalResources {
    /// Writes that do not depend on each other.
    pub requested: Vec<Step>,
    /// Writes of the Secrets that runs mount.
    pub bundles: Vec<Step>,
    /// The conditions of addresses, names and certificates.
    pub conditions: Vec<ConditionDraft>,
    /// Names: host → network → name.
    pub names: HostNetworkValues,
    /// Addresses: host → network → address.
    pub addresses: HostNetworkValues,
    /// The domain of the control plane network.
    pub search_domain: Option<String>,
    /// Addresses of the DNS server inside the cluster.
    pub dns_servers: Vec<String>,
    /// The Secrets with the hosts' certificates.
    pub certificates: Vec<NodeSetCertificates>,
    /// Whether plays see that hosts have certificates. True once all hosts had theirs.
    pub has_certificates: bool,
    /// Whether any certificate belongs to a listed service, not only to a service that a deployment
    /// brings.
    pub lists_certificates: bool,
    /// Variables from each host's reservations, by host name. They override the user's.
    pub vars: BTreeMap<String, BTreeMap<String, Value>>,
    /// What of the requests for certificates is without effect.
    pub without_effect: Vec<Fault>,
}

impl ExternalResources {
    /// Returns the condition that the inventory waits for. Certificates do not count: they are not
    /// part of it, and deployments of services without certificates need none.
    pub fn missing(&self) -> Option<&ConditionDraft> {
        let is_in_it = |it: &&ConditionDraft| it.type_ != CERTIFICATES_READY;
        self.conditions.iter().filter(is_in_it).find(|it| !it.holds())
    }
}

/// Returns the hosts, at their reserved addresses where the user gives none.
pub fn hosts(seen: &Observed) -> Vec<Host<'_>> {
    let plain = node_set_host::hosts(&seen.set);
    let reserved = addresses(seen, &plain);
    node_set_host::hosts_at(&seen.set, &reserved)
}

/// Returns the label selectors of the single-host certificate Secrets whose content is needed.
pub fn needed_secrets(seen: &Observed) -> Vec<String> {
    if is_terminating(&*seen.set) {
        return Vec::new();
    }
    let requested = requested(seen);
    let plain = node_set_host::hosts(&seen.set);
    let (names, addresses) = (names(seen, &plain), addresses(seen, &plain));
    let hosts = certified(seen, &plain, &names, &addresses);
    if !tls::is_enabled(&seen.set, &hosts, &seen.issued) {
        return Vec::new();
    }
    certificate_bundles::needed(&seen.set, &requested, &hosts, &seen.issued, &seen.bundles)
}

/// Evaluates the external resources. Requests nothing if there are `problems`, i.e. while the hosts
/// are invalid.
///
/// Removes nothing of the `kept` hosts.
pub fn evaluate(
    seen: &Observed,
    hosts: &[Host<'_>],
    problems: &[Problem],
    kept: KeptHosts<'_>,
) -> ExternalResources {
    let (set, infra, issued) = (&*seen.set, &seen.infra, &seen.issued);
    let is_frozen = kept.is_frozen;
    let recorded = recorded(seen);
    let mut served = reserved(seen, hosts, &recorded);
    let may_ask = |it: Asked| if problems.is_empty() { it } else { Ok(Vec::new()) };
    let on_networks =
        [ipam::desired(set, hosts, infra, kept), dns::desired(set, hosts, infra, kept)];
    let [for_addresses, for_names] = on_networks.map(may_ask);
    let requested = requested(seen);
    // The certificates of a service that cannot be read are unknown.
    let may_remove = !is_frozen && seen.unreadable.is_empty();
    let mut certified = certified(seen, hosts, &served.names, &served.addresses);
    certified.terminating = kept.host_names();
    let for_certificates = if problems.is_empty() {
        tls::desired(set, &requested, &certified, issued, may_remove)
    } else {
        DesiredCertificates::default()
    };
    let is_on = tls::is_enabled(set, &certified, issued) && !requested.is_empty();
    let granted = if is_on && problems.is_empty() { requested.as_slice() } else { &[] };
    served.without_effect = unknown_networks(granted, &certified);
    let (certificates, steps, are_bundled) = bundled(seen, granted, &certified, &for_certificates);
    let conditions = [
        ipam::condition(hosts, infra, &for_addresses),
        dns::condition(infra, &for_names),
        tls::condition(set, &requested, &certified, issued, &for_certificates, are_bundled),
    ];
    let asked = [for_addresses, for_names].into_iter().flatten().flatten();
    served.requested = asked.chain(for_certificates.steps).take(ONE_PASS).collect();
    // A new host that still waits for a certificate changes nothing for the others.
    let were_told = recorded.inputs.contains_key(CERTIFICATES);
    let is_listed = |it: &CertificateRequest<'_>| seen.services.contains_key(it.service);
    let is_as_told = !seen.unreadable.is_empty() && were_told;
    served.lists_certificates = requested.iter().any(is_listed) || is_as_told;
    served.has_certificates = is_on && were_told || is_as_told;
    if !problems.is_empty() {
        served.conditions = conditions.map(unasked).into();
        served.certificates = recorded.certificates;
        return served;
    }
    served.conditions = conditions.into();
    let has_all = served.conditions.last().is_some_and(ConditionDraft::holds);
    served.has_certificates |= is_on && has_all;
    // Keep reporting what runs under way may still mount, until they have ended.
    let is_kept = (is_frozen || is_as_told) && certificates.is_empty();
    served.certificates = if is_kept { recorded.certificates } else { certificates };
    served.bundles = steps;
    if may_remove && are_bundled {
        let secrets = served.certificates.iter().flat_map(|it| &it.secrets);
        let kept: Vec<&str> = secrets.map(String::as_str).collect();
        served.bundles.extend(certificate_bundles::left(set, &kept, &seen.bundles));
    }
    served
}

/// What infra-operator has reserved for the hosts: names, addresses, DNS, and their variables.
fn reserved(seen: &Observed, hosts: &[Host<'_>], recorded: &NodeSetStatus) -> ExternalResources {
    let infra = &seen.infra;
    let mut served = ExternalResources {
        names: names(seen, hosts),
        addresses: addresses(seen, hosts),
        vars: vars(hosts, seen),
        ..ExternalResources::default()
    };
    if infra.is_used {
        served.search_domain = ipam::search_domain(hosts, infra);
        let recorded_domain = || recorded.ctlplane_search_domain.clone();
        served.search_domain = served.search_domain.or_else(recorded_domain);
        served.dns_servers = dns::cluster_addresses(infra);
        if served.dns_servers.is_empty() {
            served.dns_servers.clone_from(&recorded.dns_cluster_addresses);
        }
    }
    served
}

/// Replaces the condition of something that is not requested yet.
fn unasked(condition: ConditionDraft) -> ConditionDraft {
    let is_none = [&reasons::external::NOT_REQUIRED, &reasons::external::NOT_ENABLED]
        .iter()
        .any(|it| it.word == condition.reason);
    if condition.holds() && is_none {
        return condition;
    }
    let text = "Nothing is asked for while the hosts are not as they should be; see InputReady.";
    reasons::external::INPUT_MISSING.condition(&condition.type_, text)
}

fn recorded(seen: &Observed) -> NodeSetStatus {
    seen.set.status.clone().unwrap_or_default()
}

fn names(seen: &Observed, hosts: &[Host<'_>]) -> HostNetworkValues {
    let recorded = seen.set.status.as_ref().map(|it| &it.all_hostnames);
    kept(seen, hosts, recorded, ipam::all_hostnames(hosts, &seen.infra))
}

fn addresses(seen: &Observed, hosts: &[Host<'_>]) -> HostNetworkValues {
    let recorded = seen.set.status.as_ref().map(|it| &it.all_ips);
    kept(seen, hosts, recorded, ipam::all_ips(hosts, &seen.infra))
}

/// Merges fresh values into the recorded ones. A host keeps its recorded values until it has
/// another reservation, so that recreating an `IPSet` does not move the host.
fn kept(
    seen: &Observed,
    hosts: &[Host<'_>],
    recorded: Option<&HostNetworkValues>,
    fresh: HostNetworkValues,
) -> HostNetworkValues {
    if !seen.infra.is_used {
        return HostNetworkValues::new();
    }
    let known = |it: &Host<'_>| Some((it.host_name.clone(), recorded?.get(&it.host_name)?.clone()));
    hosts.iter().filter_map(known).chain(fresh).collect()
}

fn certified<'a>(
    seen: &Observed,
    hosts: &'a [Host<'_>],
    names: &'a HostNetworkValues,
    addresses: &'a HostNetworkValues,
) -> Hosts<'a> {
    let all: BTreeSet<&str> = hosts.iter().map(|it| it.host_name.as_str()).collect();
    let terminating = BTreeSet::new();
    Hosts { all, terminating, are_reserved: seen.infra.is_used, names, addresses }
}

/// Returns the certificates of the listed services and of those that deployments bring. A further
/// service that a deployment brings waits while a deployment is under way: plays learn of
/// certificates from the inventory, which must not change meanwhile.
fn requested(seen: &Observed) -> Vec<CertificateRequest<'_>> {
    let is_in_use = seen.is_in_use();
    let recorded = seen.set.status.iter().flat_map(|it| &it.certificates);
    let recorded: BTreeSet<&str> = recorded.map(|it| it.service.as_str()).collect();
    let of = |name: &'_ String| -> Option<(&str, &Service)> {
        let found = seen.services.get_key_value(name).or_else(|| seen.brought.get_key_value(name));
        let (name, service) = found?;
        let certificate_source = seen.certificate_sources.get(name);
        Some((name.as_str(), certificate_source.map_or(&**service, |it| &**it)))
    };
    let mut known = BTreeSet::new();
    let brought = seen.brought.keys().filter(|it| !is_in_use || recorded.contains(it.as_str()));
    let names = seen.set.spec.services.iter().chain(brought);
    certificates::requested(names.filter(|it| known.insert(it.as_str())).filter_map(of))
}

/// Returns the Secrets of all certificates, the steps that write them, and whether every
/// certificate has its Secrets.
fn bundled(
    seen: &Observed,
    requested: &[CertificateRequest<'_>],
    hosts: &Hosts<'_>,
    desired: &DesiredCertificates,
) -> (Vec<NodeSetCertificates>, Vec<Step>, bool) {
    let (mut certificates, mut steps) = (Vec::new(), Vec::new());
    let (set, issued, bundles) = (&seen.set, &seen.issued, &seen.bundles);
    let asked = desired.names();
    for wanted in requested {
        let made = certificate_bundles::bundle_secrets(set, wanted, hosts, issued, bundles);
        let Some((secrets, written)) = made else { continue };
        let (service, key) = (wanted.service.to_owned(), wanted.key.to_owned());
        certificates.push(NodeSetCertificates {
            service,
            key,
            directory: wanted.directory(),
            secrets,
            waiting_hosts: count(certificates::open(wanted, hosts, issued, &asked).len()),
        });
        steps.extend(written);
    }
    let are_complete = certificates.len() == requested.len() || hosts.all.is_empty();
    (certificates, steps, are_complete)
}

/// Returns the variables from each host's reservations, by host name.
fn vars(hosts: &[Host<'_>], seen: &Observed) -> BTreeMap<String, BTreeMap<String, Value>> {
    let of = |it: &Host<'_>| (it.host_name.clone(), ipam::host_vars(it, &seen.infra));
    if seen.infra.is_used { hosts.iter().map(of).collect() } else { BTreeMap::new() }
}

/// Returns the inputs of a deployment: `IPSet x` → digest of the variables from it. An object that
/// is being recreated keeps its recorded digest until it exists again.
pub fn inputs(seen: &Observed, served: &ExternalResources) -> Inputs {
    let mut found = Inputs::new();
    if !seen.infra.is_used {
        return found;
    }
    let recorded = seen.set.status.as_ref().map(|it| &it.inputs);
    for (host, vars) in &served.vars {
        let name = format!("IPSet {host}");
        // The variables about the DNS server are a separate input.
        let own = |it: &(&String, &Value)| it.0 != ipam::DNS_SERVERS;
        let vars: BTreeMap<&String, &Value> = vars.iter().filter(own).collect();
        if vars.is_empty() {
            let known = recorded.and_then(|it| it.get(&name)).cloned();
            found.extend(known.map(|it| (name, it.into())));
        } else {
            insert_unless_empty(&mut found, name, &json!(vars));
        }
    }
    if let Some(it) = seen.infra.dns_masq() {
        let name = format!("{DNS_SERVER}{}", it.name_any());
        insert_unless_empty(&mut found, name, &json!(seen.infra.dns_addresses()));
    } else {
        let known = recorded.into_iter().flatten().filter(|it| it.0.starts_with(DNS_SERVER));
        found.extend(known.map(|(name, it)| (name.clone(), it.as_str().into())));
    }
    if served.has_certificates && served.lists_certificates {
        insert_unless_empty(&mut found, CERTIFICATES.to_owned(), &json!(true));
    }
    found
}
