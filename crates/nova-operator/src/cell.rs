//! `NovaCell`: whether computes can be configured from it, whether its services answer, and how
//! many of its computes use its current credentials.
//!
//! The controller watches cells, the Secrets that they name, the Secret that it renders, and
//! computes. A finalizer holds a cell that has computes, and where nova's API is used one whose hosts
//! have servers; the status lists the records that deleted computes leave in nova. This is the only controller that queries services other than the
//! API server: RabbitMQ and Keystone. Where the cell's annotations say so, Jobs map its
//! hosts in nova, and read whether those that are removed are mapped no more.

pub mod conductor;
pub mod config;
pub mod credential_rotation;
pub mod credentials;
pub mod decide;
pub mod discovery;
pub mod hosts;
pub mod leftovers;
pub mod mappings;
pub mod nova_api;
pub mod nova_matches;
pub mod observe;
pub mod observed;
pub mod probes;
pub mod status;

#[cfg(test)]
mod tests;

pub use decide::decide;
pub use observed::Observed;
pub use probes::Probes;

use std::sync::Arc;

use jiff::Timestamp;
use operator_core::object_key::Key;
use operator_core::plan::Plan;
use operator_core::rejected_write::RejectedWrite;
use operator_runtime::controller::Controller;
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::controller_names::CELL;

/// The controller of cells.
pub struct CellHealth {
    /// All caches of the operator.
    pub caches: Arc<Caches>,
    /// The tasks that probe their services.
    pub probes: Arc<Probes>,
}

impl Controller for CellHealth {
    type Observed = Observed;

    const NAME: &'static str = CELL;

    async fn observe(&self, key: &Key) -> Result<Option<Observed>> {
        observe::observe(&self.caches, &self.probes, key).await
    }

    fn decide(seen: &Observed, rejected: Option<&RejectedWrite>, now: Timestamp) -> Plan {
        decide(seen, rejected, now)
    }
}
