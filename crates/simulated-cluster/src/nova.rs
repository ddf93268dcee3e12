//! A fake nova with its placement and neutron, as far as operators and tests use them: the answers
//! of nova 34 at microversion 2.69, checked against what `openstack-client` reads and, by the script of
//! `e2e::honest`, against a real nova and placement.

mod compute;
mod fault;
mod network;
mod paging;
mod placement;
mod rejection;
mod server;
mod servers;
mod shared;
mod state;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use fault::is_of;
use parking_lot::MutexGuard;
use serde_json::Value;
use servers::OWNER;
use shared::Shared;
use state::{Agent, Server, State};

use crate::answer::Answer;
use crate::keystone::Keystone;
use crate::ports;

pub use fault::{NovaFault, NovaRequest};

/// Time limit of waiting for requests.
const PATIENCE: Duration = Duration::from_mins(10);

/// A fake nova on a port of the loopback address, which accepts the tokens of one Keystone; it ends
/// with its last handle.
#[derive(Clone, Debug)]
pub struct Nova {
    shared: Arc<Shared>,
}

impl Nova {
    /// Starts a nova without hosts, whose endpoints Keystone's catalog has in a region from now on.
    pub async fn start(keystone: &Keystone, region: &str) -> Result<Self> {
        let (address, listener) = ports::listener().await?;
        let nova = Self { shared: Arc::new(Shared::new(address, keystone.clone())) };
        server::serve_at(&nova.shared, listener);
        for (type_, path) in
            [("compute", "v2.1"), ("placement", "placement"), ("network", "network")]
        {
            keystone.publish(type_, region, &format!("http://{address}/{path}"));
        }
        Ok(nova)
    }

    /// Registers a compute in a cell: its service is up, and its host is mapped. A service that is
    /// known is up again and stays as it is otherwise.
    pub fn register(&self, host: &str, cell: &str) {
        self.state().register(host, cell);
    }

    /// Sets whether nova-compute on a host reports; nothing happens without its service.
    pub fn report(&self, host: &str, reports: bool) {
        self.state().report(host, reports);
    }

    /// Sets whether a host is mapped to its cell.
    pub fn map(&self, host: &str, is_mapped: bool) -> Result<()> {
        self.state().host(host)?.is_mapped = is_mapped;
        Ok(())
    }

    /// Sets whether the database of a cell answers. Without it, the services of the cell are
    /// UNKNOWN, and its hypervisors, servers and migrations are left out.
    pub fn answer_for_cell(&self, cell: &str, answers: bool) {
        let mut state = self.state();
        if answers {
            state.silent_cells.remove(cell);
        } else {
            state.silent_cells.insert(cell.to_owned(), Duration::ZERO);
        }
    }

    /// Lets the database of a cell hang from now on, until it answers again: nova waits so long for
    /// it when it lists services, servers or migrations, and what it lists of the other cells is as
    /// it was when the request arrived.
    pub fn hang_cell(&self, cell: &str, wait: Duration) {
        self.state().silent_cells.insert(cell.to_owned(), wait);
    }

    /// Sets whether the database of a cell fails the query of servers, and answers all others: nova's
    /// lists leave its servers out then, and nothing else shows it but what is read of one compute node.
    pub fn fail_lists_of_cell(&self, cell: &str, fail: bool) {
        let mut state = self.state();
        if fail {
            state.failing_lists.insert(cell.to_owned());
        } else {
            state.failing_lists.remove(cell);
        }
    }

    /// Creates an active server on a host, which has a share of the host's provider; returns its
    /// UUID.
    pub fn boot(&self, name: &str, host: &str) -> Result<String> {
        let mut state = self.state();
        let node = state.host(host)?.node.clone();
        let id = state.new_id();
        state.placement.allocate(&id, &node, OWNER);
        let (name, host) = (name.to_owned(), host.to_owned());
        let server = Server { name, host, vm_state: "active".to_owned(), task_state: None };
        state.servers.insert(id.clone(), server);
        Ok(id)
    }

    /// Sets the state of a server: `active`, `stopped`, `paused`, `resized` or `error`.
    pub fn set_vm_state(&self, server: &str, vm_state: &str) -> Result<()> {
        let mut state = self.state();
        let server = state.servers.get_mut(server).context("no such server")?;
        vm_state.clone_into(&mut server.vm_state);
        Ok(())
    }

    /// Deletes a server with its allocation.
    pub fn delete_server(&self, server: &str) {
        let mut state = self.state();
        state.servers.remove(server);
        state.placement.free(server);
    }

