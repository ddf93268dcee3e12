//! The conditions on machines that are provisioned for hosts.

use api::dataplane::condition_types::{BAREMETAL_READY, NODE_SET_PROVISION_READY};
use operator_core::condition_catalog::{ConditionSpec, condition};

use crate::node_set::last_looks::MACHINES_GIVEN_BACK;
use crate::reasons::{machines::catalog as machines, node_set::catalog as node_set};
use crate::role::status::PROVISION_READY as OF_ROLE;

/// The condition of a node.
pub(super) const NODE: ConditionSpec =
    condition(BAREMETAL_READY, "The host is provisioned.", &[machines::NODE]);

/// The condition of a role.
pub(super) const ROLE: ConditionSpec = condition(
    OF_ROLE,
    "All of its nodes have their machines; absent where none are provisioned for it. Each node \
     says it of itself; the message has the count and the first five that have none, the worst \
     first.",
    &[machines::ROLE],
);

/// The condition on machines of hosts that leave a node set.
pub(super) const LEAVING: ConditionSpec = condition(
    MACHINES_GIVEN_BACK,
    "Never said: the condition is absent unless machines of hosts that leave are not given back \
     yet.",
    &[machines::LEAVING],
);

/// The condition of a node set.
pub(super) const NODE_SET: ConditionSpec = condition(
    NODE_SET_PROVISION_READY,
    "The hosts are provisioned; absent where `preProvisioned` is set or there are no nodes. The \
     message has the count and the first five that have no machine, the worst first.",
    &[machines::NODE_SET, node_set::RENAMED],
);
