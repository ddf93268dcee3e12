//! One Ironic, shared by all its users: bounded requests, one version, one list.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use config_drive::ApiVersion;
use http::{Method, StatusCode, header};
use ironic::{Error, Node, Request, version};
use openstack_client::Token;
use operator_runtime::answer_memory::Held;
use operator_runtime::http_client::{Body, HttpClient, is_base_url};
use operator_runtime::request_times::{RequestTimes, Timed};
use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use tokio::sync::{Mutex as AsyncMutex, Semaphore, SemaphorePermit};

use crate::answer::{DEADLINE, LARGEST_ANSWER, content, of_web, read};
use crate::credentials::Credentials;
use crate::keystone_error::of_keystone;

/// Limits of one list. A machine has some 4 KiB.
const MOST: Most =
    Most { pages: 50, machines: 10_000, bytes: 32 * 1024 * 1024, memory: 48 * 1024 * 1024 };
/// How many requests run at once; Ironic's own API serves only a few more.
const MAX_CONCURRENT: usize = 8;
/// How many reconciliations wait for one Ironic at a time; they share the first one's result.
const WAITING: usize = 2;
/// How long the negotiated version is used: an upgraded Ironic still accepts the old one.
const KNOWN_FOR: Duration = Duration::from_mins(5);
/// How many machines are read one by one before all are listed again.
const ONE_BY_ONE: usize = 16;
/// The header by which both sides state the API version.
const VERSION: &str = "X-OpenStack-Ironic-API-Version";

/// An Ironic, accessed with particular credentials.
#[derive(Debug)]
pub struct Session {
    endpoint: String,
    credentials: Credentials,
    http: HttpClient,
    version: AsyncMutex<Option<(ApiVersion, Instant)>>,
    known_for: Duration,
    most: Most,
    permits: Semaphore,
    /// Those that wait for lists.
    pub(crate) list_waits: Waits,
    /// Those that wait for changes of machines.
    pub(crate) request_waits: Waits,
    listed: AsyncMutex<Option<Listed>>,
    /// When machines were last changed, by UUID: reads from before may be stale.
    changes: Mutex<BTreeMap<String, Instant>>,
    times: Option<RequestTimes>,
}

/// The callers that wait for one Ironic, and its last speed.
#[derive(Debug)]
pub(crate) struct Waits {
    pub(crate) places: Semaphore,
    pace: Mutex<Pace>,
}

/// The last speed of an Ironic.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Pace {
    /// Not known yet.
    Unknown,
    /// It responded in time.
    Fast,
    /// It timed out, or nearly.
    Slow,
}

impl Default for Waits {
    fn default() -> Self {
        Self { places: Semaphore::new(WAITING), pace: Mutex::new(Pace::Unknown) }
    }
}

impl Waits {
    pub(crate) fn pace(&self) -> Pace {
        *self.pace.lock()
    }

    pub(crate) fn note(&self, pace: Pace) {
        *self.pace.lock() = pace;
    }
}

/// The limits of one list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Most {
    pub(crate) pages: usize,
    pub(crate) machines: usize,
    /// Of text, in bytes.
    pub(crate) bytes: usize,
    /// Of memory for what is kept of it, in bytes.
    pub(crate) memory: usize,
}

/// A page of a list.
#[derive(Deserialize)]
pub(crate) struct Page {
    pub(crate) nodes: Vec<Node>,
    /// Ironic's link to the next page.
    next: Option<IgnoredAny>,
}

/// A list of all machines or its error, and when it was requested.
#[derive(Debug)]
struct Listed {
    since: Instant,
    /// Machine UUID → when it was requested individually since.
    since_of: BTreeMap<String, Instant>,
    outcome: Result<Arc<Held<Node>>, Error>,
}

impl Session {
    /// Creates a session without sending anything; `endpoint` is the API's URL without a version.
    pub fn new(endpoint: &str, credentials: Credentials, http: HttpClient) -> Self {
        let endpoint = endpoint.trim_end_matches('/').trim_end_matches("/v1").to_owned();
        Self {
            endpoint,
            credentials,
            http,
            version: AsyncMutex::new(None),
            known_for: KNOWN_FOR,
            most: MOST,
            permits: Semaphore::new(MAX_CONCURRENT),
            list_waits: Waits::default(),
            request_waits: Waits::default(),
            listed: AsyncMutex::new(None),
            changes: Mutex::default(),
            times: None,
        }
    }

    /// Sets the age at which the version is negotiated again.
    #[cfg(test)]
    pub(crate) fn knowing_for(self, known_for: Duration) -> Self {
        Self { known_for, ..self }
    }

    /// Sets the limits of a list.
    #[cfg(test)]
    pub(crate) fn reading(self, most: Most) -> Self {
        Self { most, ..self }
    }

    /// Counts each request in `times`.
    #[must_use]
    pub fn counted(self, times: RequestTimes) -> Self {
        Self { times: Some(times), ..self }
    }

