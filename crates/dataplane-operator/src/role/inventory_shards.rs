//! The inventory objects of nodes and roles: their names, and the division of a large role's
//! inventory into several objects of at most 1 MiB each.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::dataplane::Node;
use kube::ResourceExt;

use crate::role::observed::{NodeGroup, Observed};
use crate::role::summary::HostSummary;

/// The most hosts per inventory object: with 5 KB of variables each, half a MiB.
const HOSTS: usize = 100;

/// The number of objects that a role may have had before, however small it is now.
const FORMER: usize = 64;

/// Returns the index of the object that contains each of a group's hosts, in the order of its nodes.
///
/// A host stays in the object that its node's status names, and a new one gets the first with room: hosts
/// that arrive together share runs, and none moves while its role grows. Where a role has shrunk so far
/// that half of its objects could hold its hosts, the hosts of the last objects are placed like new ones.
pub fn of_hosts(group: &NodeGroup, nodes: &[Arc<Node>]) -> Vec<usize> {
    let NodeGroup::Role(role) = group else { return vec![0; nodes.len()] };
    let n_shards = most(nodes.len());
    let mut sizes = vec![0; n_shards];
    let mut new = Vec::new();
    let mut found = vec![0; nodes.len()];
    for (place, node) in nodes.iter().enumerate() {
        match recorded(role, node).filter(|it| *it < n_shards) {
            Some(shard) => {
                sizes[shard] += 1;
                found[place] = shard;
            }
            None => new.push(place),
        }
    }
    // In the order of their creation, so that a later node moves none whose status names no object yet.
    new.sort_by_key(|it| nodes[*it].creation_timestamp());
    let mut shard = 0;
    for place in new {
        while sizes[shard] >= HOSTS {
            shard += 1;
        }
        sizes[shard] += 1;
        found[place] = shard;
    }
    found
}

/// Returns the most objects for `n_hosts` hosts: there is always one with room.
fn most(n_hosts: usize) -> usize {
    2 * n_hosts.div_ceil(HOSTS).max(1)
}

