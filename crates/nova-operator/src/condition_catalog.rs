//! Every condition and reason that nova-operator writes, as the table in the documentation lists
//! them.

use api::conditions::Reason;
use nova_config::conditions::{
    COMPUTE_CONDITION, COMPUTES_UP, COMPUTES_UP_TO_DATE, CONDUCTOR_ANSWERS, CONFIG_CONDITION,
    HOST_DISCOVERED, HOSTS_COMPUTES_UP, HOSTS_REMOVED, INPUT_READY, KEYSTONE_READY,
    MESSAGE_BUS_READY, NODE_CONFIGURATION_IN_SYNC, NODE_DRAINED, NODE_REDEPLOY_REQUESTED,
    NODE_SERVICE_UP, NOVA_API_READY, NOVA_MATCHES, RELEASED, SERVICE_CONFIG_READY,
};
use operator_core::condition_catalog::{
    ConditionSpec, KindConditions, Repeats, WRITES, condition, summary,
};
use operator_core::run_engine::outcome::FailureReason;

use crate::reasons::catalog::{
    NODE_SET_COMPUTES, NOVA_SERVICE, REJECTED_WRITES, RENDERING, ROLE_COMPUTES,
};
use crate::reasons::{
    audit::catalog as audit, cell::catalog as cell, cleanup::catalog as cleanup,
    compute::catalog as of_compute, drain::catalog as drain, node::catalog as node,
    removal::catalog as removal, service::catalog as service,
};

mod compute;

/// The kinds and their conditions, in reading order.
pub const KINDS: &[KindConditions] = &[
    KindConditions { name: "OpenStackDataPlaneNode", conditions: NODE },
    KindConditions { name: "OpenStackDataPlaneRole", conditions: ROLE },
    KindConditions { name: "OpenStackDataPlaneNodeSet", conditions: NODE_SET },
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
        "The node's compute is ready; absent where the node has no cell, and without effect on the \
         node's `Ready`.",
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
];

/// The condition on roles, so that the object that the user wrote also reports its computes.
const ROLE: &[ConditionSpec] = &[condition(
    HOSTS_COMPUTES_UP,
    "nova-compute of every compute of the role's nodes is up; absent where there is none or nova's \
     API is not read, and without effect on the role's `Ready`.",
    &[ROLE_COMPUTES],
)];

/// The same on node sets, and what they request of their hosts.
const NODE_SET: &[ConditionSpec] = &[
    condition(
        HOSTS_COMPUTES_UP,
        "nova-compute of every host is up in a cell of the namespace; absent where the node set \
         lists no service of type nova or nova's API is not read, and without effect on the node \
         set's `Ready`.",
        &[NODE_SET_COMPUTES],
    ),
    condition(
        NODE_DRAINED,
        "Every host that annotation `nova.openstack.org/drain-hosts` names, or that a deployment \
         waits for because of `nova.openstack.org/drain-before`, is drained; absent where there is \
         none and none has to be enabled again, and without effect on the node set's `Ready`.",
        &[drain::NODE_SET, &[of_compute::DRAIN_BEFORE_INVALID]],
    ),
    condition(
        HOSTS_REMOVED,
        "Never said: the condition is there only while hosts that leave the node set are being \
         removed from nova, and says what each waits for; without effect on the node set's \
         `Ready`.",
        HOSTS,
    )
    .repeating(Repeats::Attempts(&FailureReason::ALL)),
    condition(
        NODE_CONFIGURATION_IN_SYNC,
        "Never said: the condition is there only where an annotation requests audits, which hosts \
         of node sets do not have; without effect on the node set's `Ready`.",
        &[audit::NODE_SET],
    ),
];

/// What may hold a host that leaves a node set, in the order of its removal.
const HOSTS: &[&[Reason]] = &[
    removal::NODE_SET,
    &[
        drain::HOST_CONTESTED,
        drain::NOT_READ,
        removal::NEVER_LISTED,
        removal::OTHER_HOST,
        drain::WAITING,
        drain::MIGRATING,
        drain::SERVERS_STUCK,
        drain::DISABLED_BY_NOVA,
        drain::CELL_NOT_ANSWERING,
        drain::NOVA_NOT_ANSWERING,
        drain::OTHER_IDENTITY,
    ],
    cleanup::RUN,
    &[
        removal::WAITING,
        removal::STILL_UP,
        removal::SERVICE_KEPT,
        removal::OTHER_SERVICE,
        removal::PROVIDER_KEPT,
        removal::IN_AGGREGATES,
        removal::READING_MAPPINGS,
        removal::STILL_MAPPED,
        removal::AGENTS_REPORT,
        cleanup::CLEANUP_SKIPPED,
    ],
    cleanup::LEFTOVERS,
    REJECTED_WRITES,
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
        "nova-compute is up on every compute, and on every host of a node set that the cell has; \
         absent where nova's API is not read. `Ready` ignores it.",
        &[ROLE_COMPUTES],
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
