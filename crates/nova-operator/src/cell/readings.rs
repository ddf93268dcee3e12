//! Has nova's API read for each cell, also where another operator reconciles it.
//!
//! The controller runs only where nova's API is read, and watches cells and the Secrets that they
//! name. It writes no object. Of cells of another operator, whose status is not written here, it
//! reports an API that does not answer in an Event, once for each cause.

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
use crate::cell::readings::observe::{Reported, Sources};
use crate::controller_names::CELL_READINGS;
use crate::nova::monitor::NovaMonitor;

/// The controller of readings.
pub struct CellReadings {
    sources: Sources,
    monitor: Arc<NovaMonitor>,
    reported: Reported,
}

impl CellReadings {
    /// Creates the controller; it has reported nothing yet.
    pub fn new(caches: &Caches, monitor: &Arc<NovaMonitor>) -> Self {
        let sources = Sources {
            cells: Arc::clone(&caches.cells),
            secrets: Arc::clone(&caches.sources),
            api: Arc::clone(&caches.api),
            cells_are_ours: caches.cells_are_ours,
        };
        Self { sources, monitor: Arc::clone(monitor), reported: Reported::default() }
    }
}

impl Controller for CellReadings {
    type Observed = Observed;

    const NAME: &'static str = CELL_READINGS;

    const DECIDE: Decide<Observed> = |seen, _, _| decide(seen);

    async fn observe(&self, key: &Key) -> Result<Option<Observed>> {
        observe::observe(&self.sources, &self.monitor, &self.reported, key).await
    }
}
