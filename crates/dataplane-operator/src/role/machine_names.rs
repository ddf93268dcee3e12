//! Maps the nodes of a group to the machines of its set.
//!
//! Two nodes may have the same host name, and a host may be renamed while its machine keeps the
//! name with which it was requested.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use api::baremetal::BaremetalSet;
use api::dataplane::{HostMachine, Node};
use kube::ResourceExt;

use crate::baremetal_request::provisioning_state::knows;

/// The mapping between nodes and machines.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Node → the name of the machine that it requests.
    requested: BTreeMap<String, String>,
    /// Machine → the node that gets it.
    owners: BTreeMap<String, String>,
}

impl Names {
    /// Computes the mapping for the nodes of a group and its set.
    ///
    /// # Guarantees
    /// A machine stays with the node whose status records it for as long as the set knows it. When
    /// several nodes request one machine, the oldest gets it.
    pub fn of(nodes: &[Arc<Node>], set: Option<&BaremetalSet>) -> Self {
        let mut names = Self::default();
        let mut by_age: Vec<&Arc<Node>> = nodes.iter().collect();
        by_age.sort_by_key(|it| (it.creation_timestamp().map(|it| it.0), it.name_any()));
        // A status that names another machine than the set has may be about an earlier machine.
        for must_agree in [true, false] {
            for node in &by_age {
                let known = recorded(node).filter(|_| !must_agree || agrees(set, node));
                let known = known.filter(|it| set.is_some_and(|set| knows(set, it)));
                names.give(node, known.map(str::to_owned));
            }
        }
        for node in by_age {
            let host = machine_name(node);
            names.give(node, Some(host.clone()));
            names.requested.entry(node.name_any()).or_insert(host);
        }
        names
    }

    fn give(&mut self, node: &Node, host: Option<String>) {
        let Some(host) = host.filter(|it| !self.owners.contains_key(it)) else { return };
        if let Entry::Vacant(asked) = self.requested.entry(node.name_any()) {
            asked.insert(host.clone());
            self.owners.insert(host, node.name_any());
        }
    }

    /// Returns the name of the machine that a node requests.
    pub fn asked(&self, node: &Node) -> String {
        self.requested.get(&node.name_any()).cloned().unwrap_or_else(|| machine_name(node))
    }

    /// Returns the node that gets a machine, if any node requests it.
    pub fn owner(&self, machine: &str) -> Option<&str> {
        self.owners.get(machine).map(String::as_str)
    }

    /// Returns whether a node gets the machine that it requests.
    pub fn is_owner(&self, node: &Node) -> bool {
        self.owner(&self.asked(node)) == Some(&node.name_any())
    }
}

/// Returns the name for a new machine of a node: its host name up to the first dot.
pub fn machine_name(node: &Node) -> String {
    let host = node.spec.host_name.clone().unwrap_or_else(|| node.name_any());
    host.split('.').next().unwrap_or_default().to_owned()
}

/// Returns the name under which a set may know a node's machine.
pub fn known_name(node: &Node) -> String {
    recorded(node).map_or_else(|| machine_name(node), str::to_owned)
}

/// Returns the recorded name of a machine that a node has or had.
fn recorded(node: &Node) -> Option<&str> {
    let machine = machine_of(node).filter(|it| it.is_chosen())?;
    machine.host.as_deref()
}

fn machine_of(node: &Node) -> Option<&HostMachine> {
    node.status.as_ref()?.machine.as_ref()
}

/// Returns whether a node's status and the set name the same machine for the host.
fn agrees(set: Option<&BaremetalSet>, node: &Node) -> bool {
    let reported = set.zip(recorded(node)).and_then(|(set, host)| set.told(host));
    reported.map(|it| &it.bmh_ref) == machine_of(node).and_then(|it| it.machine.as_ref())
}
