//! The memory that an operator has for what other servers answer, of which each namespace has a
//! share.
//!
//! What is kept of answers takes its bytes from what all share, and what is read of one beyond [`SHORT`]
//! too. A few long answers are parsed at a time. Who parses one waits for nothing else, and no reader
//! waits for bytes, so that none waits for ever.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::places::{Place, Places};

/// How many bytes of an answer are read without being counted.
pub(crate) const SHORT: usize = 64 * 1024;
/// How many long answers are parsed at a time, and one in each namespace.
const LONG_ANSWERS: usize = 3;
/// How many requests of one namespace are sent at a time.
const REQUESTS: usize = 64;
/// How many bytes may be kept of all answers.
const KEPT: usize = 128 * 1024 * 1024;

/// The memory for all answers of an operator.
#[derive(Debug)]
pub struct AnswerMemory {
    most: usize,
    long_answers: Places,
    /// The shares that are in use.
    shares: Mutex<BTreeMap<String, Weak<Usage>>>,
}

/// What one namespace uses.
#[derive(Debug)]
struct Usage {
    namespace: String,
    requests: Arc<Semaphore>,
    kept: AtomicUsize,
}

/// The share of one namespace.
#[derive(Clone, Debug)]
pub struct MemoryShare {
    memory: Arc<AnswerMemory>,
    used: Arc<Usage>,
}

/// Bytes that are kept, until it is dropped.
#[derive(Debug, Default)]
pub struct Kept {
    /// `None` of what counts nowhere.
    share: Option<MemoryShare>,
    n_bytes: usize,
}

/// There is not enough memory left for the answers of a namespace.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NoMemory;

impl fmt::Display for NoMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("more than is left of the operator's memory for answers")
    }
}

impl Default for AnswerMemory {
    fn default() -> Self {
        Self::of(KEPT)
    }
}

impl AnswerMemory {
    /// Creates a memory in which so many bytes may be kept.
    pub(crate) fn of(most: usize) -> Self {
        let long_answers = Places::new(LONG_ANSWERS, 1);
        Self { most, long_answers, shares: Mutex::default() }
    }

    /// Returns the share of a namespace.
    pub fn share(self: &Arc<Self>, namespace: &str) -> MemoryShare {
        let mut shares = self.shares.lock();
        shares.retain(|_, it| it.strong_count() > 0);
        let used = shares.get(namespace).and_then(Weak::upgrade).unwrap_or_else(|| {
            let used = Arc::new(Usage {
                namespace: namespace.to_owned(),
                requests: Arc::new(Semaphore::new(REQUESTS)),
                kept: AtomicUsize::new(0),
            });
            shares.insert(namespace.to_owned(), Arc::downgrade(&used));
            used
        });
        MemoryShare { memory: Arc::clone(self), used }
    }
}

impl MemoryShare {
    /// Waits until fewer requests of the namespace are under way.
    pub(crate) async fn request(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.used.requests).acquire_owned().await.ok()
    }

    /// Waits until a long answer may be parsed.
    pub(crate) async fn long_answer(&self) -> Place {
        self.memory.long_answers.take(&self.used.namespace).await
    }

    /// Keeps so many bytes.
    ///
    /// # Errors
    /// [`NoMemory`] when the namespace would then have more than is left to all others, so that a few
    /// namespaces never have all.
    pub fn keep(&self, n_bytes: usize) -> Result<Kept, NoMemory> {
        self.take(n_bytes)?;
        Ok(Kept { share: Some(self.clone()), n_bytes })
    }

    fn take(&self, n_bytes: usize) -> Result<(), NoMemory> {
        let shares = self.memory.shares.lock();
        let used = |it: &Weak<Usage>| it.upgrade().map_or(0, |it| it.kept.load(Relaxed));
        let all = shares.values().map(used).sum::<usize>().saturating_add(n_bytes);
        let own = self.used.kept.load(Relaxed).saturating_add(n_bytes);
        if own > self.memory.most.saturating_sub(all) {
            return Err(NoMemory);
        }
        self.used.kept.fetch_add(n_bytes, Relaxed);
        Ok(())
    }
}

impl Kept {
    /// Keeps so many bytes more.
    pub fn grow(&mut self, n_bytes: usize) -> Result<(), NoMemory> {
        if let Some(share) = &self.share {
            share.take(n_bytes)?;
        }
        self.n_bytes = self.n_bytes.saturating_add(n_bytes);
        Ok(())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(share) = &self.share {
            share.used.kept.fetch_sub(self.n_bytes, Relaxed);
        }
    }
}

