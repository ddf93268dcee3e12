//! A watched copy of all objects of one kind, which also absorbs this process's own writes.
//!
//! `kube`'s reflector does not report deletions that happened during a relist and cannot absorb the
//! response to an own write. Both matter here: a run is created only once because the next decision
//! sees it. Everything below the store (list, watch, paging, resume, backoff) is `kube::runtime`'s.

use std::fmt::Debug;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::BoxStream;
use k8s_openapi::NamespaceResourceScope;
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use operator_core::object_key::Key;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::watch;

use crate::error::{Error, Result};

pub(crate) mod item;
mod key;
mod store;

pub(crate) use item::Item;
pub use item::Unreadable;
pub use key::{Index, IndexName};
use store::{Change, Store};

/// A kind that can be cached: any namespaced kind that deserializes from the API server's JSON.
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

type Listener<K> = Box<dyn Fn(&K) + Send + Sync>;
type Trim<K> = Box<dyn Fn(&mut K) + Send + Sync>;

/// The number of objects in one page of a list. At the start of an operator all its informers list at the
/// same time, and the C library does not give the memory of large pages back.
const PAGE: u32 = 100;

/// The annotation in which `kubectl apply` stores the object as it was applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A watched copy of all objects of one kind in the watched namespaces.
pub struct Cache<K> {
    store: Mutex<Store<K>>,
    trim: Trim<K>,
    listeners: Mutex<Vec<Listener<K>>>,
    /// Objects that cannot be deserialized; subscribers are notified of changes.
    unreadable: watch::Sender<Vec<Arc<Unreadable>>>,
    /// Number of watches whose first list is missing; `None` before the watches are opened.
    pending: watch::Sender<Option<usize>>,
}

/// Kind-independent interface of a cache, for absorbing written objects.
pub trait WriteThrough: Send + Sync {
    /// Absorbs an object that this process has just written.
    fn absorb(&self, object: &Value);
    /// Returns the kind as `group/Kind`.
    fn kind(&self) -> String;
}

/// The set of API objects that a cache watches.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Namespaces; empty selects all.
    pub namespaces: Vec<String>,
    /// Label selector; empty selects all.
    pub labels: String,
}

impl<K: Watchable> Cache<K> {
    /// Creates an empty cache with the given indexes.
    pub fn new(indexes: Vec<(IndexName, Index<K>)>) -> Arc<Self> {
        Self::trimmed(indexes, |it| it.managed_fields_mut().clear())
    }

