//! The names under which the machines of a node set's hosts were requested.

use api::dataplane::NodeSet;
use api::problem::Problem;
use kube::ResourceExt;
use operator_core::node_set_host::{Host, machine_template};

use crate::baremetal_request::machine_names::{MachineNames, renamed};
use crate::baremetal_request::provisioning_state::knows;
use crate::node_set::observed::{Observed, own_set};
use crate::reasons;

const KIND: &str = "OpenStackDataPlaneNodeSet";

/// Returns the names of the hosts whose machines are chosen and still part of the baremetal set, by
/// the host's key in `spec.nodes`.
pub fn of(seen: &Observed) -> MachineNames {
    let mut names = MachineNames::default();
    let (Some(own), Some(status)) = (own_set(seen), &seen.set.status) else { return names };
    let is_known = |name: &str| knows(own, name);
    // If several machines name one host, the last one is its.
    for (name, machine) in status.machines.iter().rev().filter(|(_, it)| it.is_chosen()) {
        let key = machine.node.as_deref().filter(|it| seen.set.spec.nodes.contains_key(*it));
        if let Some(key) = key.filter(|_| is_known(name)) {
            names.give(key, name);
        }
    }
    names
}

/// Returns the fault of a host whose machine has another name, or whose name belongs to another
/// host's machine.
pub fn fault(names: &MachineNames, set: &NodeSet, host: &Host<'_>) -> Option<Problem> {
    let (key, called, title) = (host.key, &host.name, format!("{KIND} {}", set.name_any()));
    if let Some(known) = names.machine(key).filter(|it| it != called) {
        let template = machine_template(set).and_then(|it| it.template.domain_name.as_deref());
        let domain = template.filter(|it| !it.is_empty());
        // With a domain in the template, a host name without one would not count.
        let way = domain.map_or_else(|| known.to_owned(), |it| format!("{known}.{it}"));
        let fix = format!(
            "Set spec.nodes[{key}].hostName to {way} again, or take the node out and put it in under \
             another key."
        );
        return Some(renamed(&format!("Node {key} of {title}"), called, known, &fix));
    }
    let other = names.owner(called).filter(|it| *it != key)?;
    let text = format!(
        "Node {key} of {title} has the host name {called}, by which the machine of node {other} is \
         known: correct spec.nodes[{key}].hostName."
    );
    Some(Problem::new(&reasons::machines::HOST_TWICE_IN_SET, text))
}