/// A list from another server, and the memory that it keeps.
#[derive(Debug)]
pub struct Held<T> {
    entries: Vec<T>,
    kept: Kept,
}

impl<T> Held<T> {
    /// Creates an empty list of a namespace.
    pub fn of(share: &MemoryShare) -> Self {
        Self { entries: Vec::new(), kept: Kept { share: Some(share.clone()), n_bytes: 0 } }
    }

    /// Adds entries that take so many bytes; adds none when there is no memory for them.
    pub fn add(&mut self, entries: Vec<T>, n_bytes: usize) -> Result<(), NoMemory> {
        self.kept.grow(n_bytes)?;
        self.entries.extend(entries);
        Ok(())
    }

    /// Replaces the entry that `is` selects by one that takes so many bytes, which comes last when there
    /// is none.
    pub fn replace(
        &mut self,
        is: impl Fn(&T) -> bool,
        entry: Option<T>,
        n_bytes: usize,
    ) -> Result<(), NoMemory> {
        self.kept.grow(n_bytes)?;
        let place = self.entries.iter().position(is).unwrap_or(self.entries.len());
        self.entries.splice(place..self.entries.len().min(place + 1), entry);
        Ok(())
    }

    /// Returns the memory that it keeps, in bytes.
    pub const fn n_bytes(&self) -> usize {
        self.kept.n_bytes
    }

    /// Returns the same list once more.
    pub fn copy(&self) -> Result<Self, NoMemory>
    where
        T: Clone,
    {
        let mut kept = Kept { share: self.kept.share.clone(), n_bytes: 0 };
        kept.grow(self.kept.n_bytes)?;
        Ok(Self { entries: self.entries.clone(), kept })
    }

    /// Returns the entries, and the memory that is kept for them.
    pub fn into_parts(self) -> (Vec<T>, Kept) {
        (self.entries, self.kept)
    }
}

/// A list that counts nowhere.
impl<T> From<Vec<T>> for Held<T> {
    fn from(entries: Vec<T>) -> Self {
        Self { entries, kept: Kept::default() }
    }
}

/// An empty list that counts nowhere.
impl<T> Default for Held<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T> Deref for Held<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.entries
    }
}

impl<T> DerefMut for Held<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.entries
    }
}

impl<T: PartialEq> PartialEq for Held<T> {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries
    }
}

impl<T: PartialEq<U>, U, const N: usize> PartialEq<[U; N]> for Held<T> {
    fn eq(&self, other: &[U; N]) -> bool {
        self.entries == *other
    }
}

impl<T> IntoIterator for Held<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_keeps_no_more_than_it_leaves_to_all_others() {
        let memory = Arc::new(AnswerMemory::of(64));
        let (first, second, third) = (memory.share("a"), memory.share("b"), memory.share("c"));
        let of_first = first.keep(32).unwrap();
        assert_eq!(first.keep(1).unwrap_err(), NoMemory);
        assert_eq!(memory.share("a").keep(1).unwrap_err(), NoMemory, "it is one share");
        let of_second = second.keep(16).unwrap();
        assert!(second.keep(1).is_err() && third.keep(9).is_err());
        let of_third = third.keep(8).unwrap();
        drop((of_first, of_second));
        assert!(first.keep(28).is_ok() && third.keep(28).is_err());
        drop(of_third);
        assert!(third.keep(32).is_ok());
    }

    #[test]
    fn a_list_keeps_its_entries_until_it_is_dropped() {
        let memory = Arc::new(AnswerMemory::of(1000));
        let share = memory.share("a");
        let mut list = Held::of(&share);
        list.add(vec!["a", "b"], 300).unwrap();
        assert_eq!(list.add(vec!["c"], 201), Err(NoMemory));
        assert_eq!((list.len(), list.n_bytes()), (2, 300), "what has no place is not added");
        assert!(list.copy().is_err(), "a copy takes as much again");
        list.replace(|it| *it == "c", Some("c"), 200).unwrap();
        list.replace(|it| *it == "a", None, 0).unwrap();
        assert_eq!(*list, ["b", "c"]);
        let (entries, kept) = list.into_parts();
        drop(entries);
        assert!(share.keep(1).is_err());
        drop(kept);
        assert!(share.keep(500).is_ok());
    }

    #[test]
    fn namespaces_that_use_nothing_are_forgotten() {
        let memory = Arc::new(AnswerMemory::default());
        for n in 0..9 {
            drop(memory.share(&n.to_string()));
        }
        let _present = memory.share("a");
        assert_eq!(memory.shares.lock().len(), 1);
    }
}
