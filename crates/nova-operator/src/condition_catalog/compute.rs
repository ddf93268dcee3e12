//! The conditions of a compute and their reasons.

use nova_config::conditions::{
    AGENTS_DELETED, CELL_MATCHES, CONFIG_WARNINGS, CONFIGURATION_IN_SYNC, DEPLOYMENT_READY,
    DRAINED, HOST_CLEANED, HOST_MAPPED, HOST_UNMAPPED, INPUT_READY, LEFTOVER_RECORDED, NODE_READY,
    NOVA_CELL_READY, NOVA_MATCHES, PLACEMENT_CLEAN, REDEPLOY_REQUESTED, SERVICE_CONFIG_READY,
    SERVICE_DELETED, SERVICE_UP, UP_TO_DATE,
};
use operator_core::condition_catalog::{ConditionSpec, Repeats, WRITES, condition, summary};
use operator_core::run_engine::outcome::FailureReason;

use crate::reasons::audit::catalog as audit;
use crate::reasons::catalog::REJECTED_WRITES;
use crate::reasons::cleanup::catalog as cleanup;
use crate::reasons::compute::catalog as compute;
use crate::reasons::drain::catalog as drain;
use crate::reasons::identity::catalog as identity;
use crate::reasons::removal::catalog as removal;

/// All conditions of a compute, in reading order.
pub(super) const CONDITIONS: &[ConditionSpec] = &[
    summary("nova-compute runs on the host and has registered in its cell.", &[compute::SUMMARY]),
    condition(
        INPUT_READY,
        "Everything that the configuration and the runs need is there.",
        &[compute::INPUTS],
    ),
    condition(NODE_READY, "The node can be used.", &[compute::NODE]),
    condition(NOVA_CELL_READY, "The cell can be used.", &[compute::CELL]),
    condition(
        SERVICE_CONFIG_READY,
        "The files of nova-compute are rendered.",
        &[compute::SERVICE_CONFIG],
    ),
    condition(
        CONFIG_WARNINGS,
        "Something in the options that users wrote is surprising, or guests cannot move; `Ready` \
         ignores it.",
        &[compute::WARNINGS],
    ),
    condition(
        DEPLOYMENT_READY,
        "libvirt and nova-compute are deployed on this host.",
        &[compute::DEPLOYMENT, identity::COMPUTE, &[removal::PROVIDER_KEPT]],
    )
    .repeating(Repeats::Attempts(&FailureReason::ALL)),
    condition(UP_TO_DATE, "The last deployment used the present inputs.", &[compute::CHANGES]),
    condition(
        CELL_MATCHES,
        "The node asks for no other cell; `Ready` ignores it.",
        &[compute::REQUESTED_CELL],
    ),
    condition(
        NOVA_MATCHES,
        "Never said: the condition is there only while nova has the host under another identity \
         than the one that was recorded when it registered. `Ready` follows it.",
        &[compute::IDENTITY],
    ),
    condition(
        SERVICE_UP,
        "nova-compute reports to nova; absent where nova's API is not read. `Ready` follows it \
         where it is False.",
        &[compute::HEALTH],
    ),
    condition(
        HOST_MAPPED,
        "Nova has mapped the host to its cell; absent where nova's API is not read. `Ready` \
         follows it where it is False.",
        &[compute::MAPPING],
    ),
    condition(
        DRAINED,
        "Nova schedules nothing to the host, which has no servers; absent where no drain is \
         requested. `Ready` ignores it until the compute is deleted.",
        &[drain::COMPUTE, removal::DRAIN],
    ),
    condition(
        CONFIGURATION_IN_SYNC,
        "The host is as it was deployed, says the last audit; absent where no audits are \
         requested. `Ready` ignores it.",
        &[audit::AUDITS],
    ),
    condition(
        REDEPLOY_REQUESTED,
        "All services of the node are to be deployed once more, and the compute follows; absent \
         where no repair after an audit needs that. `Ready` ignores it.",
        &[audit::REPAIR],
    ),
    WRITES,
    condition(
        HOST_CLEANED,
        "nova-compute is stopped and disabled on the host; said only of a compute that is being \
         deleted.",
        &[cleanup::HOST, removal::HOST, REJECTED_WRITES],
    )
    .repeating(Repeats::Attempts(&FailureReason::ALL)),
    condition(
        LEFTOVER_RECORDED,
        "Never said: the condition is there only while a compute that is let go waits until its \
         cell can record what nova keeps of the host.",
        &[cleanup::LEFTOVERS],
    ),
    condition(
        SERVICE_DELETED,
        "Nova has no service of the host; said only of a compute that is being deleted, where \
         nova's API is used.",
        &[removal::SERVICE, drain::NOVA],
    ),
    condition(
        PLACEMENT_CLEAN,
        "Placement has no resource provider of the host, and no aggregate lists it; as above.",
        &[removal::PLACEMENT, drain::NOVA],
    ),
    condition(HOST_UNMAPPED, "Nova has no mapping of the host; as above.", &[removal::MAPPING]),
    condition(
        AGENTS_DELETED,
        "Neutron has no agents of the host, or none that are down where the run did not stop them; \
         as above.",
        &[removal::AGENTS, drain::NOVA],
    ),
];
