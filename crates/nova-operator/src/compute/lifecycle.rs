//! Creates the `NovaExternalCompute` of each node with a cell or a service of type nova, and reports its
//! state on the node.
//!
//! The controller watches nodes, roles, node sets, services and computes. A finalizer holds a node while it
//! owns a compute, because the cleanup of the compute needs the node. For a node without either, no object
//! of the group `nova.openstack.org` is read or written.

pub mod build;
pub mod decide;
pub mod ignored_annotations;
pub mod node_status;
pub mod observe;
pub mod observed;
pub mod permission;
pub mod removal;

#[cfg(test)]
mod tests;

pub use decide::decide;
pub use observed::Observed;

use std::sync::Arc;

use operator_core::object_key::Key;
use operator_runtime::controller::{Controller, Decide};
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::images::Images;
use crate::nova::orders::NovaOrders;

/// The controller of nodes.
pub struct ComputeLifecycle {
    /// All caches of the operator.
    pub caches: Arc<Caches>,
    /// The default images.
    pub images: Images,
    /// The orders about hosts of computes; `None` where nova's API is not read.
    pub orders: Option<Arc<NovaOrders>>,
}

impl Controller for ComputeLifecycle {
    type Observed = Observed;

    const NAME: &'static str = "compute-creation";

    const DECIDE: Decide<Observed> = decide;

    async fn observe(&self, key: &Key) -> Result<Option<Observed>> {
        let seen = observe::observe(&self.caches, &self.images, key).await?;
        let is_followed = |it: &Observed| it.compute.as_ref().is_some_and(|it| it.is_observed());
        let newest = || self.orders.as_ref()?.newest(key);
        Ok(seen.map(|it| Observed { order: newest().filter(|_| is_followed(&it)), ..it }))
    }
}
