//! Which machine of a set is which node's: two nodes may call their hosts alike, and a host may get
//! another name while its machine keeps the one by which it was asked for.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use api::baremetal::BaremetalSet;
use api::dataplane::{HostMachine, Node};
use kube::ResourceExt;

use crate::baremetal_request::provisioning_state::knows;

/// Nodes and their machines.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Node → the name of the machine that it asks for.
    requested: BTreeMap<String, String>,
    /// Machine → the node that gets it.
    owners: BTreeMap<String, String>,
}

impl Names {
    /// Of a group with its set.
    ///
    /// # Guarantees
    /// A machine stays with the node whose status tells of it for as long as the set knows it; of
    /// several that ask for one, the oldest gets it.
    pub fn of(nodes: &[Arc<Node>], set: Option<&BaremetalSet>) -> Self {
        let mut names = Self::default();
        let mut by_age: Vec<&Arc<Node>> = nodes.iter().collect();
        by_age.sort_by_key(|it| (it.creation_timestamp().map(|it| it.0), it.name_any()));
        // A status that names another machine than the set has may be of an earlier one.
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

    /// The name of the machine that a node asks for.
    pub fn asked(&self, node: &Node) -> String {
        self.requested.get(&node.name_any()).cloned().unwrap_or_else(|| machine_name(node))
    }

    /// The node that gets a machine, where one asks for it.
    pub fn owner(&self, machine: &str) -> Option<&str> {
        self.owners.get(machine).map(String::as_str)
    }

    /// Whether a node gets the machine that it asks for.
    pub fn is_owner(&self, node: &Node) -> bool {
        self.owner(&self.asked(node)) == Some(&node.name_any())
    }
}

/// The name by which a node's machine is asked for anew: its host's up to the first dot.
pub fn machine_name(node: &Node) -> String {
    let host = node.spec.host_name.clone().unwrap_or_else(|| node.name_any());
    host.split('.').next().unwrap_or_default().to_owned()
}

/// The name by which a set may know a node's machine.
pub fn known_name(node: &Node) -> String {
    recorded(node).map_or_else(|| machine_name(node), str::to_owned)
}

/// The name by which a machine was asked for that a node has, or had.
fn recorded(node: &Node) -> Option<&str> {
    let machine = machine_of(node).filter(|it| it.is_chosen())?;
    machine.host.as_deref()
}

fn machine_of(node: &Node) -> Option<&HostMachine> {
    node.status.as_ref()?.machine.as_ref()
}

/// Whether a node's status names the machine that the set has under the same name.
fn agrees(set: Option<&BaremetalSet>, node: &Node) -> bool {
    let reported = set.zip(recorded(node)).and_then(|(set, host)| set.told(host));
    reported.map(|it| &it.bmh_ref) == machine_of(node).and_then(|it| it.machine.as_ref())
}
