//! The inventory objects of nodes and roles: their names, and the division of a large role's
//! inventory into several objects of at most 1 MiB each.

use std::collections::BTreeSet;

use kube::ResourceExt;
use operator_core::hash;

use crate::role::observed::{NodeGroup, Observed};

/// The approximate number of hosts per inventory object: with 5 KB of variables each, half a MiB.
const HOSTS: usize = 100;

/// The number of objects that a role may have had before, however small it is now.
const FORMER: usize = 64;

/// Returns the number of the group's inventory objects; a node without a role has its own.
pub fn count(seen: &Observed) -> usize {
    match seen.group {
        NodeGroup::Role(_) => count_for(seen.nodes.len()),
        NodeGroup::Node(_) => 1,
    }
}

/// Returns the number of objects for `n_hosts` hosts.
///
/// It is a power of two, so that it seldom changes while a role grows: each change rewrites all.
fn count_for(n_hosts: usize) -> usize {
    n_hosts.div_ceil(HOSTS).max(1).next_power_of_two()
}

/// Returns the index of the group's object that contains a host.
pub fn of_host(seen: &Observed, host: &str) -> usize {
    shard_index(host, count(seen))
}

/// Returns the index of a host's object.
///
/// It depends on the host's name alone, so that it stays the same when other hosts come or go.
pub fn shard_index(host: &str, count: usize) -> usize {
    if count == 1 {
        return 0;
    }
    let digest = hash::of_bytes(host);
    let number = usize::from_str_radix(&digest[..8], 16).unwrap_or_default();
    number % count
}

/// What the names of nodes' inventory objects begin with.
const OF_NODE: &str = "dataplanenode-";

/// Returns the name of a node's inventory object.
pub fn node_inventory_name(node: &str) -> String {
    format!("{OF_NODE}{node}")
}

/// Returns the name of the node with this inventory object; `None` if the object is of another kind.
pub fn node_of_inventory(name: &str) -> Option<&str> {
    name.strip_prefix(OF_NODE)
}

/// Returns the name of a role's inventory object, when it has only one.
pub fn role_inventory_name(role: &str) -> String {
    format!("dataplanerole-{role}")
}

/// Returns the name of one of `count` objects; names of other inventories begin differently.
pub fn name(role: &str, part: usize, count: usize) -> String {
    if count == 1 { role_inventory_name(role) } else { format!("dataplaneroles.{part}-{role}") }
}

/// Returns the names that a role's objects have, or had before the role grew or shrank.
pub fn names(role: &str, n_hosts: usize) -> BTreeSet<String> {
    let n_possible = (2 * count_for(n_hosts)).max(FORMER);
    let parts = (0..n_possible).map(|it| name(role, it, n_possible));
    parts.chain([role_inventory_name(role)]).collect()
}

/// Returns the objects that no longer contain a host.
///
/// Returns none while a run has not ended, because the run may still mount one.
pub fn left_over(seen: &Observed) -> Vec<String> {
    let Some(role) = seen.role.as_ref().map(|it| it.name_any()) else { return Vec::new() };
    if seen.has_open_run() {
        return Vec::new();
    }
    let n_parts = count(seen);
    let used: BTreeSet<String> = (0..n_parts).map(|it| name(&role, it, n_parts)).collect();
    let exists =
        |it: &String| seen.inventories.contains_key(it) || seen.inventory_secrets.contains_key(it);
    names(&role, seen.nodes.len())
        .into_iter()
        .filter(|it| !used.contains(it) && exists(it))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_of_a_hundred_hosts_has_one_object_and_a_larger_one_has_several() {
        let cases = [(0, 1), (1, 1), (100, 1), (101, 2), (200, 2), (201, 4), (5000, 64)];
        for (n_hosts, expected) in cases {
            assert_eq!(count_for(n_hosts), expected, "{n_hosts} hosts");
        }
        assert_eq!(name("compute", 0, 1), "dataplanerole-compute");
        assert_eq!(name("compute", 3, 4), "dataplaneroles.3-compute");
    }

    #[test]
    fn hosts_are_spread_evenly_and_stay_where_they_are() {
        let n_parts = count_for(5000);
        let mut sizes = vec![0; n_parts];
        for host in 0..5000 {
            sizes[shard_index(&format!("compute-{host:04}"), n_parts)] += 1;
        }
        assert!(sizes.iter().all(|it| (40..130).contains(it)), "{sizes:?}");
        assert_eq!(shard_index("compute-0007", n_parts), shard_index("compute-0007", n_parts));
    }
}
