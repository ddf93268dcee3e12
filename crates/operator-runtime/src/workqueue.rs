//! Which keys are to be looked at, and when: each once at a time, in the order of their due time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use operator_core::object_key::Key;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long changes that arrive together are gathered before their object is reconciled.
pub const DEBOUNCE: Duration = Duration::from_millis(500);

/// How long a change waits for others of the same key, so that objects applied together are decided
/// together.
pub const GATHER: Duration = Duration::from_millis(150);

#[derive(Debug, Default)]
struct Inner {
    due: BTreeMap<Key, Instant>,
    order: BTreeSet<(Instant, Key)>,
    /// With the time at which the work began.
    running: BTreeMap<Key, Instant>,
    /// When work on any key ended last.
    ended: Option<Instant>,
}

/// A queue of keys without duplicates; a key that is being worked on is not handed out again.
#[derive(Debug, Default)]
pub struct WorkQueue {
    inner: Mutex<Inner>,
    changed: Notify,
}

impl WorkQueue {
    /// Asks for a look at `key` soon.
    pub fn push(&self, key: Key) {
        self.push_in(key, GATHER);
    }

    /// Asks for a look at `key` after `pause`; an earlier wish stays.
    pub fn push_in(&self, key: Key, pause: Duration) {
        let at = Instant::now() + pause;
        let mut inner = self.lock();
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

    /// The next key that is due; waits for one. Give it back with [`Queue::done`].
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

    /// Marks the work on `key` as ended.
    pub fn done(&self, key: &Key) {
        let mut inner = self.lock();
        inner.running.remove(key);
        inner.ended = Some(Instant::now());
        drop(inner);
        self.changed.notify_waiters();
    }

    /// How many keys wait.
    pub fn len(&self) -> usize {
        self.lock().due.len()
    }

    /// Whether no key waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// For how long no work has ended although some was due or going on.
    pub fn stalled_for(&self) -> Duration {
        let inner = self.lock();
        let waiting = inner.order.first().map(|(at, _)| *at);
        let Some(first) = inner.running.values().copied().chain(waiting).min() else {
            return Duration::ZERO;
        };
        // Zero where the first one is due later.
        Instant::now().saturating_duration_since(inner.ended.map_or(first, |it| it.max(first)))
    }

    /// The first key that is due and not being worked on, else the time to look again.
    fn take(&self, now: Instant) -> Result<Key, Option<Instant>> {
        let mut inner = self.lock();
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

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
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
