//! What was observed of the hosts of a node set, as plain data.

use std::sync::Arc;

use api::dataplane::NodeSet;

use crate::nova_health::ServiceHealth;

/// A host of a node set, and what the cells of its namespace say of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HostReading {
    /// Its name in the inventory.
    pub name: String,
    /// What is known of its service.
    pub health: ServiceHealth,
}

/// A snapshot of everything that the decision on a node set uses.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The node set.
    pub set: Arc<NodeSet>,
    /// Its hosts by name; `None` where it lists no service of type nova, or its namespace has no
    /// cell.
    pub hosts: Option<Vec<HostReading>>,
}
