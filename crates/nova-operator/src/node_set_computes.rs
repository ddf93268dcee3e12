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
pub mod orders;
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
use operator_core::plan::{Order, Plan};
use operator_core::rejected_write::RejectedWrite;
use operator_runtime::controller::Controller;
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::drain::findings::WithFindings;
use crate::drain::order::OrderOfHost;
use crate::node_set_caches::NodeSetCaches;
use crate::node_set_computes::orders::with_progress;
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

impl Controller<OrderOfHost> for NodeSetComputes {
    type Observed = WithFindings<Seen>;

    const NAME: &'static str = "node-set-computes";

    async fn observe(&self, key: &Key) -> Result<Option<WithFindings<Seen>>> {
        let seen = observe::observe(&self.caches, &self.node_sets, &self.monitor, key).await?;
        Ok(seen.map(|seen| WithFindings { seen, found: self.orders.findings(key) }))
    }

    fn decide(
        seen: &WithFindings<Seen>,
        rejected: Option<&RejectedWrite>,
        now: Timestamp,
    ) -> Plan<OrderOfHost> {
        match &seen.seen {
            Seen::Present(of) => decide(&with_progress(of, &seen.found, now), rejected, now),
            Seen::Gone(report) => removal_after(report),
        }
    }

    fn give_orders(&self, key: &Key, orders: &[Order<OrderOfHost>]) {
        self.orders.give(key, orders);
    }

    fn keep_orders(&self, key: &Key, orders: &[Order<OrderOfHost>]) {
        self.orders.keep(key, orders);
    }
}
