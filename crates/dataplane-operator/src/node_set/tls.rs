//! Certificates of a node set's hosts, where cert-manager is in the cluster: all are asked for at
//! once, and each service's are bundled into Secrets that runs mount.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use common::api::cert_manager::{
    Certificate, CertificateSpec, Issuer, IssuerRef, SecretTemplate, Subject,
};
use common::api::dataplane::service::TlsCert;
use common::api::dataplane::{NodeSet, Service};
use common::api::infra::is_ready;
use common::conditions::Finding;
use common::engine::build::owner;
use common::engine::mounts::node_sets::Tls;
use common::names;
use common::plan::{Kind, Step, Target};
use kube::{Resource, ResourceExt};
use serde_json::json;

use crate::group::faults::Fault;
use crate::inputs::service_type;
use crate::node_set::ipam::OnNetworks;

/// Every host has its certificates, or gets none.
pub const CERTIFICATES_READY: &str = "NodeSetCertificatesReady";
/// The label of the issuer of certificates that name none.
const DEFAULT_ISSUER: &str = "osp-rootca-issuer-internal";
/// What the keys of certificates that name nothing may be used for.
const DEFAULT_USAGES: [&str; 3] = ["key encipherment", "digital signature", "server auth"];
/// Annotations of an issuer with the times of its certificates.
const DURATION: &str = "osp-rootca-issuer-duration";
const RENEW_BEFORE: &str = "osp-rootca-issuer-renew-before";
/// The network over which hosts are managed.
const CTLPLANE: &str = "ctlplane";
const KIND: &str = "OpenStackDataPlaneNodeSet";

/// What was seen of cert-manager.
#[derive(Clone, Debug, Default)]
pub struct Issued {
    /// Whether the cluster has it.
    pub is_served: bool,
    /// The issuers of the namespace.
    pub issuers: Vec<Arc<Issuer>>,
    /// The certificates of the namespace.
    pub certificates: Vec<Arc<Certificate>>,
}

/// Whether hosts get certificates: what the node set says, else whether somebody can issue them.
pub fn is_enabled(set: &NodeSet, issued: &Issued) -> bool {
    set.spec.tls_enabled.unwrap_or(issued.is_served)
}

/// A certificate of each host that a service names.
#[derive(Clone, Debug)]
pub struct Wish<'a> {
    /// The service's name.
    pub service: &'a str,
    /// The service.
    pub spec: &'a Service,
    /// The name of the certificate, among the service's.
    pub key: &'a str,
    /// What it is to be.
    pub cert: &'a TlsCert,
}

/// The certificates that services name, in their order.
pub fn wishes<'a>(services: impl IntoIterator<Item = (&'a str, &'a Service)>) -> Vec<Wish<'a>> {
    let of = |(service, spec): (&'a str, &'a Service)| {
        spec.spec.tls_certs.iter().map(move |(key, cert)| Wish { service, spec, key, cert })
    };
    services.into_iter().flat_map(of).collect()
}

/// Names and addresses of all hosts on their networks, as their reservations have them.
#[derive(Clone, Debug)]
pub struct Hosts<'a> {
    /// Host → network → name.
    pub names: &'a OnNetworks,
    /// Host → network → address.
    pub addresses: &'a OnNetworks,
}

