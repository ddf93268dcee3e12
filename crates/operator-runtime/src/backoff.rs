//! Exponential backoff per object, because `kube`'s runtime keeps no failure count.

use std::{collections::BTreeMap, fmt::Display, time::Duration};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

/// Consecutive failures per object.
#[derive(Debug)]
pub struct Backoff {
    first: Duration,
    cap: Duration,
    failures: Mutex<BTreeMap<String, u32>>,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(Duration::from_secs(1), Duration::from_mins(5))
    }
}

impl Backoff {
    /// Creates a backoff whose pauses start at `first`, double, and end at `cap`.
    pub fn new(first: Duration, cap: Duration) -> Self {
        Self { first, cap, failures: Mutex::default() }
    }

    /// Counts a failure of the object and returns the pause before its next attempt.
    pub fn failed(&self, key: &(impl Display + ?Sized)) -> Duration {
        let key = key.to_string();
        let mut failures = self.failures.lock();
        let count = failures.entry(key.clone()).or_default();
        *count = count.saturating_add(1);
        pause(&key, *count, self.first, self.cap)
    }

    /// Resets the object's failure count: it succeeded, or it is gone.
    pub fn reset(&self, key: &(impl Display + ?Sized)) {
        self.failures.lock().remove(&key.to_string());
    }

    /// Returns the number of objects whose last attempt failed.
    pub fn failing(&self) -> usize {
        self.failures.lock().len()
    }
}

/// Returns the pause after the n-th consecutive failure: exponential, capped, and shortened by up
/// to a quarter depending on the object, so that objects that failed together are not retried
/// together.
pub fn pause(key: &str, failures: u32, first: Duration, cap: Duration) -> Duration {
    let doublings = failures.saturating_sub(1).min(31);
    let full = first.saturating_mul(1 << doublings).min(cap);
    let digest = Sha256::digest(format!("{failures}/{key}"));
    full.mul_f64(1.0 - f64::from(digest[0]) / 256.0 / 4.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_cap_and_start_anew_after_a_success() {
        let backoff = Backoff::default();
        let pauses: Vec<_> = (0..12).map(|_| backoff.failed("a").as_secs_f64()).collect();
        for (n, pause) in pauses.iter().enumerate() {
            let full = 2_f64.powi(i32::try_from(n).unwrap()).min(300.0);
            assert!((full * 0.75..=full).contains(pause), "{n}: {pause}");
        }
        backoff.reset("a");
        assert_eq!(backoff.failing(), 0);
        assert!(backoff.failed("a") <= Duration::from_secs(1));
    }

    #[test]
    fn objects_that_failed_together_do_not_return_together() {
        let pauses: Vec<_> = (0..50).map(|n| Backoff::default().failed(&format!("k{n}"))).collect();
        let distinct: std::collections::BTreeSet<_> = pauses.iter().collect();
        assert!(distinct.len() > 25, "{distinct:?}");
    }

    #[test]
    fn failures_without_end_do_not_overflow() {
        let cap = Duration::from_mins(5);
        assert!(pause("a", u32::MAX, Duration::from_secs(1), cap) <= cap);
    }
}
