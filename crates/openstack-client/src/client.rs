//! Requests to one service in one region: token, endpoint, microversion, limits, counting.

use std::sync::Arc;

use http::{HeaderMap, Method, Request, StatusCode, header};
use hyper::body::Bytes;
use operator_runtime::answer_memory::Held;
use operator_runtime::http_client::{Body, HttpClient, is_base_url};
use operator_runtime::request_times::{RequestTimes, Timed};
use serde_json::Value;

use crate::error::{Error, Fault, Service};
use crate::footprint::Footprint;
use crate::keystone::{Login, Token};
use crate::microversion::{self, Microversion};
use crate::response::{DEADLINE, LARGEST};
use crate::shared_request::SharedRequest;
use crate::text::{checked_id, shown};

/// Maximum size of the body of a request, in bytes.
const LARGEST_REQUEST: usize = 256 * 1024;

/// A service at the endpoint that the catalog has for a region.
#[derive(Debug)]
pub(crate) struct Client {
    service: Service,
    login: Arc<Login>,
    region: String,
    transport: Transport,
    /// The last endpoint whose versions suffice. Where they do not, the API may have been upgraded
    /// since.
    checked: SharedRequest<Option<String>, Result<(), Error>>,
}

/// What requests are sent by.
#[derive(Clone, Debug)]
struct Transport {
    http: HttpClient,
    times: Option<RequestTimes>,
}

/// A request, without what every request to the service has.
#[derive(Clone, Copy)]
struct Call<'a> {
    method: &'a Method,
    path: &'a str,
    body: Option<&'a Value>,
    microversion: Option<Microversion>,
}

impl Client {
    /// Creates the client without sending anything.
    pub(crate) fn new(service: Service, login: Arc<Login>, http: HttpClient, region: &str) -> Self {
        let transport = Transport { http, times: None };
        let checked = SharedRequest::default();
        Self { service, login, region: region.to_owned(), transport, checked }
    }

    /// Counts each request in `times`.
    #[must_use]
    pub(crate) fn counted(mut self, times: RequestTimes) -> Self {
        self.transport.times = Some(times);
        self
    }

    /// Returns an error as a fault of the service.
    pub(crate) const fn fault(&self, error: Error) -> Fault {
        Fault::of(self.service, error)
    }

    /// Checks an id before a path is made of it.
    pub(crate) fn id<'a>(&self, id: &'a str) -> Result<&'a str, Fault> {
        checked_id(id).map_err(|it| self.fault(it))
    }

    /// Reads what is at a path, and parses it by `of`.
    pub(crate) async fn get<T>(
        &self,
        path: &str,
        of: impl FnOnce(&Bytes) -> Result<T, Error>,
    ) -> Result<T, Fault> {
        let body = self.send(&Method::GET, path, None).await?;
        of(&body).map_err(|it| self.fault(it))
    }

    /// The same; `None` when nothing is there.
    pub(crate) async fn find<T>(
        &self,
        path: &str,
        of: impl FnOnce(&Bytes) -> Result<T, Error>,
    ) -> Result<Option<T>, Fault> {
        match self.get(path, of).await {
            Ok(found) => Ok(Some(found)),
            Err(fault) if fault == self.fault(Error::NotFound) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// Reads the list that is at a path, and parses it by `of`.
    pub(crate) async fn list<T: Footprint>(
        &self,
        path: &str,
        of: impl FnOnce(&Bytes) -> Result<Vec<T>, Error>,
    ) -> Result<Held<T>, Fault> {
        let mut list = self.held();
        let entries = self.get(path, of).await?;
        self.add(&mut list, entries)?;
        Ok(list)
    }

    /// Returns an empty list.
    pub(crate) fn held<T>(&self) -> Held<T> {
        Held::of(self.transport.http.share())
    }

    /// Adds entries to a list, as long as it takes no more memory than such a list may.
    pub(crate) fn add<T: Footprint>(
        &self,
        list: &mut Held<T>,
        entries: Vec<T>,
    ) -> Result<(), Fault> {
        let n_bytes = entries.iter().map(T::footprint).sum::<usize>();
        if n_bytes.saturating_add(list.n_bytes()) > T::MOST {
            let (plural, mib) = (T::PLURAL, T::MOST >> 20);
            let what = format!("{plural} that take more than {mib} MiB of memory");
            return Err(self.fault(Error::TooLarge(what)));
        }
        list.add(entries, n_bytes).map_err(|it| self.fault(it.into()))
    }

    /// Deletes what is at a path; it is no error when nothing is there.
    pub(crate) async fn delete(&self, path: &str) -> Result<(), Fault> {
        match self.send(&Method::DELETE, path, None).await {
            Ok(_) => Ok(()),
            Err(fault) if fault == self.fault(Error::NotFound) => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// Sends a request and returns the body of a successful response; once more with a new token if
    /// the service rejects the cached one, because it has done nothing then, and the new token's catalog
    /// has the service at the same place.
    ///
    /// # Errors
    /// [`Error::NotLeader`], without a request, for one that changes something while another process
    /// leads; see [`Login::leading`].
    pub(crate) async fn send(
        &self,
        method: &Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Body, Fault> {
        let call = Call { method, path, body, microversion: Microversion::of(self.service) };
        let token = self.token().await?;
        match self.attempt(call, &token).await {
            Err(fault) if fault == self.fault(Error::Unauthorized) => {
                self.login.forget(&token);
                let renewed = self.token().await?;
                if self.url(&renewed) != self.url(&token) {
                    return Err(fault);
                }
                self.attempt(call, &renewed).await
            }
            answer => answer,
        }
    }

    async fn token(&self) -> Result<Token, Fault> {
        let token = self.login.token(&self.transport.http).await;
        token.map_err(|it| Fault::of(Service::Identity, it))
    }

    async fn attempt(&self, call: Call<'_>, token: &Token) -> Result<Body, Fault> {
        let of_service = |it| self.fault(it);
        let endpoint = self.endpoint(token).await.map_err(of_service)?;
        if call.method != Method::GET && !self.login.may_write() {
            return Err(self.fault(Error::NotLeader));
        }
        let (headers, body) =
            self.transport.exchange(endpoint, call, token).await.map_err(of_service)?;
        let Some(microversion) = call.microversion else { return Ok(body) };
        let used = headers.get(microversion::HEADER).and_then(|it| it.to_str().ok());
        match used {
            Some(used) if used == microversion.header_value() => Ok(body),
            Some(used) => {
                let (needed, supported) = (microversion.text, shown(used));
                Err(self.fault(Error::Version { needed, supported }))
            }
            None => Err(self.fault(Error::NotTheService)),
        }
    }

    /// Returns the URL that a token's catalog has for the service.
    fn url<'a>(&self, token: &'a Token) -> Option<&'a str> {
        token.catalog().endpoint(self.service, &self.region)
    }

    /// Returns the endpoint of the API, whose versions are checked once: what has no description of
    /// them gets no other request.
    ///
    /// It is requested without a microversion: an API that does not support the needed one would
    /// reject the request instead of describing what it supports.
    async fn endpoint<'a>(&self, token: &'a Token) -> Result<&'a str, Error> {
        let url = self.url(token);
        let url = url.ok_or_else(|| Error::NoEndpoint { region: self.region.clone() })?;
        if !is_base_url(url) {
            return Err(Error::NotUrl);
        }
        let (service, url) = (self.service, base(self.service, url));
        let request = || {
            let (transport, endpoint, token) =
                (self.transport.clone(), url.to_owned(), token.clone());
            async move {
                let call = Call { method: &Method::GET, path: "/", body: None, microversion: None };
                let answer = transport.exchange(&endpoint, call, &token).await;
                // What has no description of its versions is another server: its 404 says of no
                // object that it is gone.
                let (_, document) = answer
                    .map_err(|it| if it == Error::NotFound { Error::NotTheService } else { it })?;
                microversion::check(service, &document)
            }
        };
        let suffices = |known: &Option<String>| (known.as_deref() == Some(url)).then_some(Ok(()));
        let learned = |outcome: &Result<(), Error>| outcome.is_ok().then(|| url.to_owned());
        self.checked.get(url, suffices, request, learned).await?;
        Ok(url)
    }
}