/// The steps that ask for the certificates that are not as they should be, and take back those of
/// hosts that went.
pub fn wanted(
    set: &NodeSet,
    wishes: &[Wish<'_>],
    hosts: &Hosts<'_>,
    issued: &Issued,
) -> Result<Vec<Step>, Vec<Fault>> {
    if !is_enabled(set, issued) || wishes.is_empty() {
        return Ok(Vec::new());
    }
    if !issued.is_served {
        let text = format!(
            "{KIND} {} has tlsEnabled: true, and the cluster has no cert-manager to issue \
             certificates: install it, or set tlsEnabled: false.",
            set.name_any()
        );
        return Err(vec![Fault::missing("CertManagerNotFound", text)]);
    }
    let (mut specs, mut faults) = (BTreeMap::new(), Vec::new());
    for wish in wishes {
        match issuer(wish, issued) {
            Err(fault) => faults.push(fault),
            Ok(signer) => {
                for host in hosts.names.keys() {
                    match certificate(set, wish, host, hosts, signer) {
                        Err(fault) => faults.push(fault),
                        Ok(spec) => drop(specs.insert(name_of(wish, host), (spec, wish, host))),
                    }
                }
            }
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let present: BTreeSet<String> = hosts.names.keys().map(|it| host_label(it)).collect();
    let is_left = |it: &&Arc<Certificate>| {
        let is_ours = it.labels().get("osdpns") == Some(&set.name_any());
        is_ours && it.labels().get("hostname").is_some_and(|it| !present.contains(it))
    };
    let left = issued.certificates.iter().filter(is_left);
    let because = "its host is not in the node set any more";
    let mut steps: Vec<Step> = left.map(|it| Step::delete(Target::of(&**it), because)).collect();
    for (name, (spec, wish, host)) in specs {
        let seen = issued.certificates.iter().find(|it| it.name_any() == name);
        if seen.is_some_and(|it| it.spec == spec) {
            continue;
        }
        let object = json!({
            "metadata": {
                "labels": labels(set, wish, host),
                "ownerReferences": [owner(&Target::of(set))],
            },
            "spec": spec,
        });
        let namespace = set.namespace().unwrap_or_default();
        let target = Target { kind: Kind::of::<Certificate>(), namespace, name, uid: None };
        steps.push(Step::apply(target, object, "a host needs a certificate"));
    }
    Ok(steps)
}

/// The name of a host's certificate; its Secret's begins with `cert-`.
fn name_of(wish: &Wish<'_>, host: &str) -> String {
    // Leaves room for the beginning of the Secret's name.
    names::derived(&[wish.service, wish.key, host], names::SUBDOMAIN_LIMIT - "cert-".len())
}

/// The Secret with the key and the certificate of a host.
pub fn secret_of(wish: &Wish<'_>, host: &str) -> String {
    format!("cert-{}", name_of(wish, host))
}

fn labels(set: &NodeSet, wish: &Wish<'_>, host: &str) -> BTreeMap<String, String> {
    let values = [
        ("osdpns", set.name_any()),
        ("osdp-service", wish.service.to_owned()),
        ("osdp-service-cert-key", wish.key.to_owned()),
        ("hostname", host_label(host)),
    ];
    values.into_iter().map(|(name, it)| (name.to_owned(), it)).collect()
}

/// A host's name as a label can have it.
fn host_label(host: &str) -> String {
    names::derived(&[host], names::LABEL_LIMIT)
}

/// Who signs: the issuer that carries the label that the certificate names.
fn issuer<'a>(wish: &Wish<'_>, issued: &'a Issued) -> Result<&'a Issuer, Fault> {
    let label = wish.cert.issuer.as_deref().filter(|it| !it.is_empty()).unwrap_or(DEFAULT_ISSUER);
    let mut found = issued.issuers.iter().filter(|it| it.labels().contains_key(label));
    match (found.next(), found.next()) {
        (Some(it), None) => Ok(it),
        (first, _) => {
            let count = if first.is_some() { "several Issuers carry" } else { "no Issuer carries" };
            let text = format!(
                "Certificate {} of OpenStackDataPlaneService {} is to be signed by the Issuer with \
                 label {label}, and {count} it: label one, or name another in tlsCerts.",
                wish.key, wish.service
            );
            Err(Fault::missing("IssuerNotFound", text))
        }
    }
}

fn certificate(
    set: &NodeSet,
    wish: &Wish<'_>,
    host: &str,
    hosts: &Hosts<'_>,
    issuer: &Issuer,
) -> Result<CertificateSpec, Fault> {
    let none = BTreeMap::new();
    let names = hosts.names.get(host).unwrap_or(&none);
    let Some(own) = names.get(CTLPLANE) else {
        let text = format!(
            "Host {host} of {KIND} {} has no name on the network {CTLPLANE}, which its certificates \
             need: list the network, with an operator that reserves addresses, or set tlsEnabled: \
             false.",
            set.name_any()
        );
        return Err(Fault::wrong("NetworkMissing", text));
    };
    let networks: Vec<String> = wish.cert.networks.iter().map(|it| it.to_lowercase()).collect();
    let on = |all: &BTreeMap<String, String>, what: &str| {
        let is_in = |it: &&String| networks.is_empty() || networks.contains(it);
        let values = all.iter().filter(|(network, _)| is_in(network)).map(|(_, it)| it.clone());
        if wish.cert.contents.iter().any(|it| it == what) { values.collect() } else { Vec::new() }
    };
    let annotation = |name: &str| issuer.annotations().get(name).cloned();
    let usages = wish.cert.key_usages.clone();
    let defaults = || DEFAULT_USAGES.map(str::to_owned).into();
    Ok(CertificateSpec {
        secret_name: secret_of(wish, host),
        secret_template: Some(SecretTemplate { labels: labels(set, wish, host) }),
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

/// How far the certificates are.
pub fn finding(
    set: &NodeSet,
    wishes: &[Wish<'_>],
    hosts: &Hosts<'_>,
    issued: &Issued,
    faults: &[Fault],
) -> Finding {
    if !is_enabled(set, issued) {
        let why = match set.spec.tls_enabled {
            Some(_) => "tlsEnabled is false",
            None => "the cluster has no cert-manager; with it, or with tlsEnabled: true, they do",
        };
        let text = format!("Hosts get no certificates: {why}.");
        return Finding::good(CERTIFICATES_READY, "NotRequired", text);
    }
    if let Some(first) = faults.first() {
        let texts: Vec<&str> = faults.iter().take(5).map(|it| it.message.as_str()).collect();
        return Finding::error(CERTIFICATES_READY, first.reason, texts.join(" "));
    }
    let is_there = |name: &str| {
        let found = issued.certificates.iter().find(|it| it.name_any() == name);
        found.and_then(|it| it.status.as_ref()).is_some_and(|it| is_ready(&it.conditions))
    };
    let all = wishes.iter().flat_map(|it| hosts.names.keys().map(|host| name_of(it, host)));
    let open: Vec<String> = all.filter(|it| !is_there(it)).collect();
    let Some(first) = open.first() else {
        let text = "Every host has its certificates.";
        return Finding::good(CERTIFICATES_READY, "Issued", text);
    };
    let text = format!(
        "{} certificates are not issued yet, the first one is Certificate {first}.",
        open.len()
    );
    Finding::waiting(CERTIFICATES_READY, "Issuing", text)
}

/// Files of one host: the key, the certificate and the CA that signed it.
const FILES: [&str; 3] = ["ca.crt", "tls.crt", "tls.key"];

/// Files by their names, of one Secret.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The certificates of all hosts in as few Secrets as fit: by the names on the network over which
/// hosts are managed, the files of a host always together.
///
/// `read` gives a file of a host's own Secret.
pub fn bundles<'a>(
    hosts: &Hosts<'_>,
    max_size: usize,
    read: impl Fn(&str, &str) -> Option<&'a [u8]>,
) -> Vec<Files> {
    let mut bundles: Vec<Files> = vec![Files::new()];
    let mut size = 0;
    for (host, names) in hosts.names {
        let Some(own) = names.get(CTLPLANE) else { continue };
        let files = FILES.iter().filter_map(|it| Some((format!("{own}-{it}"), read(host, it)?)));
        let files: Files = files.map(|(name, it)| (name, it.to_vec())).collect();
        let more: usize = files.iter().map(|(name, it)| name.len() + it.len()).sum();
        if size > 0 && size + more > max_size {
            bundles.push(Files::new());
            size = 0;
        }
        size += more;
        if let Some(last) = bundles.last_mut() {
            last.extend(files);
        }
    }
    bundles
}

/// The names of the Secrets that have a service's certificates.
pub fn bundle_names(set: &str, wish: &Wish<'_>, count: usize) -> Vec<String> {
    let name = |idx: usize| {
        let part = format!("certs-{idx}");
        names::derived(&[set, wish.service, wish.key, &part], names::SUBDOMAIN_LIMIT)
    };
    (0..count).map(name).collect()
}

/// The folder of a certificate in the pod; `count` Secrets have it.
pub fn mount(set: &str, wish: &Wish<'_>, count: usize) -> Tls {
    let own = wish.cert.edpm_role_service_name.clone().filter(|it| !it.is_empty());
    Tls::Certificates {
        secrets: bundle_names(set, wish, count),
        service_type: own.unwrap_or_else(|| service_type(&wish.spec.spec, wish.service)),
        key: wish.key.to_owned(),
    }
}

#[cfg(test)]
#[path = "tls_tests.rs"]
mod tests;
