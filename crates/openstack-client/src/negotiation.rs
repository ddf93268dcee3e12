//! The check of the microversions of an endpoint, once for each endpoint.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};
use parking_lot::Mutex;

use crate::error::Error;

/// The check of one service's endpoint, and what it found.
#[derive(Debug, Default)]
pub(crate) struct Negotiation(Mutex<Known>);

/// What is known of the microversions of an endpoint.
#[derive(Debug, Default)]
enum Known {
    /// Nothing, or that they do not suffice: the API may have been upgraded since.
    #[default]
    Nothing,
    /// Those of this endpoint suffice.
    Suffices(Arc<str>),
    /// Those of this endpoint are being requested, unless no caller waits for that any more.
    Requested(Arc<str>, WeakShared<BoxFuture<'static, Outcome>>),
}

/// What one check found; all who wait for it get the same.
type Outcome = Result<(), Error>;

impl Negotiation {
    /// Returns once the microversions of an endpoint are known to suffice. Concurrent callers share
    /// one request and its result, so that none waits for more than one.
    ///
    /// # Errors
    /// What `request` failed with.
    pub(crate) async fn check<F>(&self, url: &str, request: impl FnOnce() -> F) -> Outcome
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let Some(requested) = self.requested(url, request) else { return Ok(()) };
        let outcome = requested.clone().await;
        self.record(url, &requested, &outcome);
        outcome
    }

    /// Returns the request that is under way, or begins one; `None` if the microversions suffice.
    fn requested<F>(
        &self,
        url: &str,
        request: impl FnOnce() -> F,
    ) -> Option<Shared<BoxFuture<'static, Outcome>>>
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let mut known = self.0.lock();
        let under_way = match &*known {
            Known::Suffices(of) if **of == *url => return None,
            Known::Requested(of, requested) if **of == *url => requested.upgrade(),
            Known::Nothing | Known::Suffices(_) | Known::Requested(..) => None,
        };
        Some(under_way.unwrap_or_else(|| {
            let begun = request().boxed().shared();
            let weak = begun.downgrade();
            *known = weak.map_or(Known::Nothing, |it| Known::Requested(url.into(), it));
            begun
        }))
    }

    /// Records what a request found, unless another one of its callers has done so.
    fn record(&self, url: &str, of: &Shared<BoxFuture<'static, Outcome>>, outcome: &Outcome) {
        let mut known = self.0.lock();
        let is_present = |it: &WeakShared<_>| it.upgrade().is_some_and(|it| it.ptr_eq(of));
        if matches!(&*known, Known::Requested(_, it) if is_present(it)) {
            *known = match outcome {
                Ok(()) => Known::Suffices(url.into()),
                Err(_) => Known::Nothing,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use tokio::time::{Instant, sleep};

    use super::*;

    const HANGS: Duration = Duration::from_secs(90);

    fn silent() -> Error {
        Error::Unreachable("no response in time".to_owned())
    }

    /// Counts the checks of `url` that send a request, which ends after a while with `outcome`.
    async fn check(of: &Negotiation, url: &str, count: &AtomicUsize, outcome: Outcome) -> Outcome {
        let request = || {
            count.fetch_add(1, Ordering::Relaxed);
            async move {
                sleep(HANGS).await;
                outcome
            }
        };
        of.check(url, request).await
    }

    #[tokio::test(start_paused = true)]
    async fn callers_wait_for_one_request_and_not_for_each_others() {
        let (negotiation, count) = (Negotiation::default(), AtomicUsize::new(0));
        let begun = Instant::now();
        let fails = || check(&negotiation, "http://n", &count, Err(silent()));
        assert_eq!(
            futures::join!(fails(), fails(), fails()),
            (Err(silent()), Err(silent()), Err(silent()))
        );
        assert_eq!((count.load(Ordering::Relaxed), begun.elapsed()), (1, HANGS));
        // A failure is no answer: the next caller asks again, and a success holds.
        for _ in 0..2 {
            assert_eq!(check(&negotiation, "http://n", &count, Ok(())).await, Ok(()));
        }
        assert_eq!(count.load(Ordering::Relaxed), 2);
        assert_eq!(check(&negotiation, "http://other", &count, Ok(())).await, Ok(()));
        assert_eq!(count.load(Ordering::Relaxed), 3, "another endpoint is another API");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_all_callers_abandoned_is_begun_anew() {
        let (negotiation, count) = (Negotiation::default(), AtomicUsize::new(0));
        let abandoned = check(&negotiation, "http://n", &count, Ok(()));
        assert!(tokio::time::timeout(HANGS / 2, abandoned).await.is_err());
        assert_eq!(check(&negotiation, "http://n", &count, Ok(())).await, Ok(()));
        assert_eq!(count.load(Ordering::Relaxed), 2);
    }
}
