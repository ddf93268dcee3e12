//! A cell of the namespace with a message bus.

use std::cmp::Reverse;
use std::sync::Arc;

use api::nova::{Cell, ExternalCompute};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use operator_runtime::source_cache::Content;

use crate::cell_inputs::is_deployed_with;

/// A cell that has a message bus.
#[derive(Clone, Debug)]
pub struct CellOnBus {
    /// The cell.
    pub cell: Arc<Cell>,
    /// Whether computes of the cell were last deployed with this bus.
    pub has_computes: bool,
}

impl CellOnBus {
    /// Takes a cell with the content of its message bus's Secret and its computes.
    pub fn of(cell: Arc<Cell>, bus: &Content, computes: &[Arc<ExternalCompute>]) -> Self {
        let has_computes = computes.iter().any(|it| is_deployed_with(it, &cell, bus));
        Self { cell, has_computes }
    }

    /// Returns its place in the order of those with the same bus: it belongs to the first one, which is
    /// the one whose computes use it, else the oldest.
    pub fn precedence(&self) -> (Reverse<bool>, Option<Time>, String) {
        let created = self.cell.metadata.creation_timestamp.clone();
        (Reverse(self.has_computes), created, self.cell.name_any())
    }
}
