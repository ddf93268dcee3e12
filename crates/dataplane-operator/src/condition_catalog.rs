//! Every condition and reason that dataplane-operator writes, as the table in the docs lists them.

use api::conditions::Reason;
use api::dataplane::condition_types::{
    DEPLOYMENT_READY, INPUT_READY, SERVICE_INPUTS_READY, SETUP_READY, UP_TO_DATE,
};
use baremetal::condition_catalog::BAREMETAL_SET;
use operator_core::condition_catalog::{
    ConditionSpec, KindConditions, Repeats, WRITES, condition, summary,
};
use operator_core::run_engine::host_key_checking;
use operator_core::run_engine::outcome::FailureReason;

use crate::endpoints::decide::ENDPOINTS_READY;
use crate::host::conflicts::shared_keys;
use crate::reasons;
use crate::role::status::DATA_PLANE_FOUND;
use crate::service::status::{
    AS_SHIPPED, DATA_SOURCE_KEYS_CLASH, DATA_SOURCES_USED, PLAYBOOK_INCLUDED, SPEC_VALID,
    SPEC_WARNINGS,
};

mod data_plane;
mod deployment;
mod external;
mod machines;
mod node_set;
mod readiness_gates;

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

const ROLE: &[ConditionSpec] = &[
    summary("All of its nodes are ready.", &[reasons::role::NODES_READY]),
    condition(
        INPUT_READY,
        "What all of its nodes need is there.",
        &[
            reasons::inputs::INPUT_COMPLETE,
            reasons::inputs::SERVICE_NOT_FOUND,
            reasons::inputs::SERVICE_UNREADABLE,
            reasons::inputs::SERVICE_INVALID,
            reasons::inputs::DATA_SOURCE_NOT_FOUND,
            reasons::inputs::DATA_SOURCE_INCOMPLETE,
            reasons::CERT_MANAGER_NOT_FOUND,
            reasons::ISSUER_NOT_FOUND,
            reasons::ISSUER_NOT_PERMITTED,
            reasons::role::CERTIFICATES_NOT_BROUGHT,
            reasons::inputs::VARIABLES_NOT_FOUND,
            reasons::inputs::VARIABLES_INVALID,
            reasons::inputs::NETWORK_ATTACHMENT_NOT_FOUND,
            reasons::inputs::NETWORK_ATTACHMENTS_NOT_SERVED,
            reasons::inputs::SSH_SECRET_NOT_FOUND,
            reasons::inputs::SSH_SECRET_INCOMPLETE,
            reasons::inputs::SSH_SECRET_INVALID,
        ],
    ),
    condition(
        SERVICE_INPUTS_READY,
        "Absent unless the project's runner image lacks the playbook of a service; `InputReady` has \
         all else that services need. `Ready` does not depend on it, for the image may have been \
         extended.",
        &[reasons::service::NOT_INCLUDED],
    ),
    condition(
        DEPLOYMENT_READY,
        "All of its nodes are ready; else the message has their count and the first five by name, \
         the worst first.",
        &[reasons::role::NODES_READY],
    )
    .repeating(Repeats::Kind("OpenStackDataPlaneNode")),
    condition(
        SETUP_READY,
        "Each of its nodes is in an inventory that runs can begin with.",
        &[reasons::role::NODES_SET_UP, reasons::inputs::INPUT_MISSING],
    ),
    machines::ROLE,
    condition(
        DATA_PLANE_FOUND,
        "The data plane that `spec.dataPlane` names exists; absent where none is named. `Ready` does \
         not depend on it.",
        &[reasons::role::FOUND, reasons::role::DATA_PLANE_NOT_FOUND],
    ),
    WRITES,
];

const NODE: &[ConditionSpec] = &[
    summary("Every service succeeded on this host.", &[reasons::role::READY]),
    machines::NODE,
    condition(INPUT_READY, "Everything that a deployment needs is there.", INPUTS),
    condition(
        SETUP_READY,
        "There is an inventory that runs can begin with.",
        &[reasons::role::SET_UP, reasons::inputs::INPUT_MISSING],
    ),
    condition(DEPLOYMENT_READY, "Every service succeeded on this host.", DEPLOYMENT)
        .repeating(Repeats::Attempts(&FailureReason::ALL)),
    condition(
        UP_TO_DATE,
        "The last deployment used the present inputs.",
        &[
            reasons::UP_TO_DATE,
            reasons::NEVER_DEPLOYED,
            reasons::INPUTS_CHANGED,
            reasons::role::PARTIAL_RUN,
            reasons::role::INPUT_UNKNOWN,
            reasons::role::ROLE_UNKNOWN,
        ],
    ),
    shared_keys::CONDITION,
    host_key_checking::CONDITION,
    WRITES,
];

