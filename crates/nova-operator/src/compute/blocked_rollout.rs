//! Why a compute does not begin with a deployment although nothing is missing for it.

use operator_core::run_engine::rollout::BlockReason;

/// What it waits for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum BlockedRollout {
    /// As many computes of its role as `maxUnavailable` allows are out of service, some of them
    /// because they are being deployed.
    Turn,
    /// It has failed, and as many of those that have failed as `maxUnavailable` allows are being tried.
    Try,
    /// As many as that fail.
    Stuck {
        /// The first ones of them.
        failing: String,
    },
    /// `pauseOnFailure` is set, and a compute of its role fails.
    Paused {
        /// The first one that fails.
        failing: String,
    },
}

impl BlockedRollout {
    /// The same without names.
    pub fn blocked(&self) -> BlockReason {
        match self {
            Self::Turn | Self::Try => BlockReason::LimitReached,
            Self::Stuck { .. } => BlockReason::Stuck,
            Self::Paused { .. } => BlockReason::Paused,
        }
    }

    /// The one word used in conditions.
    pub fn reason(&self) -> &'static str {
        self.blocked().reason()
    }

    /// What a human reads.
    pub fn text(&self) -> String {
        match self {
            Self::Turn => "It waits for its turn: as many computes as maxUnavailable of the role \
                           allows are being deployed or fail."
                .to_owned(),
            // Who is being tried changes all the time, so that no names are told.
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
                 by computes that fail: {failing}. Correct what their conditions name, and what is \
                 corrected is deployed to them first; or raise deployStrategy.maxUnavailable of the \
                 role, or take them out of the count with deployStrategy.deploy: false on their nodes."
            ),
            Self::Paused { failing } => format!(
                "It waits: pauseOnFailure of the role is set, and NovaExternalCompute {failing} \
                 fails. Correct its cause, or set deployStrategy.pauseOnFailure of the role to \
                 false."
            ),
        }
    }
}
