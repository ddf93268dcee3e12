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
pub mod decide;
pub mod discovery;
pub mod hosts;
pub mod leftovers;
pub mod mappings;
pub mod nova_api;
pub mod nova_matches;
pub mod observe;
pub mod observed;
pub mod probe;
pub mod probes;
pub mod readings;
pub mod shared_bus;
pub mod status;

#[cfg(test)]
mod tests;

pub use decide::decide;
pub use observed::Observed;
pub use probes::Probes;

use std::sync::Arc;

use operator_core::object_key::Key;
use operator_core::plan::Order;
use operator_runtime::controller::{Controller, Decide};
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::cell::hosts::orders::with_progress;
use crate::controller_names::CELL;
use crate::nova::drain::findings::WithFindings;
use crate::nova::drain::order::OrderOfHost;
use crate::nova::orders::NovaOrders;

/// The controller of cells.
pub struct CellHealth {
    /// All caches of the operator.
    pub caches: Arc<Caches>,
    /// The tasks that probe their services.
    pub probes: Arc<Probes>,
    /// The orders about hosts of cells, or `None` where nova's API is not used.
    pub orders: Option<Arc<NovaOrders>>,
}

impl Controller<OrderOfHost> for CellHealth {
    type Observed = WithFindings<Observed>;

    const NAME: &'static str = CELL;

    const DECIDE: Decide<WithFindings<Observed>, OrderOfHost> =
        |seen, rejected, now| decide(&with_progress(&seen.seen, &seen.found), rejected, now);

    async fn observe(&self, key: &Key) -> Result<Option<WithFindings<Observed>>> {
        let seen = observe::observe(&self.caches, &self.probes, key).await?;
        let found = || self.orders.as_ref().map(|it| it.findings(key)).unwrap_or_default();
        Ok(seen.map(|seen| WithFindings { seen, found: found() }))
    }

    fn give_orders(&self, key: &Key, orders: &[Order<OrderOfHost>]) {
        self.orders.iter().for_each(|it| it.give(key, orders));
    }

    fn keep_orders(&self, key: &Key, orders: &[Order<OrderOfHost>]) {
        self.orders.iter().for_each(|it| it.keep(key, orders));
    }
}
