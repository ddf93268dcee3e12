//! Why a compute does not start its deployment although nothing is missing for it.

use api::conditions::Reason;
use nova_config::annotations::DRAIN_BEFORE;
use operator_core::run_engine::rollout::BlockReason;

/// What the compute waits for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum BlockedRollout {
    /// As many computes of its role as `maxUnavailable` allows are out of service, some of them
    /// because they are being deployed, which includes their drain.
    Turn,
    /// It has failed, and as many failed computes as `maxUnavailable` allows are being retried.
    Try,
    /// As many computes as `maxUnavailable` allows have failed or are down.
    Stuck {
        /// The names of the first ones.
        failing: String,
    },
    /// `pauseOnFailure` is set, and a compute of its role has failed.
    Paused {
        /// The name of the first failed compute.
        failing: String,
    },
    /// The rollout drains hosts before it changes them, and a compute of its role has failed.
    DrainPaused {
        /// The name of the first failed compute.
        failing: String,
    },
}

impl BlockedRollout {
    /// Returns the same for a rollout that pauses only because it drains hosts first.
    #[must_use]
    pub fn by_drain(self) -> Self {
        if let Self::Paused { failing } = self { Self::DrainPaused { failing } } else { self }
    }

    /// Returns the reason without names.
    pub fn blocked(&self) -> BlockReason {
        match self {
            Self::Turn | Self::Try => BlockReason::LimitReached,
            Self::Stuck { .. } => BlockReason::Stuck,
            Self::Paused { .. } | Self::DrainPaused { .. } => BlockReason::Paused,
        }
    }

    /// Returns the condition reason.
    pub fn reason(&self) -> &'static Reason {
        self.blocked().reason()
    }

    /// Returns the condition message.
    pub fn text(&self) -> String {
        match self {
            Self::Turn => "It waits for its turn: as many computes as maxUnavailable of the role \
                           allows are being deployed, fail or are down."
                .to_owned(),
            // The computes being retried change all the time, so the message does not name them.
            Self::Try => {
                "It waits for its turn: all places that maxUnavailable of the role allows \
                          are held by computes that fail, and as many of them are being tried at \
                          once. It is tried when one of those is done; or raise \
                          deployStrategy.maxUnavailable of the role, or take those that hang out \
                          of the count with deployStrategy.deploy: false on their nodes."
                    .to_owned()
            }
            Self::Stuck { failing } => format!(
                "It waits for its turn: all places that maxUnavailable of the role allows are held \
                 by computes that fail or are down: {failing}. Correct what their conditions name, \
                 and what is corrected is deployed to them first; or raise \
                 deployStrategy.maxUnavailable of the role, or take them out of the count with \
                 deployStrategy.deploy: false on their nodes."
            ),
            Self::Paused { failing } => format!(
                "It waits: pauseOnFailure of the role is set, and NovaExternalCompute {failing} \
                 fails. Correct its cause, or set deployStrategy.pauseOnFailure of the role to \
                 false."
            ),
            Self::DrainPaused { failing } => format!(
                "It waits: with annotation {DRAIN_BEFORE}, a rollout stops at the first compute that \
                 fails, and NovaExternalCompute {failing} does. Correct its cause, which is deployed \
                 to it first; or set the annotation to false."
            ),
        }
    }
}
