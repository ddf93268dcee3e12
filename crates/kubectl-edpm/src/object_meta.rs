//! What the metadata of any object tells: namespace and name, and when it was created.

use jiff::Timestamp;
use kube::ResourceExt;

/// Namespace and name of an object.
pub fn place(object: &impl ResourceExt) -> (&str, &str) {
    let meta = object.meta();
    (meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default())
}

/// When an object was created.
pub fn created(object: &impl ResourceExt) -> Option<Timestamp> {
    object.meta().creation_timestamp.as_ref().map(|it| it.0)
}
