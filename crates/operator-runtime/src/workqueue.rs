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

/// How many times as long as its last evaluation took a key is not handed out again: an object that
/// sums up thousands of others takes a part of one processor alone, however often these change.
const REST: u32 = 4;

/// The longest such rest: what is shown of the object is no older than this and a pass.
const LONGEST_REST: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
struct Inner {
    due: BTreeMap<Key, Instant>,
    order: BTreeSet<(Instant, Key)>,
    /// Key → until when it is not handed out, where its evaluation takes long.
    rests: BTreeMap<Key, Instant>,
    /// Keys being processed, with the time at which processing began.
    running: BTreeMap<Key, Instant>,
    /// Time at which processing of any key last ended.
    ended: Option<Instant>,
}

impl Inner {
    /// Sets when a key is due.
    fn schedule(&mut self, key: Key, at: Instant) {
        if let Some(planned) = self.due.insert(key.clone(), at) {
            self.order.remove(&(planned, key.clone()));
        }
        self.order.insert((at, key));
    }
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

    /// Enqueues `key` after `pause`, and not before its rest is over; an earlier due time is kept.
    pub fn push_in(&self, key: Key, pause: Duration) {
        let at = Instant::now() + pause;
        let mut inner = self.inner.lock();
        let at = inner.rests.get(&key).map_or(at, |it| at.max(*it));
        if inner.due.get(&key).is_some_and(|it| *it <= at) {
            return;
        }
        inner.schedule(key, at);
        drop(inner);
        self.changed.notify_waiters();
    }

    /// Notes how long the evaluation of `key`, which is being processed, has taken: it rests a few
    /// times as long before it is handed out again.
    pub fn rest(&self, key: &Key, evaluation: Duration) {
        let pause = (evaluation * REST).min(LONGEST_REST);
        if pause <= GATHER {
            return;
        }
        let (now, mut inner) = (Instant::now(), self.inner.lock());
        inner.rests.retain(|_, until| *until > now);
        inner.rests.insert(key.clone(), now + pause);
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
        // It may have been enqueued before it was known how long it rests.
        if let Some(until) = inner.rests.get(key).copied()
            && inner.due.get(key).is_some_and(|it| *it < until)
        {
            inner.schedule(key.clone(), until);
        }
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
    async fn a_key_rests_a_few_times_as_long_as_its_evaluation_took() {
        let queue = WorkQueue::default();
        let begun = Instant::now();
        let taken = async |evaluation| {
            let key = queue.next().await;
            queue.push_in(key.clone(), Duration::ZERO);
            queue.rest(&key, evaluation);
            queue.done(&key);
            queue.push_in(key.clone(), Duration::ZERO);
            begun.elapsed()
        };
        queue.push_in(key("a"), Duration::ZERO);
        let ms = Duration::from_millis;
        assert_eq!(taken(ms(100)).await, ms(0));
        assert_eq!(taken(ms(1)).await, ms(400));
        assert_eq!(taken(ms(9000)).await, ms(400), "a short evaluation needs no rest");
        queue.push_in(key("b"), ms(10));
        assert_eq!(queue.next().await, key("b"), "no other key waits for it");
        assert_eq!(taken(ms(1)).await, ms(2400), "no rest is longer");
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
