//! TLS connections for the server; each handshake uses the newest certificate.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::serve::Listener;
use rustls::ServerConfig;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, watch},
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tracing::debug;

use crate::error::{Error, Result};

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// How many handshakes may be under way.
const HANDSHAKES: usize = 256;

type Connection = (TlsStream<TcpStream>, SocketAddr);

/// What a server presents; `None` until there is a certificate.
pub type Presented = watch::Receiver<Option<Arc<ServerConfig>>>;

/// A listener that hands out connections whose handshake is done.
#[derive(Debug)]
pub struct TlsListener {
    ready: mpsc::Receiver<Connection>,
    address: SocketAddr,
    /// Aborts the accepting task when the listener is dropped.
    _accepting: JoinSet<()>,
}

impl TlsListener {
    /// Accepts on `listener`; connections are closed until a certificate is there.
    pub fn new(listener: TcpListener, presented: Presented) -> Result<Self> {
        let address = listener.local_addr();
        let address = address.map_err(|it| Error::process("the webhook has no address", it))?;
        let (sender, ready) = mpsc::channel(64);
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, presented, sender));
        Ok(Self { ready, address, _accepting: accepting })
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> Connection {
        match self.ready.recv().await {
            Some(connection) => connection,
            // The accepting task ends only with this listener.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

async fn accept(mut listener: TcpListener, presented: Presented, ready: mpsc::Sender<Connection>) {
    let mut handshakes = JoinSet::new();
    loop {
        tokio::select! {
            (stream, peer) = Listener::accept(&mut listener), if handshakes.len() < HANDSHAKES => {
                let config = presented.borrow().clone();
                handshakes.spawn(handshake(stream, peer, config, ready.clone()));
            }
            Some(_) = handshakes.join_next() => {}
        }
    }
}

async fn handshake(
    stream: TcpStream,
    peer: SocketAddr,
    config: Option<Arc<ServerConfig>>,
    ready: mpsc::Sender<Connection>,
) {
    let Some(config) = config else { return };
    match timeout(HANDSHAKE, TlsAcceptor::from(config).accept(stream)).await {
        // An error means that the server ends.
        Ok(Ok(stream)) => drop(ready.send((stream, peer)).await),
        Ok(Err(error)) => debug!(%peer, "handshake failed: {error}"),
        Err(_) => debug!(%peer, "handshake took too long"),
    }
}
