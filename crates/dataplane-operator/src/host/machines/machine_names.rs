//! The names of machines, and which host gets which machine of a set.
//!
//! Two hosts may ask for one name, and a host may be renamed while its machine keeps the name with
//! which it was requested.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use api::dataplane::{HostMachine, Node};
use api::problem::Problem;
use kube::ResourceExt;

use crate::reasons;

/// The mapping between hosts and machines; hosts are called by whatever never changes about them.
#[derive(Clone, Debug, Default)]
pub struct MachineNames {
    /// Host → the machine that it gets.
    machines: BTreeMap<String, String>,
    /// Machine → the host that gets it.
    owners: BTreeMap<String, String>,
}

impl MachineNames {
    /// Gives a machine to a host, unless one of the two is already given.
    pub fn give(&mut self, host: &str, machine: &str) {
        if self.owners.contains_key(machine) {
            return;
        }
        if let Entry::Vacant(entry) = self.machines.entry(host.to_owned()) {
            entry.insert(machine.to_owned());
            self.owners.insert(machine.to_owned(), host.to_owned());
        }
    }

    /// Returns the machine that a host gets, if it gets one.
    pub fn machine(&self, host: &str) -> Option<&str> {
        self.machines.get(host).map(String::as_str)
    }

    /// Returns the host that gets a machine, if any host does.
    pub fn owner(&self, machine: &str) -> Option<&str> {
        self.owners.get(machine).map(String::as_str)
    }

    /// Returns all machines that hosts get.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.owners.keys().map(String::as_str)
    }
}

/// Returns the name by which a recorded machine stays known; `None` before one is chosen.
pub fn recorded(machine: Option<&HostMachine>) -> Option<&str> {
    machine.filter(|it| it.is_chosen())?.host.as_deref()
}

/// Returns the name for a new machine of a node: its host name up to the first dot.
pub fn machine_name(node: &Node) -> String {
    let host = node.spec.host_name.clone().unwrap_or_else(|| node.name_any());
    host.split('.').next().unwrap_or_default().to_owned()
}

/// Returns the name under which a set may know a node's machine.
pub fn known_name(node: &Node) -> String {
    recorded(machine_of(node)).map_or_else(|| machine_name(node), str::to_owned)
}

/// Returns the record of the machine that a node has or had.
pub fn machine_of(node: &Node) -> Option<&HostMachine> {
    node.status.as_ref()?.machine.as_ref()
}

/// Returns whether services were deployed to a node's host, and no machine was installed for it.
pub fn is_on_unmanaged_machine(node: &Node) -> bool {
    let mut services = node.status.iter().flat_map(|it| &it.services);
    // A machine that was asked for and never came is not the one on which the host runs.
    services.any(|it| it.deployed_hash.is_some())
        && machine_of(node).is_none_or(|it| it.installation.is_none())
}

/// Returns the fault of a host that is called otherwise than its machine; `fix` is what the user
/// can do.
pub fn renamed(title: &str, called: &str, known: &str, fix: &str) -> Problem {
    let text = format!(
        "{title} is called {called} now, and its machine was asked for as {known}, which it stays: \
         under another name it would be given back, and another one deployed. {fix}"
    );
    Problem::new(&reasons::machines::HOST_NAME_CHANGED, text)
}
