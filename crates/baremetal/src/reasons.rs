//! The reasons on sets of machines.

use api::conditions::{Reason, Severity};

pub(crate) const READY: Reason = Reason::good("Ready", "Each host has a machine that runs.");
pub(crate) const UP_TO_DATE: Reason = Reason::good("UpToDate", "All config drives are current.");
pub(crate) const CONFIG_DRIVE_CHANGED: Reason = Reason::waiting(
    "ConfigDriveChanged",
    "User data, keys, addresses or the like have changed since.",
    "No.",
    "Redeploy the hosts if you want the change; the message says how.",
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
    "The set requires Metal3, but the cluster has no kind `BareMetalHost`.",
    "When that is resolved.",
    "Install Metal3, or set `provisioner: ironic` and `ironic`.",
);
pub(crate) const INVALID_INPUT: Reason = Reason::error(
    "InvalidInput",
    "A field of the set, or a key of a Secret, cannot be used; its hosts wait, the others proceed.",
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
    "When that is resolved.",
    "Look at its status.",
);

/// On a host, whose set stays without machines.
pub(crate) const HOST_WITHOUT_IMAGE: Reason =
    Reason { severity: Some(Severity::Warning), ..IMAGE_NOT_SERVED };
pub(crate) const PROVISIONED: Reason =
    Reason::good("Provisioned", "Each host has a machine that runs.");
pub(crate) const INPUT_MISSING: Reason =
    Reason::error("InputMissing", "A host waits for what `InputReady` reports.", "", "");
pub(crate) const MACHINE_FAILED: Reason = Reason::error(
    "MachineFailed",
    "Metal3 reports an error of a machine; the message quotes it.",
    "When Metal3 reports no error.",
    "Correct the cause.",
);
pub(crate) const MACHINE_DETACHED: Reason = Reason::error(
    "MachineDetached",
    "A `BareMetalHost` is detached, so Metal3 does not manage it.",
    "When that is resolved.",
    "Run the command in the message.",
);
pub(crate) const MACHINE_PAUSED: Reason = Reason::error(
    "MachinePaused",
    "A `BareMetalHost` is paused, so Metal3 does not manage it.",
    "When that is resolved.",
    "Run the command in the message.",
);
pub(crate) const MACHINE_TWICE: Reason = Reason::error(
    "MachineTwice",
    "Several `BareMetalHosts` are labelled for one host, because one was copied; none is changed.",
    "When only one is labelled.",
    "Remove the labels and `consumerRef` from the copies.",
);
pub(crate) const MACHINE_GOING: Reason = Reason::error(
    "MachineGoing",
    "The `BareMetalHost` of a host is being deleted.",
    "When it is gone and another one can be used.",
    "Remove the host, or wait.",
);
pub(crate) const IMAGE_HELD: Reason = Reason::error(
    "ImageHeld",
    "The image field of a `BareMetalHost` being released also has another field manager.",
    "When the image is removed.",
    "Run the command in the message.",
);
pub(crate) const NO_MACHINE: Reason = Reason::warning(
    "NoMachine",
    "No machine is suitable for a host; the message counts the exclusions by cause.",
    "When one is suitable.",
    "Enroll one, make one available, or relax the requirements.",
);
pub(crate) const MACHINE_GONE: Reason = Reason::error(
    "MachineGone",
    "The machine of a host was deleted, or lost its reservation, while it ran, or cannot be \
     confirmed as released.",
    "When it exists again.",
    "Make sure that it is off, then run the command in the message.",
);
pub(crate) const HOST_IN_USE: Reason = Reason::warning(
    "HostInUse",
    "A host was removed from the set manually, and the owner of the set still requests it.",
    "When it is requested again.",
    "Remove the host where it is requested: its node, or its node set.",
);
pub(crate) const DELETION_WAITS: Reason = Reason::waiting(
    "DeletionWaits",
    "The set is being deleted, but finalizers hold it, because its machines are needed.",
    "When no finalizer is left.",
    "Delete what uses the machines: the nodes, or the node set.",
);
pub(crate) const MACHINE_RETAINED: Reason = Reason::warning(
    "MachineRetained",
    "The machine of a removed host is no longer managed, and keeps running.",
    "Yes.",
    "Do not give its address to another host, or switch it off.",
);

/// At Metal3, which goes on trying.
pub(crate) const MACHINE_OFF: Reason =
    Reason { severity: Some(Severity::Warning), ..ironic::reasons::POWER_FAILED };
