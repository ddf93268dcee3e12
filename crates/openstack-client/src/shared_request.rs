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

impl<K: Default, T: Clone> SharedRequest<K, T> {
    /// Creates it with what is known before the first request.
    pub(crate) const fn new(known: K) -> Self {
        Self(Mutex::new(State::Known(known)))
    }

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
