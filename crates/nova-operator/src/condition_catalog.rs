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

use crate::reasons;

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
    &[reasons::service::KEYS_USED, reasons::service::KEY_IGNORED, reasons::service::KEY_OVERRULED],
)];

/// The condition on nodes, so that the object that the user wrote also reports phase 1.
const NODE: &[ConditionSpec] = &[condition(
    COMPUTE_CONDITION,
    "The node's compute is ready; absent where the node has no cell, and without effect on the \
     node's `Ready`.",
    &[
        reasons::node::READY,
        reasons::node::DEPLOYING,
        reasons::node::CELL_MISMATCH,
        reasons::node::CELL_ZERO,
        reasons::node::CELL_NAME_INVALID,
        reasons::node::COMPUTE_DIFFERS,
        reasons::node::COMPUTE_NOT_OURS,
        reasons::node::COMPUTE_TERMINATING,
        reasons::node::LEFT_IN_NOVA,
        reasons::node::ROLE_NOT_FOUND,
        reasons::NOVA_SERVICE_LISTED,
        reasons::FORBIDDEN,
        reasons::INVALID,
        reasons::ALREADY_EXISTS,
    ],
)
.repeating(Repeats::Kind("NovaExternalCompute")), condition(
    NODE_SERVICE_UP,
    "nova-compute of the node reports to nova, as `ServiceUp` of its compute says; absent where the \
     node has no compute or nova's API is not read, and without effect on the node's `Ready`.",
    &[],
)
.repeating(Repeats::Kind("NovaExternalCompute")), condition(
    NODE_DRAINED,
    "The host of the node is drained, as `Drained` of its compute says; absent where no drain is \
     requested, and without effect on the node's `Ready`.",
    &[],
)
.repeating(Repeats::Kind("NovaExternalCompute")), condition(
    NODE_CONFIGURATION_IN_SYNC,
    "The host of the node is as it was deployed, as `ConfigurationInSync` of its compute says; \
     absent where no audits are requested, and without effect on the node's `Ready`.",
    &[],
)
.repeating(Repeats::Kind("NovaExternalCompute")), condition(
    NODE_REDEPLOY_REQUESTED,
    "dataplane-operator is to deploy all services of the node once more, as `RedeployRequested` of \
     its compute says; absent where no repair after an audit needs that, and without effect on the \
     node's `Ready`.",
    &[],
)
.repeating(Repeats::Kind("NovaExternalCompute"))];

/// The condition on roles, so that the object that the user wrote also reports its computes.
const ROLE: &[ConditionSpec] = &[condition(
    HOSTS_COMPUTES_UP,
    "nova-compute of every compute of the role's nodes is up; absent where there is none or nova's \
     API is not read, and without effect on the role's `Ready`.",
    &[reasons::COMPUTES_UP, reasons::COMPUTES_DOWN, reasons::COMPUTES_NOT_READ],
)];

/// The same on node sets, and what they request of their hosts.
const NODE_SET: &[ConditionSpec] = &[
    condition(
        HOSTS_COMPUTES_UP,
        "nova-compute of every host is up in a cell of the namespace; absent where the node set \
         lists no service of type nova or nova's API is not read, and without effect on the node \
         set's `Ready`.",
        &[
            reasons::COMPUTES_UP,
            reasons::COMPUTES_DOWN,
            reasons::COMPUTES_NOT_REGISTERED,
            reasons::COMPUTES_NOT_READ,
        ],
    ),
    condition(
        NODE_DRAINED,
        "Every host that annotation `nova.openstack.org/drain-hosts` names, or that a deployment \
         waits for because of `nova.openstack.org/drain-before`, is drained; absent where there is \
         none and none has to be enabled again, and without effect on the node set's `Ready`.",
        &[
            reasons::drain::DRAINED,
            reasons::drain::WAITING,
            reasons::drain::MIGRATING,
            reasons::drain::SERVERS_STUCK,
            reasons::drain::DISABLED_BY_NOVA,
            reasons::drain::ENABLING,
            reasons::drain::WAITING_FOR_SERVICE,
            reasons::drain::NOT_READ,
            reasons::drain::SERVICE_NOT_FOUND,
            reasons::drain::CELL_NOT_ANSWERING,
            reasons::drain::NOVA_NOT_ANSWERING,
            reasons::drain::NOT_DEPLOYED,
            reasons::drain::HOST_CONTESTED,
            reasons::drain::INVALID,
            reasons::compute::DRAIN_BEFORE_INVALID,
        ],
    ),
    condition(
        HOSTS_REMOVED,
        "Never said: the condition is there only while hosts that leave the node set are being \
         removed from nova, and says what each waits for; without effect on the node set's `Ready`.",
        HOSTS,
    )
    .repeating(Repeats::Attempts(&FailureReason::ALL)),
    condition(
        NODE_CONFIGURATION_IN_SYNC,
        "Never said: the condition is there only where an annotation requests audits, which hosts of \
         node sets do not have; without effect on the node set's `Ready`.",
        &[reasons::audit::AUDITS_NOT_SUPPORTED],
    ),
];

