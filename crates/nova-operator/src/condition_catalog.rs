//! Every condition and reason that nova-operator writes, as the table in the documentation lists
//! them.

use nova_config::conditions::{
    ANNOTATIONS_IGNORED, COMPUTE_CONDITION, COMPUTES_UP, COMPUTES_UP_TO_DATE, CONDUCTOR_ANSWERS,
    CONFIG_CONDITION, HOST_DISCOVERED, HOSTS_COMPUTES_UP, INPUT_READY, KEYSTONE_READY,
    MESSAGE_BUS_READY, NODE_CONFIGURATION_IN_SYNC, NODE_DRAINED, NODE_REDEPLOY_REQUESTED,
    NODE_SERVICE_UP, NOVA_API_READY, NOVA_MATCHES, RELEASED, SERVICE_CONFIG_READY,
};
use operator_core::condition_catalog::{
    ConditionSpec, KindConditions, Repeats, WRITES, condition, summary,
};

use crate::reasons::catalog::{COMPUTES, NOVA_SERVICE, REJECTED_WRITES, RENDERING};
use crate::reasons::cell::catalog as cell;
use crate::reasons::node::catalog as node;
use crate::reasons::service::catalog as service;

mod compute;

/// The kinds and their conditions, in reading order.
pub const KINDS: &[KindConditions] = &[
    KindConditions { name: "OpenStackDataPlaneNode", conditions: NODE },
    KindConditions { name: "OpenStackDataPlaneRole", conditions: GROUP },
    KindConditions { name: "OpenStackDataPlaneNodeSet", conditions: GROUP },
    KindConditions { name: "NovaExternalCompute", conditions: compute::CONDITIONS },
    KindConditions { name: "NovaCell", conditions: CELL },
    KindConditions { name: "OpenStackDataPlaneService", conditions: SERVICE },
];

/// The condition on services of type nova: what happens to the files of their data sources.
const SERVICE: &[ConditionSpec] = &[condition(
    CONFIG_CONDITION,
    "Every key of the data sources that users wrote is used by nova-compute or its play; absent on \
     services of other types. `Ready` of the service does not depend on it.",
    &[service::KEYS],
)];

/// The condition on nodes, so that the object that the user wrote also reports phase 1.
const NODE: &[ConditionSpec] = &[
    condition(
        COMPUTE_CONDITION,
        "The node's compute is ready; absent where the node has neither a cell nor a service of type \
         nova, and without effect on the node's `Ready`.",
        &[node::COMPUTE, NOVA_SERVICE, REJECTED_WRITES],
    )
    .repeating(Repeats::Kind("NovaExternalCompute")),
    condition(
        NODE_SERVICE_UP,
        "nova-compute of the node reports to nova, as `ServiceUp` of its compute says; absent \
         where the node has no compute or nova's API is not read, and without effect on the node's \
         `Ready`.",
        &[],
    )
    .repeating(Repeats::Kind("NovaExternalCompute")),
    condition(
        NODE_DRAINED,
        "The host of the node is drained, as `Drained` of its compute says; absent where no drain \
         is requested, and without effect on the node's `Ready`.",
        &[],
    )
    .repeating(Repeats::Kind("NovaExternalCompute")),
    condition(
        NODE_CONFIGURATION_IN_SYNC,
        "The host of the node is as it was deployed, as `ConfigurationInSync` of its compute says; \
         absent where no audits are requested, and without effect on the node's `Ready`.",
        &[],
    )
    .repeating(Repeats::Kind("NovaExternalCompute")),
    condition(
        NODE_REDEPLOY_REQUESTED,
        "dataplane-operator is to deploy all services of the node once more, as \
         `RedeployRequested` of its compute says; absent where no repair after an audit needs \
         that, and without effect on the node's `Ready`.",
        &[],
    )
    .repeating(Repeats::Kind("NovaExternalCompute")),
    IGNORED,
];

/// The condition on whatever has annotations that count for nothing there.
const IGNORED: ConditionSpec = condition(
    ANNOTATIONS_IGNORED,
    "Never said: the condition is there only while annotations of this operator are set on the object \
     that count for nothing there; without effect on `Ready`.",
    &[node::ANNOTATIONS],
);

/// The conditions on roles and node sets, so that the object that the user wrote also reports its
/// computes.
const GROUP: &[ConditionSpec] = &[
    condition(
        HOSTS_COMPUTES_UP,
        "nova-compute of every compute of the nodes is up; absent where there is none or nova's API \
         is not read, and without effect on `Ready`.",
        &[COMPUTES],
    ),
    IGNORED,
];

const CELL: &[ConditionSpec] = &[
    summary("The cell can be used by computes.", &[cell::SUMMARY]),
    condition(INPUT_READY, "Both Secrets are there and complete.", &[cell::INPUTS]),
    condition(
        MESSAGE_BUS_READY,
        "Every broker of `transport_url` accepts the login.",
        &[cell::MESSAGE_BUS],
    ),
    condition(KEYSTONE_READY, "Keystone answers at `spec.keystoneAuthURL`.", &[cell::KEYSTONE]),
    condition(
        SERVICE_CONFIG_READY,
        "The files that computes of the cell share are rendered, for deployments by node sets; \
         `Ready` ignores it.",
        &[cell::CONFIG, RENDERING],
    ),
    condition(
        COMPUTES_UP_TO_DATE,
        "Every compute was last deployed with the cell's present credentials; `Ready` ignores it.",
        &[cell::COMPUTES],
    ),
    condition(
        NOVA_API_READY,
        "Nova's API answers; absent where it is not read. `Ready` ignores it.",
        &[cell::NOVA_API],
    ),
    condition(
        COMPUTES_UP,
        "nova-compute is up on every compute; absent where nova's API is not read. `Ready` ignores \
         it.",
        &[COMPUTES],
    ),
    condition(
        HOST_DISCOVERED,
        "Nova has mapped the hosts of the cell; absent where annotation \
         `nova.openstack.org/host-discovery` leaves that to others, or nova's API is not read. \
         `Ready` ignores it.",
        &[cell::DISCOVERY],
    ),
    condition(
        NOVA_MATCHES,
        "Never said: the condition is there only while nova has hosts of computes under other \
         identities than those that were recorded when they registered; `Ready` ignores it.",
        &[cell::IDENTITIES],
    ),
    condition(
        CONDUCTOR_ANSWERS,
        "Never said: the condition is there only while a compute got no answer; `Ready` ignores \
         it.",
        &[cell::CONDUCTOR],
    ),
    condition(
        RELEASED,
        "Never said: the condition is there only while the cell is being deleted and held, by its \
         computes, by servers on its hosts or by what is left of hosts in nova.",
        &[cell::RELEASE],
    ),
    WRITES,
];
