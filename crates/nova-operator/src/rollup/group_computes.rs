//! Reports on a role or node set how many computes of its nodes are up, and which of its annotations
//! count for nothing.
//!
//! The controller watches roles, node sets, nodes and computes.

pub mod decide;
pub mod observe;
pub mod observed;

#[cfg(test)]
mod tests;

pub use decide::decide;
pub use observed::Observed;

use std::sync::Arc;

use operator_core::object_key::Key;
use operator_runtime::controller::{Controller, Decide};
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::group::GroupKey;

/// The controller of roles and node sets.
pub struct GroupComputes {
    /// All caches of the operator.
    pub caches: Arc<Caches>,
}

impl Controller for GroupComputes {
    type Observed = Observed;

    const NAME: &'static str = "group-computes";

    const DECIDE: Decide<Observed> = decide;

    async fn observe(&self, key: &Key) -> Result<Option<Observed>> {
        let are_counted = self.caches.nova.is_some();
        let group = GroupKey::of_work_key(key);
        Ok(group.and_then(|it| observe::observe(&self.caches.shared, &it, are_counted)))
    }
}
