//! The check of the microversions of an endpoint, once for each endpoint.

use crate::error::Error;
use crate::shared_request::SharedRequest;

/// The check of one service's endpoint; it knows the last endpoint whose microversions suffice. Where
/// they do not, the API may have been upgraded since.
#[derive(Debug)]
pub(crate) struct Negotiation(SharedRequest<Option<String>, Outcome>);

/// What one check found.
type Outcome = Result<(), Error>;

impl Negotiation {
    /// Creates the check without sending anything.
    pub(crate) const fn new() -> Self {
        Self(SharedRequest::new(None))
    }

    /// Returns once the microversions of an endpoint are known to suffice. Concurrent callers share
    /// one request and its result, so that none waits for more than one.
    ///
    /// # Errors
    /// What `request` failed with.
    pub(crate) async fn check<F>(&self, url: &str, request: impl FnOnce() -> F) -> Outcome
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let suffices = |known: &Option<String>| (known.as_deref() == Some(url)).then_some(Ok(()));
        let learned = |outcome: &Outcome| outcome.is_ok().then(|| url.to_owned());
        self.0.get(url, suffices, request, learned).await
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
        let (negotiation, count) = (Negotiation::new(), AtomicUsize::new(0));
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
        let (negotiation, count) = (Negotiation::new(), AtomicUsize::new(0));
        let abandoned = check(&negotiation, "http://n", &count, Ok(()));
        assert!(tokio::time::timeout(HANGS / 2, abandoned).await.is_err());
        assert_eq!(check(&negotiation, "http://n", &count, Ok(())).await, Ok(()));
        assert_eq!(count.load(Ordering::Relaxed), 2);
    }
}
