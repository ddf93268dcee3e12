//! The observed nodes of a node set, as plain data.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::dataplane::{Node, NodeSet};
use kube::ResourceExt;
use operator_core::finalizers::is_terminating;
use operator_core::node_set_host::{Host, hosts, taken_out};

use crate::finalizers::is_used;

/// The nodes of a node set, by their names, which are those of the hosts in the inventory.
#[derive(Clone, Debug, Default)]
pub struct SetNodes {
    /// Whether this operator makes them: not where the kind belongs to another operator, or the
    /// definition of an earlier release does not know them.
    pub are_made: bool,
    /// Those that name the node set, have an entry there, and do not leave.
    pub own: BTreeMap<String, Arc<Node>>,
    /// Those that name the node set and leave it, or have no entry there.
    pub leaving: BTreeMap<String, Arc<Node>>,
    /// Those that have the name of one of its hosts and do not name it.
    pub foreign: BTreeMap<String, Arc<Node>>,
    /// Another node set with an entry of the same name at the same address, for each that has no entry
    /// any more.
    pub other_sets: BTreeMap<String, Arc<NodeSet>>,
}

impl SetNodes {
    /// Divides the nodes that name a node set, `all`; `by_name` finds any node of its namespace, and `elsewhere`
    /// another node set to which a node's host may go.
    pub fn of(
        set: &NodeSet,
        all: impl IntoIterator<Item = Arc<Node>>,
        by_name: impl Fn(&str) -> Option<Arc<Node>>,
        elsewhere: impl Fn(&Node) -> Option<Arc<NodeSet>>,
    ) -> Self {
        let listed: BTreeSet<String> = hosts(set).into_iter().map(|it| it.name).collect();
        let mut nodes = Self { are_made: true, ..Self::default() };
        for node in all {
            let name = node.name_any();
            if is_terminating(set) || !listed.contains(&name) {
                nodes.other_sets.extend(elsewhere(&node).map(|it| (name.clone(), it)));
            }
            let stays = listed.contains(&name) && !node.is_leaving();
            let side = if stays { &mut nodes.own } else { &mut nodes.leaving };
            side.insert(name, node);
        }
        let left = taken_out(set).into_keys().map(str::to_owned);
        let names = listed.into_iter().chain(left).filter(|it| nodes.get(it).is_none());
        nodes.foreign = names.filter_map(|it| Some((it.clone(), by_name(&it)?))).collect();
        nodes
    }

    /// Returns the node of a host, also of one that leaves.
    pub fn get(&self, name: &str) -> Option<&Arc<Node>> {
        self.own.get(name).or_else(|| self.leaving.get(name))
    }

    /// Returns all nodes that name the node set.
    pub fn all(&self) -> impl Iterator<Item = (&String, &Arc<Node>)> {
        self.own.iter().chain(&self.leaving)
    }

    /// Returns those that others than this operator hold by finalizers.
    pub fn used(&self) -> impl Iterator<Item = (&String, &Arc<Node>)> {
        self.all().filter(|(_, it)| is_used(&***it))
    }
}

/// Returns whether a node set has an entry of a node's host at the address where the host was reached:
/// then it is the same host.
pub fn describes(set: &NodeSet, node: &Node) -> bool {
    let address = node.status.as_ref().and_then(|it| it.address.as_ref());
    let is_it = |it: &Host<'_>| it.name == node.name_any() && Some(&it.address()) == address;
    !is_terminating(set) && hosts(set).iter().any(is_it)
}
