//! Nova's API, as one user sees it in one region.

use std::sync::Arc;
use std::time::Instant;

use http::{HeaderMap, Method, Request, StatusCode, header};
use hyper::body::Bytes;
use jiff::civil::DateTime;
use operator_runtime::http_client;
use operator_runtime::metrics::Metrics;
use operator_runtime::tls_stream::CaTrust;
use serde::Deserialize;
use tokio::sync::Mutex;

use crate::error::{Error, Fault, Service};
use crate::keystone::{Login, Token};
use crate::microversion::{self, Document, NEEDED};
use crate::response::{DEADLINE, LARGEST, parsed};

/// How many hypervisors are requested at once: nova's own limit.
const PAGE: usize = 1000;
/// How many pages are read: more would be a service that never ends its list.
const PAGES: usize = 50;
/// How many services are read.
const SERVICES: usize = 100_000;
/// Error word of a request that was abandoned.
const GIVEN_UP: &str = "GivenUp";

/// Nova's API at the endpoint that the catalog has for a region.
#[derive(Debug)]
pub struct Compute {
    login: Login,
    trust: CaTrust,
    region: String,
    metrics: Option<Metrics>,
    /// The endpoint whose microversions are known to suffice.
    negotiated: Mutex<Option<Arc<str>>>,
}

/// A nova-compute service.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ComputeService {
    /// The host under which it is registered: its option `host`.
    pub host: String,
    /// What nova says of it.
    pub state: ServiceState,
}

/// What nova says of a service.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ServiceState {
    /// The database of the service's cell does not answer.
    Unknown,
    /// The service is known.
    Known(KnownService),
}

/// A service of a cell that answers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KnownService {
    /// Its UUID.
    pub id: String,
    /// Whether it has reported within nova's `service_down_time` and is not forced down.
    pub is_up: bool,
    /// Whether an administrator has forced it down.
    pub is_forced_down: bool,
    /// Whether the scheduler leaves it out.
    pub is_disabled: bool,
    /// Why it is disabled, in the administrator's words.
    pub disabled_reason: Option<String>,
    /// When its record was last written, in UTC: its last report, or a later change of the record.
    pub updated_at: Option<DateTime>,
}

/// A hypervisor, which nova lists only after its host was mapped to a cell.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
pub struct Hypervisor {
    /// The UUID of the compute node; placement has its resource provider under the same one.
    pub id: String,
    /// Its service.
    pub service: HypervisorService,
}

/// The service of a hypervisor.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
pub struct HypervisorService {
    /// The host under which it is registered.
    pub host: String,
}

#[derive(Deserialize)]
struct Services {
    services: Vec<ListedService>,
}

/// A service in nova's list; a service of a cell that does not answer has only host and status.
#[derive(Deserialize)]
struct ListedService {
    host: String,
    status: String,
    id: Option<String>,
    state: Option<String>,
    #[serde(default)]
    forced_down: bool,
    disabled_reason: Option<String>,
    updated_at: Option<String>,
}

#[derive(Deserialize)]
struct Hypervisors {
    hypervisors: Vec<Hypervisor>,
}

impl Compute {
    /// Creates the client without sending anything.
    pub fn new(login: Login, trust: CaTrust, region: &str) -> Self {
        let negotiated = Mutex::const_new(None);
        Self { login, trust, region: region.to_owned(), metrics: None, negotiated }
    }

    /// Counts each request in `metrics`.
    #[must_use]
    pub fn counted(self, metrics: Metrics) -> Self {
        Self { metrics: Some(metrics), ..self }
    }

    /// Returns all nova-compute services, in one request.
    pub async fn services(&self) -> Result<Vec<ComputeService>, Fault> {
        let body = self.send("/os-services?binary=nova-compute").await?;
        services_of(&body).map_err(of_nova)
    }

    /// Returns all hypervisors, page by page.
    ///
    /// A page may have fewer entries than were requested although another one follows, because nova
    /// leaves out hosts without a mapping afterwards; so the last page is the first empty one.
    pub async fn hypervisors(&self) -> Result<Vec<Hypervisor>, Fault> {
        let mut all: Vec<Hypervisor> = Vec::new();
        for _ in 0..PAGES {
            let marker = all.last().map(|it| format!("&marker={}", it.id)).unwrap_or_default();
            let path = format!("/os-hypervisors/detail?limit={PAGE}{marker}");
            let page = hypervisors_of(&self.send(&path).await?).map_err(of_nova)?;
            if page.is_empty() {
                return Ok(all);
            }
            all.extend(page);
        }
        Err(of_nova(Error::TooLarge(format!("more than {PAGES} pages of hypervisors"))))
    }

    /// Sends a request; once more with a new token if the service rejects the cached one.
    async fn send(&self, path: &str) -> Result<Bytes, Fault> {
        match self.attempt(path).await {
            Err(Fault { service: Service::Compute, error: Error::Unauthorized }) => {
                self.login.forget().await;
                self.attempt(path).await
            }
            answer => answer,
        }
    }

    async fn attempt(&self, path: &str) -> Result<Bytes, Fault> {
        let token = self.token().await?;
        let endpoint = self.endpoint(&token).await?;
        let (headers, body) = self.exchange(&endpoint, path, &token).await.map_err(of_nova)?;
        let used = headers.get(microversion::HEADER).and_then(|it| it.to_str().ok());
        if used != Some(&microversion::header_value()) {
            let supported = used.unwrap_or("none").to_owned();
            return Err(of_nova(Error::Version { needed: NEEDED, supported }));
        }
        Ok(body)
    }

