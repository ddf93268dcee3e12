//! The runs that audit hosts: one at a time for each role, none beside a deployment of its hosts.
//!
//! The controller watches roles, nodes, computes and all runs.

pub mod build;
pub mod decide;
pub mod observe;
pub mod observed;
pub mod schedule;

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

/// The controller of audits.
pub struct AuditRuns {
    /// All caches of the operator.
    pub caches: Arc<Caches>,
}

impl Controller for AuditRuns {
    type Observed = Observed;

    const NAME: &'static str = "audit";

    async fn observe(&self, key: &Key) -> Result<Option<Observed>> {
        observe::observe(&self.caches, key).await
    }

    fn decide(seen: &Observed, rejected: Option<&RejectedWrite>, now: Timestamp) -> Plan {
        decide(seen, rejected, now)
    }
}
