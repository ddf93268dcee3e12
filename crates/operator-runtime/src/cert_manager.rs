//! The issuers and certificates of cert-manager, if the cluster has it.

use api::cert_manager::{Certificate, Issuer};
use kube::{Resource, ResourceExt};
use operator_core::certificates::Issued;
use operator_core::object_key::Key;
use operator_core::rbac::{READ, Rule, WRITE};

use crate::api::Api;
use crate::cache_registry::CacheRegistry;
use crate::error::Result;
use crate::manager::ManagerBuilder;
use crate::optional_informer::OptionalInformer;

/// Index of certificates by the UIDs of their owners.
const BY_OWNER: &str = "owner";

/// RBAC rules for an operator that requests certificates.
pub const RULES: [Rule; 2] = [
    Rule::of(&["cert-manager.io"], &["issuers"], READ),
    Rule::of(&["cert-manager.io"], &["certificates"], WRITE),
];

/// Informers for these kinds, started only when they are needed and the cluster has them.
pub struct CertManager {
    /// The issuers.
    pub issuers: OptionalInformer<Issuer>,
    /// The certificates.
    pub certificates: OptionalInformer<Certificate>,
}

impl CertManager {
    /// Creates the caches without starting any informer.
    pub fn new(builder: &ManagerBuilder, registry: &mut CacheRegistry) -> Self {
        Self {
            issuers: OptionalInformer::new(builder, registry),
            certificates: OptionalInformer::indexed(
                builder,
                registry,
                vec![(BY_OWNER, Box::new(owners_of))],
            ),
        }
    }

    /// Calls `enqueue` with the key of each object that is added, changed or deleted.
    pub fn on_change(&self, enqueue: &(impl Fn(Key) + Clone + Send + Sync + 'static)) {
        self.issuers.on_change(enqueue.clone());
        self.certificates.on_change(enqueue.clone());
    }

    /// Returns whether an object is known to own a certificate, signed or not.
    ///
    /// Asks nothing of the API server: before any object has wanted a certificate, none is known.
    pub fn is_owner<K: Resource>(&self, object: &K) -> bool {
        let meta = object.meta();
        let (Some(namespace), Some(uid)) = (&meta.namespace, &meta.uid) else { return false };
        !self.certificates.cache().indexed(BY_OWNER, &Key::new(namespace, uid)).is_empty()
    }

    /// Returns the issuers and certificates of a namespace, without Secrets; nothing if the cluster
    /// has no cert-manager.
    pub async fn issued(&self, api: &Api, namespace: &str) -> Result<Issued> {
        let certificates = self.certificates.seen(api, namespace).await?;
        let issuers = self.issuers.seen(api, namespace).await?;
        let Some((issuers, certificates)) = issuers.zip(certificates) else {
            return Ok(Issued::default());
        };
        let certificates = certificates.into_iter().map(|it| (it.name_any(), it)).collect();
        Ok(Issued { is_served: true, issuers, certificates, ..Issued::default() })
    }
}

/// Returns the keys of the index [`BY_OWNER`].
fn owners_of(certificate: &Certificate) -> Vec<Key> {
    let namespace = certificate.namespace().unwrap_or_default();
    certificate.owner_references().iter().map(|it| Key::new(&namespace, &it.uid)).collect()
}
