//! Reports on a node set that lists a service of type nova how many of its hosts are up as
//! computes, and which of them do not satisfy the readiness gate if that service lists it; drains
//! the hosts that an annotation names, or that a deployment is to disturb; and removes those that
//! leave the node set from nova.
//!
//! The controller runs only where nova's API is read. A host is found by the name under which
//! nova-compute registers there, among the services of the namespace's cells.

pub mod claims;
pub mod decide;
pub mod drain;
pub mod observe;
pub mod observed;
pub mod removal;
pub mod rivals;
pub mod rollout;

#[cfg(test)]
mod tests;

pub use decide::decide;
pub use observed::{Observed, Seen};

use std::sync::Arc;

use jiff::Timestamp;
use operator_core::object_key::Key;
use operator_core::plan::Plan;
use operator_core::rejected_write::RejectedWrite;
use operator_runtime::controller::Controller;
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::node_set_caches::NodeSetCaches;
use crate::node_set_readiness::removal_after;
use crate::nova_monitor::NovaMonitor;
use crate::nova_orders::NovaOrders;

/// The controller of node sets.
pub struct NodeSetComputes {
    /// All caches of the operator.
    pub caches: Arc<Caches>,
    /// All node sets, and the reports about them.
    pub node_sets: Arc<NodeSetCaches>,
    /// The readers of nova's APIs.
    pub monitor: Arc<NovaMonitor>,
    /// The orders about hosts of node sets.
    pub orders: Arc<NovaOrders>,
}

impl Controller for NodeSetComputes {
    type Observed = Seen;

    const NAME: &'static str = "node-set-computes";

    async fn observe(&self, key: &Key) -> Result<Option<Seen>> {
        observe::observe(&self.caches, &self.node_sets, &self.monitor, &self.orders, key).await
    }

    fn decide(seen: &Seen, rejected: Option<&RejectedWrite>, now: Timestamp) -> Plan {
        match seen {
            Seen::Present(seen) => decide(seen, rejected, now),
            Seen::Gone(report) => removal_after(report),
        }
    }
}
