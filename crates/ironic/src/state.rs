//! The states of a machine, as `provision_state` names them.

use std::fmt;

use api::conditions::truncated;
use serde::{Deserialize, Deserializer};

/// How long a state may be that is not known here, in bytes.
const WORD_LIMIT: usize = 64;

/// A state of Ironic's state machine (`ironic/common/state_machine.py` of release 39).
#[derive(Clone, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum State {
    /// Known, and nothing tried yet; also where the first look at it failed.
    #[default]
    Enroll,
    /// Ironic tries its credentials.
    Verifying,
    /// Ironic can reach it.
    Manageable,
    /// Free to be deployed.
    Available,
    /// It is looked at.
    Inspecting,
    /// It is looked at, and Ironic waits for its ramdisk.
    InspectWait,
    /// The look at it failed.
    InspectFailed,
    /// Its disks are cleaned.
    Cleaning,
    /// Its disks are cleaned, and Ironic waits for its ramdisk.
    CleanWait,
    /// A step of the cleaning asked to wait for a human.
    CleanHold,
    /// The cleaning failed.
    CleanFailed,
    /// It is deployed.
    Deploying,
    /// It is deployed, and Ironic waits for its ramdisk.
    WaitCallBack,
    /// A step of the deployment asked to wait for a human.
    DeployHold,
    /// The deployment failed.
    DeployFailed,
    /// It is deployed and works.
    Active,
    /// It is undeployed.
    Deleting,
    /// Undeploying it failed.
    Error,
    /// It is taken over as it runs.
    Adopting,
    /// Taking it over failed.
    AdoptFailed,
    /// Somebody rescues it, or takes the rescue back; the state's own words.
    Rescue(String),
    /// Somebody's rescue of it, or the way back, failed; the state's own words.
    RescueFailed(String),
    /// Somebody services it; the state's own words.
    Service(String),
    /// Somebody's service of it failed.
    ServiceFailed,
    /// A word that is not known here, cut at [`WORD_LIMIT`].
    Other(String),
}

/// All states with one word each.
const WORDS: [(&str, State); 21] = [
    ("enroll", State::Enroll),
    ("verifying", State::Verifying),
    ("manageable", State::Manageable),
    ("available", State::Available),
    ("inspecting", State::Inspecting),
    ("inspect wait", State::InspectWait),
    ("inspect failed", State::InspectFailed),
    ("cleaning", State::Cleaning),
    ("clean wait", State::CleanWait),
    ("clean hold", State::CleanHold),
    ("clean failed", State::CleanFailed),
    ("deploying", State::Deploying),
    ("wait call-back", State::WaitCallBack),
    ("deploy hold", State::DeployHold),
    ("deploy failed", State::DeployFailed),
    ("active", State::Active),
    ("deleting", State::Deleting),
    ("error", State::Error),
    ("adopting", State::Adopting),
    ("adopt failed", State::AdoptFailed),
    ("service failed", State::ServiceFailed),
];

impl State {
    /// The state of that word.
    pub fn of(word: &str) -> Self {
        match word {
            "rescue" | "rescuing" | "rescue wait" | "unrescuing" => Self::Rescue(word.into()),
            "rescue failed" | "unrescue failed" => Self::RescueFailed(word.into()),
            "servicing" | "service wait" | "service hold" => Self::Service(word.into()),
            _ => {
                let known = WORDS.iter().find(|(it, _)| *it == word);
                known.map_or_else(
                    || Self::Other(truncated(word, WORD_LIMIT)),
                    |(_, state)| state.clone(),
                )
            }
        }
    }

    /// Whether a machine in this state has the system that it was deployed with: it answers, or will once
    /// somebody's work on it is over.
    pub fn has_system(&self) -> bool {
        matches!(
            self,
            Self::Active
                | Self::Rescue(_)
                | Self::RescueFailed(_)
                | Self::Service(_)
                | Self::ServiceFailed
        )
    }

    /// Whether a machine in this state lost the system that it was deployed with, or is about to:
    /// somebody undeployed it. What is enrolled anew may run on as before, and so may what could not be
    /// undeployed.
    pub fn is_undeployed(&self) -> bool {
        matches!(
            self,
            Self::Deleting
                | Self::Cleaning
                | Self::CleanWait
                | Self::CleanHold
                | Self::CleanFailed
                | Self::Available
                | Self::Deploying
                | Self::WaitCallBack
                | Self::DeployHold
                | Self::DeployFailed
        )
    }

    /// Ironic's word for it.
    pub fn word(&self) -> &str {
        if let Self::Rescue(word)
        | Self::RescueFailed(word)
        | Self::Service(word)
        | Self::Other(word) = self
        {
            return word;
        }
        WORDS.iter().find(|(_, it)| it == self).map_or("", |(word, _)| word)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl<'de> Deserialize<'de> for State {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self::of(&String::deserialize(from)?))
    }
}
