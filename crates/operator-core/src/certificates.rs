//! Certificates of hosts, which cert-manager issues: those that services request, and the objects
//! that ask for them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::cert_manager::{
    Certificate, CertificateSpec, CertificateStatus, Issuer, IssuerRef, SecretTemplate, Subject,
};
use api::conditions::shortened;
use api::dataplane::Service;
use api::dataplane::service::TlsCert;
use api::infra::{is_ready, ready};
use api::names;
use api::problem::Problem;
use k8s_openapi::api::core::v1::Secret;
use kube::{Resource, ResourceExt};
use serde_json::json;

use crate::data_sources::service_type;
use crate::finalizers::is_terminating;
use crate::node_set_host::{CTLPLANE, HostNetworkValues};
use crate::plan::{Step, Target};
use crate::reasons;
use crate::run_engine::build::owner;
use crate::run_engine::layout::CERTIFICATE_FILES;

/// Label of certificates and of their Secrets with the host.
///
/// Beside it stand [`SERVICE`], [`KEY`] and the label of the [`CertificateOwner`].
pub const HOST: &str = "hostname";
/// Label of a certificate with the service that requests it.
pub const SERVICE: &str = "osdp-service";
/// Label of a certificate with its key in the service's `tlsCerts`.
pub const KEY: &str = "osdp-service-cert-key";
/// Prefix of the name of a certificate's Secret.
pub const SECRET_PREFIX: &str = "cert-";
/// Issuer label of certificates that name no issuer.
pub const DEFAULT_ISSUER: &str = "osp-rootca-issuer-internal";
/// Annotation that permits an issuer for hosts whatever its labels are; the value is `true`.
pub const ISSUES_FOR_HOSTS: &str = "dataplane.openstack.org/issues-for-hosts";

/// Key usages of certificates that name none.
const DEFAULT_USAGES: [&str; 3] = ["key encipherment", "digital signature", "server auth"];
/// Prefix of the labels that mark issuers for certificates of hosts and services only.
const ISSUER_LABELS: &str = "osp-rootca-issuer-";
/// Annotations of an issuer with the duration and renewal time of its certificates.
const DURATION: &str = "osp-rootca-issuer-duration";
const RENEW_BEFORE: &str = "osp-rootca-issuer-renew-before";
/// Maximum length of what cert-manager says of a certificate.
const WORDS: usize = 300;

/// The object for whose hosts certificates are requested.
#[derive(Clone, Debug, PartialEq)]
pub struct CertificateOwner {
    /// The object, which exists; it owns the certificates.
    pub object: Target,
    /// The label of the certificates, and of their Secrets, whose value is the object's name.
    pub label: &'static str,
    /// Where users switch certificates off, as `the role`.
    pub place: &'static str,
}

impl CertificateOwner {
    /// Returns the target for the Secret of that name.
    pub fn secret(&self, name: &str) -> Target {
        Target::named::<Secret>(&self.object.namespace, name)
    }

    /// Returns whether the object controls a certificate that is not being deleted already, so that
    /// each is deleted once.
    fn holds(&self, certificate: &Certificate) -> bool {
        self.object.controls(certificate) && !is_terminating(certificate)
    }
}

/// What was observed of cert-manager, and of the Secrets that it writes.
#[derive(Clone, Debug, Default)]
pub struct Issued {
    /// Whether the cluster has cert-manager and its objects were read.
    pub is_served: bool,
    /// The issuers of the namespace.
    pub issuers: Vec<Arc<Issuer>>,
    /// The certificates of the namespace, by name.
    pub certificates: BTreeMap<String, Arc<Certificate>>,
    /// The resource versions of the Secrets with certificates of the owner's hosts, by name.
    pub secrets: BTreeMap<String, String>,
}

impl Issued {
    /// Returns whether a certificate is ready for its present generation.
    pub fn is_ready(&self, name: &str) -> bool {
        self.certificates.get(name).is_some_and(|it| {
            let status = it.status.as_ref();
            status.is_some_and(|reported| is_ready(&reported.conditions, it.metadata.generation))
        })
    }

