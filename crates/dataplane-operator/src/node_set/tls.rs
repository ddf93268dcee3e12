//! Certificates of a node set's hosts, issued by cert-manager if the cluster has it; all are
//! requested at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::cert_manager::{Certificate, CertificateSpec, Issuer, IssuerRef, SecretTemplate, Subject};
use api::conditions::ConditionDraft;
use api::dataplane::{NodeSet, Service};
use api::names;
use api::problem::Problem;
use k8s_openapi::api::core::v1::Secret;
use kube::core::PartialObjectMeta;
use kube::{Resource, ResourceExt};
use operator_core::node_set_host::CTLPLANE;
use operator_core::object_key::Key;
use operator_core::plan::{Step, Target};
use operator_core::run_engine::build::owner;
use serde_json::json;

use crate::node_set::certificates::{
    CertificateRequest, HOST, Hosts, Issued, SET, name_of, secret, secret_name, secret_of,
};
use crate::node_set::ipam::{is_of, is_standing, problem_condition};
use crate::reasons;

/// Condition type: every host has its certificates, or needs none.
pub const CERTIFICATES_READY: &str = "NodeSetCertificatesReady";
/// Issuer label of certificates that name no issuer.
const DEFAULT_ISSUER: &str = "osp-rootca-issuer-internal";
/// Key usages of certificates that name none.
const DEFAULT_USAGES: [&str; 3] = ["key encipherment", "digital signature", "server auth"];
/// Prefix of the labels that mark issuers for certificates of hosts and services only.
const ISSUER_LABELS: &str = "osp-rootca-issuer-";
/// Annotation that permits an issuer for hosts whatever its labels are; the value is `true`.
const ISSUES_FOR_HOSTS: &str = "dataplane.openstack.org/issues-for-hosts";
/// Annotations of an issuer with the duration and renewal time of its certificates.
const DURATION: &str = "osp-rootca-issuer-duration";
const RENEW_BEFORE: &str = "osp-rootca-issuer-renew-before";
const KIND: &str = "OpenStackDataPlaneNodeSet";

/// Returns whether hosts get certificates: as `tlsEnabled` says, else whether cert-manager and
/// reserved names are available.
pub fn is_enabled(set: &NodeSet, hosts: &Hosts<'_>, issued: &Issued) -> bool {
    set.spec.tls_enabled.unwrap_or(issued.is_served && hosts.are_reserved)
}

/// Returns the certificates that services request, in their order.
pub fn requested<'a>(
    services: impl IntoIterator<Item = (&'a str, &'a Service)>,
) -> Vec<CertificateRequest<'a>> {
    let of = |(service, spec): (&'a str, &'a Service)| {
        spec.spec.tls_certs.iter().map(move |(key, cert)| CertificateRequest {
            service,
            spec,
            key,
            cert,
        })
    };
    services.into_iter().flat_map(of).collect()
}

/// Returns the service whose certificates a service uses that defines none: the one that its type
/// names.
pub fn certificate_source(service: &Service) -> Option<&str> {
    let type_ = service.spec.edpm_service_type.as_deref()?;
    let is_other = !type_.is_empty() && service.metadata.name.as_deref() != Some(type_);
    (service.spec.tls_certs.is_empty() && is_other).then_some(type_)
}

/// Returns the same, or `None` if the node set lists that service itself.
pub fn certificate_source_beside<'a>(service: &'a Service, listed: &[String]) -> Option<&'a str> {
    certificate_source(service).filter(|it| !listed.iter().any(|own| own == it))
}

/// The requests to cert-manager in this pass, and the faults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DesiredCertificates {
    /// The steps that request certificates and remove others.
    pub steps: Vec<Step>,
    /// The faults that keep some certificates from being requested.
    pub problems: Vec<Problem>,
}

impl DesiredCertificates {
    /// Returns the names of the objects that the steps write.
    pub fn names(&self) -> BTreeSet<&str> {
        self.steps.iter().map(|it| it.target.name.as_str()).collect()
    }
}

