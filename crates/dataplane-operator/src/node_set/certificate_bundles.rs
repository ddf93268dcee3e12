//! The Secrets with the certificates of all hosts of a node set, which runs mount: one or more for
//! each certificate that a service requests.
//!
//! An annotation records the single-host Secrets that they were made from. As long as those are
//! unchanged, no private key is read.

use std::collections::BTreeMap;

use api::dataplane::NodeSet;
use api::names;
use k8s_openapi::ByteString;
use kube::ResourceExt;
use operator_core::certificates::{
    CertificateOwner, CertificateRequest, HOST, Hosts, Issued, name_of, secret_of,
};
use operator_core::hash;
use operator_core::node_set_host::CTLPLANE;
use operator_core::plan::{Step, Target};
use operator_core::run_engine::build::owner;
use operator_core::run_engine::layout::CERTIFICATE_FILES;
use operator_runtime::managed_fields::ManagedFields;
use operator_runtime::source_cache::Content;
use serde_json::json;

use crate::labels::OF_NODE_SET;

/// Annotation with the number of Secrets and a digest of what they were made from.
pub const MADE_FROM: &str = "dataplane.openstack.org/certificates";
/// Label with the number of Secrets of a certificate, as upstream sets it.
const COUNT: &str = "numberOfSecrets";
/// Label with the index of the Secret among them; see [`COUNT`].
const NUMBER: &str = "secretNumber";

/// Size limit of an object in bytes, whatever the node set says.
const MAX_SIZE: usize = 1_048_576;

/// The files of one Secret, by name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The Secrets with the certificates of all hosts.
#[derive(Clone, Debug, Default)]
pub struct Bundles {
    /// Those that exist, by name.
    pub existing: BTreeMap<String, CertificateBundle>,
    /// The content of those Secrets of single hosts that are to be bundled again.
    pub files: BTreeMap<String, Content>,
}

/// Metadata of a Secret with the certificates of all hosts.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CertificateBundle {
    /// Value of the annotation [`MADE_FROM`].
    pub made_from: String,
    /// The fields that no other field manager has changed since.
    pub managed_fields: ManagedFields,
}

/// Returns the node set as the owner of its hosts' certificates.
pub fn owner_of(set: &NodeSet) -> CertificateOwner {
    CertificateOwner { object: Target::of(set), label: OF_NODE_SET, place: "the node set" }
}

/// Returns the Secrets of one certificate and the steps that write them, if they differ. Returns
/// `None` if there are none yet and a host's certificate is missing.
///
/// The Secrets stay as they are while a host's certificate is missing or being renewed.
pub fn bundle_secrets(
    set: &NodeSet,
    desired: &CertificateRequest<'_>,
    hosts: &Hosts<'_>,
    issued: &Issued,
    bundles: &Bundles,
) -> Option<(Vec<String>, Vec<Step>)> {
    let set_name = set.name_any();
    let state = state(&set_name, desired, bundles);
    let digest = outdated(set, desired, hosts, issued, bundles);
    let read = || content(set, desired, hosts, bundles);
    let Some((digest, contents)) = digest.and_then(|it| Some((it, read()?))) else {
        return Some((state?.names, Vec::new()));
    };
    let names: Vec<String> = (0..contents.len()).map(|it| name(&set_name, desired, it)).collect();
    let made_from = format!("{}-{digest}", contents.len());
    let owned = owner_of(set);
    let step = |(idx, (name, files)): (usize, (&String, Files))| {
        let mut labels = desired.labels(&owned);
        labels.insert(COUNT.to_owned(), names.len().to_string());
        labels.insert(NUMBER.to_owned(), idx.to_string());
        let data: BTreeMap<String, ByteString> =
            files.into_iter().map(|(name, it)| (name, ByteString(it))).collect();
        let object = json!({
            "metadata": {
                "annotations": { MADE_FROM: made_from },
                "labels": labels,
                "ownerReferences": [owner(&Target::of(set))],
            },
            "type": "Opaque",
            "data": data,
        });
        Step::apply(owned.secret(name), object, "runs are to get the hosts' certificates")
    };
    let steps = names.iter().zip(contents).enumerate().map(step).collect();
    Some((names, steps))
}

/// Returns the label selectors of the Secrets whose content is needed, one for each certificate.
pub fn needed(
    set: &NodeSet,
    requested: &[CertificateRequest<'_>],
    hosts: &Hosts<'_>,
    issued: &Issued,
    bundles: &Bundles,
) -> Vec<String> {
    let owned = owner_of(set);
    let selector = |desired: &CertificateRequest<'_>| {
        let labels = desired.labels(&owned).into_iter();
        let mut terms: Vec<String> = labels.map(|(name, it)| format!("{name}={it}")).collect();
        terms.push(HOST.to_owned());
        terms.join(",")
    };
    let is_needed =
        |it: &&CertificateRequest<'_>| outdated(set, it, hosts, issued, bundles).is_some();
    requested.iter().filter(is_needed).map(selector).collect()
}

