//! The objects of a cache and the rules for which version of them is current. No I/O, so that every
//! order of watch events and write responses can be tested.
//!
//! A watch reports the changes of its kind in the order of their resource versions. So what it has
//! reported up to a version is complete up to there. The response to a write that is not newer adds
//! nothing. One that is newer must be reported by the watch once it gets there; otherwise its
//! object is gone. This needs no tombstones and no clock.
//!
//! An etcd restored from a backup continues from an older version. Its watches and lists then
//! contradict what they reported before, which never happens otherwise: a list is a quorum read
//! made after it was requested, so it is not older than what was known by then, and a watch only
//! moves forward. Contradicting data therefore replaces everything known before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::watcher::Event;
use kube::{Resource, ResourceExt};
use operator_core::object_key::Key;

use super::item::{Item, Unreadable};
use super::key::{Index, IndexName};

/// An object before and after a change; a side is `None` when it is absent or cannot be
/// deserialized.
pub(super) struct Change<K> {
    pub(super) old: Option<Arc<K>>,
    pub(super) new: Option<Arc<K>>,
}

/// An object that exists in the cache.
enum Held<K> {
    Readable(Arc<K>),
    Unreadable(Arc<Unreadable>),
}

impl<K: Resource<DynamicType = ()>> Held<K> {
    fn of(item: Item<K>) -> Self {
        match item {
            Item::Readable(object) => Self::Readable(Arc::new(object)),
            Item::Unreadable(it) => Self::Unreadable(Arc::from(it)),
        }
    }

    fn meta(&self) -> &ObjectMeta {
        match self {
            Self::Readable(object) => object.meta(),
            Self::Unreadable(it) => &it.metadata,
        }
    }

    fn readable(&self) -> Option<&Arc<K>> {
        match self {
            Self::Readable(object) => Some(object),
            Self::Unreadable(_) => None,
        }
    }
}

/// A relist in progress.
#[derive(Default)]
struct Relist {
    /// Keys that the list has delivered so far.
    seen: BTreeSet<Key>,
    /// Keys that responses to own writes have delivered since the relist began: the list may be
    /// older.
    answered: BTreeSet<Key>,
    /// The latest version that the list has delivered; the list itself is at least that recent.
    newest: u64,
}

/// Progress of one watch.
#[derive(Default)]
struct Watch {
    /// Its namespace; `None` means all.
    namespace: Option<String>,
    /// The version up to which it has reported everything.
    reported: u64,
    /// Responses to own writes that it has yet to report.
    answers: BTreeSet<(u64, Key)>,
    relist: Option<Relist>,
    is_synced: bool,
}

impl Watch {
    fn covers(&self, key: &Key) -> bool {
        self.namespace.as_ref().is_none_or(|it| *it == key.namespace)
    }

    /// Returns whether the reported version of an object is impossible given the cached version
    /// `held`.
    ///
    /// Either the watch should have reported that version before, or the cache has a later one. The
    /// latter is normal only for a response that the watch has yet to report, and for a list only
    /// if the response arrived after the list began.
    fn contradicts(&self, key: &Key, held: Option<u64>, version: u64) -> bool {
        let is_unconfirmed = held.is_some_and(|it| self.answers.contains(&(it, key.clone())));
        let is_usual =
            is_unconfirmed && self.relist.as_ref().is_none_or(|it| it.answered.contains(key));
        let is_older = version <= self.reported || held.is_some_and(|it| version < it);
        held != Some(version) && is_older && !is_usual
    }

    /// Resets the progress: etcd went back to an older version, so nothing is reported yet and the
    /// pending responses are void.
    fn begin_again(&mut self) {
        self.reported = 0;
        self.answers.clear();
        if let Some(relist) = &mut self.relist {
            relist.answered.clear();
        }
    }

    /// Records that the watch has reported a version of the object: responses up to it are
    /// confirmed or outdated.
    fn confirm(&mut self, key: &Key, version: u64) {
        self.answers.retain(|(answered, of)| of != key || *answered > version);
    }

    /// Removes and returns the responses that the watch should have reported by now but did not.
    fn take_unconfirmed(&mut self) -> Vec<(u64, Key)> {
        let unconfirmed = self.answers.iter().filter(|(version, _)| *version <= self.reported);
        let unconfirmed: Vec<(u64, Key)> = unconfirmed.cloned().collect();
        self.answers.retain(|(version, _)| *version > self.reported);
        unconfirmed
    }
}

