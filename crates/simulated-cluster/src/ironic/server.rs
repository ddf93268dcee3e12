//! The HTTP server of the fake Ironic: authentication, API version, and the faults that tests set.

use std::sync::{Arc, Weak};
use std::time::Duration;

use anyhow::Result;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State as Extension};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, Method, StatusCode, Uri, header};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::shared::Shared;
use super::state::{Login, PASSWORD, State, Trouble, USER};
use crate::answer::Answer;
use crate::http_service::{bind, serve};

/// The header with which client and server negotiate the API version.
const VERSION: &str = "X-OpenStack-Ironic-API-Version";

/// Stops listening.
pub(crate) fn stop(shared: &Shared) {
    let mut server = shared.server.lock();
    if let Some(server) = server.take() {
        server.abort();
    }
}

/// Listens at the Ironic's address until it is stopped.
pub(crate) async fn listen(shared: &Arc<Shared>) -> Result<()> {
    serve_at(shared, bind(shared.address, "Ironic").await?);
    Ok(())
}

/// The same with an existing listener.
pub(crate) fn serve_at(shared: &Arc<Shared>, listener: TcpListener) {
    let router = Router::new()
        .fallback(answer)
        .layer(DefaultBodyLimit::disable())
        .with_state(Arc::downgrade(shared));
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
    let (trouble, slow) = {
        let state = shared.state();
        (state.fault.clone(), state.slow)
    };
    if slow > Duration::ZERO {
        tokio::time::sleep(slow).await;
    }
    match trouble {
        Some(Trouble::Refusal(status, words)) => {
            return Answer::refused(status, &words).into_response();
        }
        Some(Trouble::Page(page)) => return page.into_response(),
        Some(Trouble::Silence) => std::future::pending::<()>().await,
        None => {}
    }
    if uri.path() != "/" {
        let refusal = shared.state().rejection(&headers);
        if let Some(refusal) = refusal {
            return refusal.into_response();
        }
    }
    let path = uri.path_and_query().map_or("/", |it| it.as_str());
    shared.act(method.as_str(), path, serde_json::from_slice(&body).ok()).into_response()
}

impl State {
    /// Returns the rejection of a request with wrong credentials or an unsupported API version, or
    /// `None`.
    fn rejection(&self, headers: &HeaderMap) -> Option<Answer> {
        let text = |name: &str| headers.get(name).and_then(|it| it.to_str().ok());
        let words = match &self.login {
            Login::Basic => {
                let right = format!("Basic {}", STANDARD.encode(format!("{USER}:{PASSWORD}")));
                match text(header::AUTHORIZATION.as_str()) {
                    None => Some("Authorization required"),
                    Some(found) if found != right => Some("Incorrect username or password"),
                    Some(_) => None,
                }
            }
            Login::Keystone(keystone) => {
                let is_known = text("X-Auth-Token").is_some_and(|it| keystone.has_given(it));
                (!is_known).then_some("The request you have made requires authentication.")
            }
        };
        if let Some(words) = words {
            let error = json!({ "message": words, "code": 401 });
            return Some(Answer { status: 401, body: json!({ "error": error }) });
        }
        let asked = text(VERSION)?;
        let (oldest, newest) = self.versions;
        let minor = |it: &str| it.split_once('.').and_then(|(_, it)| it.parse::<u32>().ok());
        let is_spoken = (minor(oldest)..=minor(newest)).contains(&minor(asked));
        let description = format!(
            "Version {asked} was requested but the minor version is not supported by this service. \
             The supported version range is: [{oldest}, {newest}]."
        );
        let error = json!({ "code": 406, "title": "Not Acceptable", "description": description });
        let body = json!({ "error_message": Value::String(error.to_string()) });
        (!is_spoken).then_some(Answer { status: 406, body })
    }
}
