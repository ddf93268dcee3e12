//! `NovaCell`: whether computes can be configured from it, whether its services answer, and how many
//! of its computes use its present credentials.
//!
//! It watches cells, the Secrets that they name, the Secret that it renders, and computes: a cell
//! that has some is held, and remembers what those that went have left in nova.
//! It is the only controller that asks anyone but the API server: RabbitMQ and Keystone.

pub mod conductor;
pub mod config;
pub mod credential_rotation;
pub mod credentials;
pub mod decide;
pub mod leftovers;
pub mod observe;

#[cfg(test)]
mod tests;

pub use decide::decide;
pub use observe::{Observed, Probes};

use std::sync::Arc;

use jiff::Timestamp;
use operator_core::object_key::Key;
use operator_core::plan::Plan;
use operator_core::rejected_write::RejectedWrite;
use operator_runtime::controller::Controller;
use operator_runtime::error::Result;

use crate::caches::Caches;

/// The controller; its keys are cells.
pub struct CellHealth {
    /// The watched world.
    pub caches: Arc<Caches>,
    /// What came of the last questions.
    pub probes: Probes,
}

impl Controller for CellHealth {
    type Observed = Observed;

    const NAME: &'static str = "cell";

    async fn observe(&self, key: &Key) -> Result<Option<Observed>> {
        observe::observe(&self.caches, &self.probes, key).await
    }

    fn decide(seen: &Observed, now: Timestamp) -> Plan {
        decide(seen, now)
    }

    fn refused(seen: &Observed, rejected: &RejectedWrite, now: Timestamp) -> Plan {
        decide::refused(seen, rejected, now)
    }
}
