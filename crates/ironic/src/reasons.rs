//! The reasons of failed requests and of machines that are not provisioned.

use api::conditions::{Reason, Severity};

/// The reasons of a server that cannot be used.
pub const SERVER: &[Reason] = catalog::SERVER;
/// The reasons of machines that are not provisioned.
pub const MACHINES: &[Reason] = catalog::MACHINES;
/// The reasons of requests about a machine that fail.
pub const REQUESTS: &[Reason] = catalog::REQUESTS;
/// A machine that is off at Metal3, which goes on trying.
pub const MACHINE_OFF: Reason = Reason { severity: Some(Severity::Warning), ..POWER_FAILED };

api::reasons! {
    pub(crate) mod catalog;

    /// Ironic itself.
    const SERVER;

    INVALID_URL: error "InvalidURL" means "The endpoint is not an http or https URL."
        heals "No." step "Correct it.";
    UNREACHABLE: warning "Unreachable" means "No connection to Ironic, or no answer in time."
        heals "Yes." step "Check the endpoint and the network.";
    CERTIFICATE_NOT_TRUSTED: error "CertificateNotTrusted"
        means "Ironic's certificate is not trusted."
        heals "When the Secret changes."
        step "Name a Secret with its CA certificate in `caSecret`.";
    NOT_IRONIC: error "NotIronic" means "Something else answers at the endpoint."
        heals "No." step "Correct it.";
    ANSWER_TOO_LARGE: error "AnswerTooLarge"
        means "Ironic returns more than the limit: 10,000 machines or 32 MiB in a list, 8 MiB in \
            an answer."
        heals "When it returns less."
        step "Let the user of the Secret see fewer machines, or make their extra and properties \
            smaller.";
    VERSION_NOT_SUPPORTED: error "VersionNotSupported"
        means "Ironic supports no API version that the operator supports (1.46 and later)."
        heals "No." step "Use another Ironic release.";
    CREDENTIALS_REFUSED: error "CredentialsRefused" means "Ironic refuses the credentials."
        heals "When the Secret changes." step "Correct them.";
    ACCESS_DENIED: error "AccessDenied" means "The credentials do not suffice."
        heals "When they suffice." step "Give their user the role of an administrator.";
    CREDENTIALS_INCOMPLETE: error "CredentialsIncomplete"
        means "The Secret with credentials or certificates lacks a key, or has one that cannot be \
            used."
        heals "When it is corrected." step "Correct the key that the message names.";
    MACHINE_NOT_FOUND: waiting "MachineNotFound" means "The requested resource does not exist."
        heals "Yes." step "Wait.";
    IRONIC_BUSY: waiting "IronicBusy" means "Ironic has no free worker, or asks to retry later."
        heals "Yes." step "Wait.";
    MACHINE_BUSY: waiting "MachineBusy" means "Ironic is processing the machine."
        heals "Yes." step "Wait.";
    REQUEST_REFUSED: error "RequestRefused" means "Ironic rejects the request."
        heals "When it accepts the request." step "Correct what Ironic's message names.";
    IRONIC_FAILED: warning "IronicFailed" means "Ironic returns an internal error."
        heals "Yes." step "Look at Ironic's log.";

    /// Machines as Ironic has them.
    const MACHINES;

    MACHINE_IN_PROGRESS: waiting "MachineInProgress" means "A machine is being provisioned."
        heals "Yes." step "Wait.";
    MACHINE_LOCKED: waiting "MachineLocked" means "Ironic is processing a machine."
        heals "Yes." step "Wait.";
    MACHINE_UNREACHABLE: warning "MachineUnreachable" means "Ironic cannot reach a machine."
        heals "Every ten minutes." step "Correct its `driver_info`, or its management controller.";
    DEPLOY_RETRYING: warning "DeployRetrying" means "A deployment failed, and is retried."
        heals "Until `deployAttempts` are used up." step "See Ironic's message.";
    MACHINE_NOT_AVAILABLE: error "MachineNotAvailable"
        means "A machine is not available, and may not be made so."
        heals "When that is resolved."
        step "Set `provide: true`, or give the command in the message.";
    MACHINE_NOT_RUNNING: error "MachineNotRunning"
        means "A machine that is to be adopted does not run."
        heals "When that is resolved." step "Remove `adopt` to have it deployed.";
    MACHINE_TAKEN: error "MachineTaken" means "A machine is reserved or used by another client."
        heals "When it is free." step "Name another one, or do as the message says.";
    MACHINE_IN_MAINTENANCE: error "MachineInMaintenance"
        means "A machine is in maintenance, for the reason in the message."
        heals "When that is resolved." step "Repair it, then run the command in the message.";
    DEPLOY_FAILED: error "DeployFailed" means "All attempts to deploy a machine failed."
        heals "When the image or the config drive changes."
        step "Correct what Ironic reports, then run the command in the message.";
    ADOPT_FAILED: error "AdoptFailed" means "A machine could not be adopted."
        heals "When that is resolved."
        step "Correct what Ironic reports, then run the command in the message.";
    CLEAN_FAILED: error "CleanFailed" means "The cleaning of a machine failed."
        heals "When it is clean."
        step "Correct what Ironic reports, then run the command in the message.";
    INSPECT_FAILED: error "InspectFailed" means "The inspection of a machine failed."
        heals "When it is completed."
        step "Correct what Ironic reports, then run the command in the message.";
    UNDEPLOY_FAILED: error "UndeployFailed" means "A machine could not be undeployed."
        heals "When that is resolved."
        step "Correct what Ironic reports, then run the command in the message.";
    SERVICE_FAILED: error "ServiceFailed"
        means "A rescue or service of a machine, started by another client, failed."
        heals "When it is active again." step "Bring it back with Ironic's own commands.";
    MACHINE_HELD: error "MachineHeld" means "A step of Ironic waits for a user."
        heals "When it continues." step "Run the command in the message.";
    POWER_FAILED: error "PowerFailed" means "A machine cannot be powered on."
        heals "When it is powered on."
        step "Correct its `driver_info`, or its management controller.";
    STATE_UNKNOWN: warning "StateUnknown"
        means "A machine is in a state that is unknown to this version."
        heals "When it leaves that state." step "Wait.";

    /// Requests about a machine that fail.
    const REQUESTS;

    MACHINE_NOT_FOUND means "A machine has disappeared meanwhile." heals "Yes." step "Wait.";
    MACHINE_BUSY means "Another client reserved the machine first." heals "Yes." step "Wait.";
    UNREACHABLE; CERTIFICATE_NOT_TRUSTED; CREDENTIALS_REFUSED;
    ACCESS_DENIED; IRONIC_BUSY; REQUEST_REFUSED; IRONIC_FAILED;
}