/// Returns the steps that delete the Secrets that are not in `kept`.
pub fn left(set: &NodeSet, kept: &[&str], bundles: &Bundles) -> Vec<Step> {
    let is_left = |it: &&String| !kept.contains(&it.as_str());
    let because = "no certificate of the node set is in it any more";
    let (owned, left) = (owner_of(set), bundles.existing.keys().filter(is_left));
    left.map(|it| Step::delete(owned.secret(it), because)).collect()
}

/// Returns the name of one of the Secrets.
fn name(set: &str, desired: &CertificateRequest<'_>, idx: usize) -> String {
    let part = format!("certs-{idx}");
    names::derived(&[set, desired.service, desired.key, &part], names::SUBDOMAIN_LIMIT)
}

/// The existing Secrets of a certificate, all from the same write.
struct BundleState<'a> {
    names: Vec<String>,
    digest: &'a str,
    bundles: Vec<&'a CertificateBundle>,
}

fn state<'a>(
    set: &str,
    desired: &CertificateRequest<'_>,
    bundles: &'a Bundles,
) -> Option<BundleState<'a>> {
    let first = bundles.existing.get(&name(set, desired, 0))?;
    let (count, digest) = first.made_from.split_once('-')?;
    let names: Vec<String> = (0..count.parse().ok()?).map(|it| name(set, desired, it)).collect();
    let of_name =
        |it: &String| bundles.existing.get(it).filter(|it| it.made_from == first.made_from);
    let bundles: Option<Vec<&CertificateBundle>> = names.iter().map(of_name).collect();
    Some(BundleState { names, digest, bundles: bundles? })
}

/// Returns the digest of what the Secrets are to be made from; `None` if it is unknown or they are
/// current.
fn outdated(
    set: &NodeSet,
    desired: &CertificateRequest<'_>,
    hosts: &Hosts<'_>,
    issued: &Issued,
    bundles: &Bundles,
) -> Option<String> {
    if hosts.all.is_empty() || !hosts.are_complete() {
        return None;
    }
    let of_host = |host: &&str| {
        let own = own_name(hosts, host)?;
        Some((own, issued.settled(&name_of(desired, host))?))
    };
    let made_from: Option<Vec<(&str, &String)>> = hosts.all.iter().map(of_host).collect();
    let digest = hash::short(&(max_size(set), made_from?));
    let state = state(&set.name_any(), desired, bundles);
    let is_current = state.is_some_and(|it| it.digest == digest && is_whole(&it, hosts));
    (!is_current).then_some(digest)
}

/// Returns whether the operator still manages all hosts' files in the Secrets.
fn is_whole(state: &BundleState<'_>, hosts: &Hosts<'_>) -> bool {
    let is_in = |host: &&str| {
        let Some(own) = own_name(hosts, host) else { return false };
        let [_, certificate, key] = CERTIFICATE_FILES.map(|it| format!("{own}-{it}"));
        let keys = [certificate.as_str(), key.as_str()];
        state.bundles.iter().any(|it| it.managed_fields.has([MADE_FROM], keys))
    };
    hosts.all.iter().all(is_in)
}

/// Returns the name of a host on the control plane network, which prefixes its file names.
fn own_name<'a>(hosts: &Hosts<'a>, host: &str) -> Option<&'a str> {
    hosts.names.get(host)?.get(CTLPLANE).map(String::as_str)
}

fn max_size(set: &NodeSet) -> usize {
    usize::try_from(set.spec.secret_max_size).unwrap_or(MAX_SIZE).clamp(1, MAX_SIZE)
}

/// Returns the content of the Secrets; `None` if a host's Secret was not read.
fn content(
    set: &NodeSet,
    desired: &CertificateRequest<'_>,
    hosts: &Hosts<'_>,
    bundles: &Bundles,
) -> Option<Vec<Files>> {
    let read = |host: &str, file: &str| bundles.files.get(&secret_of(desired, host))?.bytes(file);
    let has_all = |it: &&str| CERTIFICATE_FILES[1..].iter().all(|file| read(it, file).is_some());
    hosts.all.iter().all(has_all).then(|| packed(hosts, max_size(set), read))
}

/// Packs the certificates of all hosts into as few Secrets as possible, in the order of the hosts.
/// The files of one host stay in one Secret and are named after the host on the control plane
/// network.
///
/// `read` returns a file of a host's own Secret.
fn packed<'a>(
    hosts: &Hosts<'_>,
    max_size: usize,
    read: impl Fn(&str, &str) -> Option<&'a [u8]>,
) -> Vec<Files> {
    let mut bundles: Vec<Files> = vec![Files::new()];
    let mut size = 0;
    for host in &hosts.all {
        let Some(own) = own_name(hosts, host) else { continue };
        let files = CERTIFICATE_FILES
            .iter()
            .filter_map(|it| Some((format!("{own}-{it}"), read(host, it)?)));
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

#[cfg(test)]
#[path = "certificate_bundles_tests.rs"]
mod tests;
