//! Every condition and reason that dataplane-operator writes, as the table in the docs lists them.

use api::conditions::ConditionStatus;
use api::dataplane::condition_types::{DEPLOYMENT_READY, INPUT_READY, SETUP_READY, UP_TO_DATE};
use baremetal::condition_catalog::BAREMETAL_SET;
use operator_core::condition_catalog::{
    self, ALREADY_EXISTS, ConditionSpec, FORBIDDEN, HELD, INVALID, KindConditions, ReasonSpec,
    Repeats, WRITES, condition, summary,
};
use operator_core::run_engine::host_key_checking;
use operator_core::run_engine::outcome::FailureReason;

use crate::condition_catalog::inputs::{
    DATA_SOURCE_NOT_FOUND, HOST_ADDRESS_INVALID, HOST_TAKEN, INPUT_COMPLETE, KEY_SHARED,
    KEY_UNIQUE, NETWORK_NOT_FOUND, NETWORKS_NOT_SERVED, SERVICE_INVALID, SERVICE_NOT_FOUND,
    SERVICE_UNREADABLE, SSH_SECRET_INCOMPLETE, SSH_SECRET_NOT_FOUND, VARIABLES_INVALID,
    VARIABLES_NOT_FOUND,
};
use crate::endpoints::decide::ENDPOINTS_READY;
use crate::role::status::DATA_PLANE_FOUND;
use crate::service::status::{
    DATA_SOURCE_KEYS_CLASH, DATA_SOURCES_USED, PLAYBOOK_INCLUDED, SPEC_VALID, SPEC_WARNINGS,
};

mod data_plane;
mod deployment;
mod inputs;
mod machines;
mod node_set;
mod others;

/// The kinds and their conditions, in the order in which the docs list them.
pub const KINDS: &[KindConditions] = &[
    KindConditions { name: "OpenStackDataPlane", conditions: data_plane::DATA_PLANE },
    KindConditions { name: "OpenStackDataPlaneRole", conditions: ROLE },
    KindConditions { name: "OpenStackDataPlaneNode", conditions: NODE },
    KindConditions { name: "OpenStackDataPlaneNodeSet", conditions: node_set::NODE_SET },
    KindConditions { name: "OpenStackDataPlaneService", conditions: SERVICE },
    KindConditions { name: "OpenStackDataPlaneDeployment", conditions: deployment::DEPLOYMENT },
    KindConditions { name: "OpenStackBaremetalSet", conditions: BAREMETAL_SET },
];

const PARTIAL_RUN: ReasonSpec = ReasonSpec::bad(
    "PartialRun",
    "Only a part has run, for tags or a limit are set.",
    "No.",
    "Remove `ansibleTags`, `ansibleSkipTags` and `ansibleLimit`.",
);
const NODES_READY: ReasonSpec =
    ReasonSpec::good("NodesReady", "All nodes are ready; a role without nodes is ready too.");

const SETUP_INPUT_MISSING: ReasonSpec = ReasonSpec::bad(
    "InputMissing",
    "An input is missing.",
    "When it appears.",
    "See `InputReady`.",
);

const ROLE: &[ConditionSpec] = &[
    summary("All of its nodes are ready.", &[NODES_READY]),
    condition(
        INPUT_READY,
        "What all of its nodes need is there.",
        &[
            INPUT_COMPLETE,
            SERVICE_NOT_FOUND,
            SERVICE_UNREADABLE,
            SERVICE_INVALID,
            DATA_SOURCE_NOT_FOUND,
            VARIABLES_NOT_FOUND,
            VARIABLES_INVALID,
            NETWORK_NOT_FOUND,
            NETWORKS_NOT_SERVED,
        ],
    ),
    condition(
        DEPLOYMENT_READY,
        "All of its nodes are ready; else the message has their count and the first five by name, \
         the worst first.",
        &[NODES_READY],
    )
    .repeating(Repeats::Kind("OpenStackDataPlaneNode")),
    condition(
        SETUP_READY,
        "Each of its nodes is in an inventory that runs can begin with.",
        &[ReasonSpec::good("Ready", "Every node is in an inventory."), SETUP_INPUT_MISSING],
    ),
    machines::ROLE,
    condition(
        DATA_PLANE_FOUND,
        "The data plane that `spec.dataPlane` names exists; absent where none is named. `Ready` does \
         not depend on it.",
        &[
            ReasonSpec::good(
                "Found",
                "What node and role leave open is taken from the data plane.",
            ),
            ReasonSpec::bad(
                "DataPlaneNotFound",
                "The data plane does not exist, so nothing is taken from it.",
                "When it appears.",
                "Create it, or correct `spec.dataPlane`.",
            ),
        ],
    ),
    WRITES,
];