const SERVICE: &[ConditionSpec] = &[
    summary("It can be deployed: everything that it names is there.", &[reasons::service::READY]),
    condition(
        SPEC_VALID,
        "It can be deployed as it is written.",
        &[reasons::service::VALID, reasons::service::INVALID_SPEC],
    ),
    condition(
        DATA_SOURCES_USED,
        "Every data source that is not optional exists.",
        &[
            reasons::service::ALL_FOUND,
            reasons::inputs::DATA_SOURCE_NOT_FOUND,
            reasons::service::NOT_USED,
        ],
    ),
    condition(
        DATA_SOURCE_KEYS_CLASH,
        "Several data sources have one key, and the last one listed is mounted. `Ready` does not \
         depend on it.",
        &[reasons::service::KEYS_CLASH, reasons::service::KEYS_DIFFER],
    ),
    condition(
        PLAYBOOK_INCLUDED,
        "The project's own collection has the playbook or role. `Ready` does not depend on it, for \
         the runner image may be another one.",
        &[
            reasons::service::INCLUDED,
            reasons::service::IN_SERVICE,
            reasons::service::NOT_INCLUDED,
            reasons::service::NOT_KNOWN,
        ],
    ),
    condition(
        SPEC_WARNINGS,
        "Something in the spec is without effect, or is to go. `Ready` does not depend on it.",
        &[reasons::service::WITHOUT_EFFECT, reasons::service::NO_WARNINGS],
    ),
    condition(
        AS_SHIPPED,
        "Never said: the condition is absent unless another client keeps changing a default service. \
         `Ready` does not depend on it.",
        &[reasons::service::CONTESTED],
    ),
    condition(
        ENDPOINTS_READY,
        "Its ports are exposed on the addresses of all nodes that get it and were deployed there; \
         absent where it lists no ports.",
        &[
            reasons::service::EXPOSED,
            reasons::service::ADDRESS_MISSING,
            reasons::service::ADDRESS_NOT_ALLOWED,
            reasons::service::NAME_TAKEN,
        ],
    ),
    WRITES,
];

const INPUTS: &[Reason] = &[
    reasons::inputs::INPUT_COMPLETE,
    reasons::role::ROLE_NOT_NAMED,
    reasons::role::ROLE_NOT_FOUND,
    reasons::role::HOST_ADDRESS_MISSING,
    reasons::role::HOST_NAME_DIFFERS,
    reasons::inputs::HOST_ADDRESS_INVALID,
    reasons::inputs::HOST_TAKEN,
    reasons::inputs::HOST_KEY_SHARED,
    reasons::role::SSH_SECRET_NOT_NAMED,
    reasons::inputs::SSH_SECRET_NOT_FOUND,
    reasons::inputs::SSH_SECRET_INCOMPLETE,
    reasons::inputs::SSH_SECRET_INVALID,
    reasons::inputs::SERVICE_NOT_FOUND,
    reasons::inputs::SERVICE_UNREADABLE,
    reasons::inputs::SERVICE_INVALID,
    reasons::inputs::DATA_SOURCE_NOT_FOUND,
    reasons::inputs::DATA_SOURCE_INCOMPLETE,
    reasons::ISSUING,
    reasons::CERT_MANAGER_NOT_FOUND,
    reasons::ISSUER_NOT_FOUND,
    reasons::ISSUER_NOT_PERMITTED,
    reasons::role::CERTIFICATES_NOT_BROUGHT,
    reasons::inputs::VARIABLES_NOT_FOUND,
    reasons::inputs::VARIABLES_INVALID,
    reasons::inputs::NETWORK_ATTACHMENT_NOT_FOUND,
    reasons::inputs::NETWORK_ATTACHMENTS_NOT_SERVED,
    reasons::role::NETWORK_ATTACHMENTS_DIFFER,
];

const DEPLOYMENT: &[Reason] = &[
    reasons::role::DEPLOYED,
    reasons::role::DEPLOYING,
    reasons::QUEUED,
    reasons::RUN_BLOCKED,
    reasons::NOT_REQUESTED,
    reasons::WAITING_FOR_TURN,
    reasons::PAUSED,
    reasons::role::LEFT_OUT,
    reasons::inputs::INPUT_MISSING,
    reasons::machines::MACHINE_NOT_READY,
    reasons::role::PARTIAL_RUN,
    reasons::FORBIDDEN,
    reasons::INVALID,
    reasons::ALREADY_EXISTS,
];
