//! A single HTTP request to a server other than Kubernetes, over its own connection.
//!
//! Requests to such servers are rare, so connections are not reused: none becomes stale or outlives
//! its request. Users name these servers, so each answer is bounded, and some addresses are not
//! connected to.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Request, Response, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use ipnet::IpNet;
use tokio::time::timeout;

use crate::allowed_networks::AllowedNetworks;
use crate::answer_memory::{AnswerMemory, Held, Kept, MemoryShare, NoMemory, SHORT};
use crate::places::Place;
use crate::tls_stream::{CaTrust, ConnectFault, Stream, connect_within};

/// How long a URL can be to which paths are appended, in bytes.
const LONGEST_URL: usize = 2048;

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
    /// A response for which there is no memory now.
    NoMemory(NoMemory),
}

/// What all HTTP clients of an operator have in common: where they connect to, and the memory for
/// what they get.
#[derive(Clone, Debug, Default)]
pub struct HttpClients {
    networks: Arc<AllowedNetworks>,
    memory: Arc<AnswerMemory>,
}

/// Sends requests of one namespace.
#[derive(Clone, Debug)]
pub struct HttpClient {
    trust: CaTrust,
    networks: Arc<AllowedNetworks>,
    share: MemoryShare,
}

/// The body of a response. That of a long one holds back other long ones until it is dropped, so it is
/// not kept.
#[derive(Debug)]
pub struct Body {
    bytes: Bytes,
    _kept: Kept,
    _place: Option<Place>,
}

impl Deref for Body {
    type Target = Bytes;

    fn deref(&self) -> &Bytes {
        &self.bytes
    }
}

impl AsRef<[u8]> for Body {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Returns whether a text is a URL to which paths can be appended: http or https, with a host, and
/// without user, query and fragment.
pub fn is_base_url(text: &str) -> bool {
    let url = text.parse::<Uri>().ok().filter(|_| text.len() <= LONGEST_URL);
    let is_http = |it: &Uri| matches!(it.scheme_str(), Some("http" | "https"));
    let is_whole = url.is_some_and(|it| is_http(&it) && it.host().is_some_and(|it| !it.is_empty()));
    // The parser leaves out a fragment without an error.
    is_whole && !text.contains(['@', '?', '#'])
}

impl HttpClients {
    /// Lets clients connect to loopback, link-local and metadata addresses in these networks, and to
    /// all others.
    pub fn new(allowed: Vec<IpNet>) -> Self {
        let networks = Arc::new(AllowedNetworks::new(allowed));
        Self { networks, memory: Arc::default() }
    }

    /// Lets clients connect to loopback addresses too: for servers that run beside the program.
    pub fn with_loopback() -> Self {
        let loopback = ["127.0.0.0/8", "::1/128"].into_iter();
        Self::new(loopback.filter_map(|it| it.parse().ok()).collect())
    }

    /// Connects to a server that is not asked by HTTP, where clients connect to: with TLS if `trust` is
    /// given.
    pub async fn connect(
        &self,
        host: &str,
        port: u16,
        trust: Option<&CaTrust>,
    ) -> Result<Box<dyn Stream>, ConnectFault> {
        connect_within(&self.networks, host, port, trust).await
    }

    /// Returns the client of a namespace that trusts these CA certificates.
    pub fn of(&self, namespace: &str, trust: CaTrust) -> HttpClient {
        let networks = Arc::clone(&self.networks);
        HttpClient { trust, networks, share: self.memory.share(namespace) }
    }
}

impl HttpClient {
    /// Returns the namespace's share of the memory for answers.
    pub const fn share(&self) -> &MemoryShare {
        &self.share
    }

    /// Sends a request and reads the whole response, of at most `largest` bytes.
    ///
    /// # Guarantees
    /// Returns within `deadline` and leaves no task or connection behind. The request is sent at most
    /// once; redirects are not followed.
    pub async fn send(
        &self,
        request: Request<Bytes>,
        deadline: Duration,
        largest: usize,
    ) -> Result<Response<Body>, HttpFault> {
        // Callers hold it in futures of their own, several at a time.
        let answer = Box::pin(async {
            let _turn = self.share.request().await;
            self.exchange(request, largest).await
        });
        timeout(deadline, answer).await.unwrap_or_else(|_| {
            Err(HttpFault::Unreachable(format!("no answer within {} s", deadline.as_secs())))
        })
    }