    /// Gives a consumer a share of a host's provider that no server accounts for.
    pub fn allocate(&self, consumer: &str, host: &str) -> Result<()> {
        let mut state = self.state();
        let node = state.host(host)?.node.clone();
        state.placement.allocate(consumer, &node, OWNER);
        Ok(())
    }

    /// Adds a provider of a host's name that nova has no compute node of, as an earlier installation
    /// leaves it.
    pub fn add_stale_provider(&self, host: &str) {
        let mut state = self.state();
        let uuid = state.new_id();
        state.placement.provide(&uuid, host);
    }

    /// Sets whether live migrations stay in progress until [`Nova::finish_migrations`]; else they
    /// end at once.
    pub fn hold_migrations(&self, are_held: bool) {
        self.state().holds_migrations = are_held;
    }

    /// Ends all live migrations in progress: each server is on its new host.
    pub fn finish_migrations(&self) {
        self.state().finish_migrations();
    }

    /// Adds a host to an aggregate, which is created with its first host.
    pub fn aggregate(&self, name: &str, host: &str) {
        self.state().aggregates.entry(name.to_owned()).or_default().insert(host.to_owned());
    }

    /// Adds an agent of neutron on a host; returns its UUID.
    pub fn add_agent(&self, host: &str, binary: &str) -> String {
        let mut state = self.state();
        let (id, host) = (state.new_id(), host.to_owned());
        state.agents.insert(id.clone(), Agent { host, binary: binary.to_owned() });
        id
    }

    /// Sets whether the agents of a host go on reporting when its nova-compute does not any more.
    pub fn agents_report(&self, host: &str, report: bool) {
        let mut state = self.state();
        if report {
            state.reporting_agents.insert(host.to_owned());
        } else {
            state.reporting_agents.remove(host);
        }
    }

    /// Sends a request with full permissions, past token, microversion and faults, and returns the
    /// body; the paths begin with `/v2.1`, `/placement` or `/network/v2.0`.
    pub fn ask(&self, method: &str, path: &str, body: Option<Value>) -> Result<Value> {
        let Answer { status, body } = self.shared.act(method, path, body);
        ensure!((200..300).contains(&status), "{method} {path}: {status}: {body}");
        Ok(body)
    }

    /// Lets all requests whose line begins so have a fault from now on, for example
    /// `GET /v2.1/os-services`; the last matching call applies. In each line, `*` stands for whatever
    /// is between two parts.
    pub fn fail(&self, line: &str, fault: NovaFault) {
        self.fail_next(line, usize::MAX, fault);
    }

    /// The same for the next `n` of them alone.
    pub fn fail_next(&self, line: &str, n: usize, fault: NovaFault) {
        self.shared.traffic().fail(line, (0, n), fault);
    }

    /// The same for the `nth` of them from now on alone, the next one being the first.
    pub fn fail_nth(&self, line: &str, nth: usize, fault: NovaFault) {
        self.shared.traffic().fail(line, (nth - 1, 1), fault);
    }

    /// Removes the faults that were set for exactly these lines; requests that wait for their answers
    /// wait on.
    pub fn answer(&self, line: &str) {
        self.shared.traffic().answer(line);
    }

    /// Removes all faults; requests without an answer get theirs now.
    pub fn heal(&self) {
        self.shared.traffic().heal();
        self.shared.changes.send_replace(());
    }

    /// Returns all requests, in the order in which they arrived.
    pub fn requests(&self) -> Vec<NovaRequest> {
        self.shared.traffic().requests.clone()
    }

    /// Returns how many requests arrived whose line begins so.
    pub fn count(&self, line: &str) -> usize {
        let traffic = self.shared.traffic();
        traffic.requests.iter().filter(|it| is_of(&it.line, line)).count()
    }

    /// Waits until `n` more requests have arrived whose line begins so.
    pub async fn wait_for_requests(&self, line: &str, n: usize) -> Result<()> {
        self.wait_for_total(line, self.count(line) + n, PATIENCE).await
    }

    /// Waits until `total` requests have arrived in all whose line begins so.
    pub async fn wait_for_total(&self, line: &str, total: usize, within: Duration) -> Result<()> {
        let mut changes = self.shared.changes.subscribe();
        let reached = async {
            while self.count(line) < total {
                changes.changed().await?;
            }
            Ok(())
        };
        let waited = tokio::time::timeout(within, reached).await;
        waited.with_context(|| format!("{line}: fewer than {total} requests"))?
    }

    /// Stops listening; the state is kept.
    pub fn stop(&self) {
        if let Some(server) = self.shared.server.lock().take() {
            server.abort();
        }
    }

    /// Starts listening again.
    pub async fn listen(&self) -> Result<()> {
        server::listen(&self.shared).await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }
}
