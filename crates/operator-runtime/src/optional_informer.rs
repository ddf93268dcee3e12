//! Informers of foreign kinds that a cluster may lack: discovered on first use, and watched once
//! found.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use operator_core::object_key::Key;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::api::Api;
use crate::cache::{Cache, Index, IndexName, Watchable};
use crate::cache_registry::CacheRegistry;
use crate::error::{Error, Result};
use crate::informers::Informers;
use crate::manager::ManagerBuilder;

/// How long a reconcile waits for the first list of such a kind; after that it fails and is
/// retried. A kind whose list never arrives must not block the workers.
const PATIENCE: Duration = Duration::from_secs(5);

/// All objects of an optional kind, if the cluster serves it.
pub struct OptionalInformer<K> {
    cache: Arc<Cache<K>>,
    opening: Mutex<Opening>,
    is_watched: OnceLock<()>,
}

/// The informers of the kind, and whether its watch has been opened.
struct Opening {
    watches: Informers,
    is_open: bool,
}

impl<K: Watchable> OptionalInformer<K> {
    /// Creates an informer that is not watching yet.
    pub fn new(builder: &ManagerBuilder, registry: &mut CacheRegistry) -> Self {
        Self::indexed(builder, registry, vec![])
    }

    /// The same with indexes of the cache.
    pub fn indexed(
        builder: &ManagerBuilder,
        registry: &mut CacheRegistry,
        indexes: Vec<(IndexName, Index<K>)>,
    ) -> Self {
        let opening = Mutex::new(Opening { watches: builder.informers(), is_open: false });
        let cache = Cache::new(indexes);
        registry.register_write_through(Arc::<Cache<K>>::clone(&cache));
        Self { cache, opening, is_watched: OnceLock::new() }
    }

    /// Returns the cache, which stays empty until the watch is open: for event handlers, and for
    /// reads that cannot wait.
    pub const fn cache(&self) -> &Arc<Cache<K>> {
        &self.cache
    }

    /// Calls `enqueue` with the key of each object that is added, changed or deleted.
    pub fn on_change(&self, enqueue: impl Fn(Key) + Send + Sync + 'static) {
        self.cache.on_change(move |it| enqueue(Key::of(it)));
    }

    /// Returns the objects of a namespace by name, or `None` when the cluster lacks the kind.
    pub async fn seen(&self, api: &Api, namespace: &str) -> Result<Option<Vec<Arc<K>>>> {
        let Some(mut here) = self.all(api).await? else { return Ok(None) };
        here.retain(|it| it.meta().namespace.as_deref() == Some(namespace));
        Ok(Some(here))
    }

    /// Checks that every object of a namespace is readable, see [`Cache::check_readable`].
    pub fn check_readable(&self, namespace: &str) -> Result<()> {
        self.cache.check_readable(namespace)
    }

    /// Returns the objects of all watched namespaces, sorted by namespace and name, or `None` when
    /// the cluster lacks the kind.
    pub async fn all(&self, api: &Api) -> Result<Option<Vec<Arc<K>>>> {
        if !self.open(api).await? {
            return Ok(None);
        }
        let mut all = self.cache.all();
        let key = |it: &Arc<K>| (it.meta().namespace.clone(), it.meta().name.clone());
        all.sort_by_cached_key(key);
        Ok(Some(all))
    }

    /// Opens the watch and waits up to [`PATIENCE`] for the first list; does nothing once that is
    /// there. Returns `false` when the cluster lacks the kind.
    pub async fn open(&self, api: &Api) -> Result<bool> {
        if self.is_watched.get().is_some() {
            return Ok(true);
        }
        within(PATIENCE, &K::plural(&()), self.opened(api)).await
    }

    async fn opened(&self, api: &Api) -> Result<bool> {
        let mut opening = self.opening.lock().await;
        if !opening.is_open {
            if !api.serves::<K>().await? {
                return Ok(false);
            }
            opening.watches.watch(&self.cache, "");
            opening.is_open = true;
        }
        opening.watches.ready().await;
        let _ = self.is_watched.set(());
        Ok(true)
    }
}

/// Resolves when `is_there` returns true; an error counts as false and is logged.
pub async fn appears<Answer: Future<Output = Result<bool>>>(
    is_there: impl Fn() -> Answer,
    pause: Duration,
) {
    while !is_there().await.unwrap_or_else(|error| {
        tracing::warn!(error = error.chain(), "it is unknown whether a kind exists");
        false
    }) {
        tokio::time::sleep(pause).await;
    }
}

/// Returns the result of `asked`, or [`Error::Timeout`] after `patience`.
async fn within<T>(
    patience: Duration,
    plural: &str,
    asked: impl Future<Output = Result<T>>,
) -> Result<T> {
    let late = || Error::Timeout { what: format!("list {plural}"), after: patience };
    timeout(patience, asked).await.unwrap_or_else(|_| Err(late()))
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex as SyncMutex;

    use super::*;

    #[tokio::test]
    async fn a_kind_that_appears_later_is_found_whatever_went_wrong_before() {
        let away = || Err(Error::Process { what: "the API server is away".into(), source: None });
        let answers = SyncMutex::new(vec![Ok(true), Ok(false), away(), Ok(false)]);
        appears(async || answers.lock().pop().unwrap(), Duration::ZERO).await;
        assert!(answers.lock().is_empty());
    }

    #[tokio::test]
    async fn a_kind_that_never_lists_ends_the_pass_and_says_which_it_is() {
        let never = std::future::pending::<Result<bool>>();
        let error = within(Duration::from_millis(10), "ipsets", never).await.unwrap_err();
        assert_eq!(error.to_string(), "list ipsets: no answer within 0 s");
        assert!(within(PATIENCE, "ipsets", async { Ok(true) }).await.unwrap());
    }
}
