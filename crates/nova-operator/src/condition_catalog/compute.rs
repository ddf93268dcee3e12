//! The conditions of a compute and their reasons.

use api::conditions::ConditionStatus;
use nova_config::conditions::{
    CELL_MATCHES, CONFIG_WARNINGS, DEPLOYMENT_READY, HOST_CLEANED, INPUT_READY, NODE_READY,
    NOVA_CELL_READY, SERVICE_CONFIG_READY, UP_TO_DATE,
};
use operator_core::condition_catalog::{
    self, ALREADY_EXISTS, ConditionSpec, FORBIDDEN, INVALID, ReasonSpec, Repeats, WRITES,
    condition, summary,
};
use operator_core::run_engine::outcome::FailureReason;

use crate::condition_catalog::shared::{NOT_RENDERED, SECRET_NOT_OURS, SERVICE_LISTED};

/// All conditions of a compute, in reading order.
pub(super) const CONDITIONS: &[ConditionSpec] = &[
    summary(
        "nova-compute runs on the host and has registered in its cell.",
        &[ReasonSpec::good(
            "Ready",
            "nova-compute runs on the host and has registered in its cell.",
        )],
    ),
    condition(INPUT_READY, "Everything that the configuration and the runs need is there.", INPUTS),
    condition(NODE_READY, "The node can be used.", NODE),
    condition(NOVA_CELL_READY, "The cell can be used.", CELL),
    condition(SERVICE_CONFIG_READY, "The files of nova-compute are rendered.", SERVICE_CONFIG),
    condition(
        CONFIG_WARNINGS,
        "Something in the options that humans wrote is surprising; `Ready` ignores it.",
        &[
            ReasonSpec {
                reason: "Surprising",
                status: ConditionStatus::True,
                meaning: "Options, in `customServiceConfig` or in the role's default \
                          configuration, that nova does not know, refuses or deprecates, or that \
                          the operator sets itself; the message has line and column.",
                heals: "",
                step: "Look whether it is meant.",
            },
            ReasonSpec {
                reason: "ReleaseUnknown",
                status: ConditionStatus::True,
                meaning: "The annotation `nova.openstack.org/release` of the `NovaCell` names a \
                          release whose options are not known here, so options are not judged.",
                heals: "",
                step: "Name one that the message lists, or none.",
            },
            ReasonSpec::bad("NoWarnings", "Nothing is surprising.", "", ""),
        ],
    ),
    condition(DEPLOYMENT_READY, "libvirt and nova-compute are deployed on this host.", DEPLOYMENT)
        .repeating(Repeats::Attempts(&FailureReason::ALL)),
    condition(
        UP_TO_DATE,
        "The last deployment used the present inputs.",
        &[
            condition_catalog::UP_TO_DATE,
            condition_catalog::NEVER_DEPLOYED,
            condition_catalog::INPUTS_CHANGED,
            ReasonSpec::bad(
                "InputMissing",
                "Inputs are missing, so it cannot be told.",
                "Yes.",
                "See `InputReady`.",
            )
            .unknown(),
        ],
    ),
    condition(
        CELL_MATCHES,
        "The node asks for no other cell; `Ready` ignores it.",
        &[
            ReasonSpec::good("CellMatches", "The node asks for no other cell."),
            ReasonSpec::bad(
                "CellMismatch",
                "The node asks for another cell, or for none; everything but the cell follows it.",
                "No.",
                "Set the annotation back, or let the compute go; the message has the command.",
            ),
            ReasonSpec::bad(
                "RoleNotFound",
                "The role that would name the cell does not exist.",
                "When it appears.",
                "Create it again, or correct `spec.role` of the node.",
            )
            .unknown(),
        ],
    ),
    WRITES,
    condition(
        HOST_CLEANED,
        "nova-compute is stopped and disabled on the host; said only of a compute that is being \
         deleted.",
        HOST,
    )
    .repeating(Repeats::Attempts(&FailureReason::ALL)),
];

