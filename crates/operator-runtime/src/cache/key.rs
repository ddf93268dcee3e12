//! The keys of indexes.

use operator_core::object_key::Key;

/// The keys under which an object is also found.
pub type Index<K> = Box<dyn Fn(&K) -> Vec<Key> + Send + Sync>;

/// Names that a cached object is also found under.
pub type IndexName = &'static str;
