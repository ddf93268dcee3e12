//! Which objects depend on which sources.

use std::collections::{BTreeMap, BTreeSet};

use operator_core::data_sources::SourceRef;
use operator_core::object_key::Key;

/// The controller and the key of an object that depends on sources.
type Reader = (&'static str, Key);

/// The sources of each reader, and the readers of each source: an event must not cost a pass over
/// thousands of readers.
#[derive(Default)]
pub(super) struct Dependencies {
    sources: BTreeMap<Reader, BTreeSet<SourceRef>>,
    readers: BTreeMap<SourceRef, BTreeSet<Reader>>,
}

impl Dependencies {
    /// Replaces the sources of a reader.
    pub(super) fn set(&mut self, controller: &'static str, key: &Key, on: BTreeSet<SourceRef>) {
        let reader = (controller, key.clone());
        let old = self.sources.remove(&reader).unwrap_or_default();
        for source in old.difference(&on) {
            if let Some(readers) = self.readers.get_mut(source) {
                readers.remove(&reader);
                if readers.is_empty() {
                    self.readers.remove(source);
                }
            }
        }
        for source in on.difference(&old) {
            self.readers.entry(source.clone()).or_default().insert(reader.clone());
        }
        if !on.is_empty() {
            self.sources.insert(reader, on);
        }
    }

    /// Returns the objects of a controller that depend on a source.
    pub(super) fn readers(&self, controller: &str, source: &SourceRef) -> Vec<Key> {
        let readers = self.readers.get(source).into_iter().flatten();
        readers.filter(|it| it.0 == controller).map(|it| it.1.clone()).collect()
    }
}
