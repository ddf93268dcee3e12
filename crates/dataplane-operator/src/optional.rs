//! Kinds of others that a cluster may lack: looked for only once somebody needs one, and watched from
//! when it is found.

use std::sync::{Arc, OnceLock};

use shell::api::Api;
use shell::cache::{Absorb, Cache, Key, Watchable};
use shell::error::Result;
use shell::leader::Watches;
use tokio::sync::Mutex;

/// All objects of such a kind, if the cluster has it.
pub struct Optional<K> {
    cache: Arc<Cache<K>>,
    opening: Mutex<Opening>,
    is_watched: OnceLock<()>,
}

/// Where the watch is, or will be.
struct Opening {
    watches: Watches,
    is_open: bool,
}

impl<K: Watchable> Optional<K> {
    /// Not watched yet; `watches` is where they will be.
    pub fn new(watches: Watches) -> Self {
        let opening = Mutex::new(Opening { watches, is_open: false });
        Self { cache: Cache::new(vec![]), opening, is_watched: OnceLock::new() }
    }

    /// The cache, for what is written to be seen at once.
    pub fn absorbing(&self) -> Arc<dyn Absorb> {
        Arc::<Cache<K>>::clone(&self.cache)
    }

    /// Calls `wake` with each object that comes, changes or goes.
    pub fn on_change(&self, wake: impl Fn(Key) + Send + Sync + 'static) {
        self.cache.on_change(move |it| wake(Key::of(it)));
    }

    /// The objects of a namespace by name; `None` where the cluster lacks the kind.
    pub async fn seen(&self, api: &Api, namespace: &str) -> Result<Option<Vec<Arc<K>>>> {
        let Some(mut here) = self.all(api).await? else { return Ok(None) };
        here.retain(|it| it.meta().namespace.as_deref() == Some(namespace));
        Ok(Some(here))
    }

    /// See [`Cache::check_readable`].
    pub fn check_readable(&self, namespace: &str) -> Result<()> {
        self.cache.check_readable(namespace)
    }

    /// The objects of all watched namespaces by namespace and name; `None` where the cluster lacks the
    /// kind.
    pub async fn all(&self, api: &Api) -> Result<Option<Vec<Arc<K>>>> {
        if self.is_watched.get().is_none() && !self.open(api).await? {
            return Ok(None);
        }
        let mut all = self.cache.all();
        let key = |it: &Arc<K>| (it.meta().namespace.clone(), it.meta().name.clone());
        all.sort_by_cached_key(key);
        Ok(Some(all))
    }

    /// Waits for the first list; false where the cluster has no such kind.
    async fn open(&self, api: &Api) -> Result<bool> {
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
