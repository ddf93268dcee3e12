//! Kinds of others that a cluster may lack: looked for only once somebody needs one, and watched from
//! when it is found.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use operator_core::object_key::Key;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::api::Api;
use crate::cache::{Cache, Watchable, WriteThrough};
use crate::error::{Error, Result};
use crate::manager::Informers;

/// How long a pass waits for the first list of such a kind; then it ends, and a later one looks again.
/// A kind that never lists must not hold the workers that others need.
const PATIENCE: Duration = Duration::from_secs(5);

/// All objects of such a kind, if the cluster has it.
pub struct OptionalInformer<K> {
    cache: Arc<Cache<K>>,
    opening: Mutex<Opening>,
    is_watched: OnceLock<()>,
}

/// Where the watch is, or will be.
struct Opening {
    watches: Informers,
    is_open: bool,
}

impl<K: Watchable> OptionalInformer<K> {
    /// Not watched yet; `watches` is where they will be.
    pub fn new(informers: Informers) -> Self {
        let opening = Mutex::new(Opening { watches: informers, is_open: false });
        Self { cache: Cache::new(vec![]), opening, is_watched: OnceLock::new() }
    }

    /// The cache, for what is written to be seen at once.
    pub fn absorbing(&self) -> Arc<dyn WriteThrough> {
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

    /// Waits for the first list, but not for long; false where the cluster has no such kind.
    async fn open(&self, api: &Api) -> Result<bool> {
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

/// What `asked` says, if it says it in time.
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
    use super::*;

    #[tokio::test]
    async fn a_kind_that_never_lists_ends_the_pass_and_says_which_it_is() {
        let never = std::future::pending::<Result<bool>>();
        let error = within(Duration::from_millis(10), "ipsets", never).await.unwrap_err();
        assert_eq!(error.to_string(), "list ipsets: no answer within 0 s");
        assert!(within(PATIENCE, "ipsets", async { Ok(true) }).await.unwrap());
    }
}
