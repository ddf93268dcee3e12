//! The reasons on sets of machines.

use api::conditions::{Reason, Severity};
pub(crate) use ironic::reasons::MACHINE_OFF;

/// On a host, whose set stays without machines.
pub(crate) const HOST_WITHOUT_IMAGE: Reason =
    Reason { severity: Some(Severity::Warning), ..IMAGE_NOT_SERVED };

api::reasons! {
    pub(crate) mod catalog;

    /// Whether all machines run.
    const SUMMARY;

    READY: good "Ready" means "Each host has a machine that runs.";

    /// What the hosts are made from.
    const INPUTS;

    INPUT_COMPLETE: good "InputComplete" means "Everything that the hosts are made from is there.";
    SECRET_NOT_FOUND: error "SecretNotFound"
        means "A Secret that the set names does not exist, or only Secrets are missing."
        heals "When it appears." step "Create it, with the keys that the message names.";
    PROVISIONER_NOT_FOUND: error "ProvisionerNotFound"
        means "The set requires Metal3, but the cluster has no kind `BareMetalHost`."
        heals "When that is resolved."
        step "Install Metal3, or set `provisioner: ironic` and `ironic`.";
    INVALID_INPUT: error "InvalidInput"
        means "A field of the set, or a key of a Secret, cannot be used; its hosts wait, the \
            others proceed."
        heals "When it is corrected." step "Correct it as the message says.";

    /// The provisioner itself.
    const SERVER;

    ANSWERING: good "Answering" means "Ironic answers.";
    SERVER_NOT_ASKED: unknown "InputMissing" means "A Secret, the image or Metal3 is missing."
        heals "" step "See `InputReady`.";
    IMAGE_NOT_SERVED: waiting "ImageNotServed"
        means "With Metal3: the OpenStackProvisionServer that the set names serves no image yet."
        heals "When that is resolved." step "Look at its status.";

    /// The machines.
    const MACHINES;

    PROVISIONED: good "Provisioned" means "Each host has a machine that runs.";
    MACHINES_UNKNOWN: unknown "MachinesUnknown" means "Ironic does not answer."
        heals "Yes." step "";
    INPUT_MISSING: error "InputMissing" means "A host waits for what `InputReady` reports."
        heals "" step "";
    IMAGE_NOT_SERVED;
    MACHINE_FAILED: error "MachineFailed"
        means "Metal3 reports an error of a machine; the message quotes it."
        heals "When Metal3 reports no error." step "Correct the cause.";
    MACHINE_DETACHED: error "MachineDetached"
        means "A `BareMetalHost` is detached, so Metal3 does not manage it."
        heals "When that is resolved." step "Run the command in the message.";
    MACHINE_PAUSED: error "MachinePaused"
        means "A `BareMetalHost` is paused, so Metal3 does not manage it."
        heals "When that is resolved." step "Run the command in the message.";
    MACHINE_TWICE: error "MachineTwice"
        means "Several `BareMetalHosts` are labelled for one host, because one was copied; none is \
            changed."
        heals "When only one is labelled."
        step "Remove the labels and `consumerRef` from the copies.";
    MACHINE_GOING: error "MachineGoing" means "The `BareMetalHost` of a host is being deleted."
        heals "When it is gone and another one can be used." step "Remove the host, or wait.";
    IMAGE_HELD: error "ImageHeld"
        means "The image field of a `BareMetalHost` being released also has another field manager."
        heals "When the image is removed." step "Run the command in the message.";
    NO_MACHINE: warning "NoMachine"
        means "No machine is suitable for a host; the message counts the exclusions by cause."
        heals "When one is suitable."
        step "Enroll one, make one available, or relax the requirements.";
    MACHINE_GONE: error "MachineGone"
        means "The machine of a host was deleted, or lost its reservation, while it ran, or cannot \
            be confirmed as released."
        heals "When it exists again."
        step "Make sure that it is off, then run the command in the message.";
    HOST_IN_USE: warning "HostInUse"
        means "A host was removed from the set manually, and the owner of the set still requests \
            it."
        heals "When it is requested again."
        step "Remove the host where it is requested: its node, or its node set.";
    DELETION_WAITS: waiting "DeletionWaits"
        means "The set is being deleted, but finalizers hold it, because its machines are needed."
        heals "When no finalizer is left."
        step "Delete what uses the machines: the nodes, or the node set.";
    MACHINE_RETAINED: warning "MachineRetained"
        means "The machine of a removed host is no longer managed, and keeps running."
        heals "Yes." step "Do not give its address to another host, or switch it off.";

    /// Whether the present config drives are deployed.
    const CHANGES;

    UP_TO_DATE: good "UpToDate" means "All config drives are current.";
    CONFIG_DRIVE_CHANGED: waiting "ConfigDriveChanged"
        means "User data, keys, addresses or the like have changed since."
        heals "No." step "Redeploy the hosts if you want the change; the message says how.";
    MACHINES_UNKNOWN;
}