    async fn exchange(
        &self,
        request: Request<Bytes>,
        largest: usize,
    ) -> Result<Response<Body>, HttpFault> {
        let url = request.uri();
        let is_tls = match url.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(HttpFault::NotUrl),
        };
        let host = url.host().ok_or(HttpFault::NotUrl)?.trim_matches(['[', ']']).to_owned();
        let port = url.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let request = origin_form(request)?;
        let trust = is_tls.then_some(&self.trust);
        let stream = connect_within(&self.networks, &host, port, trust).await;
        let stream = stream.map_err(|it| match it {
            ConnectFault::Unreachable(cause) => HttpFault::Unreachable(cause.to_string()),
            ConnectFault::Tls(cause) => HttpFault::Untrusted(cause.to_string()),
        })?;
        self.send_over(stream, request, largest).await
    }

    async fn send_over(
        &self,
        stream: Box<dyn Stream>,
        request: Request<Full<Bytes>>,
        largest: usize,
    ) -> Result<Response<Body>, HttpFault> {
        let unreachable = |it: hyper::Error| HttpFault::Unreachable(it.to_string());
        let mut http = http1::Builder::new();
        let connecting = http.max_buf_size(SHORT).handshake(TokioIo::new(stream));
        let (mut sender, connection) = connecting.await.map_err(unreachable)?;
        let exchange = async {
            let answer = sender.send_request(request).await.map_err(unreachable)?;
            let (parts, body) = answer.into_parts();
            let body = self.read(body, parts.status.as_u16(), largest).await?;
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

    /// Reads a body, of which what is beyond a short one counts as kept by the namespace; it waits for
    /// its turn to be parsed once all of it is there, so that a slow server holds back no other.
    async fn read(
        &self,
        mut body: Incoming,
        status: u16,
        largest: usize,
    ) -> Result<Body, HttpFault> {
        let (mut text, mut kept) = Held::of(&self.share).into_parts();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| HttpFault::Cut(status))?.into_data() else { continue };
            let n_bytes = text.len().saturating_add(data.len());
            if n_bytes > largest {
                return Err(HttpFault::TooLong(status));
            }
            let n_long = n_bytes.saturating_sub(SHORT).min(data.len());
            if n_long > 0 {
                // Pages of memory that are not written are not used.
                text.reserve_exact(largest.saturating_sub(text.len()));
                kept.grow(n_long).map_err(HttpFault::NoMemory)?;
            }
            text.extend_from_slice(&data);
        }
        let is_long = text.len() > SHORT;
        let place = if is_long { Some(self.share.long_answer().await) } else { None };
        Ok(Body { bytes: text.into(), _kept: kept, _place: place })
    }
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

#[cfg(test)]
mod tests {
    use testkit::http_server::server;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;
    use tokio::task::JoinSet;

    use super::*;

    fn client(clients: &HttpClients, namespace: &str) -> HttpClient {
        clients.of(namespace, CaTrust::new(None).unwrap())
    }

    async fn get(client: &HttpClient, url: &str) -> Result<Response<Body>, HttpFault> {
        let request = Request::get(url).body(Bytes::new()).unwrap();
        client.send(request, Duration::from_secs(5), 1 << 20).await
    }

    #[test]
    fn paths_are_appended_to_urls_without_user_query_and_fragment() {
        for text in ["http://n:8774/v2.1", "https://[fd00::1]:5000", "http://n/a/%2e"] {
            assert!(is_base_url(text), "{text}");
        }
        let long = format!("http://n/{}", "a".repeat(LONGEST_URL));
        for text in [
            "",
            "n:8774",
            "ftp://n",
            "http://",
            "/v3",
            "http://u:p@n",
            "http://n/x?y=",
            "http://n/?",
            "http://n/#",
            "http://n/x#y",
            "http://n/ x",
            &long,
        ] {
            assert!(!is_base_url(text), "{text}");
        }
    }

