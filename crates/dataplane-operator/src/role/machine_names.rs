//! The names of the machines of a group's nodes.

use std::sync::Arc;

use api::baremetal::BaremetalSet;
use api::dataplane::{HostMachine, Node};
use kube::ResourceExt;

use crate::baremetal_request::machine_names::{MachineNames, recorded};
use crate::baremetal_request::provisioning_state::knows;

/// Computes the machine of each node of a group.
///
/// # Guarantees
/// A machine stays with the node whose status records it for as long as the set knows it. When
/// several nodes request one machine, the oldest gets it.
pub fn of(nodes: &[Arc<Node>], set: Option<&BaremetalSet>) -> MachineNames {
    let mut names = MachineNames::default();
    let mut by_age: Vec<&Arc<Node>> = nodes.iter().collect();
    by_age.sort_by_key(|it| (it.creation_timestamp().map(|it| it.0), it.name_any()));
    let is_known = |it: &&str| set.is_some_and(|set| knows(set, it));
    // A status that names another machine than the set has may be about an earlier machine.
    for must_agree in [true, false] {
        for node in by_age.iter().filter(|it| !must_agree || agrees(set, it)) {
            if let Some(known) = recorded(machine_of(node)).filter(is_known) {
                names.give(&node.name_any(), known);
            }
        }
    }
    for node in by_age {
        names.give(&node.name_any(), &machine_name(node));
    }
    names
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

/// Returns whether a node's status and the set name the same machine for the host.
fn agrees(set: Option<&BaremetalSet>, node: &Node) -> bool {
    let machine = machine_of(node);
    let reported = set.zip(recorded(machine)).and_then(|(set, host)| set.host_status(host));
    reported.map(|it| &it.bmh_ref) == machine.and_then(|it| it.machine.as_ref())
}
