//! Why a host waits for its turn, in words.

use operator_core::run_engine::rollout::BlockReason;

/// Why a host waits, in words.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BlockedRollout {
    /// What it waits for.
    pub blocked: BlockReason,
    /// The first hosts that hold places and fail, by name.
    pub failing: String,
}

impl BlockedRollout {
    /// What a human reads of the host.
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

    /// Who holds the places, and what frees them.
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
