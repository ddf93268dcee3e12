//! An Ironic as far as operators and these tests ask it: its states, locks, refusals and words, held to
//! what a real one answers to the same script of requests.

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
use std::net::SocketAddr;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use answer::Answer;
use anyhow::{Context as _, Result, ensure};
use machine::Machine;
use serde_json::{Value, json};
use shared::Shared;
use state::{Login, PASSWORD, State, USER};

use crate::keystone::Keystone;
use crate::player::host::Host;
use crate::ports;

pub use state::Trouble;

/// How long a machine stays in a state that it does not stay in, unless a test says otherwise.
const TAKES: Duration = Duration::from_millis(100);
/// How long a machine may take to come to a state.
const PATIENCE: Duration = Duration::from_mins(1);

/// An Ironic with fake hardware on a port of the loopback address; it ends with its last handle.
#[derive(Clone, Debug)]
pub struct Ironic {
    shared: Arc<Shared>,
}

impl Ironic {
    /// Starts one that asks for user and password.
    pub async fn start() -> Result<Self> {
        let address = SocketAddr::from(([127, 0, 0, 1], ports::free()?));
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
        ironic.listen().await?;
        Ok(ironic)
    }

    /// Where operators reach it.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.shared.address)
    }

    /// The content of a Secret with which it lets somebody in.
    pub fn secret() -> [(&'static str, &'static str); 2] {
        [("username", USER), ("password", PASSWORD)]
    }

    /// Lets in whom Keystone gives a token, and nobody else.
    pub fn believe(&self, keystone: &Keystone) {
        self.state().login = Login::Keystone(keystone.clone());
    }

    /// It speaks these versions of the API, the oldest and the newest.
    pub fn speak(&self, oldest: &'static str, newest: &'static str) {
        self.state().versions = (oldest, newest);
    }

    /// It has nowhere to keep config drives: each deployment with one fails.
    pub fn lose_store(&self) {
        self.state().has_store = false;
    }

    /// What answers in its place; nothing where none.
    pub fn suffer(&self, trouble: Option<Trouble>) {
        self.state().fault = trouble;
    }

    /// Each answer takes that long.
    pub fn answer_after(&self, time: Duration) {
        self.state().slow = time;
    }

    /// Machines stay that long in each state that they do not stay in.
    pub fn take(&self, time: Duration) {
        self.state().takes = time;
    }

    /// From now on a machine fails where it leaves that state, with these words; no words end that.
    pub fn fail(&self, machine: &str, state: &str, words: Option<&str>) -> Result<()> {
        let mut shared = self.state();
        let machine = shared.find(machine)?;
        machine.failing.remove(state);
        machine.failing.extend(words.map(|it| (state.to_owned(), it.to_owned())));
        Ok(())
    }

    /// A conductor holds a machine, or lets go of it: held ones can neither be written nor told anything.
    pub fn hold(&self, machine: &str, is_held: bool) -> Result<()> {
        self.state().find(machine)?.is_held = is_held;
        self.shared.changed();
        Ok(())
    }

    /// Looks at the power of all machines, and forgets then what went wrong with them.
    pub fn sync_power_state(&self) {
        self.state().machines.values_mut().for_each(Machine::sync_power_state);
        self.shared.changed();
    }

    /// What a machine runs once it is active and on: a host that answers, with another key of its own
    /// after each deployment.
    pub fn boots(&self, machine: &str, host: &Host) -> Result<()> {
        host.stop();
        self.state().find(machine)?.host = Some(host.clone());
        Ok(())
    }

    /// Makes a machine known, as the only one of its resource class.
    #[expect(clippy::needless_pass_by_value, reason = "callers write it where they call")]
    pub fn enroll(&self, name: &str, more: Value) -> Result<()> {
        let mut node = json!({ "name": name, "driver": "fake-hardware", "resource_class": name });
        let fields = node.as_object_mut().context("no object")?;
        fields.extend(more.as_object().cloned().unwrap_or_default());
        self.ask("POST", "/v1/nodes", Some(&node)).map(drop)
    }

    /// What it answers to a human who may do everything.
    pub fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let Answer { status, body } = self.shared.act(method, path, body.cloned());
        ensure!((200..300).contains(&status), "{method} {path}: {status}: {body}");
        Ok(body)
    }

    /// What it tells of a machine.
    pub fn node(&self, machine: &str) -> Result<Value> {
        self.ask("GET", &format!("/v1/nodes/{machine}"), None)
    }

    /// What a human asks of a machine without the operators: a target of its provisioning.
    pub fn provision(&self, machine: &str, target: &str) -> Result<()> {
        let path = format!("/v1/nodes/{machine}/states/provision");
        self.ask("PUT", &path, Some(&json!({ "target": target }))).map(drop)
    }

    /// The config drive that a machine was deployed with last, which its API shows to nobody.
    pub fn drive(&self, machine: &str) -> Result<Option<Value>> {
        Ok(self.state().find(machine)?.drive.clone())
    }

    /// The states through which a machine went, each with the one that it was on its way to.
    pub fn moves(&self, machine: &str) -> Result<Vec<(String, Option<String>)>> {
        Ok(self.state().find(machine)?.moves.clone())
    }

    /// How many lists of machines were asked for.
    pub fn n_lists(&self) -> usize {
        self.state().n_lists
    }

    /// Waits until a machine is as `holds` wants it; `what` names that in the error.
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

    /// Waits until a machine is in a state, and free for another request.
    pub async fn reaches(&self, machine: &str, state: &str) -> Result<()> {
        let is_there = |it: &Value| it["provision_state"] == state && it["reservation"].is_null();
        self.wait(machine, state, is_there).await.map(drop)
    }

    /// Waits until somebody who was answered after this call has asked for all machines.
    pub async fn is_looked_at(&self) -> Result<()> {
        let mut changes = self.shared.changes.subscribe();
        let before = self.n_lists();
        let looked = async {
            while self.n_lists() == before {
                changes.changed().await?;
            }
            Ok(())
        };
        tokio::time::timeout(PATIENCE, looked).await.context("nobody looks at all machines")?
    }

    /// Nobody listens any more, and what it knows stays.
    pub fn stop(&self) {
        server::stop(&self.shared);
    }

    /// Listens again.
    pub async fn listen(&self) -> Result<()> {
        server::listen(&self.shared).await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }
}
