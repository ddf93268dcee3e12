//! All that an Ironic knows: its machines, whom it lets in, and what a test wants of it.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::machine::Machine;
use crate::keystone::Keystone;

/// Who may ask an Ironic that asks for user and password.
pub(crate) const USER: &str = "operator";
/// The user's password.
pub(crate) const PASSWORD: &str = "only-for-tests";

/// What answers in place of Ironic.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Trouble {
    /// Each request gets this status, with these words as Ironic packs them.
    Refusal(u16, String),
    /// Each request gets a page of another server.
    Page(String),
    /// No request is ever answered.
    Silence,
}

/// Whom it lets in.
#[derive(Clone, Debug)]
pub(crate) enum Login {
    Basic,
    Keystone(Keystone),
}

/// All that it knows.
#[derive(Debug)]
pub(crate) struct State {
    /// By UUID.
    pub(crate) machines: BTreeMap<String, Machine>,
    pub(crate) login: Login,
    /// The oldest and the newest version that it speaks.
    pub(crate) versions: (&'static str, &'static str),
    /// Whether it has somewhere to keep config drives.
    pub(crate) has_store: bool,
    pub(crate) endpoint: String,
    pub(crate) fault: Option<Trouble>,
    /// How long each answer takes.
    pub(crate) slow: Duration,
    pub(crate) takes: Duration,
    pub(crate) n_lists: usize,
}

impl State {
    /// A machine by UUID or name.
    pub(crate) fn find(&mut self, machine: &str) -> Result<&mut Machine> {
        let uuid = self.uuid(machine).with_context(|| format!("no machine {machine}"))?;
        self.machines.get_mut(&uuid).context("a machine that went away")
    }

    /// The UUID of a machine by that or its name.
    pub(crate) fn uuid(&self, machine: &str) -> Option<String> {
        let mut found = self
            .machines
            .iter()
            .filter(|(uuid, it)| *uuid == machine || it.text("name") == machine);
        found.next().map(|(uuid, _)| uuid.clone())
    }
}
