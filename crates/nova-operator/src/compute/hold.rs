//! Why a compute does not begin with a deployment although nothing is missing for it.

use common::engine::rollout::Hold;

/// What it waits for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Held {
    /// As many computes of its role as `maxUnavailable` allows are being deployed.
    Turn,
    /// `pauseOnFailure` is set, and a compute of its role fails.
    Paused {
        /// The first one that fails.
        failing: String,
    },
}

impl Held {
    /// The one word used in conditions.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Turn => Hold::Turn.reason(),
            Self::Paused { .. } => Hold::Paused.reason(),
        }
    }

    /// What a human reads.
    pub fn text(&self) -> String {
        match self {
            Self::Turn => "It waits for its turn: as many computes as maxUnavailable of the role \
                           allows are being deployed."
                .to_owned(),
            Self::Paused { failing } => format!(
                "It waits: pauseOnFailure of the role is set, and NovaExternalCompute {failing} \
                 fails. Correct its cause, or set deployStrategy.pauseOnFailure of the role to \
                 false."
            ),
        }
    }
}
