//! Index types of the object caches.

use operator_core::object_key::Key;

/// Maps an object to the index keys under which it is listed.
pub type Index<K> = Box<dyn Fn(&K) -> Vec<Key> + Send + Sync>;

/// The name of an index.
pub type IndexName = &'static str;
