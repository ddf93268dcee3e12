//! TLS server with a limit of connections: a slow client, or many connections from few networks,
//! cannot lock others out.
//!
//! Anyone who can reach the port may connect. So a connection serves a single request, is closed
//! after the response, and has an overall time limit. Where all places are taken, the network with
//! the most connections gives one to a network with fewer.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    net::{IpAddr, Ipv6Addr},
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
    sync::{oneshot, watch},
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
    /// Concurrent connections of clients that have shown no certificate; for a further one, another
    /// one is closed, or itself.
    pub connections: usize,
    /// Time limit of the TLS handshake, and separately of reading the request's head.
    pub head: Duration,
    /// Time limit of a whole connection. The API server itself waits for 5 s.
    pub connection: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 256, head: Duration::from_secs(5), connection: Duration::from_secs(10) }
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
    let (connections, mut conversations) = (Connections::default(), JoinSet::new());
    loop {
        tokio::select! {
            () = &mut stop => break,
            Some(_) = conversations.join_next() => {}
            (stream, address) = axum::serve::Listener::accept(&mut listener) => {
                let Some((connection, displaced)) = connections.enter(address.ip(), limits.connections) else {
                    debug!(%address, "closed, for its network has most of the connections");
                    continue;
                };
                let Some(config) = presented.borrow().clone() else { continue };
                let conversation = conversation((stream, connection), config, router.clone(), limits);
                conversations.spawn(async move {
                    tokio::select! {
                        ended = timeout(limits.connection, conversation) => if ended.is_err() {
                            debug!(%address, "closed, for it took too long");
                        },
                        Ok(()) = displaced => debug!(%address, "closed for another network"),
                    }
                });
            }
        }
    }
    drop(listener);
    while conversations.join_next().await.is_some() {}
}

/// Serves one connection: a handshake, one request and its response.
async fn conversation(
    (stream, connection): (TcpStream, Connection),
    config: Arc<ServerConfig>,
    router: Router,
    limits: Limits,
) {
    let stream = match timeout(limits.head, TlsAcceptor::from(config).accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return debug!("handshake failed: {error}"),
        Err(_) => return debug!("handshake took too long"),
    };
    let network = connection.network;
    // A client with one that the client authorities have signed needs no place and counts to none.
    let _connection = stream.get_ref().1.peer_certificates().is_none().then_some(connection);
    let answer = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(PeerAddress(network));
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

/// The open connections that are counted.
#[derive(Clone, Debug, Default)]
struct Connections(Arc<Mutex<Open>>);

/// By network, in the order of their begin, with what makes each one go.
#[derive(Debug, Default)]
struct Open {
    networks: BTreeMap<IpAddr, BTreeMap<u64, oneshot::Sender<()>>>,
    n_begun: u64,
}

impl Connections {
    /// Counts one more connection until the place is dropped; the receiver resolves when it has to go.
    ///
    /// Where `most` are open, the oldest one of the network with the most goes. Returns `None` where
    /// that would leave it with fewer than the network of the new one has.
    fn enter(&self, address: IpAddr, most: usize) -> Option<(Connection, oneshot::Receiver<()>)> {
        let network = network(address);
        let mut open = self.0.lock();
        let n_own = open.networks.get(&network).map_or(0, BTreeMap::len);
        if open.networks.values().map(BTreeMap::len).sum::<usize>() >= most {
            let largest = open.networks.values_mut().max_by_key(|it| it.len());
            let (_, oldest) = largest.filter(|it| it.len() > n_own + 1)?.pop_first()?;
            // One that has just ended does not listen any more.
            let _ = oldest.send(());
        }
        open.n_begun += 1;
        let (number, (displace, displaced)) = (open.n_begun, oneshot::channel());
        open.networks.entry(network).or_default().insert(number, displace);
        Some((Connection { connections: self.clone(), network, number }, displaced))
    }
}

/// Returns what one client has many addresses of: with IPv6 a /64, with IPv4 the address itself.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(it) => Ipv6Addr::from_bits(it.to_bits() >> 64 << 64).into(),
        it @ IpAddr::V4(_) => it,
    }
}

/// The place of one counted connection.
struct Connection {
    connections: Connections,
    network: IpAddr,
    number: u64,
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut open = self.connections.0.lock();
        let Some(of_network) = open.networks.get_mut(&self.network) else { return };
        of_network.remove(&self.number);
        if of_network.is_empty() {
            open.networks.remove(&self.network);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_networks_cannot_hold_all_places() {
        let connections = Connections::default();
        let mut held = Vec::new();
        // One /64 counts as one, however many addresses it has.
        let networks = ["192.0.2.1", "192.0.2.2", "::ffff:192.0.2.3", "2001:db8::"];
        for number in 0..64_u16 {
            for network in networks {
                let mut address: IpAddr = network.parse().unwrap();
                if network.starts_with("2001") {
                    address = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, number, 0, 0, number).into();
                }
                held.push(connections.enter(address, 256).unwrap());
            }
        }
        for address in networks {
            assert!(connections.enter(address.parse().unwrap(), 256).is_none(), "{address}");
        }
        let api_server: IpAddr = "192.0.2.9".parse().unwrap();
        let mine: Vec<_> = std::iter::from_fn(|| connections.enter(api_server, 256)).collect();
        assert_eq!(mine.len(), 51);
        let displaced = held.iter_mut().filter_map(|it| it.1.try_recv().ok()).count();
        assert_eq!(displaced, mine.len());
        drop((held, mine));
        assert!(connections.0.lock().networks.is_empty());
    }
}
