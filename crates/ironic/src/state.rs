//! The provisioning states of a machine, as `provision_state` names them.

use std::fmt;

use api::conditions::truncated;
use serde::{Deserialize, Deserializer};

/// Maximum length of an unknown state, in bytes.
const WORD_LIMIT: usize = 64;

/// A state of Ironic's state machine (`ironic/common/state_machine.py` of release 39).
#[derive(Clone, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum State {
    /// Enrolled, before the first verification or after it failed.
    #[default]
    Enroll,
    /// Ironic verifies its credentials.
    Verifying,
    /// Ironic can reach it.
    Manageable,
    /// Available for deployment.
    Available,
    /// It is being inspected.
    Inspecting,
    /// It is being inspected, and Ironic waits for its ramdisk.
    InspectWait,
    /// The inspection failed.
    InspectFailed,
    /// Its disks are being cleaned.
    Cleaning,
    /// Its disks are being cleaned, and Ironic waits for its ramdisk.
    CleanWait,
    /// A cleaning step asked to wait for the user.
    CleanHold,
    /// The cleaning failed.
    CleanFailed,
    /// It is being deployed.
    Deploying,
    /// It is being deployed, and Ironic waits for its ramdisk.
    WaitCallBack,
    /// A deployment step asked to wait for the user.
    DeployHold,
    /// The deployment failed.
    DeployFailed,
    /// It is deployed.
    Active,
    /// It is being undeployed.
    Deleting,
    /// Undeploying it failed.
    Error,
    /// It is being adopted.
    Adopting,
    /// The adoption failed.
    AdoptFailed,
    /// It is being rescued or unrescued by somebody; the state's own word.
    Rescue(String),
    /// Somebody's rescue or unrescue of it failed; the state's own word.
    RescueFailed(String),
    /// It is being serviced by somebody; the state's own word.
    Service(String),
    /// Somebody's servicing of it failed.
    ServiceFailed,
    /// An unknown state, cut at `WORD_LIMIT`.
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
    /// Returns the state of that word.
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

    /// Returns whether a machine in this state has the system that it was deployed with.
    ///
    /// It responds, or will once somebody's work on it is over.
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

    /// Returns whether a machine in this state has lost the system that it was deployed with, or
    /// soon will, because somebody undeployed it.
    ///
    /// A machine that was enrolled again may still run, and so may one that could not be
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

    /// Returns Ironic's word for it.
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