const HOST: &[ReasonSpec] = &[
    ReasonSpec::good(
        "HostCleaned",
        "nova-compute is stopped; the message tells what nova still has.",
    ),
    ReasonSpec::bad("CleaningHost", "nova-compute is being stopped.", "Yes.", "Wait."),
    ReasonSpec::bad("Queued", "The run waits for another that touches the host.", "Yes.", "Wait."),
    ReasonSpec::bad(
        "RunnerLost",
        "The run's worker does not answer, so nobody knows whether it still works on the host.",
        "When the worker is back.",
        "If the machine is off for good, the command in the message; or go on without the host.",
    ),
    ReasonSpec::bad(
        "Unschedulable",
        "No worker takes the run's pod.",
        "When one does.",
        "Make room; or go on without the host, with the command in the message.",
    ),
    ReasonSpec::bad(
        "JobRefused",
        "The API server does not take the run's Job.",
        "Yes.",
        "As the message says; or go on without the host, with the command there.",
    ),
    ReasonSpec::bad(
        "InvalidSpec",
        "The run cannot be made of the compute's spec; the message has the field.",
        "No.",
        "Go on without the host, with the command in the message.",
    ),
    ReasonSpec::bad(
        "HostNotCleaned",
        "Three attempts failed, or the host cannot be reached any more; the compute goes.",
        "No.",
        "Stop nova-compute on the host, then remove nova's records; the message has the commands.",
    ),
    ReasonSpec::bad(
        "CleanupSkipped",
        "The annotation `nova.openstack.org/skip-cleanup` says that the host is left as it is.",
        "No.",
        "Stop nova-compute on the host if it still runs, then remove nova's records.",
    ),
    FORBIDDEN,
    INVALID,
    ALREADY_EXISTS,
];

const INPUTS: &[ReasonSpec] = &[
    ReasonSpec::bad(
        "RoleNotFound",
        "The node's role does not exist, so what it gives to the compute is not known; a deployed \
         compute stays as it is.",
        "When it appears.",
        "Create it again, or correct `spec.role` of the node.",
    ),
    SERVICE_LISTED,
    ReasonSpec::good(
        "InputComplete",
        "Everything that the configuration and the runs need is there.",
    ),
    ReasonSpec::bad(
        "Waiting",
        "The inputs are known once node and cell exist.",
        "Yes.",
        "See `NodeReady` and `NovaCellReady`.",
    )
    .unknown(),
    ReasonSpec::bad(
        "InventoryNotPublished",
        "The node has not said yet how the host is reached.",
        "Yes.",
        "See the node's conditions.",
    ),
    ReasonSpec::bad(
        "InventoryNotNamed",
        "The compute was made by a human for a node without a cell, so nothing fills in how the host \
         is reached.",
        "No.",
        "Set the two fields to the values in the message, or annotate the node with its cell.",
    ),
    ReasonSpec::bad(
        "InventoryNotFound",
        "The ConfigMap of `inventoryConfigMapName` does not exist.",
        "When it appears.",
        "Create it, or name the one that the node publishes.",
    ),
    ReasonSpec::bad(
        "InventoryIncomplete",
        "That ConfigMap has no key `inventory`.",
        "When the key appears.",
        "Add the key, or name the ConfigMap that the node publishes.",
    ),
    ReasonSpec::bad(
        "SecretNotFound",
        "A Secret that the `NovaCell` names does not exist.",
        "When it appears.",
        "Create it.",
    ),
    ReasonSpec::bad(
        "SecretIncomplete",
        "That Secret lacks a key, or a value cannot be used.",
        "When it is corrected.",
        "Correct it; the message names the key.",
    ),
    ReasonSpec::bad(
        "SshSecretNotFound",
        "The ssh Secret does not exist.",
        "When it appears.",
        "Create it.",
    ),
    ReasonSpec::bad(
        "SshSecretIncomplete",
        "The ssh Secret lacks `ssh-privatekey`.",
        "When the key appears.",
        "Add the key.",
    ),
    ReasonSpec::bad(
        "DefaultConfigNotFound",
        "The ConfigMap of the role's annotation `nova.openstack.org/default-config` does not exist.",
        "When it appears.",
        "Create it, or remove the annotation.",
    ),
    ReasonSpec::bad(
        "DefaultConfigInvalid",
        "That ConfigMap has neither a key `02-nova-default.conf` nor a single key.",
        "When it is corrected.",
        "Correct it.",
    ),
    ReasonSpec::bad(
        "ImagesNotFilled",
        "The operator is filling in its default images.",
        "Yes, where the compute has its node's name.",
        "Wait, or set the fields to the images in the message.",
    ),
    ReasonSpec::bad(
        "ImageNotSet",
        "An image is unset and the operator has no default.",
        "No.",
        "Set it in the spec, or in the chart for new computes.",
    ),
    ReasonSpec::bad(
        "HostNameChanged",
        "The node's host name is not the one under which the compute has registered.",
        "No.",
        "Set it back, or delete the compute.",
    ),
];

