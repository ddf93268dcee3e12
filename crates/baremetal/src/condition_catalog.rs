//! The conditions of a baremetal set.

use operator_core::condition_catalog::{ConditionSpec, ReasonSpec, WRITES, condition, summary};

use crate::status::{INPUT_READY, PROVISIONED, SERVER_READY, UP_TO_DATE};

/// The conditions, in the order in which users read them.
pub const BAREMETAL_SET: &[ConditionSpec] = &[
    summary(
        "Each host has a machine that runs.",
        &[ReasonSpec::good("Ready", "Each host has a machine that runs.")],
    ),
    condition(INPUT_READY, "Everything that the hosts are made from is there.", INPUT),
    condition(SERVER_READY, "Ironic answers.", SERVER),
    condition(PROVISIONED, "Each host has a machine that runs.", MACHINES),
    condition(
        UP_TO_DATE,
        "The machines were deployed with the present config drives; `Ready` does not depend on it.",
        &[
            ReasonSpec::good("UpToDate", "They were."),
            ReasonSpec::bad(
                "ConfigDriveChanged",
                "User data, keys, addresses or the like have changed since.",
                "No.",
                "Have the hosts deployed again, if you want the change; the message tells how.",
            ),
            UNSEEN,
        ],
    ),
    WRITES,
];

const UNSEEN: ReasonSpec =
    ReasonSpec::bad("MachinesUnknown", "Ironic does not answer.", "Yes.", "").unknown();

const INPUT: &[ReasonSpec] = &[
    ReasonSpec::good("InputComplete", "Everything that the hosts are made from is there."),
    ReasonSpec::bad(
        "SecretNotFound",
        "A Secret that the set names does not exist, or only Secrets are missing.",
        "When it appears.",
        "Create it, with the keys that the message names.",
    ),
    ReasonSpec::bad(
        "ProvisionerNotFound",
        "The set wants Metal3, and the cluster does not know its kind `BareMetalHost`.",
        "When it does.",
        "Install Metal3, or set `provisioner: ironic` and `ironic`.",
    ),
    ReasonSpec::bad(
        "InvalidInput",
        "A field of the set, or a key of a Secret, cannot be used; its hosts wait, the others go on.",
        "When it is corrected.",
        "Correct it as the message says.",
    ),
];

const SERVER: &[ReasonSpec] = &[
    ReasonSpec::good("Answering", "Ironic answers."),
    ReasonSpec::bad(
        "InputMissing",
        "A Secret, the image or Metal3 is missing.",
        "",
        "See `InputReady`.",
    )
    .unknown(),
    IMAGE_NOT_SERVED,
    ReasonSpec::bad("InvalidURL", "The endpoint is no http or https URL.", "No.", "Correct it."),
    UNREACHABLE,
    NOT_TRUSTED,
    ReasonSpec::bad("NotIronic", "Something else answers at the endpoint.", "No.", "Correct it."),
    ReasonSpec::bad(
        "AnswerTooLarge",
        "Ironic tells more than is read: 10,000 machines or 32 MiB in a list, 8 MiB in an answer.",
        "When it tells less.",
        "Let the user of the Secret see fewer machines, or make their extra and properties smaller.",
    ),
    ReasonSpec::bad(
        "VersionNotSupported",
        "Ironic speaks no version of its API that is spoken here (1.46 and later).",
        "No.",
        "Use another Ironic.",
    ),
    CREDENTIALS_REFUSED,
    ACCESS_DENIED,
    ReasonSpec::bad(
        "CredentialsIncomplete",
        "The Secret with credentials or certificates lacks a key, or has one that cannot be used.",
        "When it is corrected.",
        "Correct the key that the message names.",
    ),
    ReasonSpec::bad("MachineNotFound", "What is asked for is not there.", "Yes.", "Wait."),
    BUSY,
    ReasonSpec::bad("MachineBusy", "Ironic works on it.", "Yes.", "Wait."),
    REFUSED,
    FAILED,
];

