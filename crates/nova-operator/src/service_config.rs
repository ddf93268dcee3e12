//! Tells on a service of nova's type which keys of its data sources nova-compute would not read.
//!
//! The plays bring every file to the host, and Kolla copies only some to where nova-compute looks: a
//! key with another name is without effect, and nobody on the host says so.

pub mod decide;
pub mod observe;

#[cfg(test)]
mod tests;

pub use observe::Observed;

use std::sync::Arc;

use jiff::Timestamp;
use operator_core::object_key::Key;
use operator_core::plan::Plan;
use operator_runtime::controller::Controller;
use operator_runtime::error::Result;

use crate::caches::Caches;

/// The controller; its keys are services.
pub struct ServiceConfig {
    /// The watched world.
    pub caches: Arc<Caches>,
}

impl Controller for ServiceConfig {
    type Observed = Observed;

    const NAME: &'static str = "service-config";

    async fn observe(&self, key: &Key) -> Result<Option<Observed>> {
        observe::observe(&self.caches, key).await
    }

    fn decide(seen: &Observed, now: Timestamp) -> Plan {
        decide::decide(seen, now)
    }
}
