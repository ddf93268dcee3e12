//! The CA bundles and certificates that a run mounts: those of its own service, or those of all
//! services of the node sets whose hosts it targets.

use std::collections::{BTreeMap, BTreeSet};

use api::conditions::{self, ConditionStatus};
use api::dataplane::condition_types::CERTIFICATES_READY;
use api::dataplane::{NodeSet, Service};
use operator_core::certificates::certificate_source_beside;
use operator_core::data_sources::{NamedSource, SourceRef};
use operator_core::run_engine::layout::Tls;

use crate::deployment::observed::Observed;
use crate::host::tls::{self, brings_certificates};
use crate::reasons;

/// Returns the mounts of a service's run on the hosts of these node sets.
pub fn mounts<'a>(
    seen: &Observed,
    service: (&str, &Service),
    node_sets: impl IntoIterator<Item = &'a NodeSet>,
) -> Vec<Tls> {
    let node_sets: Vec<&NodeSet> = node_sets.into_iter().collect();
    let exists =
        |secret: &str| seen.sources.contains_key(&SourceRef::secret(&seen.namespace, secret));
    tls::mounts(service, listed(seen, &node_sets), |it| certificates(it, &node_sets), exists)
}

/// Returns the Secrets that a service needs for these mounts, in addition to its data sources.
pub fn needed(seen: &Observed, node_set: &str, service: (&str, &Service)) -> Vec<NamedSource> {
    let node_set = seen.node_sets.get(node_set).map(|it| &**it);
    let mounts = mounts(seen, service, node_set);
    let secrets = mounts.iter().flat_map(|it| {
        let certificates = tls::certificate_secrets(it).into_iter().map(String::as_str);
        certificates.chain(tls::bundle_secret(it)).collect::<Vec<_>>()
    });
    let secrets: BTreeSet<&str> = secrets.collect();
    secrets.into_iter().map(NamedSource::secret).collect()
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
    let sets = seen.node_sets.values().map(|it| &**it);
    let mounts = mounts(seen, service, sets);
    mounts.iter().flat_map(tls::certificate_secrets).cloned().collect()
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
