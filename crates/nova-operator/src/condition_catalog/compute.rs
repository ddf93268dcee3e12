//! The conditions of a compute and their reasons.

use api::conditions::Reason;
use nova_config::conditions::{
    AGENTS_DELETED, CELL_MATCHES, CONFIG_WARNINGS, CONFIGURATION_IN_SYNC, DEPLOYMENT_READY,
    DRAINED, HOST_CLEANED, HOST_MAPPED, HOST_UNMAPPED, INPUT_READY, LEFTOVER_RECORDED, NODE_READY,
    NOVA_CELL_READY, NOVA_MATCHES, PLACEMENT_CLEAN, REDEPLOY_REQUESTED, SERVICE_CONFIG_READY,
    SERVICE_DELETED, SERVICE_UP, UP_TO_DATE,
};
use operator_core::condition_catalog::{ConditionSpec, Repeats, WRITES, condition, summary};
use operator_core::run_engine::outcome::FailureReason;

use crate::reasons;

/// All conditions of a compute, in reading order.
pub(super) const CONDITIONS: &[ConditionSpec] = &[
    summary(
        "nova-compute runs on the host and has registered in its cell.",
        &[reasons::compute::READY, reasons::compute::WAITING_FOR_NOVA],
    ),
    condition(INPUT_READY, "Everything that the configuration and the runs need is there.", INPUTS),
    condition(NODE_READY, "The node can be used.", NODE),
    condition(NOVA_CELL_READY, "The cell can be used.", CELL),
    condition(SERVICE_CONFIG_READY, "The files of nova-compute are rendered.", SERVICE_CONFIG),
    condition(
        CONFIG_WARNINGS,
        "Something in the options that users wrote is surprising, or guests cannot move; `Ready` ignores \
         it.",
        &[
            reasons::compute::SURPRISING,
            reasons::compute::RELEASE_UNKNOWN,
            reasons::compute::GUESTS_CANNOT_MOVE,
            reasons::compute::NO_WARNINGS,
        ],
    ),
    condition(DEPLOYMENT_READY, "libvirt and nova-compute are deployed on this host.", DEPLOYMENT)
        .repeating(Repeats::Attempts(&FailureReason::ALL)),
    condition(
        UP_TO_DATE,
        "The last deployment used the present inputs.",
        &[
            reasons::UP_TO_DATE,
            reasons::NEVER_DEPLOYED,
            reasons::INPUTS_CHANGED,
            reasons::compute::OPERATOR_CHANGED,
            reasons::compute::INPUTS_UNKNOWN,
        ],
    ),
    condition(
        CELL_MATCHES,
        "The node asks for no other cell; `Ready` ignores it.",
        &[
            reasons::compute::CELL_MATCHES,
            reasons::compute::CELL_MISMATCH,
            reasons::compute::CELL_ROLE_NOT_FOUND,
        ],
    ),
    condition(
        NOVA_MATCHES,
        "Never said: the condition is there only while nova has the host under another identity than the \
         one that was recorded when it registered. `Ready` follows it.",
        &[reasons::compute::OTHER_IDENTITY],
    ),
    condition(
        SERVICE_UP,
        "nova-compute reports to nova; absent where nova's API is not read. `Ready` follows it \
         where it is False.",
        &[
            reasons::compute::SERVICE_UP,
            reasons::compute::SERVICE_DISABLED,
            reasons::compute::SERVICE_DOWN,
            reasons::compute::FORCED_DOWN,
            reasons::compute::SERVICE_NOT_FOUND,
            reasons::compute::CELL_NOT_ANSWERING,
            reasons::compute::NOVA_NOT_ANSWERING,
            reasons::compute::OTHER_IDENTITY_UNKNOWN,
            reasons::compute::NOT_READ,
            reasons::compute::NOT_REGISTERED,
        ],
    ),
    condition(
        HOST_MAPPED,
        "Nova has mapped the host to its cell; absent where nova's API is not read. `Ready` follows \
         it where it is False.",
        &[
            reasons::compute::MAPPED,
            reasons::compute::WAITING_FOR_DISCOVERY,
            reasons::compute::NOT_MAPPED,
            reasons::compute::NOVA_NOT_ANSWERING,
            reasons::compute::NOT_READ,
            reasons::compute::NOT_REGISTERED,
        ],
    ),
    condition(
        DRAINED,
        "Nova schedules nothing to the host, which has no servers; absent where no drain is \
         requested. `Ready` ignores it until the compute is deleted.",
        DRAIN,
    ),
    condition(
        CONFIGURATION_IN_SYNC,
        "The host is as it was deployed, says the last audit; absent where no audits are requested. \
         `Ready` ignores it.",
        &[
            reasons::audit::IN_SYNC,
            reasons::audit::OUT_OF_SYNC,
            reasons::audit::DEPLOYED_SINCE,
            reasons::audit::DEPLOYMENT_FAILED_SINCE,
            reasons::audit::AUDIT_OVERDUE,
            reasons::audit::NOT_AUDITED,
            reasons::audit::NOT_RECORDED,
            reasons::audit::HOST_NOT_ANSWERING,
            reasons::audit::AUDIT_FAILED,
            reasons::audit::AUDIT_PLAYBOOK_UNREADABLE,
            reasons::audit::AUDIT_INVALID,
        ],
    ),
    condition(
        REDEPLOY_REQUESTED,
        "All services of the node are to be deployed once more, and the compute follows; absent \
         where no repair after an audit needs that. `Ready` ignores it.",
        &[reasons::audit::REPAIR_REQUESTED],
    ),
    WRITES,
    condition(
        HOST_CLEANED,
        "nova-compute is stopped and disabled on the host; said only of a compute that is being \
         deleted.",
        HOST,
    )
    .repeating(Repeats::Attempts(&FailureReason::ALL)),
    condition(
        LEFTOVER_RECORDED,
        "Never said: the condition is there only while a compute that is let go waits until its cell can \
         record what nova keeps of the host.",
        &[reasons::cleanup::LEFTOVERS_FULL],
    ),
    condition(
        SERVICE_DELETED,
        "Nova has no service of the host; said only of a compute that is being deleted, where nova's \
         API is used.",
        &[
            reasons::removal::SERVICE_DELETED,
            reasons::removal::WAITING,
            reasons::removal::STILL_UP,
            reasons::removal::SERVICE_KEPT,
            reasons::removal::OTHER_SERVICE,
            reasons::drain::CELL_NOT_ANSWERING,
            reasons::drain::NOVA_NOT_ANSWERING,
            reasons::drain::OTHER_IDENTITY,
        ],
    ),
    condition(
        PLACEMENT_CLEAN,
        "Placement has no resource provider of the host, and no aggregate lists it; as above.",
        &[
            reasons::removal::PLACEMENT_CLEAN,
            reasons::removal::WAITING,
            reasons::removal::PROVIDER_KEPT,
            reasons::removal::IN_AGGREGATES,
            reasons::drain::CELL_NOT_ANSWERING,
            reasons::drain::NOVA_NOT_ANSWERING,
            reasons::drain::OTHER_IDENTITY,
        ],
    ),
    condition(
        HOST_UNMAPPED,
        "Nova has no mapping of the host; as above.",
        &[
            reasons::removal::HOST_UNMAPPED,
            reasons::removal::NOT_VERIFIED,
            reasons::removal::WAITING,
            reasons::removal::READING_MAPPINGS,
            reasons::removal::STILL_MAPPED,
        ],
    ),
    condition(
        AGENTS_DELETED,
        "Neutron has no agents of the host, or none that are down where the run did not stop them; as \
         above.",
        &[
            reasons::removal::AGENTS_DELETED,
            reasons::removal::WAITING,
            reasons::removal::AGENTS_REPORT,
            reasons::drain::CELL_NOT_ANSWERING,
            reasons::drain::NOVA_NOT_ANSWERING,
            reasons::drain::OTHER_IDENTITY,
        ],
    ),
];

