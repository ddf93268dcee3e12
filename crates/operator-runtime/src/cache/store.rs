//! The objects of a cache, and which of them may be believed: no I/O, so that any order of watch
//! events and answers can be tested.
//!
//! A watch tells the changes of its kind in the order of their resource versions. So what it has
//! told up to a version is the whole truth up to there: an answer to a write that is not newer
//! brings nothing, and one that is newer must be told by the watch once it gets there, or its object
//! is gone. That needs no memory of what was deleted, and no clock.
//!
//! An etcd that was restored from a backup begins again at an older version. A watch and its lists
//! contradict then what they have told before, which they never do otherwise: a list is read from a
//! quorum after it was asked for, so it is not older than what was known by then, and a watch goes
//! only forward. What contradicts is the truth, and what was known before counts for nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::watcher::Event;
use kube::{Resource, ResourceExt};
use operator_core::object_key::Key;

use super::item::{Item, Unreadable};
use super::key::{Index, IndexName};

/// An object before and after a change, as far as it could be read.
pub(super) struct Change<K> {
    pub(super) old: Option<Arc<K>>,
    pub(super) new: Option<Arc<K>>,
}

/// An object that is there.
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

/// A list that is going on.
#[derive(Default)]
struct Relist {
    /// What it has brought so far.
    seen: BTreeSet<Key>,
    /// What answers to own writes have brought meanwhile: the list may have been made before.
    answered: BTreeSet<Key>,
    /// The latest version that it has brought: the list itself is at least of that version.
    newest: u64,
}

/// How far a watch has come.
#[derive(Default)]
struct Watch {
    /// Its namespace; `None` is all of them.
    namespace: Option<String>,
    /// The version up to which it has told everything.
    reported: u64,
    /// Answers to own writes that it has still to tell.
    answers: BTreeSet<(u64, Key)>,
    relist: Option<Relist>,
    is_synced: bool,
}

impl Watch {
    fn covers(&self, key: &Key) -> bool {
        self.namespace.as_ref().is_none_or(|it| *it == key.namespace)
    }

    /// Whether what the watch tells of an object cannot be where the cache has that version of it.
    ///
    /// It would have told that version before, or the cache has a later one. That is usual only of an
    /// answer that the watch has still to tell, and of a list only where it came since the list began.
    fn contradicts(&self, key: &Key, held: Option<u64>, version: u64) -> bool {
        let is_untold = held.is_some_and(|it| self.answers.contains(&(it, key.clone())));
        let is_usual = is_untold && self.relist.as_ref().is_none_or(|it| it.answered.contains(key));
        let is_older = version <= self.reported || held.is_some_and(|it| version < it);
        held != Some(version) && is_older && !is_usual
    }

    /// Etcd is at an older version than it was: nothing is told yet, and the answers are of no world.
    fn begin_again(&mut self) {
        self.reported = 0;
        self.answers.clear();
        if let Some(relist) = &mut self.relist {
            relist.answered.clear();
        }
    }

    /// The watch has told a version of the object: answers up to it are confirmed or outdated.
    fn confirm(&mut self, key: &Key, version: u64) {
        self.answers.retain(|(answered, of)| of != key || *answered > version);
    }

    /// The answers that the watch should have told by now, and did not.
    fn untold(&mut self) -> Vec<(u64, Key)> {
        let untold = self.answers.iter().filter(|(version, _)| *version <= self.reported);
        let untold: Vec<(u64, Key)> = untold.cloned().collect();
        self.answers.retain(|(version, _)| *version > self.reported);
        untold
    }
}

/// All objects of one kind, with their indexes.
pub(super) struct Store<K> {
    objects: BTreeMap<Key, Held<K>>,
    /// Which of them cannot be read.
    unreadable: BTreeSet<Key>,
    /// Index name → key in the index → objects.
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

    /// Expects events of one watch for each of these namespaces; `None` is all of them.
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

    /// Why the object of that key cannot be read; `None` where it can, or is not there.
    pub(super) fn unreadable(&self, key: &Key) -> Option<Arc<Unreadable>> {
        match self.objects.get(key)? {
            Held::Readable(_) => None,
            Held::Unreadable(it) => Some(Arc::clone(it)),
        }
    }

    /// All objects that cannot be read.
    pub(super) fn all_unreadable(&self) -> Vec<Arc<Unreadable>> {
        self.unreadable.iter().filter_map(|it| self.unreadable(it)).collect()
    }