/// All objects of one kind, with their indexes.
pub(super) struct Store<K> {
    objects: BTreeMap<Key, Held<K>>,
    /// Keys of the objects that cannot be deserialized.
    unreadable: BTreeSet<Key>,
    /// Index name and index key → object keys.
    indexed: BTreeMap<(IndexName, Key), BTreeSet<Key>>,
    indexes: Vec<(IndexName, Index<K>)>,
    watches: Vec<Watch>,
}

impl<K: Resource<DynamicType = ()>> Store<K> {
    pub(super) fn new(indexes: Vec<(IndexName, Index<K>)>) -> Self {
        Self {
            objects: BTreeMap::new(),
            unreadable: BTreeSet::new(),
            indexed: BTreeMap::new(),
            indexes,
            watches: Vec::new(),
        }
    }

    /// Expects the events of one watch per namespace; `None` means all namespaces.
    pub(super) fn open(&mut self, namespaces: Vec<Option<String>>) {
        let open = |namespace| Watch { namespace, ..Watch::default() };
        self.watches = namespaces.into_iter().map(open).collect();
    }

    pub(super) fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.objects.get(key)?.readable().cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<K>> {
        self.objects.values().filter_map(Held::readable).cloned().collect()
    }

    /// Returns why the object with that key cannot be deserialized. Returns `None` when it can, or
    /// does not exist.
    pub(super) fn unreadable(&self, key: &Key) -> Option<Arc<Unreadable>> {
        match self.objects.get(key)? {
            Held::Readable(_) => None,
            Held::Unreadable(it) => Some(Arc::clone(it)),
        }
    }

    /// Returns all objects that cannot be deserialized.
    pub(super) fn all_unreadable(&self) -> Vec<Arc<Unreadable>> {
        self.unreadable.iter().filter_map(|it| self.unreadable(it)).collect()
    }

    pub(super) fn indexed(&self, index: IndexName, key: &Key) -> Vec<Arc<K>> {
        let keys = self.indexed.get(&(index, key.clone()));
        keys.into_iter().flatten().filter_map(|it| self.get(it)).collect()
    }

    /// Returns the number of watches that have not delivered their first list yet.
    pub(super) fn pending(&self) -> usize {
        self.watches.iter().filter(|it| !it.is_synced).count()
    }

    /// Absorbs the response to an own write. Returns `None` when it changes nothing.
    pub(super) fn answer(&mut self, object: Item<K>) -> Option<Change<K>> {
        let key = Key::of(&object);
        let Some(version) = version(object.meta()) else { return self.put(object) };
        let Some(watch) = self.watches.iter_mut().find(|it| it.covers(&key)) else {
            // No watch covers the object, so none would ever correct it. Before the watches are
            // opened it is safe: their first lists will.
            return if self.watches.is_empty() { self.put(object) } else { None };
        };
        if version <= watch.reported {
            // The watch is already past this version, so its later reports hold, even a deletion.
            return None;
        }
        watch.answers.insert((version, key.clone()));
        if let Some(relist) = &mut watch.relist {
            relist.answered.insert(key);
        }
        self.put(object)
    }

    /// Applies a watch event and returns the resulting changes.
    pub(super) fn take(&mut self, watch: usize, event: Event<Item<K>>) -> Vec<Change<K>> {
        if self.watches.len() <= watch {
            return Vec::new();
        }
        match event {
            Event::Init => {
                self.watches[watch].relist = Some(Relist::default());
                Vec::new()
            }
            Event::InitApply(object) => {
                let (key, version) = (Key::of(&object), version(object.meta()).unwrap_or_default());
                let change = self.report(watch, object);
                let watch = &mut self.watches[watch];
                watch.confirm(&key, version);
                if let Some(relist) = &mut watch.relist {
                    relist.newest = relist.newest.max(version);
                    relist.seen.insert(key);
                }
                change.into_iter().collect()
            }
            Event::InitDone => self.finish_relist(watch),
            Event::Apply(object) => {
                let reported = (Key::of(&object), version(object.meta()).unwrap_or_default());
                let change = self.report(watch, object);
                change.into_iter().chain(self.advance(watch, &reported)).collect()
            }
            Event::Delete(object) => {
                let reported = (Key::of(&object), version(object.meta()).unwrap_or_default());
                let change = self.remove_instance(&reported.0, object.uid().as_deref());
                change.into_iter().chain(self.advance(watch, &reported)).collect()
            }
        }
    }

    /// Applies an object reported by a watch or its list.
    fn report(&mut self, watch: usize, object: Item<K>) -> Option<Change<K>> {
        object.meta().name.as_ref()?;
        let key = Key::of(&object);
        let held = self.objects.get(&key).and_then(|it| version(it.meta()));
        let watch = &mut self.watches[watch];
        if version(object.meta()).is_some_and(|it| watch.contradicts(&key, held, it)) {
            watch.begin_again();
            return Some(self.replace(key, object));
        }
        self.put(object)
    }

