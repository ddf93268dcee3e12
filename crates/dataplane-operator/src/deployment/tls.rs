//! The CA bundles and certificates that a run mounts: those of its own service, or those of all
//! services of the node sets whose hosts it targets.

use std::collections::{BTreeMap, BTreeSet};

use api::conditions::{self, ConditionStatus};
use api::dataplane::{NodeSet, Service};
use operator_core::data_sources::{NamedSource, SourceRef, service_type};
use operator_core::run_engine::layout::Tls;

use crate::deployment::observed::Observed;
use crate::host::services::ca_bundle;
use crate::node_set::observed::brings_certificates;
use crate::node_set::tls::{CERTIFICATES_READY, certificate_source_beside};
use crate::reasons;

/// Returns the mounts of a service's run on the hosts of these node sets, in upstream's order: for
/// each service its certificates, then its CA bundle.
pub fn mounts<'a>(
    seen: &Observed,
    (name, service): (&str, &Service),
    node_sets: impl IntoIterator<Item = &'a NodeSet>,
) -> Vec<Tls> {
    if !brings_certificates(service) {
        return bundle(seen, name, service).into_iter().collect();
    }
    let node_sets: Vec<&NodeSet> = node_sets.into_iter().collect();
    let (mut folders, mut all) = (BTreeSet::new(), Vec::new());
    for (name, service) in listed(seen, &node_sets) {
        let brought = certificates(name, &node_sets).into_iter().chain(bundle(seen, name, service));
        all.extend(brought.filter(|it| folders.insert(folder(it))));
    }
    all
}

/// Returns the folder of a mount; of two mounts with the same folder only the first is mounted.
fn folder(mount: &Tls) -> (String, Option<String>) {
    match mount {
        Tls::Bundle { service_type, .. } => (service_type.clone(), None),
        Tls::Certificates { service_type, key, .. } => (service_type.clone(), Some(key.clone())),
    }
}

/// Returns the Secrets that a service needs for these mounts, in addition to its data sources.
pub fn needed(seen: &Observed, node_set: &str, service: (&str, &Service)) -> Vec<NamedSource> {
    let node_set = seen.node_sets.get(node_set).map(|it| &**it);
    let mounts = mounts(seen, service, node_set);
    let secrets: BTreeSet<String> = mounts.into_iter().flat_map(secrets).collect();
    secrets.iter().map(|it| NamedSource::secret(it)).collect()
}

fn secrets(mount: Tls) -> Vec<String> {
    match mount {
        Tls::Bundle { secret, .. } => vec![secret],
        Tls::Certificates { secrets, .. } => secrets,
    }
}

/// Returns why a service cannot run yet on the hosts of a node set; `None` when all certificates of
/// the service, or all that it brings, exist.
pub fn uncertified(
    seen: &Observed,
    set: &NodeSet,
    (name, service): (&str, &Service),
) -> Option<String> {
    let status = set.status.as_ref()?;
    let reported = conditions::find(&status.conditions, CERTIFICATES_READY)?;
    if reported.reason == reasons::external::NOT_ENABLED.word || set.spec.nodes.is_empty() {
        return None;
    }
    let services =
        if brings_certificates(service) { listed(seen, &[set]) } else { vec![(name, service)] };
    let is_open = |(service, key): &(&str, &String)| {
        let mut all = status.certificates.iter();
        let found = all.find(|it| it.service == *service && it.key == **key);
        found.is_none_or(|it| it.waiting_hosts > 0)
    };
    services.iter().flat_map(|it| keys(seen, set, *it)).find(is_open)?;
    if reported.status != ConditionStatus::True {
        return Some(reported.message.clone());
    }
    let text = "They are not asked for yet; where another deployment is under way on its hosts, that \
                waits for its end.";
    Some(text.to_owned())
}

/// Returns the names of a service's certificates: its own, or those of the service that its type
/// names, unless the node set lists that service itself.
fn keys<'a>(
    seen: &'a Observed,
    set: &NodeSet,
    (name, service): (&'a str, &'a Service),
) -> impl Iterator<Item = (&'a str, &'a String)> {
    let certificate_source = certificate_source_beside(service, &set.spec.services);
    let certificate_source =
        certificate_source.and_then(|it| seen.services.get(it)).map(|it| &**it);
    certificate_source.unwrap_or(service).spec.tls_certs.keys().map(move |key| (name, key))
}

/// Returns the Secrets with certificates that the runs of a service mount, of all node sets.
pub fn brought(seen: &Observed, service: (&str, &Service)) -> Vec<String> {
    let of_hosts = |it| match it {
        Tls::Certificates { secrets, .. } => secrets,
        Tls::Bundle { .. } => Vec::new(),
    };
    let sets = seen.node_sets.values().map(|it| &**it);
    mounts(seen, service, sets).into_iter().flat_map(of_hosts).collect()
}

/// Returns the Secrets with a node set's certificates.
pub fn certificate_secrets(node_set: &NodeSet) -> impl Iterator<Item = &String> {
    node_set.status.iter().flat_map(|it| &it.certificates).flat_map(|it| &it.secrets)
}

/// Returns the services that the deployment overrides, then those of the node sets, each once.
fn listed<'a>(seen: &'a Observed, node_sets: &[&'a NodeSet]) -> Vec<(&'a str, &'a Service)> {
    let (brought, own) = (&seen.deployment.spec.services_override, node_sets.iter());
    let names = brought.iter().chain(own.flat_map(|it| &it.spec.services));
    let mut known = BTreeSet::new();
    let names = names.filter(|it| known.insert(it.as_str()));
    names.filter_map(|it| Some((it.as_str(), &**seen.services.get(it)?))).collect()
}

fn bundle(seen: &Observed, name: &str, service: &Service) -> Option<Tls> {
    let (secret, is_demanded) = ca_bundle(service)?;
    let exists = || seen.sources.contains_key(&SourceRef::secret(&seen.namespace, secret));
    (is_demanded || exists()).then(|| Tls::Bundle {
        service: name.to_owned(),
        service_type: service_type(&service.spec, name),
        secret: secret.to_owned(),
    })
}

/// Returns the certificates of a service on the hosts of all node sets, grouped by folder and name.
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
