//! Reports on a role how many computes of its nodes are up.
//!
//! The controller runs only where nova's API is read, and watches roles, nodes and computes.

pub mod decide;
pub mod observe;
pub mod observed;

#[cfg(test)]
mod tests;

pub use decide::decide;
pub use observed::Observed;

use std::sync::Arc;

use jiff::Timestamp;
use operator_core::object_key::Key;
use operator_core::plan::Plan;
use operator_core::rejected_write::RejectedWrite;
use operator_runtime::controller::Controller;
use operator_runtime::error::Result;

use crate::caches::Caches;

/// The controller of roles.
pub struct RoleComputes {
    /// All caches of the operator.
    pub caches: Arc<Caches>,
}

impl Controller for RoleComputes {
    type Observed = Observed;

    const NAME: &'static str = "role-computes";

    async fn observe(&self, key: &Key) -> Result<Option<Observed>> {
        Ok(observe::observe(&self.caches.watched(), key))
    }

    fn decide(seen: &Observed, rejected: Option<&RejectedWrite>, now: Timestamp) -> Plan {
        decide(seen, rejected, now)
    }
}
