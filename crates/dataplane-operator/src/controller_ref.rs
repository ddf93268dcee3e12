//! The controlling owner among the owner references of an object.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

/// Returns the owner reference with `controller: true`, if there is one.
pub fn controller(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.as_ref()?.iter().find(|it| it.controller == Some(true))
}
