//! State shared by the handles of an Ironic and its server, and the tasks that advance machines.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::machine::Machine;
use super::state::State;
use crate::answer::Answer;

/// The shared part of one Ironic.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) address: SocketAddr,
    state: Mutex<State>,
    pub(crate) server: Mutex<Option<JoinHandle<()>>>,
    /// Notified whenever a machine may have changed.
    pub(crate) changes: watch::Sender<()>,
}

impl Shared {
    /// Creates an Ironic that does not listen yet.
    pub(crate) fn new(address: SocketAddr, state: State) -> Self {
        let (server, changes) = (Mutex::default(), watch::Sender::new(()));
        Self { address, state: Mutex::new(state), server, changes }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Notifies the waiters that a machine may have changed.
    pub(crate) fn changed(&self) {
        self.changes.send_replace(());
    }

    /// Handles a request, and starts a task for each machine whose transition it began.
    pub(crate) fn act(self: &Arc<Self>, method: &str, path: &str, body: Option<Value>) -> Answer {
        let (answer, ways) = self.state().act(method, path, body);
        self.changed();
        for uuid in ways {
            tokio::spawn(go(Arc::downgrade(self), uuid));
        }
        answer
    }
}

/// Advances a machine until its transition ends.
async fn go(shared: Weak<Shared>, uuid: String) {
    loop {
        let Some(takes) = shared.upgrade().map(|it| it.state().takes) else { return };
        tokio::time::sleep(takes).await;
        let Some(found) = shared.upgrade() else { return };
        let goes_on = found.state().machines.get_mut(&uuid).is_some_and(Machine::go_on);
        found.changed();
        if !goes_on {
            return;
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let server = self.server.get_mut();
        if let Some(server) = server.take() {
            server.abort();
        }
    }
}
