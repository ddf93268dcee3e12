//! The certificates that services request for hosts, and what was observed of them.

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
use operator_runtime::source_cache::Content;

/// Label of certificates and of their Secrets with the node set. Together with it stand
/// [`SERVICE`], [`KEY`] and, on objects of a single host, [`HOST`].
pub const SET: &str = "osdpns";

/// Label with the host; see [`SET`].
pub const HOST: &str = "hostname";

/// Prefix of the name of a certificate's Secret.
pub const SECRET_PREFIX: &str = "cert-";

/// What was observed of cert-manager, and of the Secrets that it and the operator write.
#[derive(Clone, Debug, Default)]
pub struct Issued {
    /// Whether the cluster has cert-manager and its objects were read.
    pub is_served: bool,
    /// The issuers of the namespace.
    pub issuers: Vec<Arc<Issuer>>,
    /// The certificates of the namespace, by name.
    pub certificates: BTreeMap<String, Arc<Certificate>>,
    /// The resource versions of the Secrets with certificates of single hosts, by name.
    pub secrets: BTreeMap<String, String>,
    /// The Secrets with the certificates of all hosts, by name.
    pub bundles: BTreeMap<String, CertificateBundle>,
    /// The content of those single-host Secrets that are to be bundled again.
    pub files: BTreeMap<String, Content>,
}

impl Issued {
    /// Returns whether a certificate is ready for its present generation.
    pub(super) fn is_ready(&self, name: &str) -> bool {
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
}

/// A certificate that a service requests for each host.
#[derive(Clone, Debug)]
pub struct CertificateRequest<'a> {
    /// The service's name, as the node set or a deployment lists it.
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
    pub fn labels(&self, set: &str) -> BTreeMap<String, String> {
        let values = [(SET, set), (SERVICE, self.service), (KEY, self.key)];
        let label = |it: &str| names::derived(&[it], names::LABEL_LIMIT);
        values.into_iter().map(|(name, it)| (name.to_owned(), label(it))).collect()
    }
}

/// The hosts of a node set, with their reserved names and addresses.
#[derive(Clone, Debug)]
pub struct Hosts<'a> {
    /// The names of all hosts.
    pub all: BTreeSet<&'a str>,
    /// The names of hosts that were taken out and whose certificates stay.
    pub terminating: BTreeSet<&'a str>,
    /// Whether an operator reserves addresses.
    pub are_reserved: bool,
    /// Names: host → network → name.
    pub names: &'a HostNetworkValues,
    /// Addresses: host → network → address.
    pub addresses: &'a HostNetworkValues,
}

impl Hosts<'_> {
    /// Returns whether every host has its reserved names.
    pub fn are_complete(&self) -> bool {
        self.all.iter().all(|it| self.names.contains_key(*it))
    }
}

/// Returns the target for the Secret of that name.
pub fn secret(set: &NodeSet, name: &str) -> Target {
    Target::named::<Secret>(set.namespace().unwrap_or_default(), name)
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

/// Metadata of a Secret with the certificates of all hosts.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CertificateBundle {
    /// Value of the annotation [`MADE_FROM`](crate::node_set::certificate_bundles::MADE_FROM).
    pub made_from: String,
    /// The fields that no other field manager has changed since.
    pub managed_fields: ManagedFields,
}

/// Label of a certificate with the service that requests it.
pub const SERVICE: &str = "osdp-service";

/// Label of a certificate with its key in the service's `tlsCerts`.
pub const KEY: &str = "osdp-service-cert-key";
