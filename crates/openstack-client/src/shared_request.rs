//! A request that concurrent callers share, and what was learned from its last answer.

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};
use parking_lot::Mutex;

/// Sends a request only where its answer is not known, and one at a time; `K` is what was learned, and
/// `T` what all who wait for one request get.
#[derive(Debug)]
pub(crate) struct SharedRequest<K, T>(Mutex<State<K, T>>);

#[derive(Debug)]
enum State<K, T> {
    /// What is known without a request.
    Known(K),
    /// A request about this subject is under way, unless no caller waits for it any more.
    Requested(String, WeakShared<BoxFuture<'static, T>>),
}

impl<K: Default, T> Default for SharedRequest<K, T> {
    fn default() -> Self {
        Self(Mutex::new(State::Known(K::default())))
    }
}

impl<K: Default, T: Clone> SharedRequest<K, T> {
    /// Returns what `answer` makes of what is known, or else what the request for `subject` brings:
    /// the one that is under way, or that which `begin` returns. The first caller that has its outcome
    /// keeps what `learn` makes of it; no caller waits for more than one request.
    pub(crate) async fn get<F>(
        &self,
        subject: &str,
        answer: impl FnOnce(&K) -> Option<T>,
        begin: impl FnOnce() -> F,
        learn: impl FnOnce(&T) -> K,
    ) -> T
    where
        F: Future<Output = T> + Send + 'static,
    {
        let request = match self.known_or_requested(subject, answer, begin) {
            Ok(known) => return known,
            Err(request) => request,
        };
        let outcome = request.clone().await;
        let mut state = self.0.lock();
        let is_present = |it: &WeakShared<_>| it.upgrade().is_some_and(|it| it.ptr_eq(&request));
        if matches!(&*state, State::Requested(_, it) if is_present(it)) {
            *state = State::Known(learn(&outcome));
        }
        outcome
    }

    /// Returns what is known.
    ///
    /// # Errors
    /// The request that is under way or begins, where nothing is known.
    fn known_or_requested<F>(
        &self,
        subject: &str,
        answer: impl FnOnce(&K) -> Option<T>,
        begin: impl FnOnce() -> F,
    ) -> Result<T, Shared<BoxFuture<'static, T>>>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let mut state = self.0.lock();
        let under_way = match &*state {
            State::Known(known) => match answer(known) {
                Some(known) => return Ok(known),
                None => None,
            },
            State::Requested(of, request) if of == subject => request.upgrade(),
            State::Requested(..) => None,
        };
        Err(under_way.unwrap_or_else(|| {
            let request = begin().boxed().shared();
            let weak = request.downgrade();
            *state = weak.map_or_else(
                || State::Known(K::default()),
                |it| State::Requested(subject.to_owned(), it),
            );
            request
        }))
    }

    /// Forgets what is known if `is_stale` says so; a request that is under way goes on.
    pub(crate) fn forget_if(&self, is_stale: impl FnOnce(&K) -> bool) {
        let mut state = self.0.lock();
        if matches!(&*state, State::Known(known) if is_stale(known)) {
            *state = State::Known(K::default());
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

    type Asked = SharedRequest<Option<String>, Result<(), ()>>;

    /// Counts the requests about `subject`, each of which ends after a while with `outcome`.
    async fn ask(
        of: &Asked,
        subject: &str,
        count: &AtomicUsize,
        outcome: Result<(), ()>,
    ) -> Result<(), ()> {
        let known = |it: &Option<String>| (it.as_deref() == Some(subject)).then_some(Ok(()));
        let begin = || {
            count.fetch_add(1, Ordering::Relaxed);
            async move {
                sleep(HANGS).await;
                outcome
            }
        };
        of.get(subject, known, begin, |it| it.is_ok().then(|| subject.to_owned())).await
    }

    #[tokio::test(start_paused = true)]
    async fn callers_wait_for_one_request_and_not_for_each_others() {
        let (asked, count, begun) = (Asked::default(), AtomicUsize::new(0), Instant::now());
        let fails = || ask(&asked, "n", &count, Err(()));
        assert_eq!(futures::join!(fails(), fails(), fails()), (Err(()), Err(()), Err(())));
        assert_eq!((count.load(Ordering::Relaxed), begun.elapsed()), (1, HANGS));
        // A failure is no answer: the next caller asks again, and a success holds.
        for (subject, n_requests) in [("n", 2), ("n", 2), ("other", 3)] {
            assert_eq!(ask(&asked, subject, &count, Ok(())).await, Ok(()));
            assert_eq!(count.load(Ordering::Relaxed), n_requests, "{subject}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_all_callers_abandoned_is_begun_anew() {
        let (asked, count) = (Asked::default(), AtomicUsize::new(0));
        let abandoned = ask(&asked, "n", &count, Ok(()));
        assert!(tokio::time::timeout(HANGS / 2, abandoned).await.is_err());
        assert_eq!(ask(&asked, "n", &count, Ok(())).await, Ok(()));
        assert_eq!(count.load(Ordering::Relaxed), 2);
    }
}
