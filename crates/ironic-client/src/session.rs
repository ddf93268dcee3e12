//! One Ironic as all who need it share it: bounded requests, one version, one list.

use std::sync::{Arc, Mutex as Moment, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use config_drive::ApiVersion;
use http::header;
use ironic::{Error, Method, Node, Request, version};
use serde_json::Value;
use shell::metrics::Metrics;
use shell::stream::Trust;
use shell::web::{self, WebFault};
use tokio::sync::{Mutex, OnceCell, Semaphore};

use crate::Credentials;
use crate::timed::Timed;

/// How long one answer may take. Some verbs are answered only after the machine's management controller
/// was asked.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);
/// The largest answer: a page of 500 machines with all that is asked of each.
const LARGEST_ANSWER: usize = 64 * 1024 * 1024;
/// How many requests are under way at once; Ironic's own API serves few more.
const AT_ONCE: usize = 8;
/// The header by which both sides say which version they speak.
const VERSION: &str = "X-OpenStack-Ironic-API-Version";

/// An Ironic, asked by somebody.
#[derive(Debug)]
pub struct Session {
    endpoint: String,
    credentials: Credentials,
    trust: Trust,
    version: OnceCell<ApiVersion>,
    permits: Semaphore,
    listed: Mutex<Option<Listed>>,
    /// When the last change was answered: what was read before may not show it.
    changed: Moment<Option<Instant>>,
    metrics: Option<Metrics>,
}

/// A list of all machines, or why there is none, and when it was asked for.
#[derive(Debug)]
struct Listed {
    since: Instant,
    outcome: Result<Arc<Vec<Node>>, Error>,
}

impl Session {
    /// Nothing is asked yet. The endpoint is the API's URL without a version.
    pub fn new(endpoint: &str, credentials: Credentials, trust: Trust) -> Self {
        let endpoint = endpoint.trim_end_matches('/').trim_end_matches("/v1").to_owned();
        Self {
            endpoint,
            credentials,
            trust,
            version: OnceCell::new(),
            permits: Semaphore::new(AT_ONCE),
            listed: Mutex::new(None),
            changed: Moment::new(None),
            metrics: None,
        }
    }

    /// The same, with each request counted.
    #[must_use]
    pub fn counted(self, metrics: Metrics) -> Self {
        Self { metrics: Some(metrics), ..self }
    }

    /// The version of the API that is spoken; asked for once.
    pub async fn version(&self) -> Result<ApiVersion, Error> {
        let ask =
            || async { version::negotiated(&self.exchange(&Request::versions(), None).await?) };
        self.version.get_or_try_init(ask).await.copied()
    }

    /// The answer to a request; null where it has no body.
    ///
    /// # Guarantees
    /// Sent once, but for a token that Ironic does not know any more: then once more with a new one,
    /// which is harmless because it was not acted upon. Lists that were asked for before the answer to a
    /// change are not given to anybody any more.
    pub async fn ask(&self, request: &Request) -> Result<Value, Error> {
        let version = self.version().await?;
        let mut answer = self.exchange(request, Some(version)).await;
        if let (Err(Error::Unauthorized), Credentials::Keystone(login)) =
            (&answer, &self.credentials)
        {
            login.forget().await;
            answer = self.exchange(request, Some(version)).await;
        }
        if request.method != Method::Get {
            *self.changed() = Some(Instant::now());
        }
        answer
    }

    /// A moment is whole whoever panicked while holding it.
    fn changed(&self) -> MutexGuard<'_, Option<Instant>> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One machine, as it is now.
    pub async fn node(&self, uuid: &str) -> Result<Node, Error> {
        let version = self.version().await?;
        read(self.ask(&Request::node(version, uuid)).await?)
    }

    /// All machines, by a list that is at most that old and shows all changes that were answered: those
    /// who look at the same time share one, or the reason why there is none.
    pub async fn nodes(&self, at_most: Duration) -> Result<Arc<Vec<Node>>, Error> {
        let mut listed = self.listed.lock().await;
        let shows_all = |since: Instant| self.changed().is_none_or(|it| it < since);
        let is_fresh = |it: &&Listed| it.since.elapsed() <= at_most && shows_all(it.since);
        if let Some(list) = listed.as_ref().filter(is_fresh) {
            return list.outcome.clone();
        }
        let since = Instant::now();
        let outcome = self.list().await.map(Arc::new);
        *listed = Some(Listed { since, outcome: outcome.clone() });
        outcome
    }

    async fn list(&self) -> Result<Vec<Node>, Error> {
        let version = self.version().await?;
        let mut nodes: Vec<Node> = Vec::new();
        loop {
            let after = nodes.last().map(|it| it.uuid.clone());
            let mut page = self.ask(&Request::nodes(version, after.as_deref())).await?;
            let more: Vec<Node> = read(page["nodes"].take())?;
            // Ironic says where to go on only where it does; a page without an end would never end.
            let is_last = more.is_empty() || page.get("next").is_none();
            nodes.extend(more);
            if is_last {
                return Ok(nodes);
            }
        }
    }

    async fn exchange(
        &self,
        request: &Request,
        version: Option<ApiVersion>,
    ) -> Result<Value, Error> {
        let body = request.body.as_ref().map(|it| it.expose().to_string()).unwrap_or_default();
        let mut sent = http::Request::builder()
            .method(request.method.word())
            .uri(format!("{}{}", self.endpoint, request.path))
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/json");
        if let Some(version) = version {
            sent = sent.header(VERSION, version.to_string());
            sent = match &self.credentials {
                Credentials::None => sent,
                Credentials::HttpBasic(basic) => sent.header(header::AUTHORIZATION, basic.expose()),
                Credentials::Keystone(login) => {
                    sent.header("X-Auth-Token", login.token(&self.trust).await?.expose())
                }
            };
        }
        let sent = sent.body(body.into()).map_err(|_| Error::NotUrl)?;
        let _permit = self.permits.acquire().await;
        let timed = Timed::begin(self.metrics.as_ref(), request.method);
        let answer = web::ask(sent, &self.trust, DEADLINE, LARGEST_ANSWER).await;
        let answer = answer.map_err(of_web).and_then(|it| content(&it));
        timed.end(&answer);
        answer
    }
}

/// What an answer holds; null where it has no body.
fn content(answer: &http::Response<impl AsRef<[u8]>>) -> Result<Value, Error> {
    let body = answer.body().as_ref();
    match Error::of_answer(answer.status().as_u16(), body) {
        Some(error) => Err(error),
        None if body.is_empty() => Ok(Value::Null),
        None => serde_json::from_slice(body).map_err(|_| Error::NotIronic),
    }
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, Error> {
    serde_json::from_value(value).map_err(|_| Error::NotIronic)
}

/// Why there was no answer.
pub(crate) fn of_web(fault: WebFault) -> Error {
    match fault {
        WebFault::NotUrl => Error::NotUrl,
        WebFault::Unreachable(cause) => Error::Unreachable(cause),
        WebFault::Untrusted(cause) => Error::Untrusted(cause),
        WebFault::Cut(status) => {
            Error::Unreachable(format!("its answer of HTTP status {status} broke off"))
        }
    }
}