    async fn token(&self) -> Result<Token, Fault> {
        let token = self.login.token(&self.trust).await;
        token.map_err(|it| Fault::of(Service::Identity, it))
    }

    /// Returns the endpoint of the API, whose microversions are checked once.
    async fn endpoint(&self, token: &Token) -> Result<Arc<str>, Fault> {
        let no_endpoint = || of_nova(Error::NoEndpoint { region: self.region.clone() });
        let url = token.catalog().endpoint(Service::Compute, &self.region);
        let url = base(url.ok_or_else(no_endpoint)?);
        let mut negotiated = self.negotiated.lock().await;
        if let Some(known) = negotiated.as_ref().filter(|it| ***it == *url) {
            return Ok(Arc::clone(known));
        }
        let (_, body) = self.exchange(url, "/", token).await.map_err(of_nova)?;
        supports(&body).map_err(of_nova)?;
        Ok(Arc::clone(negotiated.insert(url.into())))
    }

    async fn exchange(
        &self,
        endpoint: &str,
        path: &str,
        token: &Token,
    ) -> Result<(HeaderMap, Bytes), Error> {
        let request = Request::builder()
            .method(Method::GET)
            .uri(format!("{endpoint}{path}"))
            .header(header::ACCEPT, "application/json")
            .header(microversion::HEADER, microversion::header_value())
            .header("X-Auth-Token", token.text())
            .body(Bytes::new())
            .map_err(|_| Error::NotUrl)?;
        let timed = Timed::begin(self.metrics.as_ref());
        let answer = http_client::send(request, &self.trust, DEADLINE, LARGEST).await;
        let answer = answer.map_err(|it| Error::of_http(it, LARGEST)).and_then(|answer| {
            let (parts, body) = answer.into_parts();
            match Error::of_response(parts.status, &body) {
                Some(error) => Err(error),
                None if parts.status == StatusCode::OK => Ok((parts.headers, body)),
                None => Err(Error::NotTheService),
            }
        });
        timed.end(answer.as_ref().err());
        answer
    }
}

fn of_nova(error: Error) -> Fault {
    Fault::of(Service::Compute, error)
}

/// Returns the services of a response.
pub(crate) fn services_of(body: &Bytes) -> Result<Vec<ComputeService>, Error> {
    let listed = parsed::<Services>(body)?.services;
    if listed.len() > SERVICES {
        return Err(Error::TooLarge(format!("more than {SERVICES} services")));
    }
    let services = listed.into_iter().map(ComputeService::of).collect::<Option<_>>();
    services.ok_or(Error::NotTheService)
}

/// Returns the hypervisors of a page.
pub(crate) fn hypervisors_of(body: &Bytes) -> Result<Vec<Hypervisor>, Error> {
    let page = parsed::<Hypervisors>(body)?.hypervisors;
    if page.iter().all(|it| is_id(&it.id)) { Ok(page) } else { Err(Error::NotTheService) }
}

/// Checks that the API that describes itself so supports the needed microversion.
pub(crate) fn supports(body: &Bytes) -> Result<(), Error> {
    let document: Document = parsed(body)?;
    if document.supports_needed() {
        return Ok(());
    }
    Err(Error::Version { needed: NEEDED, supported: document.supported() })
}

/// Returns the URL of the API's version: an older catalog has the project's id behind it.
fn base(url: &str) -> &str {
    const VERSION: &str = "/v2.1";
    let end = url.find(VERSION).map_or(url.len(), |at| at + VERSION.len());
    url[..end].trim_end_matches('/')
}

/// Whether a text can be an id in a path: nova's are UUIDs.
fn is_id(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 64
        && text.chars().all(|it| it.is_ascii_hexdigit() || it == '-')
}

impl ComputeService {
    /// Returns the service; `None` when a field has no value that nova gives it.
    fn of(listed: ListedService) -> Option<Self> {
        let host = listed.host;
        if listed.status == "UNKNOWN" {
            return Some(Self { host, state: ServiceState::Unknown });
        }
        let is_disabled = match listed.status.as_str() {
            "enabled" => false,
            "disabled" => true,
            _ => return None,
        };
        let is_up = match listed.state?.as_str() {
            "up" => true,
            "down" => false,
            _ => return None,
        };
        let state = ServiceState::Known(KnownService {
            id: listed.id.filter(|it| is_id(it))?,
            is_up,
            is_forced_down: listed.forced_down,
            is_disabled,
            disabled_reason: listed.disabled_reason.filter(|it| !it.is_empty()),
            updated_at: listed.updated_at.and_then(|it| it.parse().ok()),
        });
        Some(Self { host, state })
    }
}

/// A request in progress, which is counted however it ends.
struct Timed<'a> {
    metrics: Option<&'a Metrics>,
    begun: Instant,
    result: &'static str,
}

impl<'a> Timed<'a> {
    fn begin(metrics: Option<&'a Metrics>) -> Self {
        Self { metrics, begun: Instant::now(), result: GIVEN_UP }
    }

    fn end(mut self, error: Option<&Error>) {
        self.result = error.map_or("Ok", Error::word);
    }
}

impl Drop for Timed<'_> {
    fn drop(&mut self) {
        if let Some(metrics) = self.metrics {
            metrics.asked_nova(self.result, self.begun.elapsed());
        }
    }
}
