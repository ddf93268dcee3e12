//! The Ironics that an operator asks: one session for all who ask the same one in the same way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ironic::Error;
use shell::metrics::Metrics;

use crate::Session;

/// Sessions by what they are made from, and whose they are.
#[derive(Debug, Default)]
pub struct Pool {
    inner: Mutex<Inner>,
    metrics: Option<Metrics>,
}

#[derive(Debug, Default)]
struct Inner {
    sessions: BTreeMap<String, Arc<Session>>,
    users: BTreeMap<String, String>,
}

impl Pool {
    /// An empty pool whose sessions count their requests.
    pub fn counted(metrics: Metrics) -> Self {
        Self { metrics: Some(metrics), ..Self::default() }
    }

    /// The session of somebody; `made_from` is a hash of all that it is made from, so that whoever asks
    /// the same Ironic with the same credentials shares version, token, limits and list. A session that
    /// nobody uses any more is forgotten.
    pub fn session(
        &self,
        user: &str,
        made_from: String,
        make: impl FnOnce() -> Result<Session, Error>,
    ) -> Result<Arc<Session>, Error> {
        let mut inner = self.lock();
        if let Some(session) = inner.sessions.get(&made_from).cloned() {
            inner.used_by(user, Some(made_from));
            return Ok(session);
        }
        inner.used_by(user, None);
        let session = make()?;
        let session = Arc::new(match &self.metrics {
            Some(metrics) => session.counted(metrics.clone()),
            None => session,
        });
        inner.sessions.insert(made_from.clone(), Arc::clone(&session));
        inner.used_by(user, Some(made_from));
        Ok(session)
    }

    /// The session that somebody was given last.
    pub fn of(&self, user: &str) -> Option<Arc<Session>> {
        let inner = self.lock();
        inner.sessions.get(inner.users.get(user)?).cloned()
    }

    /// Forgets somebody.
    pub fn leave(&self, user: &str) {
        self.lock().used_by(user, None);
    }

    /// The maps are whole whoever panicked while holding them.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn used_by(&mut self, user: &str, made_from: Option<String>) {
        match made_from {
            Some(made_from) => self.users.insert(user.to_owned(), made_from),
            None => self.users.remove(user),
        };
        let Self { sessions, users } = self;
        sessions.retain(|it, _| users.values().any(|used| used == it));
    }
}

#[cfg(test)]
mod tests {
    use shell::stream::Trust;

    use super::*;
    use crate::Credentials;

    fn session(pool: &Pool, user: &str, made_from: &str) -> Arc<Session> {
        let make =
            || Ok(Session::new("http://ironic", Credentials::None, Trust::new(None).unwrap()));
        pool.session(user, made_from.to_owned(), make).unwrap()
    }

    #[test]
    fn whoever_asks_alike_shares_a_session_and_whoever_asks_otherwise_has_another() {
        let pool = Pool::default();
        let first = session(&pool, "a", "1");
        assert!(Arc::ptr_eq(&first, &session(&pool, "b", "1")));
        assert!(Arc::ptr_eq(&first, &pool.of("b").unwrap()));
        assert!(!Arc::ptr_eq(&first, &session(&pool, "b", "2")));
    }

    #[test]
    fn a_session_that_nobody_uses_is_forgotten_and_one_that_cannot_be_made_is_nobodys() {
        let pool = Pool::default();
        let first = Arc::downgrade(&session(&pool, "a", "1"));
        session(&pool, "b", "1");
        pool.leave("a");
        assert!(first.upgrade().is_some() && pool.of("a").is_none());
        let error = pool.session("b", "2".into(), || Err(Error::NotUrl)).unwrap_err();
        assert_eq!(error, Error::NotUrl);
        assert!(first.upgrade().is_none() && pool.of("b").is_none());
    }
}
