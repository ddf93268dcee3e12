//! The CA bundles and certificates that a run mounts: those of its own service, or those of all
//! services of its hosts.

use std::collections::BTreeSet;

use api::dataplane::Service;
use api::problem::Problem;
use operator_core::data_sources::service_type;
use operator_core::run_engine::layout::Tls;

use crate::host::services::ca_bundle;
use crate::reasons;

/// Returns whether a service's runs mount the certificates of all services.
pub fn brings_certificates(service: &Service) -> bool {
    service.spec.add_cert_mounts.unwrap_or(false)
}

/// Returns the mounts of a service's run, in upstream's order: for each service its certificates,
/// then its CA bundle.
///
/// `listed` are the services of its hosts. `certificates` returns those of a service on these hosts,
/// and `exists` whether a Secret exists.
pub fn mounts<'a>(
    (name, service): (&'a str, &'a Service),
    listed: impl IntoIterator<Item = (&'a str, &'a Service)>,
    certificates: impl Fn(&str) -> Vec<Tls>,
    exists: impl Fn(&str) -> bool,
) -> Vec<Tls> {
    if !brings_certificates(service) {
        return bundle(name, service, exists).into_iter().collect();
    }
    let (mut folders, mut all) = (BTreeSet::new(), Vec::new());
    for (name, service) in listed {
        let brought = certificates(name).into_iter().chain(bundle(name, service, &exists));
        all.extend(brought.filter(|it| folders.insert(folder(it))));
    }
    all
}

/// Returns the folder of a mount; of two mounts with the same folder only the first is mounted.
fn folder(mount: &Tls) -> (String, Option<String>) {
    match mount {
        Tls::Bundle { service_type, .. } => (service_type.clone(), None),
        Tls::Certificates { service_type, key, .. } | Tls::OfHosts { service_type, key, .. } => {
            (service_type.clone(), Some(key.clone()))
        }
    }
}

fn bundle(name: &str, service: &Service, exists: impl Fn(&str) -> bool) -> Option<Tls> {
    let (secret, is_demanded) = ca_bundle(service)?;
    (is_demanded || exists(secret)).then(|| Tls::Bundle {
        service: name.to_owned(),
        service_type: service_type(&service.spec, name),
        secret: secret.to_owned(),
    })
}

/// Returns the fault of certificates in a cluster without cert-manager; `title` names the object that
/// asks for them.
pub fn no_cert_manager(title: &str) -> Problem {
    let text = format!(
        "{title} has tlsEnabled: true, and the cluster has no cert-manager to issue certificates: install \
         it, or set tlsEnabled: false."
    );
    Problem::new(&reasons::CERT_MANAGER_NOT_FOUND, text)
}

/// Returns the Secret of a CA bundle; `None` for certificates.
pub fn bundle_secret(mount: &Tls) -> Option<&str> {
    match mount {
        Tls::Bundle { secret, .. } => Some(secret),
        Tls::Certificates { .. } | Tls::OfHosts { .. } => None,
    }
}

/// Returns the Secrets with certificates; none for a CA bundle.
pub fn certificate_secrets(mount: &Tls) -> Vec<&String> {
    match mount {
        Tls::Bundle { .. } => Vec::new(),
        Tls::Certificates { secrets, .. } => secrets.iter().collect(),
        Tls::OfHosts { secrets, .. } => secrets.values().collect(),
    }
}
