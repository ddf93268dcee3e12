//! The Ironics of an operator: one session for all that use the same one in the same way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ironic::Error;
use operator_runtime::http_client::{HttpClient, HttpClients};
use operator_runtime::request_times::RequestTimes;
use operator_runtime::tls_stream::CaTrust;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use crate::session::{Pace, Session, Waits};

/// How many callers wait at a time for Ironics that were slow last.
///
/// All callers that wait for any Ironic share eight workers, and an Ironic that hangs must leave
/// some to the others.
const SLOW: usize = 2;
/// How many callers wait at a time for Ironics of unknown speed.
const NEW: usize = 4;
/// How many callers of one namespace wait at a time, for any Ironics.
///
/// An Ironic that is just fast enough, with many credentials, must leave workers to other
/// namespaces.
const PER_NAMESPACE: usize = 4;
/// How many callers wait at a time for all Ironics: the number of workers.
const ALL: usize = 8;
/// From which duration on an Ironic counts as slow.
///
/// It is less than a list or request takes to time out, and more than some requests in sequence
/// take.
const SLOW_FROM: Duration = Duration::from_secs(12);

/// How old a list may be that is returned to another caller; an older one is of no use.
pub const FRESH: Duration = Duration::from_secs(2);

/// Sessions by the hash of their parameters, and their users.
#[derive(Debug)]
pub struct Pool {
    inner: Mutex<Inner>,
    http: HttpClients,
    times: Option<RequestTimes>,
    slow: Semaphore,
    new: Semaphore,
    slow_from: Duration,
}

/// What a caller waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Purpose {
    /// A list of all machines.
    List,
    /// Changes to machines.
    Requests,
}

impl Purpose {
    /// Returns those that wait for this purpose.
    fn waits(self, session: &Session) -> &Waits {
        match self {
            Self::List => &session.list_waits,
            Self::Requests => &session.request_waits,
        }
    }
}

/// A permit to wait for an Ironic; the time until its drop measures the Ironic's speed.
#[derive(Debug)]
pub struct WorkerPermit<'a> {
    session: &'a Session,
    purpose: Purpose,
    since: Instant,
    slow_from: Duration,
    _of_session: SemaphorePermit<'a>,
    _of_pool: Option<SemaphorePermit<'a>>,
    _of_namespace: OwnedSemaphorePermit,
}

impl Drop for WorkerPermit<'_> {
    fn drop(&mut self) {
        let is_slow = self.since.elapsed() >= self.slow_from;
        let pace = if is_slow { Pace::Slow } else { Pace::Fast };
        self.purpose.waits(self.session).note(pace);
    }
}

#[derive(Debug, Default)]
struct Inner {
    sessions: BTreeMap<String, Used>,
    /// The hash of the parameters of each user's session.
    users: BTreeMap<String, String>,
    /// The semaphore of each namespace with a waiting caller.
    namespaces: BTreeMap<String, Arc<Semaphore>>,
}

/// A session, and how many users it has.
#[derive(Debug)]
struct Used {
    session: Arc<Session>,
    n_users: usize,
}

impl Pool {
    /// Creates an empty pool whose sessions use clients of `http`.
    pub fn new(http: HttpClients) -> Self {
        Self {
            inner: Mutex::default(),
            http,
            times: None,
            slow: Semaphore::new(SLOW),
            new: Semaphore::new(NEW),
            slow_from: SLOW_FROM,
        }
    }

    /// Lets sessions count their requests.
    #[must_use]
    pub fn counted(self, times: RequestTimes) -> Self {
        Self { times: Some(times), ..self }
    }

    /// Returns the client of a session that users of a namespace share.
    pub fn http(&self, namespace: &str, trust: CaTrust) -> HttpClient {
        self.http.of(namespace, trust)
    }