    /// Returns the API version in use.
    ///
    /// It is negotiated again every few minutes, and when Ironic no longer accepts it.
    pub async fn version(&self) -> Result<ApiVersion, Error> {
        let mut known = self.version.lock().await;
        if let Some((version, since)) = *known
            && since.elapsed() < self.known_for
        {
            return Ok(version);
        }
        let since = Instant::now();
        let (_, document) = self.exchange(&Request::versions(), None).await?;
        Ok(known.insert((version::negotiated(&read(&document?)?)?, since)).0)
    }

    /// Sends a request when fewer are running, and returns the response; null for an empty body.
    /// See [`SessionSlot::ask`].
    pub async fn ask(&self, request: &Request) -> Result<Value, Error> {
        self.slot().await.ask(request).await
    }

    /// Waits until fewer requests are running.
    pub async fn slot(&self) -> SessionSlot<'_> {
        SessionSlot { session: self, _permit: self.permits.acquire().await.ok() }
    }

    /// Returns all machines, from a list no older than `at_most` that includes all answered
    /// changes.
    ///
    /// Concurrent callers share one list, or its error.
    /// Lists need no [`SessionSlot`], because only one runs at a time. Machines that were changed
    /// meanwhile are read one by one, so that a change does not cost all others their list.
    pub async fn nodes(&self, at_most: Duration) -> Result<Arc<Held<Node>>, Error> {
        let mut listed = self.listed.lock().await;
        if let Some(list) = listed.as_mut().filter(|it| it.since.elapsed() <= at_most) {
            let changed = self.changed_since(list);
            if let Some(outcome) = self.renewed(list, changed).await {
                return outcome;
            }
        }
        // What is not returned any more makes room for the new list.
        *listed = None;
        let since = Instant::now();
        let outcome = self.list().await.map(Arc::new);
        // Earlier changes are included in the list.
        self.changes.lock().retain(|_, it| *it >= since);
        *listed = Some(Listed { since, since_of: BTreeMap::new(), outcome: outcome.clone() });
        outcome
    }

    /// Drops the cached list if it is older, unless it is being requested.
    pub(crate) fn evict_list(&self, older_than: Duration) {
        if let Ok(mut listed) = self.listed.try_lock() {
            listed.take_if(|it| it.since.elapsed() > older_than);
        }
    }

    /// Returns a list with these machines read again; `None` when all are to be listed again.
    async fn renewed(
        &self,
        list: &mut Listed,
        changed: Vec<String>,
    ) -> Option<Result<Arc<Held<Node>>, Error>> {
        let Ok(nodes) = &mut list.outcome else {
            return changed.is_empty().then(|| list.outcome.clone());
        };
        if changed.len() > ONE_BY_ONE {
            return None;
        }
        if !changed.is_empty() && Arc::get_mut(nodes).is_none() {
            *nodes = Arc::new(nodes.copy().ok()?);
        }
        for uuid in changed {
            let since = Instant::now();
            let asked = self.send(|it| Cow::Owned(Request::node(it, &uuid))).await;
            let found = match asked.and_then(|it| read::<Node>(&it)) {
                Ok(node) => Some(node),
                Err(Error::NotFound) => None,
                Err(_) => return None,
            };
            let n_bytes = found.as_ref().map_or(0, Node::footprint);
            Arc::get_mut(nodes)?.replace(|it| it.uuid == uuid, found, n_bytes).ok()?;
            list.since_of.insert(uuid, since);
        }
        Some(list.outcome.clone())
    }

    async fn list(&self) -> Result<Held<Node>, Error> {
        let mut nodes: Held<Node> = Held::of(self.http.share());
        let Most { pages, machines, bytes, memory } = self.most;
        let mut n_bytes = 0;
        for _ in 0..pages {
            let after = nodes.last().map(|it| it.uuid.clone());
            let request = |it| Cow::Owned(Request::nodes(it, after.as_deref()));
            let answer = self.send(request).await?;
            n_bytes += answer.len();
            let page: Page = read(&answer)?;
            drop(answer);
            // Ironic links the next page only if there is one; a page without an end would never
            // end.
            let is_last = page.nodes.is_empty() || page.next.is_none();
            let in_memory = page.nodes.iter().map(Node::footprint).sum::<usize>();
            if in_memory.saturating_add(nodes.n_bytes()) > memory {
                let mib = memory >> 20;
                let text = format!("a list that takes more than {mib} MiB in memory");
                return Err(Error::TooLarge(text));
            }
            nodes.add(page.nodes, in_memory).map_err(|_| Error::NoMemory)?;
            if nodes.len() > machines {
                return Err(Error::TooLarge(format!("a list of more than {machines} machines")));
            }
            if n_bytes > bytes {
                let mib = bytes >> 20;
                return Err(Error::TooLarge(format!("a list of more than {mib} MiB")));
            }
            if is_last {
                return Ok(nodes);
            }
        }
        Err(Error::TooLarge(format!("a list of more than {pages} pages")))
    }

    /// Sends a request with the negotiated version.
    ///
    /// It is sent once more if Ironic no longer accepts the version or the token.
    async fn send<'a>(
        &self,
        request: impl Fn(ApiVersion) -> Cow<'a, Request>,
    ) -> Result<Body, Error> {
        let (version, token) = (self.version().await?, self.token().await?);
        let with = Some((version, token.as_ref()));
        let (status, answer) = self.exchange(&request(version), with).await?;
        match (status, &self.credentials) {
            (StatusCode::NOT_ACCEPTABLE, _) => {
                let mut known = self.version.lock().await;
                // Another caller may have negotiated it again meanwhile.
                *known = known.filter(|it| it.0 != version);
            }
            (StatusCode::UNAUTHORIZED, Credentials::Keystone(login)) => {
                if let Some(token) = &token {
                    login.forget(token);
                }
            }
            _ => return answer,
        }
        let (version, token) = (self.version().await?, self.token().await?);
        self.exchange(&request(version), Some((version, token.as_ref()))).await?.1
    }

    /// Returns the token to send; `None` where the Ironic takes no tokens.
    async fn token(&self) -> Result<Option<Token>, Error> {
        match &self.credentials {
            Credentials::Keystone(login) => {
                login.token(&self.http).await.map(Some).map_err(of_keystone)
            }
            Credentials::None | Credentials::HttpBasic(_) => Ok(None),
        }
    }

    /// Returns a response's status and body, or the error of a failed exchange; the request has the
    /// credentials where it has a version.
    async fn exchange(
        &self,
        request: &Request,
        with: Option<(ApiVersion, Option<&Token>)>,
    ) -> Result<(StatusCode, Result<Body, Error>), Error> {
        if !is_base_url(&self.endpoint) {
            return Err(Error::NotUrl);
        }
        let body = request.body.as_ref().map(|it| it.expose().to_string()).unwrap_or_default();
        let mut sent = http::Request::builder()
            .method(&request.method)
            .uri(format!("{}{}", self.endpoint, request.path))
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/json");
        if let Some((version, token)) = with {
            sent = sent.header(VERSION, version.to_string());
            if let Credentials::HttpBasic(basic) = &self.credentials {
                sent = sent.header(header::AUTHORIZATION, basic.expose());
            }
            if let Some(token) = token {
                sent = sent.header("X-Auth-Token", token.text());
            }
        }
        let sent = sent.body(body.into()).map_err(|_| Error::NotUrl)?;
        let timed = Timed::begin(self.times.as_ref(), request.method.as_str());
        let answer = self.http.send(sent, DEADLINE, LARGEST_ANSWER).await;
        let (status, said) = match answer.map_err(of_web) {
            Ok(answer) => (Ok(answer.status()), content(answer)),
            Err(error) => (Err(error.clone()), Err(error)),
        };
        timed.end(said.as_ref().err().map(|it| it.reason().word));
        Ok((status?, said))
    }

    /// Returns the machines for which a list may be stale.
    fn changed_since(&self, list: &Listed) -> Vec<String> {
        let is_late = |(uuid, at): &(&String, &Instant)| {
            **at >= *list.since_of.get(*uuid).unwrap_or(&list.since)
        };
        self.changes.lock().iter().filter(is_late).map(|(uuid, _)| uuid.clone()).collect()
    }
}

