//! A single HTTP request to a server other than Kubernetes, over its own connection.
//!
//! Requests to such servers are rare, so connections are not reused: none becomes stale or outlives
//! its request.

use std::time::Duration;

use http::{HeaderValue, Request, Response, header};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::time::timeout;

use crate::tls_stream::{CaTrust, ConnectFault, Stream, connect};

/// Why a request got no usable response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpFault {
    /// The request's URI is not an http or https URL.
    NotUrl,
    /// No connection, or no response in time; the text says which.
    Unreachable(String),
    /// The TLS handshake failed, or the certificate is not trusted; the text says which.
    Untrusted(String),
    /// A response with this status whose body is incomplete.
    Cut(u16),
    /// A response with this status whose body is longer than the limit.
    TooLong(u16),
}

/// Sends a request and reads the whole response, of at most `largest` bytes.
///
/// # Guarantees
/// Returns within `deadline` and leaves no task or connection behind. The request is sent at most
/// once; redirects are not followed.
pub async fn send(
    request: Request<Bytes>,
    trust: &CaTrust,
    deadline: Duration,
    largest: usize,
) -> Result<Response<Bytes>, HttpFault> {
    timeout(deadline, exchange(request, trust, largest)).await.unwrap_or_else(|_| {
        Err(HttpFault::Unreachable(format!("no answer within {} s", deadline.as_secs())))
    })
}

async fn exchange(
    request: Request<Bytes>,
    trust: &CaTrust,
    largest: usize,
) -> Result<Response<Bytes>, HttpFault> {
    let url = request.uri();
    let is_tls = match url.scheme_str() {
        Some("https") => true,
        Some("http") => false,
        _ => return Err(HttpFault::NotUrl),
    };
    let host = url.host().ok_or(HttpFault::NotUrl)?.trim_matches(['[', ']']).to_owned();
    let port = url.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
    let request = origin_form(request)?;
    let stream = connect(&host, port, is_tls.then_some(trust)).await.map_err(|it| match it {
        ConnectFault::Unreachable(cause) => HttpFault::Unreachable(cause.to_string()),
        ConnectFault::Tls(cause) => HttpFault::Untrusted(cause.to_string()),
    })?;
    send_over(stream, request, largest).await
}

/// Converts the request to origin form: path and query as target, the host as a header.
fn origin_form(request: Request<Bytes>) -> Result<Request<Full<Bytes>>, HttpFault> {
    let (mut parts, body) = request.into_parts();
    let host = parts.uri.authority().map_or("", |it| it.as_str());
    // Credentials in a URL would end up in logs.
    if host.contains('@') {
        return Err(HttpFault::NotUrl);
    }
    let host = HeaderValue::from_str(host).map_err(|_| HttpFault::NotUrl)?;
    parts.headers.insert(header::HOST, host);
    parts.headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    let path = parts.uri.path_and_query().map_or("/", |it| it.as_str());
    parts.uri = path.parse().map_err(|_| HttpFault::NotUrl)?;
    Ok(Request::from_parts(parts, Full::new(body)))
}

async fn send_over(
    stream: Box<dyn Stream>,
    request: Request<Full<Bytes>>,
    largest: usize,
) -> Result<Response<Bytes>, HttpFault> {
    let unreachable = |it: hyper::Error| HttpFault::Unreachable(it.to_string());
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(unreachable)?;
    let exchange = async {
        let (parts, body) = sender.send_request(request).await.map_err(unreachable)?.into_parts();
        let body = Limited::new(body, largest).collect().await;
        let body = body.map_err(|error| {
            let status = parts.status.as_u16();
            let is_too_long = error.is::<LengthLimitError>();
            if is_too_long { HttpFault::TooLong(status) } else { HttpFault::Cut(status) }
        })?;
        let body = body.to_bytes();
        Ok(Response::from_parts(parts, body))
    };
    // The connection is driven here and not in a task, so that nothing outlives the request.
    let mut exchange = std::pin::pin!(exchange);
    tokio::select! {
        biased;
        result = &mut exchange => result,
        _ = connection => exchange.await,
    }
}