const DRAIN: &[Reason] = &[
    reasons::drain::DRAINED,
    reasons::drain::WAITING,
    reasons::drain::MIGRATING,
    reasons::drain::SERVERS_STUCK,
    reasons::drain::DISABLED_BY_NOVA,
    reasons::drain::ENABLING,
    reasons::drain::WAITING_FOR_SERVICE,
    reasons::drain::NOT_READ,
    reasons::drain::NOT_REGISTERED,
    reasons::drain::SERVICE_NOT_FOUND,
    reasons::drain::CELL_NOT_ANSWERING,
    reasons::drain::NOVA_NOT_ANSWERING,
    reasons::drain::OTHER_IDENTITY,
    reasons::drain::NO_API,
    reasons::drain::INVALID,
    reasons::removal::NEVER_LISTED,
    reasons::removal::OTHER_HOST,
    reasons::removal::STILL_UP,
];

const HOST: &[Reason] = &[
    reasons::cleanup::HOST_CLEANED,
    reasons::cleanup::CLEANING_HOST,
    reasons::removal::WAITING_FOR_DRAIN,
    reasons::cleanup::QUEUED,
    reasons::cleanup::RUNNER_LOST,
    reasons::cleanup::UNSCHEDULABLE,
    reasons::cleanup::JOB_REFUSED,
    reasons::cleanup::POD_REFUSED,
    reasons::cleanup::INVALID_SPEC,
    reasons::cleanup::HOST_NOT_CLEANED,
    reasons::cleanup::CLEANUP_SKIPPED,
    reasons::FORBIDDEN,
    reasons::INVALID,
    reasons::ALREADY_EXISTS,
];

