//! What was observed of an object that computes hold, as plain data.

use std::sync::Arc;

use api::nova::{Cell, Credential, CredentialKind, ExternalCompute};
use api::rabbitmq::{RabbitMqUser, RabbitMqUserSpec};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use operator_core::finalizers::{add_finalizer, remove_finalizer};
use operator_core::plan::Step;

use crate::finalizers;

/// A snapshot of everything that the decision on a held object uses.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The object, with a finalizer of ours.
    pub object: HeldObject,
    /// The computes that use it and stay.
    pub computes: Vec<Arc<ExternalCompute>>,
    /// The cells of these computes that exist.
    pub cells: Vec<Arc<Cell>>,
}

/// What a compute logs in with.
#[derive(Clone, Debug, Default)]
pub struct Held {
    /// What a deployment would log in with now.
    pub present: Vec<Credential>,
    /// The objects of these and of what the compute has recorded, as far as they exist.
    pub objects: Vec<HeldObject>,
}

/// The object of a credential that is held, or is to be.
#[derive(Clone, Debug)]
pub struct HeldObject {
    /// The credential.
    pub credential: Credential,
    /// The metadata of its object.
    pub metadata: ObjectMeta,
}

impl HeldObject {
    /// Returns whether the object has our finalizer.
    pub fn is_held(&self) -> bool {
        let finalizer = finalizer(self.credential.kind);
        self.metadata.finalizers.iter().flatten().any(|it| it == finalizer)
    }

    /// Returns the step that holds it; `None` when it is held, or already being deleted.
    pub fn hold(&self) -> Option<Step> {
        let (finalizer, because) = (finalizer(self.credential.kind), "a host logs in with it");
        match self.credential.kind {
            CredentialKind::RabbitMqUser => add_finalizer(&self.user(), finalizer, because),
            CredentialKind::TransportSecret | CredentialKind::ApplicationCredential => {
                add_finalizer(&self.secret(), finalizer, because)
            }
        }
    }

    /// Returns the step that releases it; `None` when it is not held.
    pub fn release(&self) -> Option<Step> {
        let (finalizer, because) = (finalizer(self.credential.kind), "no host logs in with it");
        match self.credential.kind {
            CredentialKind::RabbitMqUser => remove_finalizer(&self.user(), finalizer, because),
            CredentialKind::TransportSecret | CredentialKind::ApplicationCredential => {
                remove_finalizer(&self.secret(), finalizer, because)
            }
        }
    }

    fn user(&self) -> RabbitMqUser {
        let spec = RabbitMqUserSpec::default();
        RabbitMqUser { metadata: self.metadata.clone(), spec, status: None }
    }

    fn secret(&self) -> Secret {
        Secret { metadata: self.metadata.clone(), ..Secret::default() }
    }
}

/// Returns the finalizer that holds the object of a credential.
pub fn finalizer(kind: CredentialKind) -> &'static str {
    match kind {
        CredentialKind::RabbitMqUser => finalizers::RABBITMQ_USER,
        CredentialKind::TransportSecret => finalizers::TRANSPORT_SECRET,
        CredentialKind::ApplicationCredential => finalizers::APPLICATION_CREDENTIAL,
    }
}
