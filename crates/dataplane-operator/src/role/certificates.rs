//! The certificates of a role's hosts: those that its services request, what hosts lack of them, and
//! what runs mount.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::dataplane::{HostTls, Node, Role, Service};
use api::fault::Fault;
use api::problem::Problem;
use kube::ResourceExt;
use operator_core::certificate_networks::unknown_networks;
use operator_core::certificates::{
    CertificateOwner, CertificateRequest, DesiredCertificates, Hosts, desired, name_of, requested,
    secret_name, secret_of,
};
use operator_core::data_sources::{NamedSource, SourceRef};
use operator_core::finalizers::is_terminating;
use operator_core::hash;
use operator_core::keyed::short;
use operator_core::node_set_host::{CTLPLANE, HostNetworkValues};
use operator_core::plan::{Step, Target};
use operator_core::run_engine::layout::Tls;

use crate::host::inputs::Inputs;
use crate::host::tls::{self, brings_certificates};
use crate::labels::OF_ROLE;
use crate::reasons;
use crate::role::observed::Observed;

/// Limit of certificates that are written per pass. The events that they cause enqueue the next
/// pass, which continues.
const ONE_PASS: usize = 500;

/// The certificates of a role's hosts in one pass; empty without `tlsEnabled: true`.
#[derive(Clone, Debug, Default)]
pub struct RoleCertificates<'a> {
    /// The requests of the listed services, in their order.
    requests: Vec<CertificateRequest<'a>>,
    /// What is written in this pass, and the faults of the requests.
    desired: DesiredCertificates,
    /// What of the requests is without effect.
    pub without_effect: Vec<Fault>,
}

/// Returns whether the hosts of a role get certificates.
pub fn is_enabled(role: Option<&Role>) -> bool {
    role.is_some_and(|it| it.spec.tls_enabled == Some(true))
}

/// Returns the role as the owner of its hosts' certificates.
pub fn owner_of(role: &Role) -> CertificateOwner {
    CertificateOwner { object: Target::of(role), label: OF_ROLE, place: "the role" }
}

/// Returns the certificates that the listed services of a role request; `sources` has, for services that
/// define none, the service whose certificates they use.
pub fn requests<'a>(
    role: Option<&Role>,
    listed: &'a [String],
    services: &'a BTreeMap<String, Arc<Service>>,
    sources: &'a BTreeMap<String, Arc<Service>>,
) -> Vec<CertificateRequest<'a>> {
    let service = |name: &'a String| {
        let own = services.get(name)?;
        Some((name.as_str(), &**sources.get(name).unwrap_or(own)))
    };
    requested(listed.iter().filter(|_| is_enabled(role)).filter_map(service))
}

/// Returns the listed services that exist.
fn listed(seen: &Observed) -> impl Iterator<Item = (&str, &Service)> {
    let listed = seen.listed().iter();
    listed.filter_map(|name| Some((name.as_str(), &**seen.services.get(name)?)))
}

impl<'a> RoleCertificates<'a> {
    /// Returns the certificates of a group; a node without a role has none.
    pub fn of(seen: &'a Observed) -> Self {
        let Some(role) = seen.role.as_deref().filter(|it| !is_terminating(*it)) else {
            return Self::default();
        };
        let sources = &seen.certificate_sources;
        let requests = requests(Some(role), seen.listed(), &seen.services, sources);
        let (mut names, mut addresses) = (HostNetworkValues::new(), HostNetworkValues::new());
        for node in seen.nodes.iter().filter(|_| !requests.is_empty()) {
            let HostTls { names: own, addresses: reached } =
                seen.effective(node).tls.unwrap_or_default();
            names.insert(node.name_any(), own);
            addresses.insert(node.name_any(), reached);
        }
        let (terminating, present): (Vec<_>, Vec<_>) =
            seen.nodes.iter().partition(|it| is_terminating(&***it));
        let name = |it: &&'a Arc<Node>| it.metadata.name.as_deref();
        let hosts = Hosts {
            all: present.iter().filter_map(name).collect(),
            terminating: terminating.iter().filter_map(name).collect(),
            are_reserved: true,
            names: &names,
            addresses: &addresses,
        };
        if requests.is_empty()
            && seen.issued.certificates.is_empty()
            && seen.issued.secrets.is_empty()
        {
            return Self { requests, ..Self::default() };
        }
        if !requests.is_empty() && !seen.issued.is_served {
            let title = format!("OpenStackDataPlaneRole {}", role.name_any());
            let problems = vec![tls::no_cert_manager(&title)];
            let desired = DesiredCertificates { problems, ..DesiredCertificates::default() };
            return Self { requests, desired, ..Self::default() };
        }
        // Those of a service that cannot be read are unknown, and runs may still mount others.
        let is_known = |it: &String| seen.services.contains_key(it);
        let may_remove = seen.listed().iter().all(is_known) && !seen.has_open_run();
        let desired = desired(&owner_of(role), &requests, &hosts, &seen.issued, may_remove);
        let without_effect = unknown_networks(&requests, &hosts);
        Self { requests, desired, without_effect }
    }

