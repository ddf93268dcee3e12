//! The hosts about which something else than their own nodes has changed since their group was last read.

use std::collections::{BTreeMap, BTreeSet};

use operator_core::object_key::Key;
use parking_lot::Mutex;

/// The names of such hosts' nodes, by the key of their group.
///
/// A group is enqueued with each of them, and takes its names before it reads: what changes after that is
/// there for the next time.
#[derive(Default)]
pub struct ChangedHosts(Mutex<BTreeMap<Key, BTreeSet<String>>>);

impl ChangedHosts {
    /// Notes that something about a host of a group has changed.
    pub fn note(&self, group: &Key, node: &str) {
        self.0.lock().entry(group.clone()).or_default().insert(node.to_owned());
    }

    /// Removes and returns what was noted of a group.
    pub fn take(&self, group: &Key) -> BTreeSet<String> {
        self.0.lock().remove(group).unwrap_or_default()
    }
}