/// What may hold a host that leaves a node set, in the order of its removal.
const HOSTS: &[Reason] = &[
    reasons::removal::WAITING_FOR_DEPLOYMENT,
    reasons::drain::HOST_CONTESTED,
    reasons::drain::NOT_READ,
    reasons::removal::NEVER_LISTED,
    reasons::removal::OTHER_HOST,
    reasons::drain::WAITING,
    reasons::drain::MIGRATING,
    reasons::drain::SERVERS_STUCK,
    reasons::drain::DISABLED_BY_NOVA,
    reasons::drain::CELL_NOT_ANSWERING,
    reasons::drain::NOVA_NOT_ANSWERING,
    reasons::cleanup::CLEANING_HOST,
    reasons::cleanup::QUEUED,
    reasons::cleanup::RUNNER_LOST,
    reasons::cleanup::UNSCHEDULABLE,
    reasons::cleanup::JOB_REFUSED,
    reasons::cleanup::POD_REFUSED,
    reasons::cleanup::INVALID_SPEC,
    reasons::removal::WAITING,
    reasons::removal::STILL_UP,
    reasons::removal::SERVICE_KEPT,
    reasons::removal::OTHER_SERVICE,
    reasons::removal::PROVIDER_KEPT,
    reasons::removal::IN_AGGREGATES,
    reasons::removal::READING_MAPPINGS,
    reasons::removal::STILL_MAPPED,
    reasons::removal::AGENTS_REPORT,
    reasons::cleanup::CLEANUP_SKIPPED,
    reasons::cleanup::LEFTOVERS_FULL,
    reasons::FORBIDDEN,
    reasons::INVALID,
    reasons::ALREADY_EXISTS,
];

