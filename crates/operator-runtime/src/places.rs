//! Places for work on behalf of namespaces: so many in all, and a share of them for each.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places; a caller that waits for one gets it in turn, and waits behind no other namespace that has
/// its share.
#[derive(Debug)]
pub struct Places {
    all: Arc<Semaphore>,
    share: usize,
    /// The share of each namespace with somebody who works or waits.
    namespaces: Mutex<BTreeMap<String, Arc<Semaphore>>>,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub struct Place {
    _of_namespace: Option<OwnedSemaphorePermit>,
    _of_all: Option<OwnedSemaphorePermit>,
}

impl Places {
    /// Creates `all` places, of which each namespace has at most `share` at a time.
    pub fn new(all: usize, share: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(all)), share, namespaces: Mutex::default() }
    }

    /// Waits for a place.
    pub async fn take(&self, namespace: &str) -> Place {
        let of_namespace = self.of(namespace).acquire_owned().await;
        let of_all = Arc::clone(&self.all).acquire_owned().await;
        // A semaphore fails only when it is closed, and these never are.
        Place { _of_namespace: of_namespace.ok(), _of_all: of_all.ok() }
    }

    fn of(&self, namespace: &str) -> Arc<Semaphore> {
        let mut namespaces = self.namespaces.lock();
        namespaces.retain(|_, it| Arc::strong_count(it) > 1);
        let share = namespaces.entry(namespace.to_owned());
        Arc::clone(share.or_insert_with(|| Arc::new(Semaphore::new(self.share))))
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_namespace_that_has_its_share_leaves_the_rest_to_others_and_is_then_forgotten() {
        let places = Places::new(3, 2);
        let held = [places.take("a").await, places.take("a").await];
        let mut third = Box::pin(places.take("a"));
        assert!(third.as_mut().now_or_never().is_none());
        let other = places.take("b").now_or_never();
        assert!(other.is_some());
        assert!(places.take("c").now_or_never().is_none(), "all places are taken");
        drop(held);
        assert!(third.now_or_never().is_some());
        drop(other);
        drop(places.take("c").await);
        assert_eq!(places.namespaces.lock().len(), 1);
    }
}
