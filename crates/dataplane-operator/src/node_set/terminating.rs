//! The hosts that were taken out of a node set and that other operators still clean up after, or whose
//! machines are not given back yet.
//!
//! What a host has stays as long as others hold its node, and until a run has found no guests on it, if
//! its machine is to be given back. Deployments leave hosts out whose nodes leave.

use std::collections::BTreeSet;

use api::dataplane::{Node, NodeSet};
use operator_core::finalizers::is_terminating;
use operator_core::node_set_host;
use operator_core::run_engine::connection_vars::{HOST_VAR, PORT_VAR, plain_host, plain_port};
use operator_core::run_engine::inventory::INVENTORY_KEY;

use crate::finalizers::is_used;
use crate::node_set::build;
use crate::node_set::inventory_entries::{self, Entries};
use crate::node_set::kept_hosts::{TerminatingHost, TerminatingHosts, short};
use crate::node_set::last_looks;
use crate::node_set::observed::{Observed, own_set};

/// Returns the names of the hosts whose nodes others hold, and that leave the node set, or come back
/// because only their node was deleted, by hand.
pub fn names(seen: &Observed) -> BTreeSet<String> {
    if seen.is_namespace_terminating {
        return BTreeSet::new();
    }
    let (leaving, own) = (&seen.nodes.leaving, &seen.nodes.own);
    let going = own.iter().filter(|_| is_terminating(&*seen.set));
    let held = leaving.iter().chain(going).filter(|(_, it)| is_used(&***it));
    held.map(|(name, _)| name.clone()).filter(|it| !is_handed_over(seen, it)).collect()
}

/// Returns these hosts, with what is left of their descriptions.
pub fn hosts(seen: &Observed) -> TerminatingHosts {
    if seen.is_namespace_terminating {
        return TerminatingHosts::new();
    }
    let mut names = names(seen);
    for host in node_set_host::hosts(&seen.set) {
        names.remove(&host.name);
    }
    if !is_terminating(&*seen.set) {
        names.append(&mut last_looks::held_names(seen));
    }
    if names.is_empty() {
        return TerminatingHosts::new();
    }
    let mut entries = written_entries(seen);
    let host = |name: String| {
        let entry = entries.remove(&name);
        let address = entry.as_deref().and_then(|it| address_in(&seen.set, it));
        let address = address.or_else(|| recorded_address(seen.nodes.get(&name)?));
        let host_name = recorded_host_name(&seen.set, &name);
        (name, TerminatingHost { entry, address, host_name })
    };
    names.into_iter().map(host).collect()
}

/// Returns the entries of the inventory as it was written. One that another field manager has
/// changed counts for nothing, so that the operator never renews what it did not render.
fn written_entries(seen: &Observed) -> Entries {
    let written = seen.written.as_ref();
    let written = written.filter(|_| build::is_intact(seen, [INVENTORY_KEY]));
    let text = written.and_then(|it| it.text(INVENTORY_KEY));
    text.map(inventory_entries::entries).unwrap_or_default()
}

fn address_in(set: &NodeSet, entry: &str) -> Option<(String, i32)> {
    let host = inventory_entries::variable(entry, HOST_VAR)?;
    let port = inventory_entries::variable(entry, PORT_VAR);
    let port = port.and_then(|it| plain_port(&it));
    let port = port.unwrap_or_else(|| node_set_host::template_port(set));
    Some((plain_host(&host)?.to_owned(), port))
}

fn recorded_address(node: &Node) -> Option<(String, i32)> {
    let (host, port) = node.status.as_ref()?.address.as_ref()?.rsplit_once(':')?;
    Some((host.to_owned(), port.parse().ok()?))
}

fn recorded_host_name(set: &NodeSet, name: &str) -> Option<String> {
    let mut recorded = set.status.as_ref()?.all_hostnames.keys();
    recorded.find(|it| short(it) == name).cloned()
}

/// Returns whether a host goes to another node set as it is. One with a machine of its node set does
/// not: the machine is given back, and the other node set brings its own.
pub fn is_handed_over(seen: &Observed, name: &str) -> bool {
    let machines = seen.set.status.as_ref().map(|it| &it.machines);
    let node = seen.nodes.get(name).filter(|it| !is_terminating(&***it));
    node.is_some()
        && seen.nodes.other_sets.contains_key(name)
        && !machines.is_some_and(|it| it.contains_key(name))
        && !has_machine(seen, name)
}

/// Returns whether the node set's machines still include that of a host.
pub fn has_machine(seen: &Observed, name: &str) -> bool {
    own_set(seen).is_some_and(|it| it.spec.baremetal_hosts.contains_key(name))
}
