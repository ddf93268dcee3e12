//! The caches of an operator, each registered once: for its informer, and for absorbing own writes.

use std::sync::Arc;

use kube::Resource;
use kube::core::PartialObjectMeta;

use crate::cache::{Cache, Index, IndexName, MetadataCache, Watchable, WriteThrough};
use crate::informers::Informers;
use crate::managed_fields::ManagedFields;

/// Starts the informer of one cache.
type Watch = Box<dyn FnOnce(&mut Informers) + Send>;

/// Caches whose informers have not started yet.
#[derive(Default)]
pub struct CacheRegistry {
    write_through: Vec<Arc<dyn WriteThrough>>,
    watches: Vec<Watch>,
}

impl CacheRegistry {
    /// Creates a cache of a kind that the operator reads.
    pub fn cache<K: Watchable>(&mut self, indexes: Vec<(IndexName, Index<K>)>) -> Arc<Cache<K>> {
        self.labelled("", indexes)
    }

    /// Creates a cache of the objects that a label selector selects.
    pub fn labelled<K: Watchable>(
        &mut self,
        labels: &str,
        indexes: Vec<(IndexName, Index<K>)>,
    ) -> Arc<Cache<K>> {
        let labels = labels.to_owned();
        self.register(Cache::new(indexes), move |informers, cache| informers.watch(cache, &labels))
    }

    /// Creates a cache of a kind whose status the operator writes.
    pub fn owned<K: Watchable>(&mut self, indexes: Vec<(IndexName, Index<K>)>) -> Arc<Cache<K>> {
        self.register(Cache::new(indexes), Informers::watch_owned)
    }

    /// Creates a cache of metadata, which keeps the fields that the field manager `manager` owns.
    pub fn metadata<K>(
        &mut self,
        manager: &'static str,
        indexes: Vec<(IndexName, Index<PartialObjectMeta<K>>)>,
    ) -> Arc<MetadataCache<K>>
    where
        PartialObjectMeta<K>: Watchable,
    {
        let trim = move |it: &mut PartialObjectMeta<K>| ManagedFields::keep(it.meta_mut(), manager);
        self.register(Cache::trimmed(indexes, trim), |informers, cache| informers.watch(cache, ""))
    }

    /// Adds a cache whose informer is started elsewhere, so that it absorbs own writes too.
    pub fn register_write_through(&mut self, cache: Arc<dyn WriteThrough>) {
        self.write_through.push(cache);
    }

    /// Returns the caches that absorb the operator's own writes.
    pub fn write_through(&self) -> Vec<Arc<dyn WriteThrough>> {
        self.write_through.clone()
    }

    /// Starts the informers. Event handlers must be registered before, so that no change is missed.
    pub fn watch(self, informers: &mut Informers) {
        for watch in self.watches {
            watch(informers);
        }
    }

    fn register<K: Watchable>(
        &mut self,
        cache: Arc<Cache<K>>,
        watch: impl FnOnce(&mut Informers, &Arc<Cache<K>>) + Send + 'static,
    ) -> Arc<Cache<K>> {
        let watched = Arc::clone(&cache);
        self.watches.push(Box::new(move |informers| watch(informers, &watched)));
        self.write_through.push(Arc::<Cache<K>>::clone(&cache));
        cache
    }
}
