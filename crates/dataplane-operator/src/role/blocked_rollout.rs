//! The message of a host whose rollout is blocked.

use operator_core::run_engine::rollout::BlockReason;

/// Why the rollout to a host is blocked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BlockedRollout {
    /// What blocks it.
    pub blocked: BlockReason,
    /// The names of the first failed hosts that use up the disruption budget.
    pub failing: String,
}

impl BlockedRollout {
    /// Returns the message for the host's conditions.
    pub fn text(&self) -> String {
        match self.blocked {
            BlockReason::LimitReached => {
                "It waits for its turn: as many hosts as maxUnavailable of the role \
                           allows are being deployed or fail."
                    .to_owned()
            }
            BlockReason::Stuck => format!("It waits for its turn: {}", self.way_on()),
            BlockReason::Paused => {
                "It waits: pauseOnFailure of the role is set, and a host of the role \
                             fails; see the role."
                    .to_owned()
            }
        }
    }

    /// Returns which hosts use up the disruption budget, and how the user unblocks the rollout.
    pub fn way_on(&self) -> String {
        format!(
            "all places that maxUnavailable of the role allows are held by hosts that fail: {}. \
             Correct what their conditions name, and what is corrected is deployed to them first; or \
             raise deployStrategy.maxUnavailable of the role, or take them out of the count with \
             deployStrategy.deploy: false on their nodes.",
            self.failing
        )
    }
}