    /// Creates an empty cache that applies `trim` to each object before it is stored.
    pub fn trimmed(
        indexes: Vec<(IndexName, Index<K>)>,
        trim: impl Fn(&mut K) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            store: Mutex::new(Store::new(indexes)),
            trim: Box::new(trim),
            listeners: Mutex::new(Vec::new()),
            unreadable: watch::Sender::default(),
            pending: watch::Sender::new(None),
        })
    }

    /// Calls `listener` with each object that is added, changed or deleted.
    pub fn on_change(&self, listener: impl Fn(&K) + Send + Sync + 'static) {
        self.listeners.lock().push(Box::new(listener));
    }

    /// Returns the object with that key. Returns `None` also when it exists but cannot be
    /// deserialized.
    ///
    /// Use [`Cache::try_get`] before deleting or creating anything because the object is absent.
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.store.lock().get(key)
    }

    /// Returns the object with that key, or `None` when it does not exist.
    ///
    /// # Errors
    /// [`Error::Unreadable`] when the object exists but cannot be deserialized.
    pub fn try_get(&self, key: &Key) -> Result<Option<Arc<K>>> {
        let store = self.store.lock();
        match store.unreadable(key) {
            None => Ok(store.get(key)),
            Some(it) => Err(unreadable::<K>(&it)),
        }
    }

    /// Checks that [`Cache::all`] and [`Cache::indexed`] contain every object of a namespace.
    ///
    /// Call it before removing anything because no object requests it any more.
    ///
    /// # Errors
    /// [`Error::Unreadable`] with the first object that cannot be deserialized.
    pub fn check_readable(&self, namespace: &str) -> Result<()> {
        let all = self.unreadable.borrow();
        let is_here = |it: &&Arc<Unreadable>| it.metadata.namespace.as_deref() == Some(namespace);
        all.iter().find(is_here).map_or(Ok(()), |it| Err(unreadable::<K>(it)))
    }

    /// Subscribes to the list of objects that cannot be deserialized.
    pub fn unreadable(&self) -> watch::Receiver<Vec<Arc<Unreadable>>> {
        self.unreadable.subscribe()
    }

    /// Returns all objects that could be deserialized.
    pub fn all(&self) -> Vec<Arc<K>> {
        self.store.lock().all()
    }

    /// Returns the objects of a namespace that could be deserialized.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let is_here = |it: &Arc<K>| it.meta().namespace.as_deref() == Some(namespace);
        self.all().into_iter().filter(is_here).collect()
    }

    /// Returns the objects that the index lists under that key.
    pub fn indexed(&self, index: IndexName, key: &Key) -> Vec<Arc<K>> {
        self.store.lock().indexed(index, key)
    }

    /// Watches until the process ends.
    pub async fn watch(self: Arc<Self>, client: Client, scope: Scope) {
        let config = watcher::Config::default().labels(&scope.labels).page_size(PAGE);
        let informers: Vec<Option<String>> = if scope.namespaces.is_empty() {
            vec![None]
        } else {
            scope.namespaces.into_iter().map(Some).collect()
        };
        let open = |namespace: &Option<String>| {
            watcher(api::<Item<K>>(&client, namespace.as_deref()), config.clone())
                .default_backoff()
                .boxed()
        };
        let streams = informers.iter().map(open).collect();
        self.open(informers);
        self.pump(streams).await;
    }

    fn open(&self, informers: Vec<Option<String>>) {
        self.pending.send_replace(Some(informers.len()));
        self.store.lock().open(informers);
    }

    async fn pump(&self, streams: Vec<BoxStream<'_, watcher::Result<Event<Item<K>>>>>) {
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

    fn take(&self, watch: usize, mut event: Event<Item<K>>) {
        if let Event::Apply(it) | Event::InitApply(it) | Event::Delete(it) = &mut event
            && let Item::Readable(it) = it
        {
            self.shorten(it);
        }
        let (changes, pending, unreadable) = {
            let mut store = self.store.lock();
            (store.take(watch, event), store.pending(), store.all_unreadable())
        };
        self.announce(&changes);
        self.unreadable.send_if_modified(|it| {
            let is_news = !it.iter().map(Arc::as_ptr).eq(unreadable.iter().map(Arc::as_ptr));
            *it = unreadable;
            is_news
        });
        self.pending.send_if_modified(|it| it.is_some() && it.replace(pending) != Some(pending));
    }

    /// Removes what no reader needs: the last-applied annotation, a copy of the whole object that
    /// can contain Secret values, and whatever the cache's `trim` removes.
    fn shorten(&self, object: &mut K) {
        if let Some(annotations) = &mut object.meta_mut().annotations {
            annotations.remove(LAST_APPLIED);
        }
        (self.trim)(object);
    }

    /// Announces both the old and the new object: a node that leaves its role concerns both roles.
    fn announce(&self, changes: &[Change<K>]) {
        if changes.is_empty() {
            return;
        }
        for listener in self.listeners.lock().iter() {
            for object in changes.iter().flat_map(|it| [&it.old, &it.new]).flatten() {
                listener(object);
            }
        }
    }
}

impl<K: Watchable> WriteThrough for Cache<K> {
    fn absorb(&self, object: &Value) {
        let mut object = Item::read(object);
        if let Item::Readable(it) = &mut object {
            self.shorten(it);
        }
        let change = self.store.lock().answer(object);
        self.announce(change.as_slice());
    }

    fn kind(&self) -> String {
        format!("{}/{}", K::group(&()), K::kind(&()))
    }
}

fn unreadable<K: Watchable>(object: &Unreadable) -> Error {
    let metadata = &object.metadata;
    let key = Key::new(
        metadata.namespace.as_deref().unwrap_or_default(),
        metadata.name.as_deref().unwrap_or_default(),
    );
    let what = format!("read {} {key}", K::plural(&()));
    Error::Unreadable { what, fault: object.fault.to_string() }
}

/// A cache of metadata alone, for kinds whose content must not be kept in memory, such as Secrets.
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

#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod tests;
