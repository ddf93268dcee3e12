//! Certificates of a node set's hosts, issued by cert-manager if the cluster has it; all are
//! requested at once.

use api::conditions::ConditionDraft;
use api::dataplane::NodeSet;
use api::dataplane::condition_types::CERTIFICATES_READY;
use api::problem::Problem;
use kube::ResourceExt;
use operator_core::certificates::{
    self, CertificateRequest, DesiredCertificates, Hosts, Issued, open,
};
use operator_core::node_set_host::CTLPLANE;

use crate::host::tls::no_cert_manager;
use crate::node_set::certificate_bundles::owner_of;
use crate::node_set::ipam::problem_condition;
use crate::reasons;

const KIND: &str = "OpenStackDataPlaneNodeSet";

/// Returns whether hosts get certificates: as `tlsEnabled` says, else whether cert-manager and
/// reserved names are available.
pub fn is_enabled(set: &NodeSet, hosts: &Hosts<'_>, issued: &Issued) -> bool {
    set.spec.tls_enabled.unwrap_or(issued.is_served && hosts.are_reserved)
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
    if !requests.is_empty()
        && let Err(problems) = refuse(set, hosts, issued)
    {
        return DesiredCertificates { problems, ..DesiredCertificates::default() };
    }
    let mut wanted = certificates::desired(&owner_of(set), requests, hosts, issued, may_remove);
    if !requests.is_empty() {
        wanted.problems.extend(unnamed(set, hosts));
    }
    wanted
}

/// Returns the faults of hosts that have names, and none on the control plane network.
fn unnamed(set: &NodeSet, hosts: &Hosts<'_>) -> Vec<Problem> {
    let has_none =
        |host: &&&str| hosts.names.get(**host).is_some_and(|it| !it.contains_key(CTLPLANE));
    let fault = |host: &&str| {
        let text = format!(
            "Host {host} of {KIND} {} has no name on the network {CTLPLANE}, which its certificates \
             need: list the network, with an operator that reserves addresses, or set tlsEnabled: \
             false.",
            set.name_any()
        );
        Problem::new(&reasons::external::NETWORK_MISSING, text)
    };
    hosts.all.iter().filter(has_none).map(fault).collect()
}

/// Fails if certificates cannot be issued at all.
fn refuse(set: &NodeSet, hosts: &Hosts<'_>, issued: &Issued) -> Result<(), Vec<Problem>> {
    let name = set.name_any();
    if !issued.is_served {
        return Err(vec![no_cert_manager(&format!("{KIND} {name}"))]);
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

/// Returns whether certificates are requested and the cluster has no cert-manager. No watch reports
/// its arrival.
pub fn is_unserved(findings: &[ConditionDraft]) -> bool {
    findings.iter().any(|it| it.reason == reasons::CERT_MANAGER_NOT_FOUND.word)
}

/// Reports the progress of the certificates; `are_bundled` says whether runs can mount all of them.
pub fn condition(
    set: &NodeSet,
    requests: &[CertificateRequest<'_>],
    hosts: &Hosts<'_>,
    issued: &Issued,
    wanted: &DesiredCertificates,
    are_bundled: bool,
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
    let waiting = |text: String| reasons::ISSUING.condition(CERTIFICATES_READY, text);
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
