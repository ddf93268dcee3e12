//! A watched copy of all objects of one kind, which also takes in what this process itself wrote.
//!
//! `kube`'s reflector reports no deletion that happened during a relist and cannot take in the
//! answer to one's own write, and both matter here: a run is created once because the next decision
//! sees it. Everything below the store (list, watch, paging, resume, backoff) is `kube::runtime`'s.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use futures::stream::BoxStream;
use k8s_openapi::NamespaceResourceScope;
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use operator_core::object_key::Key;
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

type Listener<K> = Box<dyn Fn(&K) + Send + Sync>;
type Trim<K> = Box<dyn Fn(&mut K) + Send + Sync>;

/// The annotation in which `kubectl apply` keeps the object as it was applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A watched copy of all objects of one kind in the watched namespaces.
pub struct Cache<K> {
    store: Mutex<Store<K>>,
    trim: Trim<K>,
    listeners: Mutex<Vec<Listener<K>>>,
    /// What cannot be read; whoever tells of it is woken by a change.
    unreadable: watch::Sender<Vec<Arc<Unreadable>>>,
    /// How many watches have not delivered their first list yet; `None` before they are opened.
    pending: watch::Sender<Option<usize>>,
}

/// What the owner of all caches needs of one, whatever its kind.
pub trait WriteThrough: Send + Sync {
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
        Self::trimmed(indexes, |it| it.managed_fields_mut().clear())
    }

    /// An empty cache that keeps of each object only what `trim` leaves.
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

    /// Calls `listener` with each object that appears, changes or goes.
    pub fn on_change(&self, listener: impl Fn(&K) + Send + Sync + 'static) {
        lock(&self.listeners).push(Box::new(listener));
    }

    /// The object of that key; `None` also where it cannot be read.
    ///
    /// Whoever would delete or make something because the object is absent asks [`Cache::try_get`].
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        lock(&self.store).get(key)
    }

    /// The object of that key.
    ///
    /// # Errors
    /// [`Error::Unreadable`] where it is there and cannot be read.
    pub fn try_get(&self, key: &Key) -> Result<Option<Arc<K>>> {
        let store = lock(&self.store);
        match store.unreadable(key) {
            None => Ok(store.get(key)),
            Some(it) => Err(unreadable::<K>(&it)),
        }
    }

    /// Whether [`Cache::all`] and [`Cache::indexed`] have all objects of a namespace.
    ///
    /// Whoever would take something away because no object asks for it makes sure of that before.
    ///
    /// # Errors
    /// [`Error::Unreadable`] with the first object that cannot be read.
    pub fn check_readable(&self, namespace: &str) -> Result<()> {
        let all = self.unreadable.borrow();
        let is_here = |it: &&Arc<Unreadable>| it.metadata.namespace.as_deref() == Some(namespace);
        all.iter().find(is_here).map_or(Ok(()), |it| Err(unreadable::<K>(it)))
    }

    /// The objects that cannot be read, and each change of them.
    pub fn unreadable(&self) -> watch::Receiver<Vec<Arc<Unreadable>>> {
        self.unreadable.subscribe()
    }

    /// All objects that can be read.
    pub fn all(&self) -> Vec<Arc<K>> {
        lock(&self.store).all()
    }

    /// The objects that the index puts under that key.
    pub fn indexed(&self, index: IndexName, key: &Key) -> Vec<Arc<K>> {
        lock(&self.store).indexed(index, key)
    }

    /// Watches until the process ends.
    pub async fn watch(self: Arc<Self>, client: Client, scope: Scope) {
        let config = watcher::Config::default().labels(&scope.labels);
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
        lock(&self.store).open(informers);
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
            let mut store = lock(&self.store);
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

    /// Takes away what nobody here reads: a copy of the whole object, values of Secrets among it, and
    /// what the cache's owner says.
    fn shorten(&self, object: &mut K) {
        if let Some(annotations) = &mut object.meta_mut().annotations {
            annotations.remove(LAST_APPLIED);
        }
        (self.trim)(object);
    }

    /// Both the old and the new form are announced: a node that leaves its role concerns both roles.
    fn announce(&self, changes: &[Change<K>]) {
        if changes.is_empty() {
            return;
        }
        for listener in lock(&self.listeners).iter() {
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
        let change = lock(&self.store).answer(object);
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

/// A poisoned lock only means that a listener panicked; the map itself is whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod tests;