impl Transport {
    async fn exchange(
        &self,
        endpoint: &str,
        call: Call<'_>,
        token: &Token,
    ) -> Result<(HeaderMap, Body), Error> {
        let request = request(endpoint, call, token)?;
        let timed = Timed::begin(self.times.as_ref(), call.method.as_str());
        let answer = self.http.send(request, DEADLINE, LARGEST).await;
        let answer = answer.map_err(|it| Error::of_http(it, LARGEST)).and_then(|answer| {
            let (parts, body) = answer.into_parts();
            match Error::of_response(parts.status, &body) {
                Some(error) => Err(error),
                None if is_expected(call.method, parts.status) => Ok((parts.headers, body)),
                None => Err(Error::NotTheService),
            }
        });
        timed.end(answer.as_ref().err().map(Error::word));
        answer
    }
}

fn request(endpoint: &str, call: Call<'_>, token: &Token) -> Result<Request<Bytes>, Error> {
    let mut request = Request::builder()
        .method(call.method)
        .uri(format!("{endpoint}{}", call.path))
        .header(header::ACCEPT, "application/json")
        .header("X-Auth-Token", token.text());
    if let Some(microversion) = call.microversion {
        request = request.header(microversion::HEADER, microversion.header_value());
    }
    if call.body.is_some() {
        request = request.header(header::CONTENT_TYPE, "application/json");
    }
    let body = call.body.map(|it| Bytes::from(it.to_string())).unwrap_or_default();
    if body.len() > LARGEST_REQUEST {
        let kib = LARGEST_REQUEST >> 10;
        return Err(Error::Refused(format!("a request of more than {kib} KiB is not sent")));
    }
    request.body(body).map_err(|_| Error::NotUrl)
}

/// Returns whether a successful status is one with which the services answer such a request.
fn is_expected(method: &Method, status: StatusCode) -> bool {
    match *method {
        Method::GET => status == StatusCode::OK,
        Method::DELETE => status == StatusCode::NO_CONTENT,
        _ => matches!(status, StatusCode::OK | StatusCode::ACCEPTED | StatusCode::NO_CONTENT),
    }
}

/// Returns the URL of an endpoint in the form to which paths are appended: nova's with the version,
/// behind which an older catalog has the project's id; neutron's without, which some catalogs have.
fn base(service: Service, url: &str) -> &str {
    const COMPUTE: &str = "/v2.1";
    let url = url.trim_end_matches('/');
    match service {
        Service::Compute => {
            let end = url.find(COMPUTE).map_or(url.len(), |at| at + COMPUTE.len());
            &url[..end]
        }
        Service::Network => url.strip_suffix("/v2.0").unwrap_or(url),
        Service::Identity | Service::Placement => url,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_appended_to_what_the_catalog_has() {
        for (service, url, expected) in [
            (Service::Compute, "http://n:8774/v2.1/0123", "http://n:8774/v2.1"),
            (Service::Compute, "http://n/compute/v2.1/", "http://n/compute/v2.1"),
            (Service::Placement, "http://p/placement/", "http://p/placement"),
            (Service::Network, "http://q:9696/", "http://q:9696"),
            (Service::Network, "http://q:9696/v2.0/", "http://q:9696"),
        ] {
            assert_eq!(base(service, url), expected);
        }
    }
}