    pub(super) fn indexed(&self, index: IndexName, key: &Key) -> Vec<Arc<K>> {
        let keys = self.indexed.get(&(index, key.clone()));
        keys.into_iter().flatten().filter_map(|it| self.get(it)).collect()
    }

    /// How many watches have not delivered their first list yet.
    pub(super) fn pending(&self) -> usize {
        self.watches.iter().filter(|it| !it.is_synced).count()
    }

    /// Takes in the answer to an own write.
    pub(super) fn answer(&mut self, object: Item<K>) -> Option<Change<K>> {
        let key = Key::of(&object);
        let Some(version) = version(object.meta()) else { return self.put(object) };
        let Some(watch) = self.watches.iter_mut().find(|it| it.covers(&key)) else {
            // No watch would ever correct it; before the watches are opened, their lists will.
            return if self.watches.is_empty() { self.put(object) } else { None };
        };
        if version <= watch.reported {
            // The watch has been there: what it told since holds, be it a deletion.
            return None;
        }
        watch.answers.insert((version, key.clone()));
        if let Some(relist) = &mut watch.relist {
            relist.answered.insert(key);
        }
        self.put(object)
    }

    /// Takes in what a watch tells.
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
                let told = (Key::of(&object), version(object.meta()).unwrap_or_default());
                let change = self.report(watch, object);
                change.into_iter().chain(self.advance(watch, &told)).collect()
            }
            Event::Delete(object) => {
                let told = (Key::of(&object), version(object.meta()).unwrap_or_default());
                let change = self.remove_instance(&told.0, object.uid().as_deref());
                change.into_iter().chain(self.advance(watch, &told)).collect()
            }
        }
    }

    /// Takes in an object that a watch or its list tells.
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

    /// The watch has told that version of an object, and with it everything before.
    fn advance(&mut self, watch: usize, (key, version): &(Key, u64)) -> Vec<Change<K>> {
        let watch = &mut self.watches[watch];
        if *version < watch.reported {
            watch.begin_again();
        }
        watch.confirm(key, *version);
        watch.reported = watch.reported.max(*version);
        let untold = watch.untold();
        self.disbelieve(untold)
    }

    /// Removes what the relist did not bring: `kube` reports no deletion for it.
    ///
    /// What own writes brought meanwhile stays until the watch has come to its version: the list may
    /// be older than the write.
    fn finish_relist(&mut self, watch: usize) -> Vec<Change<K>> {
        let watch = &mut self.watches[watch];
        let Some(relist) = watch.relist.take() else { return Vec::new() };
        watch.is_synced = true;
        watch.reported = watch.reported.max(relist.newest);
        let untold = watch.untold();
        let is_gone = |it: &&Key| {
            watch.covers(it) && !relist.seen.contains(*it) && !relist.answered.contains(*it)
        };
        let gone: Vec<Key> = self.objects.keys().filter(is_gone).cloned().collect();
        let mut changes = self.disbelieve(untold);
        changes.extend(gone.iter().filter_map(|it| self.remove(it)));
        changes
    }

    /// Removes objects that the cache has from answers alone although the watch is past them.
    fn disbelieve(&mut self, untold: Vec<(u64, Key)>) -> Vec<Change<K>> {
        let is_still_so = |store: &Self, (answered, key): &(u64, Key)| {
            store.objects.get(key).is_some_and(|it| version(it.meta()) == Some(*answered))
        };
        let mut changes = Vec::new();
        for answer in untold {
            if is_still_so(self, &answer) {
                changes.extend(self.remove(&answer.1));
            }
        }
        changes
    }

    fn put(&mut self, object: Item<K>) -> Option<Change<K>> {
        // What has no name is no object.
        object.meta().name.as_ref()?;
        let key = Key::of(&object);
        let held = self.objects.get(&key);
        if held.is_some_and(|held| !is_newer(held.meta(), object.meta())) {
            return None;
        }
        Some(self.replace(key, object))
    }

    /// Puts an object in the place of whatever is known under its name.
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

    /// Removes an object unless another one of its name has been made since.
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

/// Whether `new` may replace `old`: another object of the name, or a later version.
///
/// Kubernetes promises since 1.35 that resource versions of one kind compare as integers, and etcd
/// gave that before.
fn is_newer(old: &ObjectMeta, new: &ObjectMeta) -> bool {
    match (version(old), version(new)) {
        (Some(old), Some(new)) => new > old,
        _ => true,
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
