//! The reasons on sets of machines.

use api::conditions::{Reason, Severity};

pub(crate) const READY: Reason = Reason::good("Ready", "Each host has a machine that runs.");
pub(crate) const UP_TO_DATE: Reason = Reason::good("UpToDate", "They were.");
pub(crate) const CONFIG_DRIVE_CHANGED: Reason = Reason::waiting(
    "ConfigDriveChanged",
    "User data, keys, addresses or the like have changed since.",
    "No.",
    "Have the hosts deployed again, if you want the change; the message tells how.",
);
pub(crate) const MACHINES_UNKNOWN: Reason =
    Reason::unknown("MachinesUnknown", "Ironic does not answer.", "Yes.", "");
pub(crate) const INPUT_COMPLETE: Reason =
    Reason::good("InputComplete", "Everything that the hosts are made from is there.");
pub(crate) const SECRET_NOT_FOUND: Reason = Reason::error(
    "SecretNotFound",
    "A Secret that the set names does not exist, or only Secrets are missing.",
    "When it appears.",
    "Create it, with the keys that the message names.",
);
pub(crate) const PROVISIONER_NOT_FOUND: Reason = Reason::error(
    "ProvisionerNotFound",
    "The set wants Metal3, and the cluster does not know its kind `BareMetalHost`.",
    "When it does.",
    "Install Metal3, or set `provisioner: ironic` and `ironic`.",
);
pub(crate) const INVALID_INPUT: Reason = Reason::error(
    "InvalidInput",
    "A field of the set, or a key of a Secret, cannot be used; its hosts wait, the others go on.",
    "When it is corrected.",
    "Correct it as the message says.",
);
pub(crate) const ANSWERING: Reason = Reason::good("Answering", "Ironic answers.");
pub(crate) const SERVER_NOT_ASKED: Reason = Reason::unknown(
    "InputMissing",
    "A Secret, the image or Metal3 is missing.",
    "",
    "See `InputReady`.",
);
pub(crate) const IMAGE_NOT_SERVED: Reason = Reason::waiting(
    "ImageNotServed",
    "With Metal3: the OpenStackProvisionServer that the set names serves no image yet.",
    "When it does.",
    "Look at its status.",
);

/// On a host, whose set stays without machines.
pub(crate) const HOST_WITHOUT_IMAGE: Reason =
    Reason { severity: Some(Severity::Warning), ..IMAGE_NOT_SERVED };
pub(crate) const PROVISIONED: Reason =
    Reason::good("Provisioned", "Each host has a machine that runs.");
pub(crate) const INPUT_MISSING: Reason =
    Reason::error("InputMissing", "A host waits for what `InputReady` tells of.", "", "");
pub(crate) const MACHINE_FAILED: Reason = Reason::error(
    "MachineFailed",
    "Metal3 tells of an error of a machine; the message has its words.",
    "When Metal3 tells of none.",
    "Correct the cause.",
);
pub(crate) const MACHINE_DETACHED: Reason = Reason::error(
    "MachineDetached",
    "A `BareMetalHost` is detached, so Metal3 leaves it alone.",
    "When it is not.",
    "Give the command in the message.",
);
pub(crate) const MACHINE_PAUSED: Reason = Reason::error(
    "MachinePaused",
    "A `BareMetalHost` is paused, so Metal3 leaves it alone.",
    "When it is not.",
    "Give the command in the message.",
);
pub(crate) const MACHINE_TWICE: Reason = Reason::error(
    "MachineTwice",
    "Several `BareMetalHosts` are labelled for one host, for one was copied; none is touched.",
    "When one is.",
    "Take the labels and `consumerRef` off the copies.",
);
pub(crate) const MACHINE_GOING: Reason = Reason::error(
    "MachineGoing",
    "The `BareMetalHost` of a host is being deleted.",
    "When it is gone and another one can be taken.",
    "Take the host out, or wait.",
);
pub(crate) const IMAGE_HELD: Reason = Reason::error(
    "ImageHeld",
    "The image of a `BareMetalHost` that is given back is somebody else's field too.",
    "When it is taken out.",
    "Give the command in the message.",
);
pub(crate) const NO_MACHINE: Reason = Reason::warning(
    "NoMachine",
    "No machine can be taken for a host; the message says what excluded how many.",
    "When one can.",
    "Enroll one, make one available, or ask for less.",
);
pub(crate) const MACHINE_GONE: Reason = Reason::error(
    "MachineGone",
    "The machine of a host was deleted, or its reservation taken away, while it ran, or cannot be \
     seen to be given back.",
    "When it is there again.",
    "Make sure that it is off, then give the command in the message.",
);
pub(crate) const HOST_IN_USE: Reason = Reason::warning(
    "HostInUse",
    "A host was taken out of the set by hand, and whoever the set was made for still asks for it.",
    "When he asks again.",
    "Take the host out where it is asked for: its node, or its node set.",
);
pub(crate) const DELETION_WAITS: Reason = Reason::waiting(
    "DeletionWaits",
    "The set is being deleted, and others hold it, for they need its machines.",
    "When nobody does.",
    "Delete what the machines are for: the nodes, or the node set.",
);
pub(crate) const MACHINE_RETAINED: Reason = Reason::warning(
    "MachineRetained",
    "The machine of a host that was taken out is given up, and runs on.",
    "Yes.",
    "Do not give its address to another host, or switch it off.",
);

/// At Metal3, which goes on trying.
pub(crate) const MACHINE_OFF: Reason =
    Reason { severity: Some(Severity::Warning), ..ironic::reasons::POWER_FAILED };