const CELL: &[ConditionSpec] = &[
    summary("The cell can be used by computes.", &[reasons::cell::READY]),
    condition(
        INPUT_READY,
        "Both Secrets are there and complete.",
        &[
            reasons::cell::INPUT_COMPLETE,
            reasons::cell::SECRET_NOT_FOUND,
            reasons::cell::SECRET_INCOMPLETE,
            reasons::cell::INPUT_INVALID,
        ],
    ),
    condition(MESSAGE_BUS_READY, "Every broker of `transport_url` accepts the login.", MESSAGE_BUS),
    condition(
        KEYSTONE_READY,
        "Keystone answers at `spec.keystoneAuthURL`.",
        &[
            reasons::cell::ANSWERED,
            reasons::cell::UNREACHABLE,
            reasons::cell::CERTIFICATE_NOT_TRUSTED,
            reasons::cell::NOT_KEYSTONE,
            reasons::cell::INVALID_URL,
            reasons::cell::NOT_ASKED,
            reasons::cell::ANSWER_PENDING,
        ],
    ),
    condition(
        SERVICE_CONFIG_READY,
        "The files that computes of the cell share are rendered, for deployments by node sets; \
         `Ready` ignores it.",
        CELL_CONFIG,
    ),
    condition(
        COMPUTES_UP_TO_DATE,
        "Every compute was last deployed with the cell's present credentials; `Ready` ignores it.",
        CELL_COMPUTES,
    ),
    condition(
        NOVA_API_READY,
        "Nova's API answers; absent where it is not read. `Ready` ignores it.",
        NOVA_API,
    ),
    condition(
        COMPUTES_UP,
        "nova-compute is up on every compute, and on every host of a node set that the cell has; \
         absent where nova's API is not read. `Ready` ignores it.",
        &[reasons::COMPUTES_UP, reasons::COMPUTES_DOWN, reasons::COMPUTES_NOT_READ],
    ),
    condition(
        HOST_DISCOVERED,
        "Nova has mapped the hosts of the cell; absent where annotation \
         `nova.openstack.org/host-discovery` leaves that to others, or nova's API is not read. `Ready` \
         ignores it.",
        &[
            reasons::cell::HOSTS_MAPPED,
            reasons::cell::HOSTS_DISCOVERED,
            reasons::cell::DISCOVERING,
            reasons::cell::DISCOVERY_FAILED,
            reasons::cell::HOSTS_STILL_UNMAPPED,
            reasons::cell::DISCOVERY_INPUT_MISSING,
        ],
    ),
    condition(
        NOVA_MATCHES,
        "Never said: the condition is there only while nova has hosts of computes under other identities \
         than those that were recorded when they registered; `Ready` ignores it.",
        &[reasons::cell::OTHER_IDENTITIES],
    ),
    condition(
        CONDUCTOR_ANSWERS,
        "Never said: the condition is there only while a compute got no answer; `Ready` ignores it.",
        &[reasons::cell::CONDUCTOR_SILENT],
    ),
    condition(
        RELEASED,
        "Never said: the condition is there only while the cell is being deleted and held, by its \
         computes, by servers on its hosts or by what is left of hosts in nova.",
        &[
            reasons::cell::CELL_IN_USE,
            reasons::cell::SERVERS_IN_CELL,
            reasons::cell::LEFTOVERS_IN_CELL,
            reasons::cell::SERVERS_UNKNOWN,
        ],
    ),
    WRITES,
];

const NOVA_API: &[Reason] = &[
    reasons::cell::NOVA_ANSWERED,
    reasons::cell::NOVA_NOT_READ,
    reasons::cell::UNREACHABLE,
    reasons::cell::CERTIFICATE_NOT_TRUSTED,
    reasons::cell::INVALID_URL,
    reasons::cell::NOT_KEYSTONE,
    reasons::cell::NOT_NOVA,
    reasons::cell::ENDPOINT_NOT_FOUND,
    reasons::cell::VERSION_NOT_SUPPORTED,
    reasons::cell::CREDENTIALS_REFUSED,
    reasons::cell::TOKEN_REFUSED,
    reasons::cell::ROLE_MISSING,
    reasons::cell::NOVA_CONFLICT,
    reasons::cell::NOVA_BUSY,
    reasons::cell::REQUEST_REFUSED,
    reasons::cell::NOVA_FAILED,
    reasons::cell::ANSWER_TOO_LARGE,
];

const CELL_CONFIG: &[Reason] = &[
    reasons::cell::RENDERED,
    reasons::cell::NOT_NEEDED,
    reasons::SECRET_NOT_OURS,
    reasons::NOT_RENDERED,
];

const CELL_COMPUTES: &[Reason] = &[
    reasons::cell::UP_TO_DATE,
    reasons::cell::NO_COMPUTES,
    reasons::cell::COMPUTES_BEHIND,
    reasons::cell::COMPUTES_UNKNOWN,
];

const MESSAGE_BUS: &[Reason] = &[
    reasons::cell::LOGGED_IN,
    reasons::cell::UNREACHABLE,
    reasons::cell::ACCESS_REFUSED,
    reasons::cell::VHOST_MISSING,
    reasons::cell::VHOST_REFUSED,
    reasons::cell::REFUSED,
    reasons::cell::NOT_AMQP,
    reasons::cell::CERTIFICATE_NOT_TRUSTED,
    reasons::cell::NOT_ASKED,
    reasons::cell::ANSWER_PENDING,
];