const INPUTS: &[Reason] = &[
    reasons::compute::ROLE_NOT_FOUND,
    reasons::NOVA_SERVICE_LISTED,
    reasons::compute::INPUT_COMPLETE,
    reasons::compute::INPUTS_WAITING,
    reasons::compute::INVENTORY_NOT_PUBLISHED,
    reasons::compute::INVENTORY_NOT_NAMED,
    reasons::compute::INVENTORY_NOT_FOUND,
    reasons::compute::INVENTORY_INCOMPLETE,
    reasons::compute::SECRET_NOT_FOUND,
    reasons::compute::SECRET_INCOMPLETE,
    reasons::compute::SSH_SECRET_NOT_FOUND,
    reasons::compute::SSH_SECRET_INCOMPLETE,
    reasons::compute::SSH_SECRET_INVALID,
    reasons::ISSUING,
    reasons::CERT_MANAGER_NOT_FOUND,
    reasons::ISSUER_NOT_FOUND,
    reasons::ISSUER_NOT_PERMITTED,
    reasons::compute::DEFAULT_CONFIG_NOT_FOUND,
    reasons::compute::DEFAULT_CONFIG_INVALID,
    reasons::compute::IMAGES_NOT_FILLED,
    reasons::compute::IMAGE_NOT_SET,
    reasons::compute::HOST_NAME_CHANGED,
    reasons::compute::DRAIN_BEFORE_INVALID,
    reasons::compute::DRAIN_WITHOUT_API,
];

const NODE: &[Reason] = &[
    reasons::compute::NODE_READY,
    reasons::compute::NODE_NOT_READY,
    reasons::compute::NODE_NOT_FOUND,
    reasons::compute::NODE_TERMINATING,
];

const CELL: &[Reason] = &[
    reasons::compute::NOVA_CELL_READY,
    reasons::compute::NOVA_CELL_NOT_READY,
    reasons::compute::NOVA_CELL_NOT_FOUND,
    reasons::compute::NOVA_CELL_UNKNOWN,
];

const SERVICE_CONFIG: &[Reason] = &[
    reasons::compute::RENDERED,
    reasons::SECRET_NOT_OURS,
    reasons::NOT_RENDERED,
    reasons::compute::INVALID_CONFIG,
    reasons::compute::INVALID_DEFAULT_CONFIG,
];

const DEPLOYMENT: &[Reason] = &[
    reasons::compute::DEPLOYED,
    reasons::compute::DEPLOYING,
    reasons::QUEUED,
    reasons::RUN_BLOCKED,
    reasons::NOT_REQUESTED,
    reasons::compute::WAITING_FOR_TURN,
    reasons::compute::PAUSED,
    reasons::compute::WAITING_FOR_DRAIN,
    reasons::compute::WAITING,
    reasons::identity::SERVERS,
    reasons::identity::IN_USE,
    reasons::identity::NOT_CHECKED,
    reasons::removal::PROVIDER_KEPT,
];
