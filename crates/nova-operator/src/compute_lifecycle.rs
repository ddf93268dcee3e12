//! Makes the `NovaExternalCompute` of each node with a cell, and tells the node how it fares.
//!
//! It watches nodes, roles and computes.
//! A node is held for as long as it has a compute of its own: the compute's end needs the node.
//! A node without a cell costs nothing: nothing of nova's is read or written for it.

pub mod build;
pub mod decide;
pub mod effective;
pub mod observe;
pub mod outcome;
pub mod removal;

#[cfg(test)]
mod tests;

pub use decide::decide;
pub use observe::Observed;

use std::sync::Arc;

use jiff::Timestamp;
use operator_core::object_key::Key;
use operator_core::plan::Plan;
use operator_core::rejected_write::RejectedWrite;
use operator_runtime::controller::Controller;
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::images::Images;

/// The controller; its keys are nodes.
pub struct ComputeLifecycle {
    /// The watched world.
    pub caches: Arc<Caches>,
    /// Images of a compute that names none.
    pub images: Images,
}

impl Controller for ComputeLifecycle {
    type Observed = Observed;

    const NAME: &'static str = "compute-creation";

    async fn observe(&self, key: &Key) -> Result<Option<Observed>> {
        observe::observe(&self.caches, &self.images, key).await
    }

    fn decide(seen: &Observed, now: Timestamp) -> Plan {
        decide(seen, now)
    }

    fn refused(seen: &Observed, rejected: &RejectedWrite, now: Timestamp) -> Plan {
        decide::refused(seen, rejected, now)
    }
}
