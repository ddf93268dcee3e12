//! Maps changes of watched objects to the keys that a controller reconciles.

use std::sync::Arc;
use std::time::Duration;

use operator_core::object_key::Key;

use crate::cache::{Cache, Watchable};
use crate::change_filter::ChangeFilter;
use crate::workqueue::{DEBOUNCE, WorkQueue};

/// The event handlers of one controller, as `kube_runtime::Controller::watches` registers them; its
/// mappers may read the caches `C`.
pub struct EventMapping<C> {
    queue: Arc<WorkQueue>,
    caches: Arc<C>,
    delay: Duration,
}

impl<C> Clone for EventMapping<C> {
    fn clone(&self) -> Self {
        let (queue, caches) = (Arc::clone(&self.queue), Arc::clone(&self.caches));
        Self { queue, caches, delay: self.delay }
    }
}

impl<C: Send + Sync + 'static> EventMapping<C> {
    /// Creates a mapping that enqueues in `queue`.
    pub fn new(queue: &Arc<WorkQueue>, caches: &Arc<C>) -> Self {
        let (queue, caches) = (Arc::clone(queue), Arc::clone(caches));
        Self { queue, caches, delay: Duration::ZERO }
    }

    /// Returns the same mapping, debounced: for objects that change in bursts.
    #[must_use]
    pub fn debounced(&self) -> Self {
        self.delayed(DEBOUNCE)
    }

    /// Returns the same mapping, with keys enqueued after `delay`.
    #[must_use]
    pub fn delayed(&self, delay: Duration) -> Self {
        Self { delay, ..self.clone() }
    }

    /// Enqueues the keys that `mapper` returns for each object that is added, changed or deleted;
    /// for a change it is called with the old and the new object.
    pub fn watches<K: Watchable, Keys: IntoIterator<Item = Key>>(
        &self,
        cache: &Cache<K>,
        mapper: impl Fn(&C, &K) -> Keys + Send + Sync + 'static,
    ) {
        let this = self.clone();
        cache.on_change(move |object| this.enqueue(mapper(&this.caches, object)));
    }

    /// The same, but only where what `view` returns of the object has changed, or the object is new or
    /// gone.
    pub fn watches_changes<K: Watchable, V: PartialEq + Send + 'static, Keys>(
        &self,
        cache: &Arc<Cache<K>>,
        view: impl Fn(&K) -> V + Send + Sync + 'static,
        mapper: impl Fn(&C, &K) -> Keys + Send + Sync + 'static,
    ) where
        Keys: IntoIterator<Item = Key>,
    {
        let (changes, present) = (ChangeFilter::default(), Arc::clone(cache));
        self.watches(cache, move |caches, object| {
            let key = Key::of(object);
            let is_changed = changes.changes(&key, || present.get(&key).map(|it| view(&it)));
            is_changed.then(|| mapper(caches, object)).into_iter().flatten().collect::<Vec<_>>()
        });
    }

    /// Returns a handler that enqueues the keys that `mapper` returns, for what reports changes by
    /// key.
    pub fn handler<Keys: IntoIterator<Item = Key>>(
        &self,
        mapper: impl Fn(&C, Key) -> Keys + Clone + Send + Sync + 'static,
    ) -> impl Fn(Key) + Clone + Send + Sync + 'static {
        let this = self.clone();
        move |key| this.enqueue(mapper(&this.caches, key))
    }

    fn enqueue(&self, keys: impl IntoIterator<Item = Key>) {
        for key in keys {
            if self.delay.is_zero() {
                self.queue.push(key);
            } else {
                self.queue.push_in(key, self.delay);
            }
        }
    }
}