const NODE: &[ReasonSpec] = &[
    ReasonSpec::good("NodeReady", "The node can be used."),
    ReasonSpec::bad(
        "NodeNotReady",
        "The node is not ready yet.",
        "Yes.",
        "See the node's conditions.",
    ),
    ReasonSpec::bad("NodeNotFound", "The node does not exist.", "When it appears.", "Create it."),
    ReasonSpec::bad(
        "NodeTerminating",
        "The node is being deleted; the compute goes with it.",
        "",
        "",
    ),
];

const CELL: &[ReasonSpec] = &[
    ReasonSpec::good("NovaCellReady", "The cell can be used."),
    ReasonSpec::bad(
        "NovaCellNotReady",
        "The cell is not ready; the message repeats why.",
        "When the cell is.",
        "See the `NovaCell`.",
    ),
    ReasonSpec::bad(
        "NovaCellNotFound",
        "The cell does not exist.",
        "When it appears.",
        "Create it, or correct the annotation.",
    ),
    ReasonSpec::bad(
        "NovaCellUnknown",
        "The cell has not been looked at yet.",
        "Yes.",
        "Wait; with a foreign control plane, see its operator.",
    ),
];

const SERVICE_CONFIG: &[ReasonSpec] = &[
    ReasonSpec::good("Rendered", "The files are in the named Secret."),
    SECRET_NOT_OURS,
    NOT_RENDERED,
    ReasonSpec::bad(
        "InvalidConfig",
        "`customServiceConfig` cannot be read, or a file of `defaultConfigOverwrite` has a name that is \
         taken; the message has line and column, or the name.",
        "No.",
        "Correct it.",
    ),
    ReasonSpec::bad(
        "InvalidDefaultConfig",
        "The role's default configuration cannot be read; the message has line and column.",
        "No.",
        "Correct the ConfigMap.",
    ),
];

const DEPLOYMENT: &[ReasonSpec] = &[
    ReasonSpec::good(
        "Deployed",
        "They run, and the compute has registered; `UpToDate` tells the rest.",
    ),
    ReasonSpec::bad("Deploying", "They are being deployed.", "Yes.", "Wait."),
    condition_catalog::QUEUED,
    condition_catalog::NOT_REQUESTED,
    ReasonSpec::bad(
        "WaitingForTurn",
        "As many computes of the role that were in service as `maxUnavailable` allows are being \
         deployed or fail.",
        "When one of them is in service again.",
        "Wait; where computes that fail are named, correct their cause, raise `maxUnavailable`, or set \
         `deploy: false` on their nodes.",
    ),
    ReasonSpec::bad(
        "Paused",
        "`pauseOnFailure` is set, and the named compute of the role fails.",
        "When no compute of the role fails.",
        "Correct its cause, or set `pauseOnFailure: false` on the role.",
    ),
    ReasonSpec::bad(
        "Waiting",
        "It waits; the other conditions tell for what.",
        "Yes.",
        "See the others.",
    ),
];
