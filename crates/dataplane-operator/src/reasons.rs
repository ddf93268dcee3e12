//! Every condition that dataplane-operator writes, and every reason, as the docs' table tells them.

use common::conditions::declared::{
    ALREADY_EXISTS, Aspect, FORBIDDEN, HELD, INVALID, Kind, Repeats, WRITES, Word, aspect, summary,
};
use common::engine::outcome::Reason;

use crate::group::status::{
    BAREMETAL_READY, DATA_PLANE_FOUND, DEPLOYMENT_READY, INPUT_READY, UP_TO_DATE,
};

mod data_plane;

/// The kinds and their conditions, in the order in which a human reads them.
pub const KINDS: &[Kind] = &[
    Kind { name: "OpenStackDataPlane", conditions: data_plane::DATA_PLANE },
    Kind { name: "OpenStackDataPlaneRole", conditions: ROLE },
    Kind { name: "OpenStackDataPlaneNode", conditions: NODE },
];

const INPUT_COMPLETE: Word =
    Word::good("InputComplete", "Everything that a deployment needs is there.");
const SERVICE_NOT_FOUND: Word = Word::bad(
    "ServiceNotFound",
    "A listed service does not exist.",
    "When it appears.",
    "Create it, or take it off the role's list.",
);
const DATA_SOURCE_NOT_FOUND: Word = Word::bad(
    "DataSourceNotFound",
    "A ConfigMap or Secret that a service names does not exist.",
    "When it appears.",
    "Create it.",
);
const PARTIAL_RUN: Word = Word::bad(
    "PartialRun",
    "Only a part has run, for tags or a limit are set.",
    "No.",
    "Remove `ansibleTags`, `ansibleSkipTags` and `ansibleLimit`.",
);
const NODES_READY: Word =
    Word::good("NodesReady", "All nodes are ready; a role without nodes is ready too.");

const ROLE: &[Aspect] = &[
    summary("All of its nodes are ready.", &[NODES_READY]),
    aspect(
        INPUT_READY,
        "What all of its nodes need is there.",
        &[INPUT_COMPLETE, SERVICE_NOT_FOUND, DATA_SOURCE_NOT_FOUND],
    ),
    aspect(
        DEPLOYMENT_READY,
        "All of its nodes are ready; else the message has their count and the first five by name, \
         the worst first.",
        &[NODES_READY],
    )
    .repeating(Repeats::Kind("OpenStackDataPlaneNode")),
    aspect(
        DATA_PLANE_FOUND,
        "The data plane that `spec.dataPlane` names exists; absent where none is named. `Ready` does \
         not depend on it.",
        &[
            Word::good("Found", "What node and role leave open is taken from the data plane."),
            Word::bad(
                "DataPlaneNotFound",
                "The data plane does not exist, so nothing is taken from it.",
                "When it appears.",
                "Create it, or correct `spec.dataPlane`.",
            ),
        ],
    ),
    WRITES,
];

const NODE: &[Aspect] = &[
    summary(
        "Every service succeeded on this host.",
        &[Word::good("Ready", "Every service succeeded on this host.")],
    ),
    aspect(
        BAREMETAL_READY,
        "The host is provisioned.",
        &[
            Word::good("NotRequired", "The host is provisioned by others."),
            Word::bad(
                "NotSupported",
                "The role asks for bare metal, which this version does not provision.",
                "No.",
                "Set `preProvisioned: true` on the role.",
            ),
        ],
    ),
    aspect(INPUT_READY, "Everything that a deployment needs is there.", INPUTS),
    aspect(DEPLOYMENT_READY, "Every service succeeded on this host.", DEPLOYMENT)
        .repeating(Repeats::Attempts(&Reason::ALL)),
    aspect(
        UP_TO_DATE,
        "The last deployment used the present inputs.",
        &[
            Word::good("UpToDate", "The last deployment used the present inputs."),
            Word::bad("NeverDeployed", "No deployment has been completed.", "", ""),
            Word::bad(
                "InputsChanged",
                "The named inputs changed since.",
                "With `deploy: true`.",
                "Deploy, if you want the change.",
            ),
            PARTIAL_RUN,
        ],
    ),
];

const INPUTS: &[Word] = &[
    INPUT_COMPLETE,
    Word::bad(
        "ProvisioningNotSupported",
        "The role asks for bare metal, which this version does not provision; nothing is deployed.",
        "No.",
        "Set `preProvisioned: true` on the role.",
    ),
    Word::bad("RoleNotNamed", "`spec.role` is missing.", "No.", "Name the role."),
    Word::bad(
        "RoleNotFound",
        "The role does not exist.",
        "When it appears.",
        "Create it, or correct `spec.role`.",
    ),
    Word::bad(
        "HostAddressMissing",
        "Neither `ansibleHost` nor `hostName` is set.",
        "No.",
        "Set one.",
    ),
    Word::bad(
        "HostAddressInvalid",
        "A variable `ansible_host` or `ansible_port` is no plain address or port.",
        "No.",
        "Set `ansibleHost` and `ansiblePort`.",
    ),
    Word::bad(
        "SshSecretNotNamed",
        "Neither node nor role names an ssh Secret.",
        "No.",
        "Name it in `ansibleSSHPrivateKeySecret`.",
    ),
    Word::bad(
        "SshSecretNotFound",
        "The ssh Secret does not exist.",
        "When it appears.",
        "Create it; the message has the command.",
    ),
    Word::bad(
        "SshSecretIncomplete",
        "The ssh Secret lacks `ssh-privatekey` or `known_hosts`.",
        "When the key appears.",
        "Add the key.",
    ),
    SERVICE_NOT_FOUND,
    DATA_SOURCE_NOT_FOUND,
];

const DEPLOYMENT: &[Word] = &[
    Word::good(
        "Deployed",
        "Every service succeeded on this host; `UpToDate` tells with which inputs.",
    ),
    Word::bad("Deploying", "Services are being deployed; the role names the run.", "Yes.", "Wait."),
    Word::bad("Queued", "The next run waits for another that touches the host.", "Yes.", "Wait."),
    Word::bad(
        "NotRequested",
        "Nothing may run.",
        "No.",
        "Set `deployStrategy.deploy: true` on node, role or data plane.",
    ),
    HELD[0],
    HELD[1],
    Word::bad(
        "LeftOut",
        "`ansibleLimit` leaves the host out, and nothing was deployed to it.",
        "No.",
        "Widen or remove the limit.",
    ),
    Word::bad("InputMissing", "An input is missing.", "When it appears.", "See `InputReady`."),
    PARTIAL_RUN,
    FORBIDDEN,
    INVALID,
    ALREADY_EXISTS,
];
