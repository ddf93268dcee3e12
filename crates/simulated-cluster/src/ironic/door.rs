//! Where the ssh server of a host answers, as far as its first words.

use std::net::{SocketAddr, TcpListener as Blocking};

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// With what every ssh server begins.
const BANNER: &[u8] = b"SSH-2.0-simulated\r\n";

/// It answers for as long as this lives.
#[derive(Debug)]
pub(crate) struct Door(JoinHandle<()>);

impl Door {
    /// Answers from now on; `None` where nobody can listen there.
    pub(crate) fn open(address: &str, port: u16) -> Option<Self> {
        let address: SocketAddr = format!("{address}:{port}").parse().ok()?;
        let listener = Blocking::bind(address).ok()?;
        listener.set_nonblocking(true).ok()?;
        let listener = TcpListener::from_std(listener).ok()?;
        let serve = async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                // Whoever hangs up before has learned enough.
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
