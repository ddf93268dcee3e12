//! libvirt's certificate on the host of a compute, with which guests move from host to host over
//! TLS.
//!
//! The host gets one where the status of its node has what certificates carry.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use api::dataplane::{HostTls, Service};
use api::nova::ExternalCompute;
use api::problem::Problem;
use api::yaml;
use kube::ResourceExt;
use operator_core::certificates::{
    self, CertificateOwner, CertificateRequest, DesiredCertificates, Hosts, Issued, label_value,
    name_of, requested, secret_name, secret_of,
};
use operator_core::data_sources::NamedSource;
use operator_core::keyed::{Inputs, short};
use operator_core::node_set_host::{CTLPLANE, HostNetworkValues};
use operator_core::plan::{Step, Target};
use operator_core::run_engine::layout::Tls;
use operator_core::run_engine::run::Run;
use operator_runtime::source_cache::Digests;
use serde_json::json;

use crate::compute::deploy::observed::{Observed, SeenCertificate};
use crate::reasons;

/// Label of the certificate and of its Secret with the compute.
const COMPUTE: &str = "osdp-compute";
/// The name by which the certificate is requested: that of the service is taken where a role lists
/// it, or a node set with a host of that name.
const REQUESTED_BY: &str = "compute-libvirt";

/// The default service, which is the same for hosts of node sets.
static LIBVIRT: LazyLock<Service> = LazyLock::new(|| {
    let text = include_str!("../../../../dataplane-operator/services/libvirt.yaml");
    yaml::from_str(text).expect("the file is checked by a test")
});

/// The certificate of a host, as it is and is to be.
#[derive(Debug)]
pub struct HostCertificate {
    /// Whether the host gets one.
    pub is_wanted: bool,
    /// Whether nothing can issue it.
    pub lacks_issuer: bool,
    /// The steps that request it, or remove it where the host gets none any more and no run is left
    /// that may mount it.
    pub steps: Vec<Step>,
    /// Why libvirt has no certificate to be deployed with, if anything.
    pub fault: Option<Problem>,
    /// The inputs that it is; they are libvirt's alone.
    pub inputs: Inputs,
    /// The certificate as libvirt's run mounts it.
    pub mounts: Vec<Tls>,
}

impl HostCertificate {
    /// Resolves the certificate of a compute's host; `is_usable` says whether the status of its node
    /// describes its present state.
    pub fn resolve(seen: &Observed, is_usable: bool) -> Self {
        let (node, seen_tls) = (&seen.compute.spec.dataplane_node_name, &seen.certificate);
        let tls = seen.node.as_ref().and_then(|it| it.status.as_ref()?.tls.as_ref());
        let is_mounted = seen.runs.iter().filter_map(|it| Run::of(it)).any(|it| !it.is_finished());
        let desired = desired(seen, tls, is_usable && !is_mounted);
        let request = request();
        let mount = |own: &String| Tls::OfHosts {
            secrets: [(own.clone(), secret_of(&request, node))].into(),
            service_type: request.directory(),
            key: request.key.to_owned(),
        };
        let input = |it: &Digests| (NamedSource::secret(&secret(node)).title(), short(&it.keys));
        let is_wanted = tls.is_some();
        let digests = seen_tls.secret.iter().filter(|_| is_wanted);
        Self {
            is_wanted,
            lacks_issuer: is_wanted && !seen_tls.issued.is_served,
            fault: tls.and_then(|_| fault(&desired, seen_tls, &name_of(&request, node))),
            steps: desired.steps.into_iter().chain(ownership(seen)).collect(),
            inputs: digests.map(input).collect(),
            mounts: tls.and_then(|it| it.names.get(CTLPLANE)).map(mount).into_iter().collect(),
        }
    }
}

/// Returns the certificate that libvirt needs.
fn request() -> CertificateRequest<'static> {
    requested([(REQUESTED_BY, &*LIBVIRT)]).remove(0)
}

