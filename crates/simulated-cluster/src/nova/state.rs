//! The state of a fake nova with its placement and neutron.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context as _, Result};
use jiff::Timestamp;

use super::placement::Placement;
use crate::clock;

/// An agent of neutron.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    pub(crate) host: String,
    pub(crate) binary: String,
}

/// A host with nova-compute: its service, its compute node, and the mapping to its cell.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are columns of nova's tables")]
pub(crate) struct Host {
    pub(crate) cell: String,
    /// UUID of the service.
    pub(crate) service: String,
    /// UUID of the compute node, and of its resource provider.
    pub(crate) node: String,
    /// Whether nova-compute reports.
    pub(crate) reports: bool,
    pub(crate) is_forced_down: bool,
    pub(crate) is_disabled: bool,
    pub(crate) disabled_reason: Option<String>,
    pub(crate) is_mapped: bool,
    /// When its record was last written while it did not report; each list has a report of those
    /// that do.
    pub(crate) updated_at: Timestamp,
}

/// A server.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) vm_state: String,
    pub(crate) task_state: Option<String>,
}

/// A live migration.
#[derive(Clone, Debug)]
pub(crate) struct Migration {
    pub(crate) uuid: String,
    /// UUID of the server.
    pub(crate) server: String,
    pub(crate) source: String,
    /// `None` before the scheduler has chosen a host.
    pub(crate) dest: Option<String>,
    pub(crate) status: &'static str,
}

impl Migration {
    /// Returns whether it is in progress, as nova counts.
    pub(crate) fn is_open(&self) -> bool {
        self.status == RUNNING
    }
}

/// The statuses of live migrations that the fake nova uses.
pub(crate) const RUNNING: &str = "running";
pub(crate) const COMPLETED: &str = "completed";
pub(crate) const ERROR: &str = "error";

/// Everything that the fake nova has in its databases.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// `http://address` of its server.
    pub(crate) endpoint: String,
    /// By the name under which the service is registered.
    pub(crate) hosts: BTreeMap<String, Host>,
    /// Host → UUID of its compute node, which a host keeps in a file of its own.
    identities: BTreeMap<String, String>,
    /// By UUID.
    pub(crate) servers: BTreeMap<String, Server>,
    pub(crate) migrations: Vec<Migration>,
    /// Whether live migrations stay in progress until a test ends them.
    pub(crate) holds_migrations: bool,
    /// Name → hosts.
    pub(crate) aggregates: BTreeMap<String, BTreeSet<String>>,
    /// The cells whose databases do not answer, each with how long nova waits for it.
    pub(crate) silent_cells: BTreeMap<String, Duration>,
    /// The cells whose databases fail the query of servers, and answer all others.
    pub(crate) failing_lists: BTreeSet<String>,
    pub(crate) placement: Placement,
    /// By UUID.
    pub(crate) agents: BTreeMap<String, Agent>,
    /// The hosts whose agents report whether or not their nova-compute does.
    pub(crate) reporting_agents: BTreeSet<String>,
    n_ids: u64,
}

impl State {
    /// Creates the state without hosts.
    pub(crate) fn new(endpoint: String) -> Self {
        Self { endpoint, ..Self::default() }
    }

    /// Returns a UUID that was never returned before; later ones are greater.
    pub(crate) fn new_id(&mut self) -> String {
        self.n_ids += 1;
        format!("00000000-0000-4000-8000-{:012x}", self.n_ids)
    }

    /// Adds a service that is up, its compute node and the mapping of its host. A known service is
    /// up again and remains as it is otherwise; one that was deleted gets a new UUID, while its
    /// compute node keeps the one that the host has on disk.
    pub(crate) fn register(&mut self, name: &str, cell: &str) {
        if self.hosts.contains_key(name) {
            self.report(name, true);
            return;
        }
        let service = self.new_id();
        let node = match self.identities.get(name) {
            Some(node) => node.clone(),
            None => self.new_id(),
        };
        self.identities.insert(name.to_owned(), node.clone());
        self.placement.provide(&node, name);
        let host = Host {
            cell: cell.to_owned(),
            service,
            node,
            reports: true,
            is_forced_down: false,
            is_disabled: false,
            disabled_reason: None,
            is_mapped: true,
            updated_at: clock::now(),
        };
        self.hosts.insert(name.to_owned(), host);
    }

    /// Sets whether the service of a host reports; an unknown host is left out.
    pub(crate) fn report(&mut self, name: &str, reports: bool) {
        if let Some(host) = self.hosts.get_mut(name) {
            host.reports = reports;
            host.updated_at = clock::now();
        }
    }

    /// Returns the host of that name.
    pub(crate) fn host(&mut self, name: &str) -> Result<&mut Host> {
        self.hosts.get_mut(name).with_context(|| format!("no host {name}"))
    }

    /// Whether the database of a cell answers.
    pub(crate) fn answers(&self, cell: &str) -> bool {
        !self.silent_cells.contains_key(cell)
    }

    /// Returns how long nova waits for its cells before it lists something of all of them.
    pub(crate) fn waits_for_cells(&self) -> Duration {
        self.silent_cells.values().max().copied().unwrap_or_default()
    }

    /// Whether the database of a host's cell fails the query of servers alone.
    pub(crate) fn fails_to_list(&self, host: &str) -> bool {
        self.hosts.get(host).is_some_and(|it| self.failing_lists.contains(&it.cell))
    }

    /// Whether the database of a host's cell answers; true for a host that has no service.
    pub(crate) fn answers_for(&self, host: &str) -> bool {
        self.hosts.get(host).is_none_or(|it| self.answers(&it.cell))
    }
}

impl Host {
    /// Returns `up` or `down`.
    pub(crate) fn state(&self) -> &'static str {
        if self.reports && !self.is_forced_down { "up" } else { "down" }
    }

    /// Returns `enabled` or `disabled`.
    pub(crate) fn status(&self) -> &'static str {
        if self.is_disabled { "disabled" } else { "enabled" }
    }
}
