//! Accessors for object metadata: namespace, name and creation time.

use jiff::Timestamp;
use kube::ResourceExt;

/// Returns namespace and name of an object; absent ones are empty.
pub fn place(object: &impl ResourceExt) -> (&str, &str) {
    let meta = object.meta();
    (meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default())
}

/// Returns when an object was created.
pub fn created(object: &impl ResourceExt) -> Option<Timestamp> {
    object.meta().creation_timestamp.as_ref().map(|it| it.0)
}