    /// Returns the steps that request certificates and remove others, as many as fit into one pass.
    pub fn steps(&self) -> impl Iterator<Item = Step> {
        self.desired.steps.iter().take(ONE_PASS).cloned()
    }

    /// Returns whether certificates are requested and the cluster has no cert-manager.
    pub fn are_unserved(&self) -> bool {
        self.desired.problems.iter().any(|it| *it.reason == reasons::CERT_MANAGER_NOT_FOUND)
    }

    /// Returns the faults that keep services from running on any host, each with its service.
    pub fn faults(&self, seen: &Observed) -> Vec<(String, Problem)> {
        let mut faults = Vec::new();
        let bringing: Vec<&str> =
            listed(seen).filter(|it| brings_certificates(it.1)).map(|it| it.0).collect();
        for name in &bringing {
            let problems = self.desired.problems.iter().cloned();
            faults.extend(problems.map(|it| ((*name).to_owned(), it)));
        }
        let position = |name: &str| seen.listed().iter().position(|it| it == name);
        let first = bringing.first().and_then(|it| position(it));
        let services: BTreeSet<&str> = self.requests.iter().map(|it| it.service).collect();
        let is_before = |name: &&str| first.is_none_or(|first| position(name) < Some(first));
        let Some(role) = seen.role.as_deref() else { return faults };
        faults.extend(services.into_iter().filter(is_before).map(|name| {
            let text = format!(
                "The certificates of OpenStackDataPlaneService {name} reach no host before it runs: \
                 list a service with addCertMounts, such as install-certs, before it in \
                 spec.services of OpenStackDataPlaneRole {}, or set tlsEnabled: false there.",
                role.name_any()
            );
            (name.to_owned(), Problem::new(&reasons::role::CERTIFICATES_NOT_BROUGHT, text))
        }));
        faults
    }

    /// Returns what a host lacks: certificates that are not issued yet.
    pub fn lacking(&self, seen: &Observed, host: &str) -> Vec<Problem> {
        if !self.desired.problems.is_empty() {
            return Vec::new();
        }
        let fault = |request: &CertificateRequest<'_>| {
            let name = name_of(request, host);
            let secret = SourceRef::secret(&seen.namespace, &secret_name(&name));
            let digests = seen.sources.get(&secret);
            let has = |file: &str| digests.is_some_and(|it| it.keys.contains_key(file));
            self.desired.fault(&name, &seen.issued, has)
        };
        self.requests.iter().filter_map(fault).collect()
    }

    /// Returns whether the runs of a service mount certificates of hosts.
    pub fn are_brought_by(&self, service: &Service) -> bool {
        !self.requests.is_empty() && brings_certificates(service)
    }

    /// Returns the inputs that a service has on one host: the host's own certificates.
    pub fn inputs(&self, seen: &Observed, service: &Service, host: &str) -> Inputs {
        let requests = self.requests.iter().filter(|_| self.are_brought_by(service));
        let digest = |request: &CertificateRequest<'_>| {
            let named = NamedSource::secret(&secret_of(request, host));
            let mut parts = seen.sources.get(&named.source(&seen.namespace))?.keys.clone();
            parts.insert("directory".to_owned(), hash::short(&request.directory()).into());
            Some((named.title(), short(&parts)))
        };
        requests.filter_map(digest).collect()
    }

    /// Returns the CA bundles and certificates that a service's run mounts on hosts, given by name
    /// and by what their certificates carry.
    pub fn mounts(
        &self,
        seen: &Observed,
        service: (&str, &Service),
        hosts: &BTreeMap<&str, &HostTls>,
    ) -> Vec<Tls> {
        if !is_enabled(seen.role.as_deref()) {
            return Vec::new();
        }
        let certificates = |name: &str| {
            let requests = self.requests.iter().filter(|it| it.service == name);
            requests.map(|it| of_hosts(it, hosts)).collect::<Vec<_>>()
        };
        let exists = |it: &str| seen.sources.contains_key(&SourceRef::secret(&seen.namespace, it));
        tls::mounts(service, listed(seen), certificates, exists)
    }

    /// Returns the Secrets with the CA bundles that a service's runs mount, each with the service that
    /// names it.
    pub fn bundles(
        &self,
        seen: &Observed,
        service: (&str, &Service),
    ) -> BTreeSet<(String, NamedSource)> {
        let bundle = |it| match it {
            Tls::Bundle { service, secret, .. } => Some((service, NamedSource::secret(&secret))),
            Tls::Certificates { .. } | Tls::OfHosts { .. } => None,
        };
        let mounts = self.mounts(seen, service, &BTreeMap::new());
        mounts.into_iter().filter_map(bundle).collect()
    }
}

/// Returns a certificate of hosts, whose files are named as plays look for them.
fn of_hosts(request: &CertificateRequest<'_>, hosts: &BTreeMap<&str, &HostTls>) -> Tls {
    let secret = |(name, tls): (&&str, &&HostTls)| {
        Some((tls.names.get(CTLPLANE)?.clone(), secret_of(request, name)))
    };
    Tls::OfHosts {
        secrets: hosts.iter().filter_map(secret).collect(),
        service_type: request.directory(),
        key: request.key.to_owned(),
    }
}
