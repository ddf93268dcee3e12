//! Drops events that change nothing on which other objects depend, as a predicate of
//! controller-runtime does.

use std::collections::BTreeMap;

use operator_core::object_key::Key;
use parking_lot::Mutex;

/// The last seen value of each object, reduced to the fields that other objects depend on.
pub struct ChangeFilter<T>(Mutex<BTreeMap<Key, T>>);

impl<T> Default for ChangeFilter<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: PartialEq> ChangeFilter<T> {
    /// Returns whether the value of an object differs from the last call; `now` reads it, and returns
    /// `None` when the object no longer exists.
    pub fn changes(&self, key: &Key, now: impl FnOnce() -> Option<T>) -> bool {
        let mut last = self.0.lock();
        // Read under the lock, so that the last of concurrent callers has read the newest value.
        match now() {
            Some(now) if last.get(key) == Some(&now) => false,
            Some(now) => {
                last.insert(key.clone(), now);
                true
            }
            None => last.remove(key).is_some(),
        }
    }
}
