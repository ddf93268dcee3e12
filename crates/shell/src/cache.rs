//! A watched copy of all objects of one kind, which also takes in what this process itself wrote.
//!
//! `kube`'s reflector reports no deletion that happened during a relist and cannot take in the
//! answer to one's own write, and both matter here: a run is created once because the next decision
//! sees it. Everything below the store (list, watch, paging, resume, backoff) is `kube::runtime`'s.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use futures::stream::BoxStream;
use k8s_openapi::NamespaceResourceScope;
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::watch;

/// Namespace and name.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Key {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Key {
    /// The key of that name.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The key of an object.
    pub fn of<K: Resource>(object: &K) -> Self {
        Self::new(object.namespace().unwrap_or_default(), object.name_any())
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// What can be watched: any namespaced kind that the API server's JSON can be read into.
pub trait Watchable:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl<K> Watchable for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

type Index<K> = Box<dyn Fn(&K) -> Vec<Key> + Send + Sync>;
type Listener<K> = Box<dyn Fn(&K) + Send + Sync>;

/// Names that a cached object is also found under.
pub type IndexName = &'static str;

struct Inner<K> {
    objects: BTreeMap<Key, Arc<K>>,
    /// Index name → key in the index → objects.
    indexed: BTreeMap<(IndexName, Key), BTreeSet<Key>>,
    /// What a relist that is going on has brought so far, by watch.
    relisted: BTreeMap<usize, BTreeSet<Key>>,
    /// Watches that have delivered their first list.
    synced: BTreeSet<usize>,
}

/// A watched copy of all objects of one kind in the watched namespaces.
pub struct Cache<K> {
    inner: Mutex<Inner<K>>,
    indexes: Vec<(IndexName, Index<K>)>,
    listeners: Mutex<Vec<Listener<K>>>,
    /// The namespace of each watch; `None` is all of them.
    watches: Mutex<Vec<Option<String>>>,
    /// How many watches have not delivered their first list yet; `None` before they are opened.
    pending: watch::Sender<Option<usize>>,
}

/// What the owner of all caches needs of one, whatever its kind.
pub trait Absorb: Send + Sync {
    /// Takes in an object that this process has just written.
    fn absorb(&self, object: &Value);
    /// `group/Kind`.
    fn kind(&self) -> String;
}

/// Which API objects a cache watches.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Namespaces; empty means all.
    pub namespaces: Vec<String>,
    /// Label selector; empty means all.
    pub labels: String,
}

impl<K: Watchable> Cache<K> {
    /// An empty cache with the given indexes.
    pub fn new(indexes: Vec<(IndexName, Index<K>)>) -> Arc<Self> {
        Arc::new(Self {
            inner: Mutex::new(Inner {
                objects: BTreeMap::new(),
                indexed: BTreeMap::new(),
                relisted: BTreeMap::new(),
                synced: BTreeSet::new(),
            }),
            indexes,
            listeners: Mutex::new(Vec::new()),
            watches: Mutex::new(Vec::new()),
            pending: watch::Sender::new(None),
        })
    }

    /// Calls `listener` with each object that appears, changes or goes.
    pub fn on_change(&self, listener: impl Fn(&K) + Send + Sync + 'static) {
        lock(&self.listeners).push(Box::new(listener));
    }

