//! Free ports on the loopback address.

use std::collections::BTreeSet;
use std::net::TcpListener;

use anyhow::{Result, bail};
use parking_lot::Mutex;

/// Below the kernel's ephemeral ports, so that no outgoing connection takes a port between its
/// choice and its use.
const RANGE: std::ops::Range<u16> = 20_000..32_000;

static TAKEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// Returns a port without a listener; this process never returns it again.
pub(crate) fn free() -> Result<u16> {
    let mut taken = TAKEN.lock();
    // Simulated clusters of other processes start their search elsewhere.
    let size = RANGE.end - RANGE.start;
    let offset = u16::try_from(std::process::id() * 97 % u32::from(size)).unwrap_or_default();
    for step in 0..size {
        let port = RANGE.start + (offset + step) % size;
        if !taken.contains(&port) && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            taken.insert(port);
            return Ok(port);
        }
    }
    bail!("no port of {RANGE:?} is free on 127.0.0.1")
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