    /// Returns the version of the Secret of a certificate that is ready and not being renewed.
    pub fn settled(&self, certificate: &str) -> Option<&String> {
        let is_issuing =
            |it: &Arc<Certificate>| it.status.as_ref().is_some_and(CertificateStatus::is_issuing);
        let settled = self.certificates.get(certificate).filter(|it| !is_issuing(it));
        settled.filter(|_| self.is_ready(certificate))?;
        self.secrets.get(&secret_name(certificate))
    }

    /// Returns why a certificate that is asked for cannot be used yet, in cert-manager's own words
    /// where it has any.
    fn fault(&self, name: &str, has_file: impl Fn(&str) -> bool) -> Option<Problem> {
        let secret = secret_name(name);
        let text = if self.is_ready(name) {
            let lacking = CERTIFICATE_FILES[1..].iter().find(|it| !has_file(it))?;
            format!("Certificate {name} is ready, and Secret {secret} has no {lacking} yet.")
        } else {
            let reported = self.certificates.get(name).and_then(|it| it.status.as_ref());
            let reported = reported.and_then(|it| ready(&it.conditions));
            // What is said of an earlier generation may be that it was ready.
            let reported = reported.filter(|it| it.status != "True");
            let words = reported.map(|it| it.message.trim()).filter(|it| !it.is_empty());
            let words = words.unwrap_or("its issuer has not signed it yet");
            format!("Certificate {name} is not ready: {}.", ended(&shortened(words, WORDS)))
        };
        Some(Problem::new(&reasons::ISSUING, text))
    }
}

/// Returns a text without its last full stop.
fn ended(text: &str) -> &str {
    text.strip_suffix('.').unwrap_or(text)
}

/// A certificate that a service requests for each host.
#[derive(Clone, Debug)]
pub struct CertificateRequest<'a> {
    /// The service's name, as it is listed.
    pub service: &'a str,
    /// The service that defines the certificate: the listed one, or the one that its type names.
    pub spec: &'a Service,
    /// The key of the certificate in the service's `tlsCerts`.
    pub key: &'a str,
    /// The definition of the certificate.
    pub cert: &'a TlsCert,
}

impl CertificateRequest<'_> {
    /// Returns the directory, below that of all certificates, that contains the certificate's own
    /// directory.
    pub fn directory(&self) -> String {
        let own = self.cert.edpm_role_service_name.clone().filter(|it| !it.is_empty());
        own.unwrap_or_else(|| service_type(&self.spec.spec, &self.spec.name_any()))
    }

    /// Returns the labels of all objects of the certificate.
    pub fn labels(&self, owner: &CertificateOwner) -> BTreeMap<String, String> {
        let values = [(owner.label, &*owner.object.name), (SERVICE, self.service), (KEY, self.key)];
        values.into_iter().map(|(name, it)| (name.to_owned(), label_value(it))).collect()
    }

    fn labels_of(&self, owner: &CertificateOwner, host: &str) -> BTreeMap<String, String> {
        let mut labels = self.labels(owner);
        labels.insert(HOST.to_owned(), label_value(host));
        labels
    }
}

/// Returns a name as the value of a label.
pub fn label_value(name: &str) -> String {
    names::derived(&[name], names::LABEL_LIMIT)
}

/// The hosts of an owner, with their names and addresses.
#[derive(Clone, Debug)]
pub struct Hosts<'a> {
    /// The names of all hosts.
    pub all: BTreeSet<&'a str>,
    /// The names of hosts that were taken out and whose certificates stay.
    pub terminating: BTreeSet<&'a str>,
    /// Whether names and addresses are reserved by an operator, or given by the owner's own objects.
    pub are_reserved: bool,
    /// Names: host → network → name.
    pub names: &'a HostNetworkValues,
    /// Addresses: host → network → address.
    pub addresses: &'a HostNetworkValues,
}

impl Hosts<'_> {
    /// Returns whether every host has its names.
    pub fn are_complete(&self) -> bool {
        self.all.iter().all(|it| self.names.contains_key(*it))
    }
}

