//! What was observed of the computes of a role, as plain data.

use std::sync::Arc;

use api::dataplane::Role;

use crate::computes_up::ComputeState;

/// A snapshot of everything that the decision on a role uses.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The role.
    pub role: Arc<Role>,
    /// The computes of its nodes, by name.
    pub states: Vec<(String, ComputeState)>,
}