const IMAGE_NOT_SERVED: ReasonSpec = ReasonSpec::bad(
    "ImageNotServed",
    "With Metal3: the OpenStackProvisionServer that the set names serves no image yet.",
    "When it does.",
    "Look at its status.",
);
const UNREACHABLE: ReasonSpec = ReasonSpec::bad(
    "Unreachable",
    "No connection to Ironic, or no answer in time.",
    "Yes.",
    "Check the endpoint and the network.",
);
const NOT_TRUSTED: ReasonSpec = ReasonSpec::bad(
    "CertificateNotTrusted",
    "Ironic's certificate is not believed.",
    "When the Secret changes.",
    "Name a Secret with its authority in `caSecret`.",
);
const CREDENTIALS_REFUSED: ReasonSpec = ReasonSpec::bad(
    "CredentialsRefused",
    "Ironic refuses the credentials.",
    "When the Secret changes.",
    "Correct them.",
);
const ACCESS_DENIED: ReasonSpec = ReasonSpec::bad(
    "AccessDenied",
    "The credentials do not suffice.",
    "When they do.",
    "Give their user the role of an administrator.",
);
const BUSY: ReasonSpec = ReasonSpec::bad(
    "IronicBusy",
    "Ironic has no free worker, or asks for patience.",
    "Yes.",
    "Wait.",
);
const REFUSED: ReasonSpec = ReasonSpec::bad(
    "RequestRefused",
    "Ironic refuses what it is asked.",
    "When it does not.",
    "Correct what Ironic's words name.",
);
const FAILED: ReasonSpec =
    ReasonSpec::bad("IronicFailed", "Ironic itself fails.", "Yes.", "Look at Ironic's log.");

