//! The owners of an object, by its owner references.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource, ResourceExt};
use operator_core::object_key::Key;

/// Returns the owner reference with `controller: true`, if there is one.
pub fn controller(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.as_ref()?.iter().find(|it| it.controller == Some(true))
}

/// Returns the keys of the owners of kind `O`, controlling or not.
pub fn owner_keys<O: Resource<DynamicType = ()>>(object: &impl Resource) -> Vec<Key> {
    let (kind, namespace) = (O::kind(&()), object.namespace().unwrap_or_default());
    let owners = object.owner_references().iter().filter(|it| it.kind == kind);
    owners.map(|it| Key::new(&namespace, &it.name)).collect()
}
