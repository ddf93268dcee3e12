//! TLS server with connection limits: a slow client, or many connections from one address, cannot
//! lock others out.
//!
//! Anyone who can reach the port may connect. So a connection serves a single request, is closed
//! after the response, and has an overall time limit.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    net::{IpAddr, SocketAddr},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use axum::{Router, body::Body};
use http::{Request, Response};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use rustls::ServerConfig;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;
use tracing::debug;

use super::review::PeerAddress;

/// The current TLS configuration; `None` until there is a certificate.
pub type Presented = watch::Receiver<Option<Arc<ServerConfig>>>;

/// Read buffer size of a connection, and the maximum size of a request's head, in bytes.
const READ_AHEAD: usize = 64 << 10;

/// Resource limits of one server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Concurrent connections; further ones wait until one ends.
    pub connections: usize,
    /// Concurrent connections from one address; further ones are closed at once.
    pub of_one_peer: usize,
    /// Time limit of the TLS handshake, and separately of reading the request's head.
    pub head: Duration,
    /// Time limit of a whole connection. The API server itself waits for 5 s.
    pub connection: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            of_one_peer: 64,
            head: Duration::from_secs(5),
            connection: Duration::from_secs(10),
        }
    }
}

/// Serves until `stop`, then waits for open connections, for at most [`Limits::connection`]. While
/// there is no certificate, new connections are closed; each one uses the newest certificate.
pub async fn serve(
    mut listener: TcpListener,
    presented: Presented,
    router: Router,
    limits: Limits,
    stop: impl Future<Output = ()>,
) {
    let mut stop = pin!(stop);
    let (coordinator, mut connections) = (Peers::default(), JoinSet::new());
    loop {
        tokio::select! {
            () = &mut stop => break,
            Some(_) = connections.join_next() => {}
            (stream, address) = axum::serve::Listener::accept(&mut listener),
                if connections.len() < limits.connections =>
            {
                let Some(peer) = coordinator.enter(address, limits.of_one_peer) else {
                    debug!(%address, "closed, for this address has too many connections");
                    continue;
                };
                let Some(config) = presented.borrow().clone() else { continue };
                let router = router.clone();
                connections.spawn(async move {
                    let conversation = conversation((stream, peer.address), config, router, limits);
                    if timeout(limits.connection, conversation).await.is_err() {
                        debug!(%address, "closed, for it took too long");
                    }
                    drop(peer);
                });
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Serves one connection: a handshake, one request and its response.
async fn conversation(
    (stream, peer): (TcpStream, IpAddr),
    config: Arc<ServerConfig>,
    router: Router,
    limits: Limits,
) {
    let stream = match timeout(limits.head, TlsAcceptor::from(config).accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return debug!("handshake failed: {error}"),
        Err(_) => return debug!("handshake took too long"),
    };
    let answer = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(PeerAddress(peer));
        let router = router.clone();
        async move {
            let answer: Result<Response<Body>, Infallible> =
                router.oneshot(request.map(Body::new)).await;
            answer
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(READ_AHEAD)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), answer);
    if let Err(error) = served.await {
        debug!("a connection ended: {error}");
    }
}

/// Number of open connections by address.
#[derive(Clone, Debug, Default)]
struct Peers(Arc<Mutex<BTreeMap<IpAddr, usize>>>);

impl Peers {
    /// Counts one more connection until the result is dropped. Returns `None` when the address
    /// already has `most`.
    fn enter(&self, address: SocketAddr, most: usize) -> Option<Peer> {
        let address = address.ip().to_canonical();
        let mut counts = self.0.lock();
        let n_open = counts.entry(address).or_default();
        if *n_open >= most {
            return None;
        }
        *n_open += 1;
        Some(Peer { coordinator: self.clone(), address })
    }
}

/// One counted connection of an address.
struct Peer {
    coordinator: Peers,
    address: IpAddr,
}

impl Drop for Peer {
    fn drop(&mut self) {
        let mut counts = self.coordinator.0.lock();
        let Some(n_open) = counts.get_mut(&self.address) else { return };
        *n_open = n_open.saturating_sub(1);
        if *n_open == 0 {
            counts.remove(&self.address);
        }
    }
}