    /// Records that the watch has reported that version of an object, and so everything before it.
    fn advance(&mut self, watch: usize, (key, version): &(Key, u64)) -> Vec<Change<K>> {
        let watch = &mut self.watches[watch];
        if *version < watch.reported {
            watch.begin_again();
        }
        watch.confirm(key, *version);
        watch.reported = watch.reported.max(*version);
        let unconfirmed = watch.take_unconfirmed();
        self.disbelieve(unconfirmed)
    }

    /// Removes what the relist did not deliver: `kube` reports no deletion for it.
    ///
    /// Objects that own writes delivered meanwhile stay until the watch has reached their version:
    /// the list may be older than the write.
    fn finish_relist(&mut self, watch: usize) -> Vec<Change<K>> {
        let watch = &mut self.watches[watch];
        let Some(relist) = watch.relist.take() else { return Vec::new() };
        watch.is_synced = true;
        watch.reported = watch.reported.max(relist.newest);
        let unconfirmed = watch.take_unconfirmed();
        let is_gone = |it: &&Key| {
            watch.covers(it) && !relist.seen.contains(*it) && !relist.answered.contains(*it)
        };
        let gone: Vec<Key> = self.objects.keys().filter(is_gone).cloned().collect();
        let mut changes = self.disbelieve(unconfirmed);
        changes.extend(gone.iter().filter_map(|it| self.remove(it)));
        changes
    }

    /// Removes objects that are known only from write responses although the watch is past their
    /// version.
    fn disbelieve(&mut self, unconfirmed: Vec<(u64, Key)>) -> Vec<Change<K>> {
        let is_still_so = |store: &Self, (answered, key): &(u64, Key)| {
            store.objects.get(key).is_some_and(|it| version(it.meta()) == Some(*answered))
        };
        let mut changes = Vec::new();
        for answer in unconfirmed {
            if is_still_so(self, &answer) {
                changes.extend(self.remove(&answer.1));
            }
        }
        changes
    }

    fn put(&mut self, object: Item<K>) -> Option<Change<K>> {
        // Without a name it is not an object.
        object.meta().name.as_ref()?;
        let key = Key::of(&object);
        let held = self.objects.get(&key);
        if held.is_some_and(|held| !is_newer(held.meta(), object.meta())) {
            return None;
        }
        Some(self.replace(key, object))
    }

    /// Replaces whatever is known under that key.
    fn replace(&mut self, key: Key, object: Item<K>) -> Change<K> {
        let old = self.objects.get(&key).and_then(Held::readable).cloned();
        let object = Held::of(object);
        let new = object.readable().cloned();
        self.reindex(&key, old.as_deref(), new.as_deref());
        if new.is_some() {
            self.unreadable.remove(&key);
        } else {
            self.unreadable.insert(key.clone());
        }
        self.objects.insert(key, object);
        Change { old, new }
    }

    /// Removes an object, unless it was recreated under the same name with another UID.
    fn remove_instance(&mut self, key: &Key, uid: Option<&str>) -> Option<Change<K>> {
        let is_it = self.objects.get(key)?.meta().uid.as_deref() == uid || uid.is_none();
        if is_it { self.remove(key) } else { None }
    }

    fn remove(&mut self, key: &Key) -> Option<Change<K>> {
        self.unreadable.remove(key);
        let old = self.objects.remove(key)?.readable().cloned();
        self.reindex(key, old.as_deref(), None);
        Some(Change { old, new: None })
    }

    fn reindex(&mut self, key: &Key, old: Option<&K>, new: Option<&K>) {
        for (name, index) in &self.indexes {
            for under in old.map(index).unwrap_or_default() {
                let place = (*name, under);
                if let Some(keys) = self.indexed.get_mut(&place) {
                    keys.remove(key);
                    if keys.is_empty() {
                        self.indexed.remove(&place);
                    }
                }
            }
            for under in new.map(index).unwrap_or_default() {
                self.indexed.entry((*name, under)).or_default().insert(key.clone());
            }
        }
    }
}

fn version(object: &ObjectMeta) -> Option<u64> {
    object.resource_version.as_ref()?.parse().ok()
}

/// Returns whether `new` may replace `old`: its version is later, or one of the versions is not a
/// number.
///
/// Kubernetes guarantees since 1.35 that resource versions of one kind compare as integers; etcd
/// already ensured it before.
fn is_newer(old: &ObjectMeta, new: &ObjectMeta) -> bool {
    match (version(old), version(new)) {
        (Some(old), Some(new)) => new > old,
        _ => true,
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
