//! The HTTP server of the fake nova: token, microversion, and the faults that tests set.

use std::sync::{Arc, Weak};
use std::time::Duration;

use anyhow::Result;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State as Extension;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderName, Method, StatusCode, Uri};
use serde_json::json;
use tokio::net::TcpListener;

use super::fault::NovaFault;
use super::shared::Shared;
use super::{compute, network, placement, rejection};
use crate::answer::Answer;
use crate::http_service::{bind, serve};

/// The header with which client and server negotiate the microversion.
const VERSION: HeaderName = HeaderName::from_static("openstack-api-version");
/// The header with the token.
const TOKEN: HeaderName = HeaderName::from_static("x-auth-token");
/// The oldest microversion of nova in whose forms the fake answers: older ones have no UNKNOWN.
const OLDEST: u32 = 69;
/// The oldest microversion of placement in whose forms the fake answers: older ones have no
/// generation of consumers.
const OLDEST_OF_PLACEMENT: u32 = 28;

/// What nova reads of all cells at once, and waits for each of them.
const OF_ALL_CELLS: [&str; 4] =
    ["/v2.1/os-services", "/v2.1/servers", "/v2.1/servers/detail", "/v2.1/os-migrations"];

/// The services that share the server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Service {
    Compute,
    Placement,
    Network,
}

/// Listens at the address until it is stopped.
pub(crate) async fn listen(shared: &Arc<Shared>) -> Result<()> {
    serve_at(shared, bind(shared.address, "nova").await?);
    Ok(())
}

/// The same with an existing listener.
pub(crate) fn serve_at(shared: &Arc<Shared>, listener: TcpListener) {
    let router = Router::new().fallback(answer).with_state(Arc::downgrade(shared));
    *shared.server.lock() = Some(serve(listener, router));
}

async fn answer(
    Extension(shared): Extension<Weak<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let Some(shared) = shared.upgrade() else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let path = uri.path_and_query().map_or("/", |it| it.as_str());
    let Some(service) = Service::of(uri.path()) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let (fault, n_heals) = shared.arrived(&format!("{method} {path}"));
    match fault {
        Some(NovaFault::Status(status)) => {
            let words = "This is what the test has set.";
            return service.refused(status, words).into_response();
        }
        Some(NovaFault::Garbage) => return with_version("<html>".into_response(), &headers),
        Some(NovaFault::Silence) => shared.healed(n_heals).await,
        Some(NovaFault::LostAnswer) | None => {}
    }
    if let Some(refusal) = rejection(&shared, service, uri.path(), &headers) {
        return refusal.into_response();
    }
    let wait = shared.wait(&method, uri.path());
    let answer = shared.act(method.as_str(), path, serde_json::from_slice(&body).ok());
    tokio::time::sleep(wait).await;
    if fault == Some(NovaFault::LostAnswer) {
        shared.healed(n_heals).await;
    }
    with_version(answer.into_response(), &headers)
}

impl Shared {
    /// Returns how long nova waits for its cells before it answers.
    fn wait(&self, method: &Method, path: &str) -> Duration {
        let is_of_all = *method == Method::GET && OF_ALL_CELLS.contains(&path);
        if is_of_all { self.state().waits_for_cells() } else { Duration::ZERO }
    }
}

/// Returns the response with the microversion of the request, which was used.
fn with_version(mut response: Response, headers: &HeaderMap) -> Response {
    let version = headers.get(VERSION).cloned();
    response.headers_mut().extend(version.map(|it| (VERSION, it)));
    response
}

/// Returns the rejection of a request without a token of Keystone, or with a microversion that is
/// not supported; `None` when there is none.
fn rejection(shared: &Shared, service: Service, path: &str, headers: &HeaderMap) -> Option<Answer> {
    let text = |name: HeaderName| headers.get(name).and_then(|it| it.to_str().ok());
    // The description of the versions needs no token.
    if ["/v2.1", "/placement", "/network"].contains(&path.trim_end_matches('/')) {
        return None;
    }
    let token = text(TOKEN).unwrap_or_default();
    if !shared.keystone.has_given(token) {
        let words = "The request you have made requires authentication.";
        let error = json!({ "code": 401, "title": "Unauthorized", "message": words });
        return Some(Answer::of(401, json!({ "error": error })));
    }
    let (name, major, range) = service.versions()?;
    let asked = text(VERSION).and_then(|it| it.strip_prefix(name)).unwrap_or_default().trim();
    let minor = asked.strip_prefix(major).and_then(|it| it.parse::<u32>().ok());
    if minor.is_none_or(|it| !range.contains(&it)) {
        return Some(service.refused(406, &service.unsupported(asked)));
    }
    let rule = path.split('/').nth(2).unwrap_or_default();
    (!shared.keystone.has_roles(token)).then(|| service.refused(403, &service.denied(rule)))
}

impl Service {
    /// Returns the service at a path; `None` when there is none.
    fn of(path: &str) -> Option<Self> {
        match path.split('/').nth(1)? {
            "v2.1" => Some(Self::Compute),
            "placement" => Some(Self::Placement),
            "network" => Some(Self::Network),
            _ => None,
        }
    }

    /// Returns the service's name in the header of the microversion, the first part of its
    /// microversions, and the second parts that are supported; `None` where there are none.
    fn versions(self) -> Option<(&'static str, &'static str, std::ops::RangeInclusive<u32>)> {
        match self {
            Self::Compute => Some(("compute", "2.", OLDEST..=compute::NEWEST)),
            Self::Placement => Some(("placement", "1.", OLDEST_OF_PLACEMENT..=placement::NEWEST)),
            Self::Network => None,
        }
    }

    /// Returns what the service says of a microversion that it does not support.
    fn unsupported(self, asked: &str) -> String {
        match self {
            Self::Compute => format!(
                "Version {asked} is not supported by the API. Minimum is 2.1 and maximum is 2.{}.",
                compute::NEWEST
            ),
            Self::Placement | Self::Network => {
                format!("Invalid microversion: Unacceptable version header: {asked}")
            }
        }
    }

    /// Returns what the service says to a user without the role that a list needs.
    fn denied(self, list: &str) -> String {
        match self {
            Self::Compute => {
                format!("Policy doesn't allow os_compute_api:{list}:list to be performed.")
            }
            Self::Placement | Self::Network => {
                format!("Policy does not allow placement:{list}:list to be performed.")
            }
        }
    }

    /// Creates an error response in the service's format.
    fn refused(self, status: u16, words: &str) -> Answer {
        match self {
            Self::Compute => rejection::refused(status, words),
            Self::Placement => placement::refused(status, "placement.undefined_code", words),
            Self::Network => network::refused(status, "Fault", words),
        }
    }
}
