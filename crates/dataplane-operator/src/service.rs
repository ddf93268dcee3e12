//! Services as objects: default services are restored, all are evaluated, and host ports exposed.

pub mod decide;
pub mod event_mapping;
pub mod observe;
pub mod observed;
pub mod status;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use jiff::Timestamp;
use operator_core::object_key::Key;
use operator_core::plan::Plan;
use operator_core::rejected_write::RejectedWrite;
use operator_runtime::controller::Controller;
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::controller_names::SERVICE;

pub use observed::Observed;

/// The controller of services; its keys also include default services that do not exist.
pub struct Services {
    /// The caches that it reads.
    pub caches: Arc<Caches>,
}

impl Controller for Services {
    type Observed = Observed;

    const NAME: &'static str = SERVICE;

    async fn observe(&self, key: &Key) -> Result<Option<Observed>> {
        observe::observe(&self.caches, key).await
    }

    fn decide(seen: &Observed, rejected: Option<&RejectedWrite>, now: Timestamp) -> Plan {
        decide::decide(seen, rejected, now)
    }
}
