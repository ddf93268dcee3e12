//! Whether a compute may start its deployment, as plain data for the decision on it.

use std::any::Any;
use std::sync::Arc;

use crate::rollout::blocked_rollout::BlockedRollout;

/// Whether a compute may start its deployment under the limits of its role.
#[derive(Clone, Debug, Default)]
pub enum RolloutSlot {
    /// No limit applies, the compute has already started, or its attempt is running.
    #[default]
    Free,
    /// The compute may start; while this value is held, no other compute of the role can take a
    /// slot.
    Taken(Arc<dyn Any + Send + Sync>),
    /// The compute has to wait.
    Held(BlockedRollout),
}

impl RolloutSlot {
    /// Returns why the compute has to wait, or `None` when it may start.
    pub fn blocked(&self) -> Option<&BlockedRollout> {
        match self {
            Self::Held(held) => Some(held),
            Self::Free | Self::Taken(_) => None,
        }
    }
}
