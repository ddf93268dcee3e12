//! The reasons of failed requests and of machines that are not provisioned.

#![expect(missing_docs, reason = "each constant says what it means")]

use api::conditions::Reason;

pub const INVALID_URL: Reason =
    Reason::error("InvalidURL", "The endpoint is not an http or https URL.", "No.", "Correct it.");
pub const NOT_IRONIC: Reason =
    Reason::error("NotIronic", "Something else answers at the endpoint.", "No.", "Correct it.");
pub const ANSWER_TOO_LARGE: Reason = Reason::error(
    "AnswerTooLarge",
    "Ironic returns more than the limit: 10,000 machines or 32 MiB in a list, 8 MiB in an answer.",
    "When it returns less.",
    "Let the user of the Secret see fewer machines, or make their extra and properties smaller.",
);
pub const VERSION_NOT_SUPPORTED: Reason = Reason::error(
    "VersionNotSupported",
    "Ironic supports no API version that the operator supports (1.46 and later).",
    "No.",
    "Use another Ironic release.",
);
pub const CREDENTIALS_INCOMPLETE: Reason = Reason::error(
    "CredentialsIncomplete",
    "The Secret with credentials or certificates lacks a key, or has one that cannot be used.",
    "When it is corrected.",
    "Correct the key that the message names.",
);
pub const MACHINE_NOT_FOUND: Reason =
    Reason::waiting("MachineNotFound", "The requested resource does not exist.", "Yes.", "Wait.");
pub const MACHINE_BUSY: Reason =
    Reason::waiting("MachineBusy", "Ironic is processing the machine.", "Yes.", "Wait.");
pub const UNREACHABLE: Reason = Reason::warning(
    "Unreachable",
    "No connection to Ironic, or no answer in time.",
    "Yes.",
    "Check the endpoint and the network.",
);
pub const CERTIFICATE_NOT_TRUSTED: Reason = Reason::error(
    "CertificateNotTrusted",
    "Ironic's certificate is not trusted.",
    "When the Secret changes.",
    "Name a Secret with its CA certificate in `caSecret`.",
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
    "When they suffice.",
    "Give their user the role of an administrator.",
);
pub const IRONIC_BUSY: Reason = Reason::waiting(
    "IronicBusy",
    "Ironic has no free worker, or asks to retry later.",
    "Yes.",
    "Wait.",
);
pub const REQUEST_REFUSED: Reason = Reason::error(
    "RequestRefused",
    "Ironic rejects the request.",
    "When it accepts the request.",
    "Correct what Ironic's message names.",
);
pub const IRONIC_FAILED: Reason = Reason::warning(
    "IronicFailed",
    "Ironic returns an internal error.",
    "Yes.",
    "Look at Ironic's log.",
);
pub const MACHINE_IN_PROGRESS: Reason =
    Reason::waiting("MachineInProgress", "A machine is being provisioned.", "Yes.", "Wait.");
pub const MACHINE_LOCKED: Reason =
    Reason::waiting("MachineLocked", "Ironic is processing a machine.", "Yes.", "Wait.");
pub const MACHINE_UNREACHABLE: Reason = Reason::warning(
    "MachineUnreachable",
    "Ironic cannot reach a machine.",
    "Every ten minutes.",
    "Correct its `driver_info`, or its management controller.",
);
pub const DEPLOY_RETRYING: Reason = Reason::warning(
    "DeployRetrying",
    "A deployment failed, and is retried.",
    "Until `deployAttempts` are used up.",
    "See Ironic's message.",
);
pub const MACHINE_NOT_AVAILABLE: Reason = Reason::error(
    "MachineNotAvailable",
    "A machine is not available, and may not be made so.",
    "When that is resolved.",
    "Set `provide: true`, or give the command in the message.",
);
pub const MACHINE_NOT_RUNNING: Reason = Reason::error(
    "MachineNotRunning",
    "A machine that is to be adopted does not run.",
    "When that is resolved.",
    "Remove `adopt` to have it deployed.",
);
pub const MACHINE_TAKEN: Reason = Reason::error(
    "MachineTaken",
    "A machine is reserved or used by another client.",
    "When it is free.",
    "Name another one, or do as the message says.",
);
pub const MACHINE_IN_MAINTENANCE: Reason = Reason::error(
    "MachineInMaintenance",
    "A machine is in maintenance, for the reason in the message.",
    "When that is resolved.",
    "Repair it, then run the command in the message.",
);
pub const DEPLOY_FAILED: Reason = Reason::error(
    "DeployFailed",
    "All attempts to deploy a machine failed.",
    "When the image or the config drive changes.",
    "Correct what Ironic reports, then run the command in the message.",
);
pub const ADOPT_FAILED: Reason = Reason::error(
    "AdoptFailed",
    "A machine could not be adopted.",
    "When that is resolved.",
    "Correct what Ironic reports, then run the command in the message.",
);
pub const CLEAN_FAILED: Reason = Reason::error(
    "CleanFailed",
    "The cleaning of a machine failed.",
    "When it is clean.",
    "Correct what Ironic reports, then run the command in the message.",
);
pub const INSPECT_FAILED: Reason = Reason::error(
    "InspectFailed",
    "The inspection of a machine failed.",
    "When it is completed.",
    "Correct what Ironic reports, then run the command in the message.",
);
pub const UNDEPLOY_FAILED: Reason = Reason::error(
    "UndeployFailed",
    "A machine could not be undeployed.",
    "When that is resolved.",
    "Correct what Ironic reports, then run the command in the message.",
);
pub const SERVICE_FAILED: Reason = Reason::error(
    "ServiceFailed",
    "A rescue or service of a machine, started by another client, failed.",
    "When it is active again.",
    "Bring it back with Ironic's own commands.",
);
pub const MACHINE_HELD: Reason = Reason::error(
    "MachineHeld",
    "A step of Ironic waits for a user.",
    "When it continues.",
    "Run the command in the message.",
);
pub const POWER_FAILED: Reason = Reason::error(
    "PowerFailed",
    "A machine cannot be powered on.",
    "When it is powered on.",
    "Correct its `driver_info`, or its management controller.",
);
pub const STATE_UNKNOWN: Reason = Reason::warning(
    "StateUnknown",
    "A machine is in a state that is unknown to this version.",
    "When it leaves that state.",
    "Wait.",
);