/// Returns the index of the object that a node's status names; `None` where it names none of this role.
fn recorded(role: &str, node: &Node) -> Option<usize> {
    let name = node.status.as_ref()?.shared_inventory_config_map_name.as_deref()?;
    if name.strip_prefix(OF_ROLE) == Some(role) {
        return Some(0);
    }
    name.strip_prefix(FURTHER)?.strip_suffix(role)?.strip_suffix('-')?.parse().ok()
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

/// What the name of a role's first inventory object begins with.
const OF_ROLE: &str = "dataplanerole-";

/// What the names of its further ones begin with; names of other inventories begin differently.
const FURTHER: &str = "dataplaneroles.";

/// Returns the name of one of a role's inventory objects.
pub fn name(role: &str, shard: usize) -> String {
    if shard == 0 { format!("{OF_ROLE}{role}") } else { format!("{FURTHER}{shard}-{role}") }
}

/// Returns the names that a role's objects have, or had before the role shrank. Earlier builds named the
/// first of several objects `dataplaneroles.0-ROLE`.
pub fn names(role: &str, n_hosts: usize) -> BTreeSet<String> {
    let further = (0..(2 * most(n_hosts)).max(FORMER)).map(|it| format!("{FURTHER}{it}-{role}"));
    further.chain([name(role, 0)]).collect()
}

/// Returns the objects that no longer contain a host; `hosts` are those of the role.
///
/// Returns none while a run has not ended, because the run may still mount one.
pub fn left_over(seen: &Observed, hosts: &[Arc<HostSummary>]) -> Vec<String> {
    let Some(role) = seen.role.as_ref().map(|it| it.name_any()) else { return Vec::new() };
    if seen.has_open_run() {
        return Vec::new();
    }
    let shards: BTreeSet<usize> = hosts.iter().map(|it| it.shard).chain([0]).collect();
    let used: BTreeSet<String> = shards.into_iter().map(|it| name(&role, it)).collect();
    let exists =
        |it: &String| seen.inventories.contains_key(it) || seen.inventory_secrets.contains_key(it);
    let former = names(&role, seen.nodes.len()).into_iter();
    former.filter(|it| !used.contains(it) && exists(it)).collect()
}

#[cfg(test)]
mod tests {
    use api::dataplane::{NodeSpec, NodeStatus};
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    /// A node that was created then, and the object that its status names.
    fn node(name: &str, created: i64, inventory: Option<&str>) -> Arc<Node> {
        let mut node = Node::new(name, NodeSpec::default());
        let created = Timestamp::from_second(created).unwrap();
        node.metadata.creation_timestamp = Some(Time(created));
        let inventory = inventory.map(ToOwned::to_owned);
        node.status = Some(NodeStatus {
            shared_inventory_config_map_name: inventory,
            ..NodeStatus::default()
        });
        Arc::new(node)
    }

    fn shards(nodes: &[Arc<Node>]) -> Vec<usize> {
        of_hosts(&NodeGroup::Role("compute".into()), nodes)
    }

    /// `sizes[k]` hosts in each object, and further hosts without one.
    fn role(sizes: &[usize], n_new: usize) -> Vec<Arc<Node>> {
        let of = |(shard, n): (usize, &usize)| vec![Some(name("compute", shard)); *n];
        let recorded = sizes.iter().enumerate().flat_map(of);
        let all = recorded.chain(std::iter::repeat_n(None, n_new)).enumerate();
        all.map(|(idx, it)| node(&format!("n{idx:04}"), 0, it.as_deref())).collect()
    }

    fn sizes(found: &[usize]) -> Vec<usize> {
        let n = found.iter().max().map_or(0, |it| it + 1);
        (0..n).map(|shard| found.iter().filter(|it| **it == shard).count()).collect()
    }

    #[test]
    fn a_new_host_gets_the_first_object_with_room_and_the_others_stay() {
        assert_eq!(sizes(&shards(&role(&[], 250))), [100, 100, 50]);
        assert_eq!(sizes(&shards(&role(&[100, 30], 1))), [100, 31]);
        assert_eq!(sizes(&shards(&role(&[99, 100], 2))), [100, 100, 1]);
        let grown = shards(&role(&[40, 90], 70));
        assert_eq!(grown[..130], [vec![0; 40], vec![1; 90]].concat());
        assert_eq!(sizes(&grown), [100, 100]);
    }

    #[test]
    fn of_new_hosts_those_that_came_first_are_placed_first() {
        let mut nodes: Vec<Arc<Node>> =
            (0..100).map(|it| node(&format!("n{it:03}"), 1, None)).collect();
        nodes.insert(0, node("a", 2, None));
        assert_eq!(shards(&nodes)[0], 1);
        assert_eq!(sizes(&shards(&nodes)), [100, 1]);
    }

    #[test]
    fn the_hosts_of_a_role_that_has_shrunk_move_together() {
        assert_eq!(sizes(&shards(&role(&[10, 10, 10, 10], 0))), [30, 10]);
        assert_eq!(sizes(&shards(&role(&[40, 40, 40, 40], 0))), [40, 40, 40, 40]);
        assert!(shards(&role(&[], 0)).is_empty());
    }

    #[test]
    fn every_object_that_a_role_may_have_had_before_is_known() {
        let known = |n_hosts, shard| names("compute", n_hosts).contains(&name("compute", shard));
        assert!(known(0, 0) && known(0, 63) && known(3300, 127));
        assert!(names("compute", 101).contains("dataplaneroles.0-compute"));
    }

    #[test]
    fn an_object_of_another_role_or_of_no_legal_name_is_none_of_a_host() {
        let of = |name: &str| recorded("b", &node("n", 0, Some(name)));
        assert_eq!(of("dataplanerole-b"), Some(0));
        assert_eq!(of("dataplaneroles.12-b"), Some(12));
        for other in ["dataplanerole-a-b", "dataplaneroles.1-a-b", "dataplaneroles.-1-b", "x"] {
            assert_eq!(of(other), None, "{other}");
        }
        assert_eq!(shards(&[node("n", 0, Some("dataplaneroles.99999999999-compute"))]), [0]);
    }

    #[test]
    fn a_node_without_a_role_has_its_own() {
        assert_eq!(of_hosts(&NodeGroup::Node("n".into()), &[node("n", 0, None)]), [0]);
    }
}
