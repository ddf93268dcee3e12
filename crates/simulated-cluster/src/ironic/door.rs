//! A fake SSH server of a host, which sends only its banner.

use std::net::{SocketAddr, TcpListener as Blocking};

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The identification line of an SSH server.
const BANNER: &[u8] = b"SSH-2.0-simulated\r\n";

/// The server; it answers until it is dropped.
#[derive(Debug)]
pub(crate) struct Door(JoinHandle<()>);

impl Door {
    /// Starts the server. Returns `None` when the address cannot be bound.
    pub(crate) fn open(address: &str, port: u16) -> Option<Self> {
        let address: SocketAddr = format!("{address}:{port}").parse().ok()?;
        let listener = Blocking::bind(address).ok()?;
        listener.set_nonblocking(true).ok()?;
        let listener = TcpListener::from_std(listener).ok()?;
        let serve = async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                // A client may disconnect before the banner is sent.
                let _ = stream.write_all(BANNER).await;
            }
        };
        Some(Self(tokio::spawn(serve)))
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.0.abort();
    }
}
