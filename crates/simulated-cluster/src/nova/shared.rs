//! State shared by the handles of a fake nova and its server.

use std::net::SocketAddr;

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::fault::{NovaFault, Traffic};
use super::network;
use super::rejection::refused;
use super::state::State;
use crate::answer::{Answer, Query};
use crate::keystone::Keystone;

/// The shared part of one fake nova.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) address: SocketAddr,
    pub(crate) keystone: Keystone,
    state: Mutex<State>,
    traffic: Mutex<Traffic>,
    pub(crate) server: Mutex<Option<JoinHandle<()>>>,
    /// Notified of each request, and when faults are removed.
    pub(crate) changes: watch::Sender<()>,
}

impl Shared {
    /// Creates a nova without hosts that does not listen yet.
    pub(crate) fn new(address: SocketAddr, keystone: Keystone) -> Self {
        let state = State::new(format!("http://{address}"));
        let (server, changes) = (Mutex::default(), watch::Sender::new(()));
        let (state, traffic) = (Mutex::new(state), Mutex::default());
        Self { address, keystone, state, traffic, server, changes }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(crate) fn traffic(&self) -> MutexGuard<'_, Traffic> {
        self.traffic.lock()
    }

    /// Records a request; returns what happens to it, and how often all faults were removed before.
    pub(crate) fn arrived(&self, line: &str) -> (Option<NovaFault>, usize) {
        let mut traffic = self.traffic();
        let found = (traffic.arrived(line), traffic.n_heals);
        drop(traffic);
        self.changes.send_replace(());
        found
    }

    /// Waits until all faults are removed once more than `n_heals` times.
    pub(crate) async fn healed(&self, n_heals: usize) {
        let mut changes = self.changes.subscribe();
        while self.traffic().n_heals == n_heals {
            // The sender is in the same object, so the channel stays open.
            let _ = changes.changed().await;
        }
    }

    /// Handles a request with full permissions.
    pub(crate) fn act(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        let body = body.unwrap_or_default();
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let parts: Vec<&str> = path.split('/').filter(|it| !it.is_empty()).collect();
        let (query, mut state) = (Query(query), self.state());
        let answer = match &parts[..] {
            ["v2.1", parts @ ..] => state.compute((method, parts), &query, &body),
            ["placement", parts @ ..] => state.placement.answer((method, parts), &query, &body),
            ["network"] => Ok(Answer::of(200, network::versions())),
            ["network", "v2.0", parts @ ..] => state.network((method, parts), &query),
            _ => Err(refused(404, "The resource could not be found.")),
        };
        answer.unwrap_or_else(|it| it)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(server) = self.server.get_mut().take() {
            server.abort();
        }
    }
}
