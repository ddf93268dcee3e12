//! Why a machine is not further: told with its name, the cause and what a human does next.

use api::conditions::truncated;

use crate::error::WORDS_LIMIT;
use crate::node::Node;
use crate::state::State;

/// How much of what stands for a UUID is told, in bytes.
const UUID_LIMIT: usize = 64;

/// Why a machine is waited for, or why its way ends until a human acts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Cause {
    /// It is on its way, or somebody works on it.
    Working,
    /// A conductor of Ironic holds it.
    Locked,
    /// Ironic could not reach it; it is tried again.
    Unreached,
    /// A deployment failed; it is tried again.
    Retrying,
    /// It is neither available nor may it be made so.
    NotProvided,
    /// It is to be adopted, and does not run.
    NotRunning,
    /// Somebody else has it.
    Taken,
    /// Ironic leaves it alone.
    Maintenance,
    /// All attempts to deploy it failed.
    DeployFailed,
    /// Taking it over failed.
    AdoptFailed,
    /// Its cleaning failed.
    CleanFailed,
    /// The look at its hardware failed.
    InspectFailed,
    /// Undeploying it failed.
    UndeployFailed,
    /// Somebody's rescue or service of it failed.
    CareFailed,
    /// A step asked Ironic to wait for a human.
    Held,
    /// Its power cannot be told or set.
    PowerFailed,
    /// It is in a state that is not known here.
    Unknown,
}

impl Cause {
    /// One CamelCase word for it.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Working => "MachineInProgress",
            Self::Locked => "MachineLocked",
            Self::Unreached => "MachineUnreachable",
            Self::Retrying => "DeployRetrying",
            Self::NotProvided => "MachineNotAvailable",
            Self::NotRunning => "MachineNotRunning",
            Self::Taken => "MachineTaken",
            Self::Maintenance => "MachineInMaintenance",
            Self::DeployFailed => "DeployFailed",
            Self::AdoptFailed => "AdoptFailed",
            Self::CleanFailed => "CleanFailed",
            Self::InspectFailed => "InspectFailed",
            Self::UndeployFailed => "UndeployFailed",
            Self::CareFailed => "ServiceFailed",
            Self::Held => "MachineHeld",
            Self::PowerFailed => "PowerFailed",
            Self::Unknown => "StateUnknown",
        }
    }

    /// The machine, what is the matter with it in Ironic's own words, and the next step.
    pub fn message(&self, node: &Node) -> String {
        let (name, state) = (node.title(), &node.provision_state);
        let command = |verb: &str| format!("openstack baremetal node {verb} {name}");
        let error = || quoted("Ironic says", node.last_error.as_deref());
        match self {
            Self::Working => format!("machine {name} is {}", progress(state)),
            Self::Locked => format!("machine {name} is {state}, and Ironic works on it"),
            Self::Unreached => format!(
                "Ironic cannot reach machine {name}{}; it is tried again: correct driver_info and the \
                 machine's management controller",
                error()
            ),
            Self::Retrying => {
                format!("the deployment of machine {name} failed{}; it is tried again", error())
            }
            Self::NotProvided => format!(
                "machine {name} is {state}; set spec.ironic.provide to true, or give the command \
                 `{}`",
                command(if *state == State::Manageable { "provide" } else { "manage" })
            ),
            Self::NotRunning => format!(
                "machine {name} is {state} and does not run, so it cannot be adopted; take adopt out \
                 to deploy it"
            ),
            Self::Taken => format!(
                "machine {name} is reserved by instance {}; name another machine, or free this one",
                truncated(node.instance_uuid.as_deref().unwrap_or_default(), UUID_LIMIT)
            ),
            Self::Maintenance => format!(
                "machine {name} is in maintenance{}; mend it, then give the command `{}`",
                quoted("the reason is", node.maintenance_reason.as_deref()),
                command("maintenance unset")
            ),
            Self::DeployFailed => format!(
                "the deployment of machine {name} failed{}; correct the cause, then give the command \
                 `{}` to have a machine taken anew, or raise spec.ironic.deployAttempts",
                error(),
                command("undeploy")
            ),
            Self::AdoptFailed => format!(
                "machine {name} could not be adopted{}; correct the cause, then give the command `{}`",
                error(),
                command("adopt")
            ),
            Self::CleanFailed => format!(
                "the cleaning of machine {name} failed{}; correct the cause, then give the command `{}`",
                error(),
                command("manage")
            ),
            Self::InspectFailed => format!(
                "the inspection of machine {name} failed{}; correct the cause, then give the command \
                 `{}`",
                error(),
                command("manage")
            ),
            Self::UndeployFailed => format!(
                "machine {name} could not be undeployed{}; correct the cause, then give the command `{}`",
                error(),
                command("undeploy")
            ),
            Self::CareFailed => format!(
                "machine {name} is in state {state}{}; bring it back to active with Ironic's own \
                 commands",
                error()
            ),
            Self::Held => format!(
                "machine {name} is in state {state}: a step waits for a human; give the command `{}`",
                command("unhold")
            ),
            Self::PowerFailed => format!(
                "machine {name} is not powered on{}; correct driver_info and the machine's management \
                 controller",
                error()
            ),
            Self::Unknown => format!(
                "machine {name} is in state {state}, which this version does not know; nothing is done \
                 until it leaves it"
            ),
        }
    }
}

/// A server's words, trimmed, as a part of a sentence; nothing where there are none.
fn quoted(who: &str, words: Option<&str>) -> String {
    match words.map(str::trim).filter(|it| !it.is_empty()) {
        Some(words) => format!(" ({who}: {})", truncated(words, WORDS_LIMIT)),
        None => String::new(),
    }
}

/// What goes on in a state.
fn progress(state: &State) -> String {
    match state {
        State::Verifying => "tried for the first time".into(),
        State::Inspecting | State::InspectWait => "inspected".into(),
        State::Cleaning | State::CleanWait => "cleaned".into(),
        State::Deploying | State::WaitCallBack => "deployed".into(),
        State::Deleting => "undeployed".into(),
        State::Adopting => "adopted".into(),
        State::Active => "active, and about to be powered on".into(),
        State::Rescue(word) | State::Service(word) => {
            format!("in state {word}, by somebody else's wish")
        }
        State::Enroll
        | State::Manageable
        | State::Available
        | State::InspectFailed
        | State::CleanHold
        | State::CleanFailed
        | State::DeployHold
        | State::DeployFailed
        | State::Error
        | State::AdoptFailed
        | State::RescueFailed(_)
        | State::ServiceFailed
        | State::Other(_) => format!("in state {state}"),
    }
}