    /// Returns a permit for a caller in a namespace to wait for an Ironic.
    ///
    /// Returns `None` when enough callers wait for this Ironic, in this namespace, or for other
    /// Ironics that are slow or of unknown speed. The caller then requeues and holds no worker
    /// meanwhile.
    pub fn leave_for<'a>(
        &'a self,
        session: &'a Session,
        namespace: &str,
        purpose: Purpose,
    ) -> Option<WorkerPermit<'a>> {
        if purpose == Purpose::List {
            self.evict_old();
        }
        let waits = purpose.waits(session);
        let of_session = waits.places.try_acquire().ok()?;
        let of_namespace = self.inner.lock().place_of(namespace)?;
        let of_pool = match waits.pace() {
            Pace::Fast => None,
            Pace::Slow => Some(self.slow.try_acquire().ok()?),
            Pace::Unknown => Some(self.new.try_acquire().ok()?),
        };
        let (since, slow_from) = (Instant::now(), self.slow_from);
        Some(WorkerPermit {
            session,
            purpose,
            since,
            slow_from,
            _of_session: of_session,
            _of_pool: of_pool,
            _of_namespace: of_namespace,
        })
    }

    /// Makes room for a list.
    fn evict_old(&self) {
        self.inner.lock().sessions.values().for_each(|it| it.session.evict_list(FRESH));
    }

    /// Returns the session of a user.
    ///
    /// `made_from` is a hash of all its parameters: users of the same Ironic with the same
    /// credentials share version, token, limits and list. Sessions without users are dropped.
    pub fn session(
        &self,
        user: &str,
        made_from: String,
        make: impl FnOnce() -> Result<Session, Error>,
    ) -> Result<Arc<Session>, Error> {
        let mut inner = self.inner.lock();
        if inner.users.get(user).is_some_and(|it| *it != made_from) {
            inner.leave(user);
        }
        if let Some(session) = inner.use_session(user, &made_from) {
            return Ok(session);
        }
        let session = make()?;
        let session = Arc::new(match &self.times {
            Some(times) => session.counted(times.clone()),
            None => session,
        });
        let entry = Used { session: Arc::clone(&session), n_users: 1 };
        inner.sessions.insert(made_from.clone(), entry);
        inner.users.insert(user.to_owned(), made_from);
        Ok(session)
    }

    /// Returns the session that a user was given last.
    pub fn of(&self, user: &str) -> Option<Arc<Session>> {
        let inner = self.inner.lock();
        inner.sessions.get(inner.users.get(user)?).map(|it| Arc::clone(&it.session))
    }

    /// Removes a user.
    pub fn leave(&self, user: &str) {
        self.inner.lock().leave(user);
    }
}

impl Inner {
    /// Returns the session made from these parameters for a user, who has it or none; `None` when there
    /// is none.
    fn use_session(&mut self, user: &str, made_from: &str) -> Option<Arc<Session>> {
        let entry = self.sessions.get_mut(made_from)?;
        if !self.users.contains_key(user) {
            self.users.insert(user.to_owned(), made_from.to_owned());
            entry.n_users += 1;
        }
        Some(Arc::clone(&entry.session))
    }

    /// Removes a user, and a session without users.
    fn leave(&mut self, user: &str) {
        let Some(made_from) = self.users.remove(user) else { return };
        let Some(entry) = self.sessions.get_mut(&made_from) else { return };
        entry.n_users = entry.n_users.saturating_sub(1);
        if entry.n_users == 0 {
            self.sessions.remove(&made_from);
        }
    }

