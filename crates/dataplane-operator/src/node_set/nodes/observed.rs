//! The observed nodes of a node set, as plain data.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::dataplane::Node;

/// The nodes of a node set, by their names, which are those of the hosts in the inventory.
#[derive(Clone, Debug, Default)]
pub struct SetNodes {
    /// Whether this operator makes them: not where the kind belongs to another operator, or the
    /// definition of an earlier release does not know them.
    pub are_made: bool,
    /// Those that name the node set.
    pub own: BTreeMap<String, Arc<Node>>,
    /// Those that have the name of one of its hosts and do not name it.
    pub foreign: BTreeMap<String, Arc<Node>>,
}