const NODE: &[ConditionSpec] = &[
    summary(
        "Every service succeeded on this host.",
        &[ReasonSpec::good("Ready", "Every service succeeded on this host.")],
    ),
    machines::NODE,
    condition(INPUT_READY, "Everything that a deployment needs is there.", INPUTS),
    condition(
        SETUP_READY,
        "There is an inventory that runs can begin with.",
        &[ReasonSpec::good("Ready", "The inventory is written."), SETUP_INPUT_MISSING],
    ),
    condition(DEPLOYMENT_READY, "Every service succeeded on this host.", DEPLOYMENT)
        .repeating(Repeats::Attempts(&FailureReason::ALL)),
    condition(
        UP_TO_DATE,
        "The last deployment used the present inputs.",
        &[
            condition_catalog::UP_TO_DATE,
            condition_catalog::NEVER_DEPLOYED,
            condition_catalog::INPUTS_CHANGED,
            PARTIAL_RUN,
            ReasonSpec::bad(
                "InputMissing",
                "Variables or a service are missing, so it cannot be told.",
                "When they appear.",
                "See `InputReady`.",
            )
            .unknown(),
            ReasonSpec::bad(
                "RoleUnknown",
                "The host has no role any more, and what it is to have is not known.",
                "When its role appears.",
                "Create it again, or correct `spec.role`.",
            )
            .unknown(),
        ],
    ),
    KEY_UNIQUE,
    host_key_checking::CONDITION,
    WRITES,
];

const SERVICE: &[ConditionSpec] = &[
    summary(
        "It can be deployed: everything that it names is there.",
        &[ReasonSpec::good("Ready", "Everything that the service names is there.")],
    ),
    condition(
        SPEC_VALID,
        "It can be deployed as it is written.",
        &[
            ReasonSpec::good("Valid", "It can be deployed as it is written."),
            ReasonSpec::bad(
                "InvalidSpec",
                "A field cannot be as it is; the message has its path and the legal way.",
                "When it is corrected.",
                "Correct the field.",
            ),
        ],
    ),
    condition(
        DATA_SOURCES_USED,
        "Every data source that is not optional exists.",
        &[
            ReasonSpec::good("AllFound", "The message names the data sources that are mounted."),
            DATA_SOURCE_NOT_FOUND,
        ],
    ),
    condition(
        DATA_SOURCE_KEYS_CLASH,
        "Several data sources have one key, and the last one listed is mounted. `Ready` does not \
         depend on it.",
        &[
            ReasonSpec {
                reason: "KeysClash",
                status: ConditionStatus::True,
                meaning: "The message names the keys, and whose is mounted.",
                heals: "When the keys differ.",
                step: "Rename keys, or take a data source off the list.",
            },
            ReasonSpec::bad("KeysDiffer", "No two data sources have a key in common.", "", ""),
        ],
    ),
    condition(
        PLAYBOOK_INCLUDED,
        "The project's own collection has the playbook or role. `Ready` does not depend on it, for \
         the runner image may be another one.",
        &[
            ReasonSpec::good("Included", "The project's runner image can run it."),
            ReasonSpec::good("InService", "The service has its playbook in itself."),
            ReasonSpec::bad(
                "NotIncluded",
                "The project's runner image cannot run it.",
                "No.",
                "Have a runner image that has it, by the chart's value `relatedImages.ansibleEERunner` \
                 or the service's `openStackAnsibleEERunnerImage`.",
            ),
            ReasonSpec::bad(
                "NotKnown",
                "Playbook or image are not the project's, so only that image can tell.",
                "",
                "",
            )
            .unknown(),
        ],
    ),
    condition(
        SPEC_WARNINGS,
        "Something in the spec is without effect, or is to go. `Ready` does not depend on it.",
        &[
            ReasonSpec {
                reason: "WithoutEffect",
                status: ConditionStatus::True,
                meaning: "The message has the path of each field, and what to write instead.",
                heals: "When it is corrected.",
                step: "Write it differently, or take it out.",
            },
            ReasonSpec::bad("NoWarnings", "Everything in the spec has its effect.", "", ""),
        ],
    ),
    condition(
        ENDPOINTS_READY,
        "Its ports are exposed on the addresses of all nodes that get it and were deployed there; \
         absent where it lists no ports.",
        &[
            ReasonSpec::good(
                "Exposed",
                "The ports are exposed on the addresses of all nodes that were deployed there; \
                 those that were not yet are named, and follow.",
            ),
            ReasonSpec::bad(
                "AddressMissing",
                "Nodes whose address is no IP address, or not known yet, are left out.",
                "When the address is known.",
                "Set `ansibleHost` of the named nodes to an IP address.",
            ),
            ReasonSpec::bad(
                "AddressNotAllowed",
                "Nodes whose address is in none of the chart's `dataplane.serviceNetworks` are left out.",
                "When the list or the address changes.",
                "Ask the administrator to add the network of the hosts to the list.",
            ),
            ReasonSpec::bad(
                "NameTaken",
                "A Kubernetes Service or EndpointSlice of the name exists and belongs to others.",
                "Within a minute of its end.",
                "Delete it, or name the port differently.",
            ),
        ],
    ),
    WRITES,
];

