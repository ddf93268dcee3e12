//! What was observed of the readings for a cell, as plain data.

use std::sync::Arc;

use api::conditions::ConditionDraft;
use api::nova::Cell;

/// A snapshot of everything that the decision on the readings for a cell uses.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The cell.
    pub cell: Arc<Cell>,
    /// Why nova's API is not read for a cell of another operator; `None` where it is read, and for
    /// cells that this operator reconciles.
    pub problem: Option<ConditionDraft>,
    /// Whether the problem was reported since nova's API was read last.
    pub is_reported: bool,
}
