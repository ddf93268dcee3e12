//! What was observed of the hosts of a node set, as plain data.

use std::sync::Arc;
use std::time::Duration;

use api::dataplane::{HostReadiness, NodeSet};

use crate::nova_health::HostHealth;

/// The pause before a cluster is examined again for a kind that it lacks.
pub const CRD_POLL_INTERVAL: Duration = Duration::from_mins(1);

/// A host of a node set, and what the cells of its namespace say of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HostReading {
    /// Its name in the inventory.
    pub name: String,
    /// What is known of it.
    pub health: HostHealth,
}

/// A snapshot of everything that the decision on a node set uses.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The node set.
    pub set: Arc<NodeSet>,
    /// Its hosts by name; `None` where it lists no service of type nova.
    pub hosts: Option<Vec<HostReading>>,
    /// Whether its namespace has a cell; the hosts are counted only there.
    pub has_cells: bool,
    /// Whether a listed service of type nova lists the readiness gate of this operator.
    pub has_gate: bool,
    /// What is there of the report about its hosts.
    pub report: Report,
}

/// The report about the hosts of a node set.
#[derive(Clone, Debug)]
pub enum Report {
    /// The cluster does not serve the kind.
    NotServed,
    /// It does not exist.
    Missing,
    /// It is there.
    Found(Arc<HostReadiness>),
}
