//! The reasons of failed requests and of machines that are not provisioned.

#![expect(missing_docs, reason = "each constant tells what it means")]

use api::conditions::Reason;

pub const INVALID_URL: Reason =
    Reason::error("InvalidURL", "The endpoint is no http or https URL.", "No.", "Correct it.");
pub const NOT_IRONIC: Reason =
    Reason::error("NotIronic", "Something else answers at the endpoint.", "No.", "Correct it.");
pub const ANSWER_TOO_LARGE: Reason = Reason::error(
    "AnswerTooLarge",
    "Ironic tells more than is read: 10,000 machines or 32 MiB in a list, 8 MiB in an answer.",
    "When it tells less.",
    "Let the user of the Secret see fewer machines, or make their extra and properties smaller.",
);
pub const VERSION_NOT_SUPPORTED: Reason = Reason::error(
    "VersionNotSupported",
    "Ironic speaks no version of its API that is spoken here (1.46 and later).",
    "No.",
    "Use another Ironic.",
);
pub const CREDENTIALS_INCOMPLETE: Reason = Reason::error(
    "CredentialsIncomplete",
    "The Secret with credentials or certificates lacks a key, or has one that cannot be used.",
    "When it is corrected.",
    "Correct the key that the message names.",
);
pub const MACHINE_NOT_FOUND: Reason =
    Reason::waiting("MachineNotFound", "What is asked for is not there.", "Yes.", "Wait.");
pub const MACHINE_BUSY: Reason =
    Reason::waiting("MachineBusy", "Ironic works on it.", "Yes.", "Wait.");
pub const UNREACHABLE: Reason = Reason::warning(
    "Unreachable",
    "No connection to Ironic, or no answer in time.",
    "Yes.",
    "Check the endpoint and the network.",
);
pub const CERTIFICATE_NOT_TRUSTED: Reason = Reason::error(
    "CertificateNotTrusted",
    "Ironic's certificate is not believed.",
    "When the Secret changes.",
    "Name a Secret with its authority in `caSecret`.",
);
pub const CREDENTIALS_REFUSED: Reason = Reason::error(
    "CredentialsRefused",
    "Ironic refuses the credentials.",
    "When the Secret changes.",
    "Correct them.",
);
pub const ACCESS_DENIED: Reason = Reason::error(
    "AccessDenied",
    "The credentials do not suffice.",
    "When they do.",
    "Give their user the role of an administrator.",
);
pub const IRONIC_BUSY: Reason = Reason::waiting(
    "IronicBusy",
    "Ironic has no free worker, or asks for patience.",
    "Yes.",
    "Wait.",
);
pub const REQUEST_REFUSED: Reason = Reason::error(
    "RequestRefused",
    "Ironic refuses what it is asked.",
    "When it does not.",
    "Correct what Ironic's words name.",
);
pub const IRONIC_FAILED: Reason =
    Reason::warning("IronicFailed", "Ironic itself fails.", "Yes.", "Look at Ironic's log.");
pub const MACHINE_IN_PROGRESS: Reason =
    Reason::waiting("MachineInProgress", "A machine is on its way.", "Yes.", "Wait.");
pub const MACHINE_LOCKED: Reason =
    Reason::waiting("MachineLocked", "Ironic works on a machine.", "Yes.", "Wait.");
pub const MACHINE_UNREACHABLE: Reason = Reason::warning(
    "MachineUnreachable",
    "Ironic cannot reach a machine.",
    "Every ten minutes.",
    "Correct its `driver_info`, or its management controller.",
);
pub const DEPLOY_RETRYING: Reason = Reason::warning(
    "DeployRetrying",
    "A deployment failed, and is tried again.",
    "Until `deployAttempts` are used up.",
    "Look at Ironic's words.",
);
pub const MACHINE_NOT_AVAILABLE: Reason = Reason::error(
    "MachineNotAvailable",
    "A machine is not available, and may not be made so.",
    "When it is.",
    "Set `provide: true`, or give the command in the message.",
);
pub const MACHINE_NOT_RUNNING: Reason = Reason::error(
    "MachineNotRunning",
    "A machine that is to be adopted does not run.",
    "When it does.",
    "Take `adopt` out to have it deployed.",
);
pub const MACHINE_TAKEN: Reason = Reason::error(
    "MachineTaken",
    "A machine is reserved or used by somebody else.",
    "When it is free.",
    "Name another one, or do as the message says.",
);
pub const MACHINE_IN_MAINTENANCE: Reason = Reason::error(
    "MachineInMaintenance",
    "A machine is in maintenance, for the reason in the message.",
    "When it is not.",
    "Mend it, then give the command in the message.",
);
pub const DEPLOY_FAILED: Reason = Reason::error(
    "DeployFailed",
    "All attempts to deploy a machine failed.",
    "When the image or the config drive changes.",
    "Correct what Ironic says, then give the command in the message.",
);
pub const ADOPT_FAILED: Reason = Reason::error(
    "AdoptFailed",
    "A machine could not be adopted.",
    "When it is.",
    "Correct what Ironic says, then give the command in the message.",
);
pub const CLEAN_FAILED: Reason = Reason::error(
    "CleanFailed",
    "The cleaning of a machine failed.",
    "When it is clean.",
    "Correct what Ironic says, then give the command in the message.",
);
pub const INSPECT_FAILED: Reason = Reason::error(
    "InspectFailed",
    "The inspection of a machine failed.",
    "When it is over.",
    "Correct what Ironic says, then give the command in the message.",
);
pub const UNDEPLOY_FAILED: Reason = Reason::error(
    "UndeployFailed",
    "A machine could not be undeployed.",
    "When it is.",
    "Correct what Ironic says, then give the command in the message.",
);
pub const SERVICE_FAILED: Reason = Reason::error(
    "ServiceFailed",
    "Somebody's rescue or service of a machine failed.",
    "When it is active again.",
    "Bring it back with Ironic's own commands.",
);
pub const MACHINE_HELD: Reason = Reason::error(
    "MachineHeld",
    "A step of Ironic waits for a human.",
    "When it goes on.",
    "Give the command in the message.",
);
pub const POWER_FAILED: Reason = Reason::error(
    "PowerFailed",
    "A machine cannot be powered on.",
    "When it can.",
    "Correct its `driver_info`, or its management controller.",
);
pub const STATE_UNKNOWN: Reason = Reason::warning(
    "StateUnknown",
    "A machine is in a state that this version does not know.",
    "When it leaves it.",
    "Wait.",
);
