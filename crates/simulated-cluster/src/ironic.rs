//! A fake Ironic, as far as operators and tests use one: its states, locks and error texts,
//! verified against a real Ironic with the same script of requests.

mod answer;
mod api;
mod door;
mod machine;
mod patch;
mod server;
mod shared;
mod state;
#[cfg(test)]
mod tests;
mod way;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use machine::Machine;
use parking_lot::MutexGuard;
use serde_json::{Value, json};
use shared::Shared;
use state::{Login, PASSWORD, State, USER};

use crate::answer::Answer;
use crate::keystone::Keystone;
use crate::player::host::Host;
use crate::ports;

pub use state::Trouble;

/// How long a machine stays in each transitional state, unless a test says otherwise.
const TAKES: Duration = Duration::from_millis(100);
/// Time limit of waiting for a machine.
const PATIENCE: Duration = Duration::from_mins(10);

/// A fake Ironic with fake hardware on a port of the loopback address; it ends with its last
/// handle.
#[derive(Clone, Debug)]
pub struct Ironic {
    shared: Arc<Shared>,
}

impl Ironic {
    /// Starts an Ironic that requires user and password.
    pub async fn start() -> Result<Self> {
        let (address, listener) = ports::listener().await?;
        let state = State {
            machines: BTreeMap::new(),
            login: Login::Basic,
            versions: ("1.1", "1.115"),
            has_store: true,
            endpoint: format!("http://{address}"),
            fault: None,
            slow: Duration::ZERO,
            takes: TAKES,
            n_lists: 0,
        };
        let ironic = Self { shared: Arc::new(Shared::new(address, state)) };
        server::serve_at(&ironic.shared, listener);
        Ok(ironic)
    }

    /// Returns the URL at which operators reach it.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.shared.address)
    }

    /// Returns the content of a Secret with valid credentials.
    pub fn secret() -> [(&'static str, &'static str); 2] {
        [("username", USER), ("password", PASSWORD)]
    }

    /// Accepts only tokens issued by this Keystone from now on.
    pub fn believe(&self, keystone: &Keystone) {
        self.state().login = Login::Keystone(keystone.clone());
    }

    /// Sets the supported API versions, the oldest and the newest.
    pub fn speak(&self, oldest: &'static str, newest: &'static str) {
        self.state().versions = (oldest, newest);
    }

    /// Removes the storage for config drives: every deployment with one fails.
    pub fn lose_store(&self) {
        self.state().has_store = false;
    }

    /// Sets what every request is answered with instead; `None` restores normal answers.
    pub fn suffer(&self, trouble: Option<Trouble>) {
        self.state().fault = trouble;
    }

    /// Delays each answer by `time`.
    pub fn answer_after(&self, time: Duration) {
        self.state().slow = time;
    }

    /// Sets how long machines stay in each transitional state.
    pub fn take(&self, time: Duration) {
        self.state().takes = time;
    }

    /// Lets a machine fail with this error whenever it leaves that state; `None` removes the
    /// failure.
    pub fn fail(&self, machine: &str, state: &str, words: Option<&str>) -> Result<()> {
        let mut shared = self.state();
        let machine = shared.find(machine)?;
        machine.failing.remove(state);
        machine.failing.extend(words.map(|it| (state.to_owned(), it.to_owned())));
        Ok(())
    }

    /// Locks or unlocks a machine as a conductor does: a locked machine rejects all changes.
    pub fn hold(&self, machine: &str, is_held: bool) -> Result<()> {
        self.state().find(machine)?.is_held = is_held;
        self.shared.changed();
        Ok(())
    }

    /// Syncs the power state of all machines, which clears their last errors.
    pub fn sync_power_state(&self) {
        self.state().machines.values_mut().for_each(Machine::sync_power_state);
        self.shared.changed();
    }

    /// Sets the host that a machine runs while it is active and powered on; each further deployment
    /// gives it a new host key.
    pub fn boots(&self, machine: &str, host: &Host) -> Result<()> {
        host.stop();
        self.state().find(machine)?.host = Some(host.clone());
        Ok(())
    }

    /// Enrolls a machine, the only one of its resource class.
    #[expect(clippy::needless_pass_by_value, reason = "callers write it where they call")]
    pub fn enroll(&self, name: &str, more: Value) -> Result<()> {
        let mut node = json!({ "name": name, "driver": "fake-hardware", "resource_class": name });
        let fields = node.as_object_mut().context("no object")?;
        fields.extend(more.as_object().cloned().unwrap_or_default());
        self.ask("POST", "/v1/nodes", Some(&node)).map(drop)
    }

    /// Sends a request with full permissions, bypassing authentication, and returns the body.
    pub fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let Answer { status, body } = self.shared.act(method, path, body.cloned());
        ensure!((200..300).contains(&status), "{method} {path}: {status}: {body}");
        Ok(body)
    }

    /// Returns the API's representation of a machine.
    pub fn node(&self, machine: &str) -> Result<Value> {
        self.ask("GET", &format!("/v1/nodes/{machine}"), None)
    }

    /// Requests a provisioning target of a machine, as a user would without the operators.
    pub fn provision(&self, machine: &str, target: &str) -> Result<()> {
        let path = format!("/v1/nodes/{machine}/states/provision");
        self.ask("PUT", &path, Some(&json!({ "target": target }))).map(drop)
    }

    /// Returns the config drive of the last deployment, which the API never shows.
    pub fn drive(&self, machine: &str) -> Result<Option<Value>> {
        Ok(self.state().find(machine)?.drive.clone())
    }

    /// Returns the provisioning states that a machine went through, each with its target.
    pub fn moves(&self, machine: &str) -> Result<Vec<(String, Option<String>)>> {
        Ok(self.state().find(machine)?.moves.clone())
    }

    /// Returns the number of list requests for machines.
    pub fn n_lists(&self) -> usize {
        self.state().n_lists
    }

    /// Waits until `holds` is true of a machine; `what` describes that in the error.
    pub async fn wait(
        &self,
        machine: &str,
        what: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let mut changes = self.shared.changes.subscribe();
        let reached = async {
            loop {
                let node = self.node(machine)?;
                if holds(&node) {
                    return Ok(node);
                }
                changes.changed().await?;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, reached).await;
        let node = self.node(machine);
        waited.with_context(|| format!("machine {machine} is not {what}: {node:?}"))?
    }

    /// Waits until a machine is in a state and unlocked.
    pub async fn reaches(&self, machine: &str, state: &str) -> Result<()> {
        let is_there = |it: &Value| it["provision_state"] == state && it["reservation"].is_null();
        self.wait(machine, state, is_there).await.map(drop)
    }

    /// Waits for the next request that lists all machines.
    pub async fn is_looked_at(&self) -> Result<()> {
        let mut changes = self.shared.changes.subscribe();
        let before = self.n_lists();
        let looked = async {
            while self.n_lists() == before {
                changes.changed().await?;
            }
            Ok(())
        };
        tokio::time::timeout(PATIENCE, looked).await.context("no operator looks at all machines")?
    }

    /// Stops listening; the state is kept.
    pub fn stop(&self) {
        server::stop(&self.shared);
    }

    /// Starts listening again.
    pub async fn listen(&self) -> Result<()> {
        server::listen(&self.shared).await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }
}
