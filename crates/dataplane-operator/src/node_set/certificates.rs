//! The certificates that services name for hosts, and what was seen of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::cert_manager::{Certificate, CertificateStatus, Issuer};
use api::dataplane::service::TlsCert;
use api::dataplane::{NodeSet, Service};
use api::infra::is_ready;
use api::names;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use operator_core::data_sources::service_type;
use operator_core::node_set_host::HostNetworkValues;
use operator_core::plan::Target;
use operator_runtime::managed_fields::ManagedFields;
use operator_runtime::source_contents::Content;

/// Labels of certificates and of their Secrets: the node set, the service, the name of the certificate
/// among the service's, and on what is of one host alone, the host.
pub const SET: &str = "osdpns";

/// See [`SET`].
pub const HOST: &str = "hostname";

/// What the Secret of a certificate begins with.
pub const SECRET_PREFIX: &str = "cert-";

/// What was seen of cert-manager, and of the Secrets that it and the operator make.
#[derive(Clone, Debug, Default)]
pub struct Issued {
    /// Whether the cluster has it, and it was asked.
    pub is_served: bool,
    /// The issuers of the namespace.
    pub issuers: Vec<Arc<Issuer>>,
    /// The certificates of the namespace, by name.
    pub certificates: BTreeMap<String, Arc<Certificate>>,
    /// The Secrets with the certificates of single hosts: name → version.
    pub secrets: BTreeMap<String, String>,
    /// The Secrets with the certificates of all hosts, by name.
    pub bundles: BTreeMap<String, CertificateBundle>,
    /// The content of those Secrets of single hosts that are to be bundled anew.
    pub files: BTreeMap<String, Content>,
}

impl Issued {
    /// Whether a certificate can be had.
    pub(super) fn is_ready(&self, name: &str) -> bool {
        self.certificates.get(name).is_some_and(|it| {
            let status = it.status.as_ref();
            status.is_some_and(|reported| is_ready(&reported.conditions, it.metadata.generation))
        })
    }

    /// The version of the Secret of a certificate that is not just being renewed.
    pub fn settled(&self, certificate: &str) -> Option<&String> {
        let is_issuing =
            |it: &Arc<Certificate>| it.status.as_ref().is_some_and(CertificateStatus::is_issuing);
        let settled = self.certificates.get(certificate).filter(|it| !is_issuing(it));
        settled.filter(|_| self.is_ready(certificate))?;
        self.secrets.get(&secret_name(certificate))
    }
}

/// A certificate of each host that a service names.
#[derive(Clone, Debug)]
pub struct CertificateRequest<'a> {
    /// The service's name, as it is listed.
    pub service: &'a str,
    /// The service that names the certificate: the listed one, or the one that its type names.
    pub spec: &'a Service,
    /// The name of the certificate, among the service's.
    pub key: &'a str,
    /// What it is to be.
    pub cert: &'a TlsCert,
}

impl CertificateRequest<'_> {
    /// The folder below that of all certificates whose folder of the certificate's name has it.
    pub fn directory(&self) -> String {
        let own = self.cert.edpm_role_service_name.clone().filter(|it| !it.is_empty());
        own.unwrap_or_else(|| service_type(&self.spec.spec, &self.spec.name_any()))
    }

    /// The labels of all its objects.
    pub fn labels(&self, set: &str) -> BTreeMap<String, String> {
        let values = [(SET, set), (SERVICE, self.service), (KEY, self.key)];
        let label = |it: &str| names::derived(&[it], names::LABEL_LIMIT);
        values.into_iter().map(|(name, it)| (name.to_owned(), label(it))).collect()
    }
}

/// The hosts of a node set, with their names and addresses as they are reserved.
#[derive(Clone, Debug)]
pub struct Hosts<'a> {
    /// The names of all of them.
    pub all: BTreeSet<&'a str>,
    /// Whether anybody reserves addresses.
    pub are_reserved: bool,
    /// Host → network → name.
    pub names: &'a HostNetworkValues,
    /// Host → network → address.
    pub addresses: &'a HostNetworkValues,
}

impl Hosts<'_> {
    /// Whether each host has its names.
    pub fn are_complete(&self) -> bool {
        self.all.iter().all(|it| self.names.contains_key(*it))
    }
}

/// A Secret of that name.
pub fn secret(set: &NodeSet, name: &str) -> Target {
    Target::named::<Secret>(set.namespace().unwrap_or_default(), name)
}

/// The name of a host's certificate; its Secret's begins with `cert-`.
pub fn name_of(desired: &CertificateRequest<'_>, host: &str) -> String {
    // Leaves room for the beginning of the Secret's name.
    names::derived(
        &[desired.service, desired.key, host],
        names::SUBDOMAIN_LIMIT - SECRET_PREFIX.len(),
    )
}

/// The Secret with the key and the certificate of a host.
pub fn secret_of(desired: &CertificateRequest<'_>, host: &str) -> String {
    secret_name(&name_of(desired, host))
}

/// The Secret that cert-manager writes for a certificate of that name.
pub fn secret_name(certificate: &str) -> String {
    format!("{SECRET_PREFIX}{certificate}")
}

/// What stands on such a Secret.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CertificateBundle {
    /// The annotation [`MADE_FROM`].
    pub made_from: String,
    /// What of it nobody has changed since.
    pub managed_fields: ManagedFields,
}

/// Label of a certificate with the service that names it.
pub const SERVICE: &str = "osdp-service";

/// Label of a certificate with its name among the service's.
pub const KEY: &str = "osdp-service-cert-key";