    /// Takes a permit of a namespace.
    ///
    /// A namespace has at most as many as are left to all others, so that two namespaces never have
    /// all.
    /// Namespaces without waiting callers are dropped.
    fn place_of(&mut self, namespace: &str) -> Option<OwnedSemaphorePermit> {
        self.namespaces.retain(|_, it| Arc::strong_count(it) > 1);
        let held = |it: &Arc<Semaphore>| PER_NAMESPACE - it.available_permits();
        let n_held = self.namespaces.values().map(held).sum::<usize>();
        let places = self.namespaces.entry(namespace.to_owned());
        let places = places.or_insert_with(|| Arc::new(Semaphore::new(PER_NAMESPACE)));
        let is_left = held(places) < ALL.saturating_sub(n_held);
        Arc::clone(places).try_acquire_owned().ok().filter(|_| is_left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::Credentials;

    #[test]
    fn ironics_that_hang_leave_workers_to_others_and_to_those_that_are_new() {
        let mut pool = Pool { slow_from: Duration::ZERO, ..pool() };
        let sessions: Vec<_> =
            (0..9).map(|it| session(&pool, &it.to_string(), &it.to_string())).collect();
        let leaves = |pool: &Pool, of: &[Arc<Session>]| {
            let leave = |it: &Arc<Session>| leave_for(pool, it, Purpose::List).map(drop);
            of.iter().filter_map(leave).count()
        };
        // All of them are new, and each was slow.
        let held: Vec<_> =
            sessions.iter().filter_map(|it| leave_for(&pool, it, Purpose::List)).collect();
        assert_eq!(held.len(), NEW);
        drop(held);
        let (slow, new) = sessions.split_at(NEW);
        let held: Vec<_> =
            slow.iter().filter_map(|it| leave_for(&pool, it, Purpose::List)).collect();
        assert_eq!(held.len(), SLOW);
        assert!(leave_for(&pool, &new[0], Purpose::List).is_some(), "a new one has to wait");
        assert!(
            leave_for(&pool, &slow[3], Purpose::Requests).is_some(),
            "its requests were not slow"
        );
        drop(held);
        // A fast Ironic needs no further permit.
        pool.slow_from = Duration::from_mins(1);
        assert_eq!(leaves(&pool, slow), NEW);
        let held: Vec<_> =
            slow.iter().filter_map(|it| leave_for(&pool, it, Purpose::List)).collect();
        assert_eq!(held.len(), NEW);
        assert!(leave_for(&pool, &slow[0], Purpose::List).is_some());
    }

    #[test]
    fn two_wait_for_one_ironic_and_the_others_come_back_later() {
        let pool = pool();
        let (first, second) = (session(&pool, "a", "1"), session(&pool, "b", "2"));
        let held: Vec<_> = (0..8).filter_map(|_| leave_for(&pool, &first, Purpose::List)).collect();
        assert_eq!(held.len(), 2);
        assert!(leave_for(&pool, &second, Purpose::List).is_some());
        drop(held);
        assert!(leave_for(&pool, &first, Purpose::List).is_some());
    }

    #[test]
    fn ironics_that_are_just_not_slow_leave_workers_to_other_namespaces() {
        let pool = Pool { slow_from: Duration::from_mins(1), ..pool() };
        let sessions: Vec<_> =
            (0..9).map(|it| session(&pool, &it.to_string(), &it.to_string())).collect();
        for session in &sessions {
            drop(leave_for(&pool, session, Purpose::List));
        }
        let ask = |namespace, it| pool.leave_for(it, namespace, Purpose::List);
        let held: Vec<_> = sessions.iter().filter_map(|it| ask("tenant", it)).collect();
        assert_eq!(held.len(), PER_NAMESPACE);
        assert!(ask("other", &sessions[8]).is_some());
        let second: Vec<_> = sessions.iter().filter_map(|it| ask("second", it)).collect();
        assert_eq!(second.len(), 2, "as many as it leaves to the others");
        assert!(ask("other", &sessions[8]).is_some());
        drop((held, second));
        assert!(ask("tenant", &sessions[8]).is_some());
        drop(ask("other", &sessions[8]));
        assert_eq!(pool.inner.lock().namespaces.len(), 1, "those who waited are not forgotten");
    }

    /// Asks from a namespace that only this session uses.
    fn leave_for<'a>(
        pool: &'a Pool,
        session: &'a Session,
        purpose: Purpose,
    ) -> Option<WorkerPermit<'a>> {
        pool.leave_for(session, &format!("{session:p}"), purpose)
    }

    fn pool() -> Pool {
        Pool::new(HttpClients::default())
    }

    fn session(pool: &Pool, user: &str, made_from: &str) -> Arc<Session> {
        let http = pool.http("ns", CaTrust::new(None).unwrap());
        let make = || Ok(Session::new("http://ironic", Credentials::None, http));
        pool.session(user, made_from.to_owned(), make).unwrap()
    }

    #[test]
    fn whoever_asks_alike_shares_a_session_and_whoever_asks_otherwise_has_another() {
        let pool = pool();
        let first = session(&pool, "a", "1");
        assert!(Arc::ptr_eq(&first, &session(&pool, "b", "1")));
        assert!(Arc::ptr_eq(&first, &pool.of("b").unwrap()));
        assert!(!Arc::ptr_eq(&first, &session(&pool, "b", "2")));
    }

    #[test]
    fn a_session_has_as_many_users_as_have_it_now() {
        let pool = pool();
        let n_users = |made_from| pool.inner.lock().sessions.get(made_from).map(|it| it.n_users);
        for (user, made_from) in [("a", "1"), ("b", "1"), ("a", "1"), ("a", "2"), ("a", "2")] {
            session(&pool, user, made_from);
        }
        assert_eq!((n_users("1"), n_users("2")), (Some(1), Some(1)));
        session(&pool, "b", "2");
        assert_eq!((n_users("1"), n_users("2")), (None, Some(2)));
        pool.leave("a");
        pool.leave("a");
        assert_eq!(n_users("2"), Some(1));
        pool.leave("b");
        assert_eq!(n_users("2"), None);
    }

    #[test]
    fn a_session_that_nobody_uses_is_forgotten_and_one_that_cannot_be_made_is_nobodys() {
        let pool = pool();
        let first = Arc::downgrade(&session(&pool, "a", "1"));
        session(&pool, "b", "1");
        pool.leave("a");
        assert!(first.upgrade().is_some() && pool.of("a").is_none());
        let error = pool.session("b", "2".into(), || Err(Error::NotUrl)).unwrap_err();
        assert_eq!(error, Error::NotUrl);
        assert!(first.upgrade().is_none() && pool.of("b").is_none());
    }
}