/// Returns the name of a host's `Certificate`. Its Secret has the same name with the prefix
/// `cert-`.
pub fn name_of(desired: &CertificateRequest<'_>, host: &str) -> String {
    // Leaves room for the prefix of the Secret's name.
    names::derived(
        &[desired.service, desired.key, host],
        names::SUBDOMAIN_LIMIT - SECRET_PREFIX.len(),
    )
}

/// Returns the name of the Secret with the key and certificate of a host.
pub fn secret_of(desired: &CertificateRequest<'_>, host: &str) -> String {
    secret_name(&name_of(desired, host))
}

/// Returns the name of the Secret that cert-manager writes for a certificate.
pub fn secret_name(certificate: &str) -> String {
    format!("{SECRET_PREFIX}{certificate}")
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

/// Returns the same, or `None` if that service is listed itself.
pub fn certificate_source_beside<'a>(service: &'a Service, listed: &[String]) -> Option<&'a str> {
    certificate_source(service).filter(|it| !listed.iter().any(|own| own == it))
}

/// For services that define no certificates, maps the service to the one whose certificates it
/// uses. Services that are listed themselves are not used this way.
pub fn certificate_sources<'a>(
    services: impl IntoIterator<Item = (&'a String, &'a Arc<Service>)>,
    listed: &[String],
    mut find: impl FnMut(&str) -> Option<Arc<Service>>,
) -> BTreeMap<String, Arc<Service>> {
    let of = |(name, service): (&String, &Arc<Service>)| {
        Some((name.clone(), find(certificate_source_beside(service, listed)?)?))
    };
    services.into_iter().filter_map(of).collect()
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

    /// Returns why the certificate of that name cannot be used yet.
    ///
    /// `has_file` says whether the certificate's Secret has a file.
    pub fn fault(
        &self,
        name: &str,
        issued: &Issued,
        has_file: impl Fn(&str) -> bool,
    ) -> Option<Problem> {
        if self.steps.iter().any(|it| it.target.name == name) {
            let text = format!("Certificate {name} is asked for now.");
            return Some(Problem::new(&reasons::ISSUING, text));
        }
        issued.fault(name, has_file)
    }
}

