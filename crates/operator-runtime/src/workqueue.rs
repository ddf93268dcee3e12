//! A workqueue of object keys, ordered by due time and without duplicates.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use operator_core::object_key::Key;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Debounce period in which changes of one object are collected before it is reconciled.
pub const DEBOUNCE: Duration = Duration::from_millis(500);

/// Delay between a change and the reconcile of its key, so that objects applied together are
/// reconciled together.
pub const GATHER: Duration = Duration::from_millis(150);

#[derive(Debug, Default)]
struct Inner {
    due: BTreeMap<Key, Instant>,
    order: BTreeSet<(Instant, Key)>,
    /// Keys being processed, with the time at which processing began.
    running: BTreeMap<Key, Instant>,
    /// Time at which processing of any key last ended.
    ended: Option<Instant>,
}

/// A queue of keys without duplicates. A key being processed is not handed out again.
#[derive(Debug, Default)]
pub struct WorkQueue {
    inner: Mutex<Inner>,
    changed: Notify,
}

impl WorkQueue {
    /// Enqueues `key` after [`GATHER`].
    pub fn push(&self, key: Key) {
        self.push_in(key, GATHER);
    }

    /// Enqueues `key` after `pause`; an earlier due time is kept.
    pub fn push_in(&self, key: Key, pause: Duration) {
        let at = Instant::now() + pause;
        let mut inner = self.inner.lock();
        match inner.due.get(&key) {
            Some(planned) if *planned <= at => return,
            Some(planned) => {
                let place = (*planned, key.clone());
                inner.order.remove(&place);
            }
            None => {}
        }
        inner.due.insert(key.clone(), at);
        inner.order.insert((at, key));
        drop(inner);
        self.changed.notify_waiters();
    }

    /// Waits for the next due key and returns it. The caller must pass it to [`WorkQueue::done`]
    /// afterwards.
    pub async fn next(&self) -> Key {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before looking, so that a change in between is not lost.
            changed.as_mut().enable();
            match self.take(Instant::now()) {
                Ok(key) => return key,
                Err(Some(at)) => {
                    let _ = tokio::time::timeout_at(at, changed).await;
                }
                Err(None) => changed.await,
            }
        }
    }

    /// Marks the processing of `key` as ended.
    pub fn done(&self, key: &Key) {
        let mut inner = self.inner.lock();
        inner.running.remove(key);
        inner.ended = Some(Instant::now());
        drop(inner);
        self.changed.notify_waiters();
    }

    /// Returns the number of waiting keys.
    pub fn len(&self) -> usize {
        self.inner.lock().due.len()
    }

    /// Returns whether no key is waiting.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns for how long no processing has ended although a key was due or in progress.
    pub fn stalled_for(&self) -> Duration {
        let inner = self.inner.lock();
        let waiting = inner.order.first().map(|(at, _)| *at);
        let Some(first) = inner.running.values().copied().chain(waiting).min() else {
            return Duration::ZERO;
        };
        // Saturates to zero while the first key is not due yet.
        Instant::now().saturating_duration_since(inner.ended.map_or(first, |it| it.max(first)))
    }

    /// Takes the first key that is due and not being processed.
    ///
    /// # Errors
    /// The due time of the next key, or `None` when there is none to wait for.
    fn take(&self, now: Instant) -> Result<Key, Option<Instant>> {
        let mut inner = self.inner.lock();
        let first = inner.order.iter().find(|(_, key)| !inner.running.contains_key(key)).cloned();
        match first {
            Some((at, key)) if at <= now => {
                inner.order.remove(&(at, key.clone()));
                inner.due.remove(&key);
                inner.running.insert(key.clone(), now);
                Ok(key)
            }
            Some((at, _)) => Err(Some(at)),
            None => Err(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::new("ns", name)
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_is_pushed_twice_is_handed_out_once() {
        let queue = WorkQueue::default();
        queue.push(key("a"));
        queue.push(key("a"));
        assert_eq!(queue.next().await, key("a"));
        assert!(queue.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_being_worked_on_waits_for_its_end() {
        let queue = WorkQueue::default();
        queue.push(key("a"));
        let first = queue.next().await;
        queue.push(key("a"));
        assert!(tokio::time::timeout(Duration::from_secs(9), queue.next()).await.is_err());
        queue.done(&first);
        assert_eq!(queue.next().await, key("a"));
    }

    #[tokio::test(start_paused = true)]
    async fn the_earlier_wish_wins() {
        let queue = WorkQueue::default();
        queue.push_in(key("a"), Duration::from_mins(1));
        queue.push_in(key("b"), Duration::from_secs(5));
        queue.push_in(key("a"), Duration::from_secs(1));
        assert_eq!(queue.next().await, key("a"));
        assert_eq!(queue.next().await, key("b"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_queue_stalls_while_work_is_due_and_none_ends() {
        let queue = WorkQueue::default();
        let minutes = |it| tokio::time::advance(Duration::from_mins(it));
        minutes(20).await;
        assert_eq!(queue.stalled_for(), Duration::ZERO, "nothing is due");
        queue.push_in(key("a"), Duration::from_mins(30));
        minutes(20).await;
        assert_eq!(queue.stalled_for(), Duration::ZERO, "it is due later");
        minutes(15).await;
        assert_eq!(queue.stalled_for(), Duration::from_mins(5));
        let first = queue.next().await;
        minutes(11).await;
        assert_eq!(queue.stalled_for(), Duration::from_mins(11), "it was begun and does not end");
        queue.push_in(key("b"), Duration::ZERO);
        queue.done(&first);
        minutes(2).await;
        assert_eq!(queue.stalled_for(), Duration::from_mins(2), "another one has ended since");
    }
}
