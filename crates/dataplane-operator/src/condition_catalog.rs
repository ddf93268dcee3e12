//! Every condition and reason that dataplane-operator writes, as the table in the docs lists them.

use api::dataplane::condition_types::{
    DEPLOYMENT_READY, INPUT_READY, SERVICE_INPUTS_READY, SETUP_READY, UP_TO_DATE,
};
use baremetal::condition_catalog::BAREMETAL_SET;
use operator_core::condition_catalog::{
    ConditionSpec, KindConditions, Repeats, WRITES, condition, summary,
};
use operator_core::host_key_checking;
use operator_core::run_engine::outcome::FailureReason;

use crate::endpoints::decide::ENDPOINTS_READY;
use crate::host::conflicts::shared_keys;
use crate::ignored_annotations;
use crate::reasons::catalog::{CERTIFICATES, ISSUERS};
use crate::reasons::{
    inputs::catalog as inputs, machines::catalog as machine, node_set::catalog as of_set,
    role::catalog as role, service::catalog as service,
};
use crate::role::status::DATA_PLANE_FOUND;
use crate::service::status::{
    AS_SHIPPED, DATA_SOURCE_KEYS_CLASH, DATA_SOURCES_USED, PLAYBOOK_INCLUDED, SPEC_VALID,
};
use crate::spec_warnings::{self, SPEC_WARNINGS};

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
    summary("All of its nodes are ready.", &[role::NODES]),
    condition(
        INPUT_READY,
        "What all of its nodes need is there.",
        &[
            inputs::COMPLETE,
            inputs::SERVICES,
            ISSUERS,
            role::CERTIFICATES,
            inputs::VARIABLES,
            inputs::NETWORKS,
            inputs::SSH,
        ],
    ),
    condition(
        SERVICE_INPUTS_READY,
        "Absent unless the project's runner image lacks the playbook of a service; `InputReady` \
         has all else that services need. `Ready` does not depend on it, for the image may have \
         been extended.",
        &[&[service::NOT_INCLUDED]],
    ),
    condition(
        DEPLOYMENT_READY,
        "All of its nodes are ready; else the message has their count and the first five by name, \
         the worst first.",
        &[role::NODES],
    )
    .repeating(Repeats::Kind("OpenStackDataPlaneNode")),
    condition(
        SETUP_READY,
        "Each of its nodes is in an inventory that runs can begin with.",
        &[role::NODES_SETUP, inputs::MISSING],
    ),
    machines::ROLE,
    condition(
        DATA_PLANE_FOUND,
        "The data plane that `spec.dataPlane` names exists; absent where none is named. `Ready` \
         does not depend on it.",
        &[role::DATA_PLANE],
    ),
    ignored_annotations::CONDITION,
    spec_warnings::CONDITION,
    WRITES,
];

const NODE: &[ConditionSpec] = &[
    summary("Every service succeeded on this host.", &[role::SUMMARY]),
    machines::NODE,
    condition(
        INPUT_READY,
        "Everything that a deployment needs is there.",
        &[
            inputs::COMPLETE,
            role::INPUTS,
            of_set::OF_HOST,
            of_set::RENAMED,
            inputs::HOSTS,
            inputs::SSH,
            inputs::SERVICES,
            CERTIFICATES,
            role::CERTIFICATES,
            inputs::VARIABLES,
            inputs::NETWORKS,
        ],
    ),
    condition(
        SETUP_READY,
        "There is an inventory that runs can begin with.",
        &[role::SETUP, inputs::MISSING],
    ),
    condition(
        DEPLOYMENT_READY,
        "Every service succeeded on this host.",
        &[role::DEPLOYMENT, machine::DEPLOYMENT, of_set::HOST_DEPLOYMENT],
    )
    .repeating(Repeats::Attempts(&FailureReason::ALL)),
    condition(UP_TO_DATE, "The last deployment used the present inputs.", &[role::CHANGES]),
    shared_keys::CONDITION,
    host_key_checking::CONDITION,
    ignored_annotations::CONDITION,
    spec_warnings::CONDITION,
    WRITES,
];

const SERVICE: &[ConditionSpec] = &[
    summary("It can be deployed: everything that it names is there.", &[service::SUMMARY]),
    condition(SPEC_VALID, "It can be deployed as it is written.", &[service::SPEC]),
    condition(
        DATA_SOURCES_USED,
        "Every data source that is not optional exists.",
        &[service::DATA_SOURCES],
    ),
    condition(
        DATA_SOURCE_KEYS_CLASH,
        "Several data sources have one key, and the last one listed is mounted. `Ready` does not \
         depend on it.",
        &[service::KEYS],
    ),
    condition(
        PLAYBOOK_INCLUDED,
        "The project's own collection has the playbook or role. `Ready` does not depend on it, for \
         the runner image may be another one.",
        &[service::PLAYBOOK],
    ),
    condition(
        SPEC_WARNINGS,
        "Something in the spec is without effect, or is to go. `Ready` does not depend on it.",
        &[service::WARNINGS],
    ),
    condition(
        AS_SHIPPED,
        "Never said: the condition is absent unless another client keeps changing a default \
         service. `Ready` does not depend on it.",
        &[service::SHIPPED],
    ),
    condition(
        ENDPOINTS_READY,
        "Its ports are exposed on the addresses of all nodes that get it and were deployed there; \
         absent where it lists no ports.",
        &[service::ENDPOINTS],
    ),
    WRITES,
];