/// Returns the steps that request missing or changed certificates and, if `may_remove` is set,
/// remove those that no host needs any more. A fault of one certificate does not block the others.
///
/// A host without a name on the control plane network gets none.
pub fn desired(
    owner: &CertificateOwner,
    requests: &[CertificateRequest<'_>],
    hosts: &Hosts<'_>,
    issued: &Issued,
    may_remove: bool,
) -> DesiredCertificates {
    let mut wanted = DesiredCertificates::default();
    if may_remove {
        wanted.steps = left(owner, requests, hosts, issued);
    }
    let mut specs = BTreeMap::new();
    for request in requests {
        match issuer(owner, request, issued) {
            Err(fault) => wanted.problems.push(fault),
            Ok(signer) => {
                for host in &hosts.all {
                    let Some(spec) = certificate(owner, request, host, hosts, signer) else {
                        continue;
                    };
                    specs.insert(name_of(request, host), (spec, request, host));
                }
            }
        }
    }
    let is_asked = |name: &str, spec: &CertificateSpec| {
        let found = issued.certificates.get(name);
        found.is_some_and(|it| it.spec == *spec && owner.object.controls(&**it))
    };
    let missing = specs.into_iter().filter(|(name, (spec, ..))| !is_asked(name, spec));
    wanted.steps.extend(missing.map(|(name, (spec, request, host))| {
        let object = json!({
            "metadata": {
                "labels": request.labels_of(owner, host),
                "ownerReferences": [self::owner(&owner.object)],
            },
            "spec": spec,
        });
        let target = Target::named::<Certificate>(&owner.object.namespace, name);
        Step::apply(target, object, "a host needs a certificate")
    }));
    wanted
}

/// Returns the names of a certificate's `Certificate` objects, one per host, that are not ready, have no
/// Secret (a user deletes it to have it issued again), or are in `requested`, the names requested in
/// this pass.
pub fn open(
    request: &CertificateRequest<'_>,
    hosts: &Hosts<'_>,
    issued: &Issued,
    requested: &BTreeSet<&str>,
) -> Vec<String> {
    let has_none = |it: &str| !issued.secrets.contains_key(&secret_name(it));
    let names = hosts.all.iter().map(|it| name_of(request, it));
    let is_open =
        |it: &String| requested.contains(it.as_str()) || !issued.is_ready(it) || has_none(it);
    names.filter(is_open).collect()
}

/// Returns the steps that remove unneeded objects: certificates first, because cert-manager
/// recreates the Secret of an existing certificate.
fn left(
    owner: &CertificateOwner,
    requests: &[CertificateRequest<'_>],
    hosts: &Hosts<'_>,
    issued: &Issued,
) -> Vec<Step> {
    let names = |it: &CertificateRequest<'_>| {
        let hosts = hosts.all.iter().chain(&hosts.terminating);
        hosts.map(|host| name_of(it, host)).collect::<Vec<_>>()
    };
    let wanted: BTreeSet<String> = requests.iter().flat_map(names).collect();
    let is_left = |it: &&Arc<Certificate>| owner.holds(it) && !wanted.contains(&it.name_any());
    let because = "no host and no service needs it any more";
    let certificates = issued.certificates.values().filter(is_left);
    let mut steps: Vec<Step> =
        certificates.map(|it| Step::delete(Target::of(&**it), because)).collect();
    let kept: BTreeSet<String> =
        wanted.iter().chain(issued.certificates.keys()).map(|it| secret_name(it)).collect();
    let secrets = issued.secrets.keys().filter(|it| !kept.contains(*it));
    steps.extend(secrets.map(|it| Step::delete(owner.secret(it), because)));
    steps
}

/// Returns the steps that remove everything before the owner goes. cert-manager does not delete its
/// Secrets.
pub fn removals(owner: &CertificateOwner, issued: &Issued) -> Vec<Step> {
    let because = "what its hosts belong to is being deleted";
    let certificates = issued.certificates.values().filter(|it| owner.holds(it));
    let certificates = certificates.map(|it| Step::delete(Target::of(&**it), because));
    let secrets = issued.secrets.keys().map(|it| Step::delete(owner.secret(it), because));
    certificates.chain(secrets).collect()
}

/// Returns the issuer with the label that the certificate names. Fails unless exactly one issuer
/// has it and is meant for hosts.
fn issuer<'a>(
    owner: &CertificateOwner,
    request: &CertificateRequest<'_>,
    issued: &'a Issued,
) -> Result<&'a Issuer, Problem> {
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
            Err(Problem::new(&reasons::ISSUER_NOT_PERMITTED, text))
        }
        (first, _) => {
            let count = if first.is_some() { "several Issuers carry" } else { "no Issuer carries" };
            let text = format!(
                "Certificate {} of OpenStackDataPlaneService {} is to be signed by the Issuer with \
                 label {label}, and {count} it: label one, name another in tlsCerts, or set \
                 tlsEnabled: false in {}.",
                request.key, request.service, owner.place
            );
            Err(Problem::new(&reasons::ISSUER_NOT_FOUND, text))
        }
    }
}

/// Returns whether the issuer's administrator has meant it for hosts. A service may name any label,
/// and most objects carry some, such as `app.kubernetes.io/name`.
fn issues_for_hosts(issuer: &Issuer, label: &str) -> bool {
    let is_permitted = issuer.annotations().get(ISSUES_FOR_HOSTS).is_some_and(|it| it == "true");
    label.starts_with(ISSUER_LABELS) || is_permitted
}

/// Returns the certificate of a host; `None` for one without a name on the control plane network.
///
/// It names no algorithm: cert-manager makes RSA keys then, which every service accepts.
fn certificate(
    owner: &CertificateOwner,
    request: &CertificateRequest<'_>,
    host: &str,
    hosts: &Hosts<'_>,
    issuer: &Issuer,
) -> Option<CertificateSpec> {
    let names = hosts.names.get(host)?;
    let own = names.get(CTLPLANE)?;
    let none = BTreeMap::new();
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
    Some(CertificateSpec {
        secret_name: secret_of(request, host),
        secret_template: Some(SecretTemplate { labels: request.labels_of(owner, host) }),
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