    #[tokio::test]
    async fn a_name_counts_as_the_address_that_it_resolves_to() {
        let (address, asked) = server(|_| (200, String::new(), "x".to_owned())).await;
        let (url, named) =
            (format!("http://{address}"), format!("http://localhost:{}", address.port()));
        let refusing = client(&HttpClients::default(), "a");
        for url in [&url, &named] {
            let fault = get(&refusing, url).await.unwrap_err();
            let HttpFault::Unreachable(cause) = fault else { panic!("{fault:?}") };
            assert!(cause.contains("loopback") && cause.contains("allowedEndpointNetworks"));
        }
        assert_eq!(asked.lock().len(), 0, "nothing was sent");
        let allowing = client(&HttpClients::with_loopback(), "a");
        assert_eq!(get(&allowing, &url).await.unwrap().body().as_ref(), b"x");
    }

    #[tokio::test]
    async fn a_long_answer_waits_for_the_one_that_its_namespace_has_and_a_short_one_does_not() {
        let (address, _) = server(|text| {
            let n = if text.contains("/long") { 3 * SHORT } else { SHORT / 2 };
            (200, String::new(), "x".repeat(n))
        })
        .await;
        let clients = HttpClients::with_loopback();
        let (own, other) = (client(&clients, "a"), client(&clients, "b"));
        let (long, short) = (format!("http://{address}/long"), format!("http://{address}/"));
        let held = get(&own, &long).await.unwrap();
        assert_eq!(held.body().len(), 3 * SHORT);
        let request = Request::get(&long).body(Bytes::new()).unwrap();
        let waits = own.send(request, Duration::from_millis(300), 1 << 20).await;
        assert!(matches!(waits, Err(HttpFault::Unreachable(_))), "{waits:?}");
        assert!(get(&own, &short).await.is_ok() && get(&other, &long).await.is_ok());
        drop(held);
        assert!(get(&own, &long).await.is_ok());
    }

    #[tokio::test]
    async fn answers_that_stop_in_the_middle_hold_back_no_other_namespace() {
        let (clients, half) = (HttpClients::with_loopback(), vec![b'x'; 3 * SHORT]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let silent = format!("http://{}", listener.local_addr().unwrap());
        let (mut waiting, mut held) = (JoinSet::new(), Vec::new());
        for namespace in ["a", "b", "c"] {
            let (client, url) = (client(&clients, namespace), silent.clone());
            waiting.spawn(async move { get(&client, &url).await.map(|_| ()) });
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 900000\r\n\r\n").await.unwrap();
            stream.write_all(&half).await.unwrap();
            held.push(stream);
        }
        let (address, _) = server(|_| (200, String::new(), "x".repeat(3 * SHORT))).await;
        let answer = get(&client(&clients, "d"), &format!("http://{address}")).await;
        assert_eq!(answer.unwrap().body().len(), 3 * SHORT);
    }

    #[tokio::test]
    async fn a_long_answer_counts_as_kept_until_it_is_dropped() {
        let (address, _) = server(|_| (200, String::new(), "x".repeat(3 * SHORT))).await;
        let (clients, url) = (HttpClients::with_loopback(), format!("http://{address}"));
        let client = client(&clients, "a");
        // A namespace has no more than is left to all others: half of all.
        let kept = client.share().keep((64 << 20) - 2 * SHORT + 1).unwrap();
        assert_eq!(get(&client, &url).await.unwrap_err(), HttpFault::NoMemory(NoMemory));
        drop(kept);
        assert!(get(&client, &url).await.is_ok());
    }

    #[tokio::test]
    async fn a_body_beyond_the_limit_is_too_long() {
        let (address, _) = server(|_| (200, String::new(), "x".repeat(1 + (1 << 20)))).await;
        let client = client(&HttpClients::with_loopback(), "a");
        let fault = get(&client, &format!("http://{address}")).await.unwrap_err();
        assert_eq!(fault, HttpFault::TooLong(200));
        let request = Request::get(format!("http://{address}")).body(Bytes::new()).unwrap();
        let fault = client.send(request, Duration::from_secs(5), 100).await.unwrap_err();
        assert_eq!(fault, HttpFault::TooLong(200));
    }
}
