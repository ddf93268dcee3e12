//! The hosts that were taken out of a node set, and whose objects stay all the same.

use std::collections::{BTreeMap, BTreeSet};

use crate::node_set::inventory_entries::Entries;

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

/// Returns a host name up to the first dot, which is the name in the inventory.
pub fn short(host_name: &str) -> &str {
    host_name.split('.').next().unwrap_or_default()
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