const MACHINES: &[ReasonSpec] = &[
    ReasonSpec::good("Provisioned", "Each host has a machine that runs."),
    UNSEEN,
    ReasonSpec::bad("InputMissing", "A host waits for what `InputReady` tells of.", "", ""),
    IMAGE_NOT_SERVED,
    ReasonSpec::bad(
        "MachineFailed",
        "Metal3 tells of an error of a machine; the message has its words.",
        "When Metal3 tells of none.",
        "Correct the cause.",
    ),
    ReasonSpec::bad(
        "MachineDetached",
        "A `BareMetalHost` is detached, so Metal3 leaves it alone.",
        "When it is not.",
        "Give the command in the message.",
    ),
    ReasonSpec::bad(
        "MachinePaused",
        "A `BareMetalHost` is paused, so Metal3 leaves it alone.",
        "When it is not.",
        "Give the command in the message.",
    ),
    ReasonSpec::bad(
        "MachineTwice",
        "Several `BareMetalHosts` are labelled for one host, for one was copied; none is touched.",
        "When one is.",
        "Take the labels and `consumerRef` off the copies.",
    ),
    ReasonSpec::bad(
        "MachineGoing",
        "The `BareMetalHost` of a host is being deleted.",
        "When it is gone and another one can be taken.",
        "Take the host out, or wait.",
    ),
    ReasonSpec::bad(
        "ImageHeld",
        "The image of a `BareMetalHost` that is given back is somebody else's field too.",
        "When it is taken out.",
        "Give the command in the message.",
    ),
    ReasonSpec::bad(
        "NoMachine",
        "No machine can be taken for a host; the message says what excluded how many.",
        "When one can.",
        "Enroll one, make one available, or ask for less.",
    ),
    ReasonSpec::bad(
        "MachineGone",
        "The machine of a host was deleted, or its reservation taken away, while it ran, or cannot be \
         seen to be given back.",
        "When it is there again.",
        "Make sure that it is off, then give the command in the message.",
    ),
    ReasonSpec::bad(
        "HostInUse",
        "A host was taken out of the set by hand, and whoever the set was made for still asks for it.",
        "When he asks again.",
        "Take the host out where it is asked for: its node, or its node set.",
    ),
    ReasonSpec::bad(
        "DeletionWaits",
        "The set is being deleted, and others hold it, for they need its machines.",
        "When nobody does.",
        "Delete what the machines are for: the nodes, or the node set.",
    ),
    ReasonSpec::bad("MachineInProgress", "A machine is on its way.", "Yes.", "Wait."),
    ReasonSpec::bad(
        "MachineRetained",
        "The machine of a host that was taken out is given up, and runs on.",
        "Yes.",
        "Do not give its address to another host, or switch it off.",
    ),
    ReasonSpec::bad("MachineLocked", "Ironic works on a machine.", "Yes.", "Wait."),
    ReasonSpec::bad(
        "MachineUnreachable",
        "Ironic cannot reach a machine.",
        "Every ten minutes.",
        "Correct its `driver_info`, or its management controller.",
    ),
    ReasonSpec::bad(
        "DeployRetrying",
        "A deployment failed, and is tried again.",
        "Until `deployAttempts` are used up.",
        "Look at Ironic's words.",
    ),
    ReasonSpec::bad(
        "MachineNotAvailable",
        "A machine is not available, and may not be made so.",
        "When it is.",
        "Set `provide: true`, or give the command in the message.",
    ),
    ReasonSpec::bad(
        "MachineNotRunning",
        "A machine that is to be adopted does not run.",
        "When it does.",
        "Take `adopt` out to have it deployed.",
    ),
    ReasonSpec::bad(
        "MachineTaken",
        "A machine is reserved or used by somebody else.",
        "When it is free.",
        "Name another one, or do as the message says.",
    ),
    ReasonSpec::bad(
        "MachineInMaintenance",
        "A machine is in maintenance, for the reason in the message.",
        "When it is not.",
        "Mend it, then give the command in the message.",
    ),
    ReasonSpec::bad(
        "DeployFailed",
        "All attempts to deploy a machine failed.",
        "When the image or the config drive changes.",
        "Correct what Ironic says, then give the command in the message.",
    ),
    ReasonSpec::bad(
        "AdoptFailed",
        "A machine could not be adopted.",
        "When it is.",
        "Correct what Ironic says, then give the command in the message.",
    ),
    ReasonSpec::bad(
        "CleanFailed",
        "The cleaning of a machine failed.",
        "When it is clean.",
        "Correct what Ironic says, then give the command in the message.",
    ),
    ReasonSpec::bad(
        "InspectFailed",
        "The inspection of a machine failed.",
        "When it is over.",
        "Correct what Ironic says, then give the command in the message.",
    ),
    ReasonSpec::bad(
        "UndeployFailed",
        "A machine could not be undeployed.",
        "When it is.",
        "Correct what Ironic says, then give the command in the message.",
    ),
    ReasonSpec::bad(
        "ServiceFailed",
        "Somebody's rescue or service of a machine failed.",
        "When it is active again.",
        "Bring it back with Ironic's own commands.",
    ),
    ReasonSpec::bad(
        "MachineHeld",
        "A step of Ironic waits for a human.",
        "When it goes on.",
        "Give the command in the message.",
    ),
    ReasonSpec::bad(
        "PowerFailed",
        "A machine cannot be powered on.",
        "When it can.",
        "Correct its `driver_info`, or its management controller.",
    ),
    ReasonSpec::bad(
        "StateUnknown",
        "A machine is in a state that this version does not know.",
        "When it leaves it.",
        "Wait.",
    ),
    ReasonSpec::bad("MachineNotFound", "A machine went away meanwhile.", "Yes.", "Wait."),
    ReasonSpec::bad("MachineBusy", "Somebody else was faster with a machine.", "Yes.", "Wait."),
    UNREACHABLE,
    NOT_TRUSTED,
    CREDENTIALS_REFUSED,
    ACCESS_DENIED,
    BUSY,
    REFUSED,
    FAILED,
];
