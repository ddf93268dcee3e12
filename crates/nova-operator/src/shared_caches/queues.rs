//! The work queues of the operator.

use std::sync::Arc;

use operator_runtime::workqueue::WorkQueue;

/// The work queue of each controller; clones share them.
#[derive(Clone, Default)]
pub struct Queues {
    /// Keys of nodes.
    pub nodes: Arc<WorkQueue>,
    /// Keys of computes.
    pub computes: Arc<WorkQueue>,
    /// Keys of cells.
    pub cells: Arc<WorkQueue>,
    /// Keys of cells whose API is read, of other operators too.
    pub cell_readings: Arc<WorkQueue>,
    /// Keys of objects that computes hold.
    pub held_credentials: Arc<WorkQueue>,
    /// Keys of cleanup runs.
    pub cleanups: Arc<WorkQueue>,
    /// Keys of services.
    pub services: Arc<WorkQueue>,
    /// Keys of roles and node sets, by kind and name.
    pub groups: Arc<WorkQueue>,
    /// Keys of scopes of audits.
    pub audits: Arc<WorkQueue>,
}
