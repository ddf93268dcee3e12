//! The CA bundles and certificates that a run mounts: those of its own service, or those of all services
//! of the node sets whose hosts it touches.

use std::collections::{BTreeMap, BTreeSet};

use common::api::dataplane::{NodeSet, Service};
use common::engine::mounts::node_sets::Tls;

use crate::deployment::observe::{Observed, ca_bundle};
use crate::group::faults::Named;
use crate::inputs::service_type;
use crate::node_set::observe::brings_certificates;

/// What a run of a service on the hosts of these node sets mounts, in upstream's order: service by
/// service the certificates, then the CA bundle.
pub fn mounts<'a>(
    seen: &Observed,
    (name, service): (&str, &Service),
    node_sets: impl IntoIterator<Item = &'a NodeSet>,
) -> Vec<Tls> {
    if !brings_certificates(service) {
        return bundle(name, service).into_iter().collect();
    }
    let node_sets: Vec<&NodeSet> = node_sets.into_iter().collect();
    let mut all = Vec::new();
    for (name, service) in served(seen, &node_sets) {
        all.extend(certificates(name, &node_sets));
        all.extend(bundle(name, service));
    }
    all
}

/// The Secrets that a service needs for that, beside its data sources.
pub fn needed(seen: &Observed, node_set: &str, service: &Service) -> Vec<Named> {
    let node_set = seen.node_sets.get(node_set).map(|it| &**it);
    let secrets: BTreeSet<&str> = match node_set.filter(|_| brings_certificates(service)) {
        None => ca_bundle(service).into_iter().collect(),
        Some(set) => {
            let bundles = served(seen, &[set]).into_iter().filter_map(|(_, it)| ca_bundle(it));
            bundles.chain(certificate_secrets(set).map(String::as_str)).collect()
        }
    };
    secrets.into_iter().map(Named::secret).collect()
}

/// The Secrets with a node set's certificates.
pub fn certificate_secrets(node_set: &NodeSet) -> impl Iterator<Item = &String> {
    node_set.status.iter().flat_map(|it| &it.certificates).flat_map(|it| &it.secrets)
}

/// The services that the deployment brings, and the others of the node sets: of one type the first,
/// for all of a type have one folder.
fn served<'a>(seen: &'a Observed, node_sets: &[&'a NodeSet]) -> Vec<(&'a str, &'a Service)> {
    let (brought, own) = (&seen.deployment.spec.services_override, node_sets.iter());
    let names = brought.iter().chain(own.flat_map(|it| &it.spec.services));
    let mut types = BTreeSet::new();
    let mut served = Vec::new();
    for name in names {
        let Some(service) = seen.services.get(name) else { continue };
        if types.insert(service_type(&service.spec, name)) {
            served.push((name.as_str(), &**service));
        }
    }
    served
}

fn bundle(name: &str, service: &Service) -> Option<Tls> {
    ca_bundle(service).map(|secret| Tls::Bundle {
        service: name.to_owned(),
        service_type: service_type(&service.spec, name),
        secret: secret.to_owned(),
    })
}

/// The certificates of a service on the hosts of all node sets, by their folder and name.
fn certificates(service: &str, node_sets: &[&NodeSet]) -> Vec<Tls> {
    let mut folders: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    let all = node_sets.iter().filter_map(|it| it.status.as_ref()).flat_map(|it| &it.certificates);
    for it in all.filter(|it| it.service == service) {
        let secrets = folders.entry((&it.directory, &it.key)).or_default();
        secrets.extend(it.secrets.iter().cloned());
    }
    let mount = |((directory, key), secrets): ((&str, &str), Vec<String>)| {
        let (service_type, key) = (directory.to_owned(), key.to_owned());
        Tls::Certificates { secrets, service_type, key }
    };
    folders.into_iter().map(mount).collect()
}
