//! The hosts about which something else than their own nodes has changed since their group was last read.

use std::collections::{BTreeMap, BTreeSet};

use operator_core::object_key::Key;
use parking_lot::Mutex;

/// The names of such hosts' nodes, by the key of their group; of groups that are remembered alone.
///
/// A group is enqueued with each of them, and takes its names before it reads: what changes after that is
/// there for the next time.
#[derive(Default)]
pub struct ChangedHosts(Mutex<BTreeMap<Key, BTreeSet<String>>>);

impl ChangedHosts {
    /// Notes that something about a host of a group has changed.
    pub fn note(&self, group: &Key, node: &str) {
        if let Some(noted) = self.0.lock().get_mut(group) {
            noted.insert(node.to_owned());
        }
    }

    /// Removes and returns what was noted of a group; from now on changes of its hosts are noted.
    pub fn take(&self, group: &Key) -> BTreeSet<String> {
        self.0.lock().insert(group.clone(), BTreeSet::new()).unwrap_or_default()
    }

    /// Notes nothing more of a group.
    pub fn forget(&self, group: &Key) {
        self.0.lock().remove(group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_noted_from_the_first_look_at_a_group_until_it_is_forgotten() {
        let (changed, group) = (ChangedHosts::default(), Key::new("ns", "role/compute"));
        changed.note(&group, "n0");
        assert!(changed.take(&group).is_empty(), "nothing is remembered of it yet");
        changed.note(&group, "n0");
        assert_eq!(changed.take(&group).into_iter().collect::<Vec<_>>(), ["n0"]);
        assert!(changed.take(&group).is_empty());
        changed.forget(&group);
        changed.note(&group, "n1");
        assert!(changed.take(&group).is_empty());
    }
}
