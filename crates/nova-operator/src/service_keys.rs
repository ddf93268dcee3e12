//! Reports, on a service of type nova, the keys of its data sources that nova-compute would not
//! read.
//!
//! The plays copy every file to the host, but Kolla copies only some of them to where nova-compute
//! reads. A key with another name has no effect, and no error on the host shows that.

pub mod decide;
pub mod observe;
pub mod observed;

#[cfg(test)]
mod tests;

pub use observed::Observed;

use std::sync::Arc;

use jiff::Timestamp;
use operator_core::object_key::Key;
use operator_core::plan::Plan;
use operator_core::rejected_write::RejectedWrite;
use operator_runtime::controller::Controller;
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::controller_names::SERVICE_CONFIG;

/// The controller of services.
pub struct ServiceConfig {
    /// All caches of the operator.
    pub caches: Arc<Caches>,
}

impl Controller for ServiceConfig {
    type Observed = Observed;

    const NAME: &'static str = SERVICE_CONFIG;

    async fn observe(&self, key: &Key) -> Result<Option<Observed>> {
        observe::observe(&self.caches, key).await
    }

    fn decide(seen: &Observed, rejected: Option<&RejectedWrite>, now: Timestamp) -> Plan {
        decide::decide(seen, rejected, now)
    }
}
