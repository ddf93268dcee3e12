//! Why a machine is not provisioned yet, as a reason and a message with the user's next step.

use api::conditions::{Reason, truncated};

use crate::error::WORDS_LIMIT;
use crate::node::Node;
use crate::reasons;
use crate::state::State;

/// How a machine becomes available.
const PROVIDE: &str = "set spec.ironic.provide to true, or give the command";
/// How many bytes of a UUID field are reported.
const UUID_LIMIT: usize = 64;

/// Why a machine is waited for, or why it stops until the user acts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Cause {
    /// It is in transition, or somebody works on it.
    Working,
    /// An Ironic conductor holds its lock.
    Locked,
    /// Ironic could not reach it, and retries.
    Unreached,
    /// A deployment failed and is retried.
    Retrying,
    /// It is not available, and making it available is not allowed.
    NotProvided,
    /// It is to be adopted, but does not run.
    NotRunning,
    /// It is reserved for somebody else.
    Taken,
    /// It is in maintenance, so that Ironic does not act on it.
    Maintenance,
    /// All attempts to deploy it failed.
    DeployFailed,
    /// Its adoption failed.
    AdoptFailed,
    /// Its cleaning failed.
    CleanFailed,
    /// The inspection of its hardware failed.
    InspectFailed,
    /// Undeploying it failed.
    UndeployFailed,
    /// Somebody's rescue or servicing of it failed.
    CareFailed,
    /// A step asked Ironic to wait for the user.
    Held,
    /// Its power state cannot be read or set.
    PowerFailed,
    /// It is in an unknown state.
    Unknown,
}

impl Cause {
    /// Returns the reason of a condition that reports it.
    pub fn reason(&self) -> &'static Reason {
        match self {
            Self::Working => &reasons::MACHINE_IN_PROGRESS,
            Self::Locked => &reasons::MACHINE_LOCKED,
            Self::Unreached => &reasons::MACHINE_UNREACHABLE,
            Self::Retrying => &reasons::DEPLOY_RETRYING,
            Self::NotProvided => &reasons::MACHINE_NOT_AVAILABLE,
            Self::NotRunning => &reasons::MACHINE_NOT_RUNNING,
            Self::Taken => &reasons::MACHINE_TAKEN,
            Self::Maintenance => &reasons::MACHINE_IN_MAINTENANCE,
            Self::DeployFailed => &reasons::DEPLOY_FAILED,
            Self::AdoptFailed => &reasons::ADOPT_FAILED,
            Self::CleanFailed => &reasons::CLEAN_FAILED,
            Self::InspectFailed => &reasons::INSPECT_FAILED,
            Self::UndeployFailed => &reasons::UNDEPLOY_FAILED,
            Self::CareFailed => &reasons::SERVICE_FAILED,
            Self::Held => &reasons::MACHINE_HELD,
            Self::PowerFailed => &reasons::POWER_FAILED,
            Self::Unknown => &reasons::STATE_UNKNOWN,
        }
    }

    /// Returns the machine's name, its problem with Ironic's message, and the user's next step.
    pub fn message(&self, node: &Node) -> String {
        let (name, state) = (node.title(), &node.provision_state);
        let command = |verb: &str| format!("openstack baremetal node {verb} {name}");
        let error = quoted("Ironic says", node.last_error.as_deref());
        let failed = |what: String, verb: &str| {
            let command = command(verb);
            format!("{what}{error}; correct the cause, then give the command `{command}`")
        };
        match self {
            Self::Working => format!("machine {name} is {}", progress(state)),
            Self::Locked => format!("machine {name} is {state}, and Ironic works on it"),
            Self::Unreached => format!(
                "Ironic cannot reach machine {name}{error}; it is tried again: correct driver_info and \
                 the machine's management controller"
            ),
            Self::Retrying => {
                format!("the deployment of machine {name} failed{error}; it is tried again")
            }
            Self::NotProvided => {
                let command =
                    command(if *state == State::Manageable { "provide" } else { "manage" });
                format!("machine {name} is {state}; {PROVIDE} `{command}`")
            }
            Self::NotRunning => format!(
                "machine {name} is {state} and does not run, so it cannot be adopted; remove adopt \
                 to deploy it"
            ),
            Self::Taken => taken(node),
            Self::Maintenance => maintenance(node, &command("maintenance unset")),
            Self::DeployFailed => format!(
                "{} to have a machine taken anew, or raise spec.ironic.deployAttempts",
                failed(format!("the deployment of machine {name} failed"), "undeploy")
            ),
            Self::AdoptFailed => failed(format!("machine {name} could not be adopted"), "adopt"),
            Self::CleanFailed => failed(format!("the cleaning of machine {name} failed"), "manage"),
            Self::InspectFailed => {
                failed(format!("the inspection of machine {name} failed"), "manage")
            }
            Self::UndeployFailed => {
                failed(format!("machine {name} could not be undeployed"), "undeploy")
            }
            Self::CareFailed => format!(
                "machine {name} is in state {state}{error}; bring it back to active with Ironic's own \
                 commands"
            ),
            Self::Held => format!(
                "machine {name} is in state {state}: a step waits for a user; give the command \
                 `{}`",
                command("unhold")
            ),
            Self::PowerFailed => format!(
                "machine {name} is not powered on{error}; correct driver_info and the machine's \
                 management controller"
            ),
            Self::Unknown => format!(
                "machine {name} is in state {state}, which is unknown to this version; nothing is \
                 done until it leaves it"
            ),
        }
    }
}

fn taken(node: &Node) -> String {
    let instance = truncated(node.instance_uuid.as_deref().unwrap_or_default(), UUID_LIMIT);
    format!(
        "machine {} is reserved by instance {instance}; name another machine, or free this one",
        node.title()
    )
}

fn maintenance(node: &Node, command: &str) -> String {
    let reason = quoted("the reason is", node.maintenance_reason.as_deref());
    let name = node.title();
    format!(
        "machine {name} is in maintenance{reason}; repair it, then give the command `{command}`"
    )
}

/// Returns a server's trimmed message as part of a sentence; empty when there is none.
fn quoted(who: &str, words: Option<&str>) -> String {
    match words.map(str::trim).filter(|it| !it.is_empty()) {
        Some(words) => format!(" ({who}: {})", truncated(words, WORDS_LIMIT)),
        None => String::new(),
    }
}

/// Returns what happens in a state.
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
            format!("in state {word}, at another client's request")
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
