//! A cell of the namespace with a message bus.

use std::sync::Arc;

use api::nova::{Cell, ExternalCompute};

/// A cell that has a message bus.
#[derive(Clone, Debug)]
pub struct CellOnBus {
    /// The cell.
    pub cell: Arc<Cell>,
    /// Whether it has computes in service.
    pub has_computes: bool,
}

impl CellOnBus {
    /// Takes a cell with its computes.
    pub fn of(cell: Arc<Cell>, computes: &[Arc<ExternalCompute>]) -> Self {
        let was_deployed = |it: &ExternalCompute| {
            it.status.as_ref().is_some_and(|it| !it.deployed_inputs.is_empty())
        };
        let has_computes = computes.iter().any(|it| it.is_observed() || was_deployed(it));
        Self { cell, has_computes }
    }
}
