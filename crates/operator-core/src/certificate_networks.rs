//! The networks that services name for their certificates and that no host has.

use std::collections::{BTreeMap, BTreeSet};

use api::conditions::first_names;
use api::fault::Fault;
use kube::ResourceExt;

use crate::certificates::{CertificateRequest, Hosts};

/// How many networks a message names.
const NAMED: usize = 5;

/// Returns the networks named in `tlsCerts` of which certificates carry nothing, because no host has a
/// name or an address there; none while names of hosts are not known.
pub fn unknown_networks(requests: &[CertificateRequest<'_>], hosts: &Hosts<'_>) -> Vec<Fault> {
    let are_known = !hosts.all.is_empty() && hosts.are_complete();
    let requests = requests.iter().filter(|_| are_known);
    requests.filter_map(|it| unknown_networks_of(it, hosts)).collect()
}

fn unknown_networks_of(request: &CertificateRequest<'_>, hosts: &Hosts<'_>) -> Option<Fault> {
    let CertificateRequest { spec, key, cert, .. } = request;
    let carried = [("dnsnames", hosts.names), ("ips", hosts.addresses)];
    let carried = carried.into_iter().filter(|(what, _)| cert.contents.iter().any(|it| it == what));
    let networks = carried.flat_map(|(_, all)| all.values()).flat_map(BTreeMap::keys);
    let known: BTreeSet<&str> = networks.map(String::as_str).collect();
    let is_unknown = |it: &&String| !known.contains(it.to_lowercase().as_str());
    let unknown: Vec<&String> = cert.networks.iter().filter(is_unknown).collect();
    if unknown.is_empty() {
        return None;
    }
    let known: Vec<&str> = known.into_iter().collect();
    let only = match known.as_slice() {
        [] => String::new(),
        known => format!(", only on {}", first_names(known, NAMED)),
    };
    let message = format!(
        "no host here has {} on {}{only}: correct the name of the network, or leave it where other hosts \
         have it",
        cert.contents.join(" or "),
        first_names(&unknown, NAMED)
    );
    let service = spec.name_any();
    let path = format!("spec.tlsCerts.{key}.networks of OpenStackDataPlaneService {service}");
    Some(Fault::new(path, message))
}
