//! What was observed of the Secrets with the certificates of all hosts of a node set, and the node
//! set as the owner of its hosts' certificates.

use std::collections::BTreeMap;

use api::dataplane::NodeSet;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::core::PartialObjectMeta;
use operator_core::certificates::CertificateOwner;
use operator_core::object_key::Key;
use operator_core::plan::Target;
use operator_runtime::managed_fields::ManagedFields;
use operator_runtime::source_cache::Content;

/// Label of certificates and of their Secrets with the node set.
pub const SET: &str = "osdpns";

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
    /// Value of the annotation [`MADE_FROM`](crate::node_set::certificate_bundles::MADE_FROM).
    pub made_from: String,
    /// The fields that no other field manager has changed since.
    pub managed_fields: ManagedFields,
}

/// Returns the node set as the owner of its hosts' certificates.
pub fn owner_of(set: &NodeSet) -> CertificateOwner {
    CertificateOwner { object: Target::of(set), label: SET, place: "the node set" }
}

/// Returns the keys of the index [`BY_LABEL`](crate::indexes::BY_LABEL).
pub fn node_set_of(secret: &PartialObjectMeta<Secret>) -> Vec<Key> {
    let set = secret.labels().get(SET).into_iter();
    set.map(|it| Key::new(secret.namespace().unwrap_or_default(), it)).collect()
}
