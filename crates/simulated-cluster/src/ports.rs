//! Free ports on the loopback address.

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};

use anyhow::{Result, bail};
use parking_lot::Mutex;

/// Below the kernel's ephemeral ports, so that no outgoing connection takes a port between its
/// choice and its use.
const RANGE: std::ops::Range<u16> = 20_000..32_000;

static TAKEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// Returns a port without a listener, for another process; this process never returns it again.
///
/// A process that is started meanwhile may hold the port for a moment, so what listens in this process
/// takes a [`listener`].
pub(crate) fn free() -> Result<u16> {
    loop {
        let port = untried()?;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
}

/// Returns a listener on such a port, and its address.
pub(crate) async fn listener() -> Result<(SocketAddr, tokio::net::TcpListener)> {
    loop {
        let address = SocketAddr::from(([127, 0, 0, 1], untried()?));
        if let Ok(listener) = tokio::net::TcpListener::bind(address).await {
            return Ok((address, listener));
        }
    }
}

/// Returns a port that this process has not tried yet.
fn untried() -> Result<u16> {
    let mut taken = TAKEN.lock();
    // Simulated clusters of other processes start their search elsewhere.
    let size = RANGE.end - RANGE.start;
    let offset = u16::try_from(std::process::id() * 97 % u32::from(size)).unwrap_or_default();
    let mut all = (0..size).map(|step| RANGE.start + (offset + step) % size);
    let Some(port) = all.find(|it| !taken.contains(it)) else {
        bail!("no port of {RANGE:?} is free on 127.0.0.1")
    };
    taken.insert(port);
    Ok(port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_given_twice_or_while_somebody_listens() {
        let first = free().unwrap();
        let _listener = TcpListener::bind(("127.0.0.1", first + 1));
        let second = free().unwrap();
        assert!(RANGE.contains(&first) && RANGE.contains(&second));
        assert!(second != first && second != first + 1, "{first} {second}");
    }
}