/// Returns the Secret of the certificate of a node's host.
pub fn secret(node: &str) -> String {
    secret_of(&request(), node)
}

/// Whether a Secret with these labels belongs to a certificate of the compute.
pub fn is_of<K: ResourceExt>(secret: &K, compute: &ExternalCompute) -> bool {
    secret.labels().get(COMPUTE) == Some(&label_value(&compute.name_any()))
}

fn owner_of(compute: &ExternalCompute) -> CertificateOwner {
    CertificateOwner { object: Target::of(compute), label: COMPUTE, place: "the role of the node" }
}

/// Returns what is written in this pass, and the faults of the request.
fn desired(seen: &Observed, tls: Option<&HostTls>, may_remove: bool) -> DesiredCertificates {
    let node = seen.compute.spec.dataplane_node_name.as_str();
    let issued = &seen.certificate.issued;
    if tls.is_none() && issued.certificates.is_empty() {
        return DesiredCertificates::default();
    }
    if tls.is_some() && !issued.is_served {
        let text = format!(
            "tlsEnabled is true in the role of OpenStackDataPlaneNode {node}, and the cluster has no \
             cert-manager to issue libvirt's certificate: install it, or set tlsEnabled: false."
        );
        let problems = vec![Problem::new(&reasons::CERT_MANAGER_NOT_FOUND, text)];
        return DesiredCertificates { problems, ..DesiredCertificates::default() };
    }
    let on = |it: fn(&HostTls) -> &BTreeMap<String, String>| {
        tls.iter().map(|tls| (node.to_owned(), it(tls).clone())).collect::<HostNetworkValues>()
    };
    let (names, addresses) = (on(|it| &it.names), on(|it| &it.addresses));
    let hosts = Hosts {
        all: BTreeSet::from([node]),
        terminating: BTreeSet::new(),
        are_reserved: true,
        names: &names,
        addresses: &addresses,
    };
    let requests: Vec<_> = tls.map(|_| request()).into_iter().collect();
    certificates::desired(&owner_of(&seen.compute), &requests, &hosts, issued, may_remove)
}

/// Returns the step that has the Secret go with its certificate: cert-manager leaves it, and this
/// operator may delete none.
fn ownership(seen: &Observed) -> Option<Step> {
    let (owner, metadata) = (owner_of(&seen.compute), &seen.certificate.metadata);
    let name = name_of(&request(), &seen.compute.spec.dataplane_node_name);
    let certificate = seen.certificate.issued.certificates.get(&name)?;
    let (secret, certificate) = (metadata.uid.as_ref()?, Target::of(&**certificate));
    let mut owners = metadata.owner_references.iter().flatten();
    if owners.any(|it| Some(&it.uid) == certificate.uid.as_ref()) {
        return None;
    }
    let reference = json!({
        "apiVersion": certificate.kind.api_version(), "kind": certificate.kind.kind,
        "name": certificate.name, "uid": certificate.uid,
    });
    let object = json!({ "metadata": { "uid": secret, "ownerReferences": [reference] } });
    let because = "the Secret is to go with its certificate";
    Some(Step::apply(owner.secret(&secret_name(&name)), object, because))
}

/// Returns the steps that remove the certificate before the compute goes.
pub fn removals(compute: &ExternalCompute, issued: &Issued) -> Vec<Step> {
    certificates::removals(&owner_of(compute), issued)
}

fn fault(desired: &DesiredCertificates, seen: &SeenCertificate, name: &str) -> Option<Problem> {
    if let Some(first) = desired.problems.first() {
        return Some(first.clone());
    }
    let has = |file: &str| seen.secret.as_ref().is_some_and(|it| it.keys.contains_key(file));
    desired.fault(name, &seen.issued, has)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_service_asks_for_one_certificate() {
        assert_eq!(requested([(REQUESTED_BY, &*LIBVIRT)]).len(), 1);
    }
}
