//! The namespace and name of an object.

use std::fmt;
use std::sync::Arc;

use kube::{Resource, ResourceExt};

/// Namespace and name of an object; displayed as `namespace/name`.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Key {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Key {
    /// Creates a key from namespace and name.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// Returns the key of an object; the namespace is empty if the object has none.
    pub fn of<K: Resource>(object: &K) -> Self {
        Self::new(object.namespace().unwrap_or_default(), object.name_any())
    }

    /// Returns the keys of objects, in their order.
    pub fn of_each<K: Resource>(objects: impl IntoIterator<Item = Arc<K>>) -> Vec<Self> {
        objects.into_iter().map(|it| Self::of(&*it)).collect()
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
