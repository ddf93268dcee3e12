//! The conditions on machines that are provisioned for hosts.

use operator_core::condition_catalog::{ConditionSpec, condition};

use crate::node_set::last_looks::MACHINES_GIVEN_BACK;
use crate::node_set::machine_request::PROVISION_READY as OF_NODE_SET;
use crate::reasons;
use crate::role::provisioning::{BAREMETAL_READY, PROVISION_READY as OF_ROLE};

/// The condition of a node.
pub(super) const NODE: ConditionSpec = condition(
    BAREMETAL_READY,
    "The host is provisioned.",
    &[
        reasons::machines::NOT_REQUIRED,
        reasons::machines::PROVISIONED,
        reasons::machines::PROVISIONING,
        reasons::machines::WAITING_FOR_SSH,
        reasons::machines::PROVISIONING_FAILED,
        reasons::machines::TEMPLATE_INVALID,
        reasons::machines::MACHINES_NOT_SERVED,
        reasons::machines::NAME_TAKEN,
        reasons::machines::MACHINE_ELSEWHERE,
        reasons::machines::SET_FULL,
        reasons::machines::HOST_NAME_INVALID,
        reasons::machines::HOST_TWICE,
        reasons::machines::HOST_NAME_CHANGED,
        reasons::FORBIDDEN,
        reasons::INVALID,
        reasons::ALREADY_EXISTS,
        reasons::machines::GIVING_BACK,
        reasons::machines::LOOKING_FOR_GUESTS,
        reasons::machines::MACHINE_HELD,
    ],
);

/// The condition of a role.
pub(super) const ROLE: ConditionSpec = condition(
    OF_ROLE,
    "All of its nodes have their machines; absent where none are provisioned for it. Each node says it \
     of itself; the message has the count and the first five that have none, the worst first.",
    &[
        reasons::machines::PROVISIONED,
        reasons::machines::PROVISIONING,
        reasons::machines::WAITING_FOR_SSH,
        reasons::machines::PROVISIONING_FAILED,
        reasons::machines::TEMPLATE_INVALID,
        reasons::machines::MACHINES_NOT_SERVED,
        reasons::machines::NAME_TAKEN,
        reasons::machines::MACHINE_ELSEWHERE,
        reasons::machines::SET_FULL,
        reasons::machines::HOST_NAME_INVALID,
        reasons::machines::HOST_TWICE,
        reasons::machines::HOST_NAME_CHANGED,
        reasons::FORBIDDEN,
        reasons::INVALID,
        reasons::ALREADY_EXISTS,
        reasons::machines::DELETION_WAITS,
    ],
);

/// The condition on machines of hosts that leave a node set.
pub(super) const LEAVING: ConditionSpec = condition(
    MACHINES_GIVEN_BACK,
    "Never said: the condition is absent unless machines of hosts that leave are not given back yet.",
    &[reasons::machines::LOOKING_FOR_GUESTS, reasons::machines::MACHINE_HELD],
);

/// The condition of a node set.
pub(super) const NODE_SET: ConditionSpec = condition(
    OF_NODE_SET,
    "The hosts are provisioned; absent where `preProvisioned` is set or there are no nodes. The message \
     has the count and the first five that have no machine, the worst first.",
    &[
        reasons::machines::NOT_REQUIRED,
        reasons::machines::PROVISIONED,
        reasons::machines::PROVISIONING,
        reasons::machines::WAITING_FOR_SSH,
        reasons::machines::PROVISIONING_FAILED,
        reasons::machines::MACHINES_NOT_SERVED,
        reasons::machines::NAME_TAKEN,
        reasons::machines::MACHINE_ELSEWHERE,
        reasons::machines::SET_FULL,
        reasons::node_set::HOST_NAME_CHANGED,
        reasons::machines::HOST_TWICE_IN_SET,
    ],
);