/// Returns the steps that request missing or changed certificates and, if `may_remove` is set,
/// remove those that no host needs any more. A fault of one certificate does not block the others.
pub fn desired(
    set: &NodeSet,
    requests: &[CertificateRequest<'_>],
    hosts: &Hosts<'_>,
    issued: &Issued,
    may_remove: bool,
) -> DesiredCertificates {
    let requests = if is_enabled(set, hosts, issued) { requests } else { &[] };
    let mut wanted = DesiredCertificates::default();
    if !requests.is_empty()
        && let Err(problems) = refuse(set, hosts, issued)
    {
        return DesiredCertificates { problems, ..wanted };
    }
    if may_remove {
        wanted.steps = left(set, requests, hosts, issued);
    }
    let mut specs = BTreeMap::new();
    for request in requests {
        match issuer(request, issued) {
            Err(fault) => wanted.problems.push(fault),
            Ok(signer) => {
                for host in hosts.all.iter().filter(|it| hosts.names.contains_key(**it)) {
                    match certificate(set, request, host, hosts, signer) {
                        Err(fault) => wanted.problems.push(fault),
                        Ok(spec) => {
                            drop(specs.insert(name_of(request, host), (spec, request, host)));
                        }
                    }
                }
            }
        }
    }
    for (name, (spec, request, host)) in specs {
        if issued.certificates.get(&name).is_some_and(|it| it.spec == spec && is_of(&**it, set)) {
            continue;
        }
        let object = json!({
            "metadata": {
                "labels": labels(set, request, host),
                "ownerReferences": [owner(&Target::of(set))],
            },
            "spec": spec,
        });
        let target = Target::named::<Certificate>(set.namespace().unwrap_or_default(), name);
        wanted.steps.push(Step::apply(target, object, "a host needs a certificate"));
    }
    wanted
}

/// Returns the names of a certificate's `Certificate` objects, one per host, that are not ready or
/// are in `requested`, the names requested in this pass.
pub fn open(
    request: &CertificateRequest<'_>,
    hosts: &Hosts<'_>,
    issued: &Issued,
    requested: &BTreeSet<&str>,
) -> Vec<String> {
    let names = hosts.all.iter().map(|it| name_of(request, it));
    names.filter(|it| requested.contains(it.as_str()) || !issued.is_ready(it)).collect()
}

/// Fails if certificates cannot be issued at all.
fn refuse(set: &NodeSet, hosts: &Hosts<'_>, issued: &Issued) -> Result<(), Vec<Problem>> {
    let name = set.name_any();
    if !issued.is_served {
        let text = format!(
            "{KIND} {name} has tlsEnabled: true, and the cluster has no cert-manager to issue \
             certificates: install it, or set tlsEnabled: false."
        );
        return Err(vec![Problem::new(&reasons::external::CERT_MANAGER_NOT_FOUND, text)]);
    }
    if !hosts.are_reserved {
        let text = format!(
            "{KIND} {name} has tlsEnabled: true, and no operator reserves the names on the network \
             {CTLPLANE} that certificates need: list the network, with an operator that reserves \
             addresses, or set tlsEnabled: false."
        );
        return Err(vec![Problem::new(&reasons::external::NETWORK_MISSING, text)]);
    }
    Ok(())
}

/// Returns the steps that remove unneeded objects: certificates first, because cert-manager
/// recreates the Secret of an existing certificate.
fn left(
    set: &NodeSet,
    requests: &[CertificateRequest<'_>],
    hosts: &Hosts<'_>,
    issued: &Issued,
) -> Vec<Step> {
    let names = |it: &CertificateRequest<'_>| {
        let hosts = hosts.all.iter().chain(&hosts.terminating);
        hosts.map(|host| name_of(it, host)).collect::<Vec<_>>()
    };
    let wanted: BTreeSet<String> = requests.iter().flat_map(names).collect();
    let is_left =
        |it: &&Arc<Certificate>| is_standing(&***it, set) && !wanted.contains(&it.name_any());
    let because = "no host and no service of the node set needs it any more";
    let certificates = issued.certificates.values().filter(is_left);
    let mut steps: Vec<Step> =
        certificates.map(|it| Step::delete(Target::of(&**it), because)).collect();
    let kept: BTreeSet<String> =
        wanted.iter().chain(issued.certificates.keys()).map(|it| secret_name(it)).collect();
    let secrets = issued.secrets.keys().filter(|it| !kept.contains(*it));
    steps.extend(secrets.map(|it| Step::delete(secret(set, it), because)));
    steps
}

/// Returns the steps that remove everything before the node set goes. cert-manager does not delete
/// its Secrets.
pub fn removals(set: &NodeSet, issued: &Issued) -> Vec<Step> {
    let because = "its node set is being deleted";
    let certificates = issued.certificates.values().filter(|it| is_standing(&***it, set));
    let certificates = certificates.map(|it| Step::delete(Target::of(&**it), because));
    let secrets = issued.secrets.keys().map(|it| Step::delete(secret(set, it), because));
    certificates.chain(secrets).collect()
}

fn labels(set: &NodeSet, request: &CertificateRequest<'_>, host: &str) -> BTreeMap<String, String> {
    let mut labels = request.labels(&set.name_any());
    labels.insert(HOST.to_owned(), names::derived(&[host], names::LABEL_LIMIT));
    labels
}

/// Returns the issuer with the label that the certificate names. Fails unless exactly one issuer
/// has it and is meant for hosts.
fn issuer<'a>(request: &CertificateRequest<'_>, issued: &'a Issued) -> Result<&'a Issuer, Problem> {
    let label =
        request.cert.issuer.as_deref().filter(|it| !it.is_empty()).unwrap_or(DEFAULT_ISSUER);
    let mut found = issued.issuers.iter().filter(|it| it.labels().contains_key(label));
    match (found.next(), found.next()) {
        (Some(it), None) if issues_for_hosts(it, label) => Ok(it),
        (Some(it), None) => {
            let text = format!(
                "Certificate {} of OpenStackDataPlaneService {} is to be signed by the Issuer with \
                 label {label}, but Issuer {} is not meant for hosts: annotate it with \
                 {ISSUES_FOR_HOSTS}=true, or name a label in tlsCerts that begins with \
                 {ISSUER_LABELS}.",
                request.key,
                request.service,
                it.name_any()
            );
            Err(Problem::new(&reasons::external::ISSUER_NOT_PERMITTED, text))
        }
        (first, _) => {
            let count = if first.is_some() { "several Issuers carry" } else { "no Issuer carries" };
            let text = format!(
                "Certificate {} of OpenStackDataPlaneService {} is to be signed by the Issuer with \
                 label {label}, and {count} it: label one, name another in tlsCerts, or set tlsEnabled: \
                 false in the node set.",
                request.key, request.service
            );
            Err(Problem::new(&reasons::external::ISSUER_NOT_FOUND, text))
        }
    }
}

/// Returns whether the issuer's administrator has meant it for hosts. A service may name any label,
/// and most objects carry some, such as `app.kubernetes.io/name`.
fn issues_for_hosts(issuer: &Issuer, label: &str) -> bool {
    let is_permitted = issuer.annotations().get(ISSUES_FOR_HOSTS).is_some_and(|it| it == "true");
    label.starts_with(ISSUER_LABELS) || is_permitted
}

fn certificate(
    set: &NodeSet,
    request: &CertificateRequest<'_>,
    host: &str,
    hosts: &Hosts<'_>,
    issuer: &Issuer,
) -> Result<CertificateSpec, Problem> {
    let none = BTreeMap::new();
    let names = hosts.names.get(host).unwrap_or(&none);
    let Some(own) = names.get(CTLPLANE) else {
        let text = format!(
            "Host {host} of {KIND} {} has no name on the network {CTLPLANE}, which its certificates \
             need: list the network, with an operator that reserves addresses, or set tlsEnabled: \
             false.",
            set.name_any()
        );
        return Err(Problem::new(&reasons::external::NETWORK_MISSING, text));
    };
    let networks: Vec<String> = request.cert.networks.iter().map(|it| it.to_lowercase()).collect();
    let on = |all: &BTreeMap<String, String>, what: &str| {
        let is_in = |it: &String| networks.is_empty() || networks.contains(it);
        let is_named = request.cert.contents.iter().any(|it| it == what);
        // A network may appear under two names.
        let mut known = BTreeSet::new();
        let values = all.iter().filter(|it| is_named && is_in(it.0)).map(|it| it.1);
        values.filter(|it| known.insert(it.as_str())).cloned().collect::<Vec<String>>()
    };
    let annotation = |name: &str| issuer.annotations().get(name).cloned();
    let usages = request.cert.key_usages.clone();
    let defaults = || DEFAULT_USAGES.map(str::to_owned).into();
    Ok(CertificateSpec {
        secret_name: secret_of(request, host),
        secret_template: Some(SecretTemplate { labels: labels(set, request, host) }),
        common_name: own.split('.').next().map(str::to_owned),
        dns_names: on(names, "dnsnames"),
        ip_addresses: on(hosts.addresses.get(host).unwrap_or(&none), "ips"),
        subject: Some(Subject { organizations: vec![issuer.name_any()] }),
        duration: annotation(DURATION),
        renew_before: annotation(RENEW_BEFORE),
        usages: Some(usages).filter(|it| !it.is_empty()).unwrap_or_else(defaults),
        issuer_ref: IssuerRef {
            name: issuer.name_any(),
            group: Issuer::group(&()).into_owned(),
            kind: Issuer::kind(&()).into_owned(),
        },
    })
}

/// Returns whether certificates are requested and the cluster has no cert-manager. No watch reports
/// its arrival.
pub fn is_unserved(findings: &[ConditionDraft]) -> bool {
    findings.iter().any(|it| it.reason == reasons::external::CERT_MANAGER_NOT_FOUND.word)
}

/// Reports the progress of the certificates; `are_bundled` says whether runs can mount all of them.
pub fn condition(
    set: &NodeSet,
    requests: &[CertificateRequest<'_>],
    hosts: &Hosts<'_>,
    issued: &Issued,
    (wanted, are_bundled): (&DesiredCertificates, bool),
) -> ConditionDraft {
    if let Some(why) = why_none(set, requests, hosts, issued) {
        let reason = if requests.is_empty() {
            &reasons::external::CERTIFICATES_NOT_REQUIRED
        } else {
            &reasons::external::NOT_ENABLED
        };
        let text = format!("Hosts get no certificates: {why}.");
        return reason.condition(CERTIFICATES_READY, text);
    }
    if let Some(found) = problem_condition(CERTIFICATES_READY, &wanted.problems) {
        return found;
    }
    let waiting = |text: String| reasons::external::ISSUING.condition(CERTIFICATES_READY, text);
    if !hosts.are_complete() {
        return waiting("Certificates are asked for when each host has its addresses.".to_owned());
    }
    let asked = wanted.names();
    let open: Vec<String> =
        requests.iter().flat_map(|it| open(it, hosts, issued, &asked)).collect();
    if let Some(first) = open.first() {
        return waiting(format!(
            "{} certificates are not issued yet, the first one is Certificate {first}.",
            open.len()
        ));
    }
    if !are_bundled {
        return waiting(
            "The Secrets of the certificates that were issued are not there yet.".into(),
        );
    }
    reasons::external::ISSUED.condition(CERTIFICATES_READY, "Every host has its certificates.")
}

/// Returns why hosts get no certificates; `None` if they do.
fn why_none(
    set: &NodeSet,
    requests: &[CertificateRequest<'_>],
    hosts: &Hosts<'_>,
    issued: &Issued,
) -> Option<&'static str> {
    if requests.is_empty() {
        return Some("no service of the node set, or of its deployments, names any in tlsCerts");
    }
    if is_enabled(set, hosts, issued) {
        return None;
    }
    Some(match set.spec.tls_enabled {
        Some(_) => "tlsEnabled is false",
        None if issued.is_served => {
            "no operator reserves the names that they need; with networks and an operator that \
             reserves addresses, they do"
        }
        None => "the cluster has no cert-manager; with it they do, where addresses are reserved",
    })
}

#[cfg(test)]
#[path = "tls_tests.rs"]
pub(super) mod tests;

/// Returns the keys of the index [`BY_LABEL`](crate::indexes::BY_LABEL).
pub fn node_set_of(secret: &PartialObjectMeta<Secret>) -> Vec<Key> {
    let set = secret.labels().get(SET).into_iter();
    set.map(|it| Key::new(secret.namespace().unwrap_or_default(), it)).collect()
}