    /// The object of that key.
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        lock(&self.inner).objects.get(key).cloned()
    }

    /// All objects.
    pub fn all(&self) -> Vec<Arc<K>> {
        lock(&self.inner).objects.values().cloned().collect()
    }

    /// The objects that the index puts under that key.
    pub fn indexed(&self, index: IndexName, key: &Key) -> Vec<Arc<K>> {
        let inner = lock(&self.inner);
        let keys = inner.indexed.get(&(index, key.clone()));
        keys.into_iter().flatten().filter_map(|it| inner.objects.get(it).cloned()).collect()
    }

    /// Watches until the process ends.
    pub async fn watch(self: Arc<Self>, client: Client, scope: Scope) {
        let config = watcher::Config::default().labels(&scope.labels);
        let watches: Vec<Option<String>> = if scope.namespaces.is_empty() {
            vec![None]
        } else {
            scope.namespaces.into_iter().map(Some).collect()
        };
        let open = |namespace: &Option<String>| {
            watcher(api::<K>(&client, namespace.as_deref()), config.clone())
                .default_backoff()
                .boxed()
        };
        let streams = watches.iter().map(open).collect();
        self.pending.send_replace(Some(watches.len()));
        *lock(&self.watches) = watches;
        self.pump(streams).await;
    }

    async fn pump(&self, streams: Vec<BoxStream<'_, watcher::Result<Event<K>>>>) {
        let tagged = streams
            .into_iter()
            .enumerate()
            .map(|(idx, stream)| stream.map(move |event| (idx, event)).boxed());
        let mut events = futures::stream::select_all(tagged);
        while let Some((idx, event)) = events.next().await {
            match event {
                Ok(event) => self.take(idx, event),
                Err(error) => tracing::warn!(kind = %K::kind(&()), %error, "watch failed"),
            }
        }
    }

    /// Resolves once every watch has delivered its first list.
    pub async fn synced(&self) {
        let mut pending = self.pending.subscribe();
        // The sender lives as long as `self`, so the wait cannot fail.
        let _ = pending.wait_for(|it| *it == Some(0)).await;
    }

    fn take(&self, watch_idx: usize, event: Event<K>) {
        match event {
            Event::Init => {
                lock(&self.inner).relisted.insert(watch_idx, BTreeSet::new());
            }
            Event::InitApply(object) => {
                if let Some(seen) = lock(&self.inner).relisted.get_mut(&watch_idx) {
                    seen.insert(Key::of(&object));
                }
                self.put(object);
            }
            Event::InitDone => self.finish_relist(watch_idx),
            Event::Apply(object) => self.put(object),
            Event::Delete(object) => self.remove(&Key::of(&object), object.uid().as_deref()),
        }
    }

    /// Removes what the relist did not bring: `kube` reports no deletion for it.
    fn finish_relist(&self, watch_idx: usize) {
        let covered = lock(&self.watches).get(watch_idx).cloned().flatten();
        let mut inner = lock(&self.inner);
        let Some(seen) = inner.relisted.remove(&watch_idx) else { return };
        let is_covered = |it: &Key| covered.as_ref().is_none_or(|ns| *ns == it.namespace);
        let gone: Vec<Key> = inner
            .objects
            .keys()
            .filter(|it| is_covered(it) && !seen.contains(*it))
            .cloned()
            .collect();
        let is_first = inner.synced.insert(watch_idx);
        drop(inner);
        for key in gone {
            self.remove(&key, None);
        }
        if is_first {
            self.pending.send_modify(|it| *it = it.map(|n| n.saturating_sub(1)));
        }
    }

    fn put(&self, mut object: K) {
        object.managed_fields_mut().clear();
        let key = Key::of(&object);
        let object = Arc::new(object);
        let mut inner = lock(&self.inner);
        let old = inner.objects.get(&key).cloned();
        if old.as_ref().is_some_and(|old| !is_newer(&**old, &*object)) {
            return;
        }
        self.reindex(&mut inner, &key, old.as_deref(), Some(&*object));
        inner.objects.insert(key, Arc::clone(&object));
        drop(inner);
        self.announce(old.as_deref(), Some(&*object));
    }

    fn remove(&self, key: &Key, uid: Option<&str>) {
        let mut inner = lock(&self.inner);
        let Some(old) = inner.objects.get(key).cloned() else { return };
        // The object may have been made again before the event of its end arrived.
        if uid.is_some() && old.uid().as_deref() != uid {
            return;
        }
        self.reindex(&mut inner, key, Some(&*old), None);
        inner.objects.remove(key);
        drop(inner);
        self.announce(Some(&*old), None);
    }

    fn reindex(&self, inner: &mut Inner<K>, key: &Key, old: Option<&K>, new: Option<&K>) {
        for (name, index) in &self.indexes {
            for under in old.map(index).unwrap_or_default() {
                let place = (*name, under);
                if let Some(keys) = inner.indexed.get_mut(&place) {
                    keys.remove(key);
                    if keys.is_empty() {
                        inner.indexed.remove(&place);
                    }
                }
            }
            for under in new.map(index).unwrap_or_default() {
                inner.indexed.entry((*name, under)).or_default().insert(key.clone());
            }
        }
    }

    /// Both the old and the new form are announced: a node that leaves its role concerns both roles.
    fn announce(&self, old: Option<&K>, new: Option<&K>) {
        for listener in lock(&self.listeners).iter() {
            for object in [old, new].into_iter().flatten() {
                listener(object);
            }
        }
    }
}

impl<K: Watchable> Absorb for Cache<K> {
    fn absorb(&self, object: &Value) {
        if let Ok(object) = serde_json::from_value(object.clone()) {
            self.put(object);
        }
    }

    fn kind(&self) -> String {
        format!("{}/{}", K::group(&()), K::kind(&()))
    }
}

/// A cache of metadata alone: for kinds whose content must not be held, as Secrets.
pub type MetadataCache<K> = Cache<kube::core::PartialObjectMeta<K>>;

fn api<K>(client: &Client, namespace: Option<&str>) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

/// Whether `new` may replace `old`: another object of the name, or a later version.
///
/// Kubernetes promises since 1.35 that resource versions of one kind compare as integers, and etcd
/// gave that before.
fn is_newer<K: Resource>(old: &K, new: &K) -> bool {
    let version = |it: &K| it.resource_version().and_then(|it| it.parse::<u64>().ok());
    match (version(old), version(new)) {
        (Some(old), Some(new)) => new > old,
        _ => true,
    }
}

/// A poisoned lock only means that a listener panicked; the map itself is whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