const INPUTS: &[ReasonSpec] = &[
    INPUT_COMPLETE,
    ReasonSpec::bad(
        "RoleNotNamed",
        "Neither `spec.role` nor `spec.services` is set.",
        "No.",
        "Name the role, or list services.",
    ),
    ReasonSpec::bad(
        "RoleNotFound",
        "The role does not exist.",
        "When it appears.",
        "Create it, or correct `spec.role`.",
    ),
    ReasonSpec::bad(
        "HostAddressMissing",
        "Neither `ansibleHost` nor `hostName` is set.",
        "No.",
        "Set one.",
    ),
    HOST_ADDRESS_INVALID,
    HOST_TAKEN,
    KEY_SHARED,
    ReasonSpec::bad(
        "SshSecretNotNamed",
        "Neither node nor role names an ssh Secret.",
        "No.",
        "Name it in `ansibleSSHPrivateKeySecret`.",
    ),
    SSH_SECRET_NOT_FOUND,
    SSH_SECRET_INCOMPLETE,
    SERVICE_NOT_FOUND,
    SERVICE_UNREADABLE,
    SERVICE_INVALID,
    DATA_SOURCE_NOT_FOUND,
    VARIABLES_NOT_FOUND,
    VARIABLES_INVALID,
    NETWORK_NOT_FOUND,
    NETWORKS_NOT_SERVED,
    ReasonSpec::bad(
        "NetworkAttachmentsDiffer",
        "The node's `networkAttachments` are not its role's, or another node's where the role has \
         none.",
        "No.",
        "Make the lists equal, or empty the node's.",
    ),
];

const DEPLOYMENT: &[ReasonSpec] = &[
    ReasonSpec::good(
        "Deployed",
        "Every service succeeded on this host; `UpToDate` tells with which inputs.",
    ),
    ReasonSpec::bad(
        "Deploying",
        "Services are being deployed; the role names the run.",
        "Yes.",
        "Wait.",
    ),
    condition_catalog::QUEUED,
    condition_catalog::NOT_REQUESTED,
    HELD[0],
    HELD[1],
    ReasonSpec::bad(
        "LeftOut",
        "`ansibleLimit` leaves the host out, and nothing was deployed to it.",
        "No.",
        "Widen or remove the limit.",
    ),
    ReasonSpec::bad(
        "InputMissing",
        "An input is missing.",
        "When it appears.",
        "See `InputReady`.",
    ),
    machines::MACHINE_NOT_READY,
    PARTIAL_RUN,
    FORBIDDEN,
    INVALID,
    ALREADY_EXISTS,
];
