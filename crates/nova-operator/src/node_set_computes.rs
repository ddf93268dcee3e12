//! Reports on a node set that lists a service of type nova how many of its hosts are up as computes.
//!
//! The controller runs only where nova's API is read. A host is found by the name under which
//! nova-compute registers there, among the services of the namespace's cells.

pub mod decide;
pub mod observe;
pub mod observed;

#[cfg(test)]
mod tests;

pub use decide::decide;
pub use observed::Observed;

use std::sync::Arc;

use api::dataplane::NodeSet;
use jiff::Timestamp;
use operator_core::object_key::Key;
use operator_core::plan::Plan;
use operator_core::rejected_write::RejectedWrite;
use operator_runtime::cache::Cache;
use operator_runtime::controller::Controller;
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::nova_monitor::NovaMonitor;

/// The controller of node sets.
pub struct NodeSetComputes {
    /// All caches of the operator.
    pub caches: Arc<Caches>,
    /// All node sets.
    pub node_sets: Arc<Cache<NodeSet>>,
    /// The readers of nova's APIs.
    pub monitor: Arc<NovaMonitor>,
}

impl Controller for NodeSetComputes {
    type Observed = Observed;

    const NAME: &'static str = "node-set-computes";

    async fn observe(&self, key: &Key) -> Result<Option<Observed>> {
        Ok(observe::observe(&self.caches, &self.node_sets, &self.monitor, key))
    }

    fn decide(seen: &Observed, rejected: Option<&RejectedWrite>, now: Timestamp) -> Plan {
        decide(seen, rejected, now)
    }
}
