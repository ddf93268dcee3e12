//! The hosts that were taken out of a node set and that other operators still clean up after.
//!
//! What a host has stays as long as a report lists it in its host finalizers. Deployments take their
//! hosts from the spec, so they leave it out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::dataplane::{HostReadiness, NodeSet};
use operator_core::node_set_host;
use operator_core::run_engine::connection_vars::{HOST_VAR, PORT_VAR, plain_host, plain_port};
use operator_core::run_engine::inventory::INVENTORY_KEY;

use crate::node_set::build;
use crate::node_set::inventory_entries::{self, Entries};
use crate::node_set::observed::Observed;

/// A host that was taken out of the node set.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TerminatingHost {
    /// Its lines in the inventory; `None` if they were lost, for example with the Secret.
    pub entry: Option<String>,
    /// The address and the port of its ssh server; `None` if they are not known.
    pub address: Option<(String, i32)>,
    /// Its host name with its domain, if it has reserved addresses.
    pub host_name: Option<String>,
}

/// Such hosts, by their names in the inventory.
pub type TerminatingHosts = BTreeMap<String, TerminatingHost>;

/// Returns the names of such hosts.
pub fn names(set: &NodeSet, reports: &[Arc<HostReadiness>]) -> BTreeSet<String> {
    let mut names: BTreeSet<String> =
        reports.iter().flat_map(|it| it.spec.host_finalizers.keys()).cloned().collect();
    for host in node_set_host::hosts(set) {
        names.remove(&host.name);
    }
    names
}

/// Returns the reports that list any host in their host finalizers. None count in a namespace that
/// is being deleted, because nothing can be cleaned up from there.
pub fn holders(seen: &Observed) -> impl Iterator<Item = &Arc<HostReadiness>> {
    let all = seen.readiness.iter().filter(|_| !seen.is_namespace_terminating);
    all.filter(|it| !it.spec.host_finalizers.is_empty())
}

/// Returns the hosts of a node set that was observed.
pub fn hosts(seen: &Observed) -> TerminatingHosts {
    if seen.is_namespace_terminating {
        return TerminatingHosts::new();
    }
    let names = names(&seen.set, &seen.readiness);
    if names.is_empty() {
        return TerminatingHosts::new();
    }
    let mut entries = written_entries(seen);
    let host = |name: String| {
        let entry = entries.remove(&name);
        let address = entry.as_deref().and_then(|it| address_in(&seen.set, it));
        let address = address.or_else(|| recorded_address(&seen.set, &name));
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

fn recorded_address(set: &NodeSet, name: &str) -> Option<(String, i32)> {
    let (host, port) = set.status.as_ref()?.terminating_addresses.get(name)?.rsplit_once(':')?;
    Some((host.to_owned(), port.parse().ok()?))
}

fn recorded_host_name(set: &NodeSet, name: &str) -> Option<String> {
    let mut recorded = set.status.as_ref()?.all_hostnames.keys();
    recorded.find(|it| short(it) == name).cloned()
}

/// Returns a host name up to the first dot, which is the name in the inventory.
fn short(host_name: &str) -> &str {
    host_name.split('.').next().unwrap_or_default()
}

/// Returns the addresses as the status reports them.
pub fn addresses(hosts: &TerminatingHosts) -> BTreeMap<String, String> {
    let address = |(name, it): (&String, &TerminatingHost)| {
        let (host, port) = it.address.as_ref()?;
        Some((name.clone(), format!("{host}:{port}")))
    };
    hosts.iter().filter_map(address).collect()
}

/// Returns the entries of these hosts in the inventory.
pub fn entries(hosts: &TerminatingHosts) -> Entries {
    let entry = |(name, it): (&String, &TerminatingHost)| Some((name.clone(), it.entry.clone()?));
    hosts.iter().filter_map(entry).collect()
}

/// Returns the recorded values of these hosts, of values that are recorded by host name.
pub fn recorded<T: Clone>(
    hosts: &TerminatingHosts,
    values: &BTreeMap<String, T>,
) -> BTreeMap<String, T> {
    let names = hosts.values().filter_map(|it| it.host_name.as_ref());
    names.filter_map(|it| Some((it.clone(), values.get(it)?.clone()))).collect()
}

/// The hosts whose objects stay although the spec does not have the hosts.
#[derive(Clone, Copy, Debug)]
pub struct KeptHosts<'a> {
    /// Whether all objects stay, because a deployment is under way whose runs may mount them.
    pub is_frozen: bool,
    /// The hosts that are terminating.
    pub terminating: &'a TerminatingHosts,
}

impl<'a> KeptHosts<'a> {
    /// Returns the host names of the terminating hosts that have reserved addresses.
    pub fn host_names(&self) -> BTreeSet<&'a str> {
        self.terminating.values().filter_map(|it| it.host_name.as_deref()).collect()
    }

    /// Returns whether the objects of a host stay; its name may have a domain.
    pub fn has(&self, host_name: &str) -> bool {
        self.is_frozen || self.is_terminating(host_name)
    }

    /// Returns whether a host is terminating; its name may have a domain.
    pub fn is_terminating(&self, host_name: &str) -> bool {
        self.terminating.contains_key(short(host_name))
    }

    /// Returns whether the objects of any host stay.
    pub fn are_any(&self) -> bool {
        self.is_frozen || !self.terminating.is_empty()
    }
}
