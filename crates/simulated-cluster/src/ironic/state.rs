//! The state of a fake Ironic: its machines, its credentials, and what tests have set.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::machine::Machine;
use crate::keystone::Keystone;

/// The user of an Ironic with basic authentication.
pub(crate) const USER: &str = "operator";
/// The user's password.
pub(crate) const PASSWORD: &str = "only-for-tests";

/// What requests are answered with instead of Ironic's own answers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Trouble {
    /// Every request is rejected with this status and text, in Ironic's format.
    Refusal(u16, String),
    /// Every request gets a page of another server.
    Page(String),
    /// Requests are never answered.
    Silence,
}

/// The accepted authentication.
#[derive(Clone, Debug)]
pub(crate) enum Login {
    Basic,
    Keystone(Keystone),
}

/// Everything the fake Ironic knows.
#[derive(Debug)]
pub(crate) struct State {
    /// By UUID.
    pub(crate) machines: BTreeMap<String, Machine>,
    pub(crate) login: Login,
    /// The oldest and the newest supported API version.
    pub(crate) versions: (&'static str, &'static str),
    /// Whether there is storage for config drives.
    pub(crate) has_store: bool,
    pub(crate) endpoint: String,
    pub(crate) fault: Option<Trouble>,
    /// Delay of each answer.
    pub(crate) slow: Duration,
    pub(crate) takes: Duration,
    pub(crate) n_lists: usize,
}

impl State {
    /// Returns a machine by UUID or name.
    pub(crate) fn find(&mut self, machine: &str) -> Result<&mut Machine> {
        let uuid = self.uuid(machine).with_context(|| format!("no machine {machine}"))?;
        self.machines.get_mut(&uuid).context("a machine that went away")
    }

    /// Returns the UUID of a machine by UUID or name, or `None` when it is unknown.
    pub(crate) fn uuid(&self, machine: &str) -> Option<String> {
        let mut found = self
            .machines
            .iter()
            .filter(|(uuid, it)| *uuid == machine || it.text("name") == machine);
        found.next().map(|(uuid, _)| uuid.clone())
    }
}