/// A permit to send requests; few exist at a time.
#[derive(Debug)]
pub struct SessionSlot<'a> {
    session: &'a Session,
    _permit: Option<SemaphorePermit<'a>>,
}

impl SessionSlot<'_> {
    /// Sends a request and returns the response; null for an empty body.
    ///
    /// # Guarantees
    /// The request is sent once. If Ironic no longer accepts the token or the version, it is sent
    /// once more, which is harmless because it was not executed. A machine that was read before a
    /// change of it was answered or abandoned is not returned to anyone afterwards.
    pub async fn ask(&self, request: &Request) -> Result<Value, Error> {
        let _change = Change::of(self.session, request);
        let answer = self.session.send(|_| Cow::Borrowed(request)).await?;
        if answer.is_empty() { Ok(Value::Null) } else { read(&answer) }
    }

    /// Returns one machine in its present state.
    pub async fn node(&self, uuid: &str) -> Result<Node, Error> {
        read(&self.session.send(|it| Cow::Owned(Request::node(it, uuid))).await?)
    }
}

/// A change in progress: what is read before it ends or is abandoned may not show it.
struct Change<'a> {
    session: &'a Session,
    machine: String,
}

impl<'a> Change<'a> {
    /// Returns the change that a request makes of a machine; `None` if it makes none.
    fn of(session: &'a Session, request: &Request) -> Option<Self> {
        let below = request.path.strip_prefix("/v1/nodes/")?;
        let machine = below.split(['/', '?']).next().filter(|_| request.method != Method::GET)?;
        let change = Self { session, machine: machine.to_owned() };
        change.mark();
        Some(change)
    }

    fn mark(&self) {
        self.session.changes.lock().insert(self.machine.clone(), Instant::now());
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.mark();
    }
}
