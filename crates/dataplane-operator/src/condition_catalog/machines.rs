//! The conditions on machines that are provisioned for hosts.

use operator_core::condition_catalog::{
    ALREADY_EXISTS, ConditionSpec, FORBIDDEN, INVALID, ReasonSpec, condition,
};

use crate::node_set::machine_request::PROVISION_READY as OF_NODE_SET;
use crate::role::provisioning::{BAREMETAL_READY, PROVISION_READY as OF_ROLE};

const NOT_REQUIRED: ReasonSpec =
    ReasonSpec::good("NotRequired", "The host is provisioned by others.");
const PROVISIONED: ReasonSpec = ReasonSpec::good(
    "Provisioned",
    "The machine is there, and its ssh server answers or was waited for long enough; the message has \
     its state and since when.",
);
const PROVISIONING: ReasonSpec = ReasonSpec::bad(
    "Provisioning",
    "The machine is on its way; the message has its state and since when.",
    "Yes.",
    "Wait.",
);
const WAITING_FOR_SSH: ReasonSpec = ReasonSpec::bad(
    "WaitingForSsh",
    "The machine is there, and its ssh server does not answer the operator yet.",
    "When it answers, and after ten minutes anyway.",
    "Wait.",
);
const PROVISIONING_FAILED: ReasonSpec = ReasonSpec::bad(
    "ProvisioningFailed",
    "The provisioner says that something is wrong; the message has its words.",
    "As the message says.",
    "As the message says; `kubectl describe openstackbaremetalset` tells of all machines.",
);
const TEMPLATE_INVALID: ReasonSpec = ReasonSpec::bad(
    "TemplateInvalid",
    "`baremetalSetTemplate` is not what a set can say.",
    "When it is corrected.",
    "Correct the field that the message names.",
);
const MACHINES_NOT_SERVED: ReasonSpec = ReasonSpec::bad(
    "MachinesNotServed",
    "The cluster does not know the kind `OpenStackBaremetalSet`.",
    "Within a minute of its installation.",
    "Install its definition.",
);
const NAME_TAKEN: ReasonSpec = ReasonSpec::bad(
    "NameTaken",
    "An `OpenStackBaremetalSet` of the name exists and was made for somebody else.",
    "Within a minute of its end.",
    "Delete it, rename one of the two, or hand it over; the message has the command.",
);
const MACHINE_ELSEWHERE: ReasonSpec = ReasonSpec::bad(
    "MachineElsewhere",
    "Another `OpenStackBaremetalSet` has a machine for the host.",
    "Within a minute of when that has given it back.",
    "Take the host out there.",
);
const HOST_NAME_INVALID: ReasonSpec = ReasonSpec::bad(
    "HostNameInvalid",
    "The host's name is one that no machine can have.",
    "No.",
    "Correct `spec.hostName`.",
);
const HOST_TWICE: ReasonSpec = ReasonSpec::bad(
    "HostTwice",
    "Another node of the role calls its host so.",
    "No.",
    "Correct `spec.hostName` of one of them.",
);
const SET_FULL: ReasonSpec = ReasonSpec::bad(
    "SetFull",
    "The `OpenStackBaremetalSet` has as many hosts as it can have.",
    "When another host gives up its machine.",
    "Put the host into another role or node set.",
);
const HOST_NAME_CHANGED: ReasonSpec = ReasonSpec::bad(
    "HostNameChanged",
    "The host has another name than the one by which its machine was asked for.",
    "No.",
    "Set `spec.hostName` as the message says, or delete the node and make another one.",
);

/// The condition of a node.
pub(super) const NODE: ConditionSpec = condition(
    BAREMETAL_READY,
    "The host is provisioned.",
    &[
        NOT_REQUIRED,
        PROVISIONED,
        PROVISIONING,
        WAITING_FOR_SSH,
        PROVISIONING_FAILED,
        TEMPLATE_INVALID,
        MACHINES_NOT_SERVED,
        NAME_TAKEN,
        MACHINE_ELSEWHERE,
        SET_FULL,
        HOST_NAME_INVALID,
        HOST_TWICE,
        HOST_NAME_CHANGED,
        FORBIDDEN,
        INVALID,
        ALREADY_EXISTS,
        ReasonSpec::bad(
            "GivingBack",
            "The node is to be deleted, and its machine is given back first.",
            "When that is done.",
            "Wait, or see the error in the message.",
        ),
    ],
);

/// The condition of a role.
pub(super) const ROLE: ConditionSpec = condition(
    OF_ROLE,
    "All of its nodes have their machines; absent where none are provisioned for it. Each node says it \
     of itself; the message has the count and the first five that have none, the worst first.",
    &[
        PROVISIONED,
        PROVISIONING,
        WAITING_FOR_SSH,
        PROVISIONING_FAILED,
        TEMPLATE_INVALID,
        MACHINES_NOT_SERVED,
        NAME_TAKEN,
        MACHINE_ELSEWHERE,
        SET_FULL,
        HOST_NAME_INVALID,
        HOST_TWICE,
        HOST_NAME_CHANGED,
        FORBIDDEN,
        INVALID,
        ALREADY_EXISTS,
        ReasonSpec::bad(
            "DeletionWaits",
            "The role is to be deleted, and its machines are given back first; the message names the \
             nodes that still need them.",
            "When that is done.",
            "Delete the nodes too, or wait.",
        ),
    ],
);

/// The condition of a node set.
pub(super) const NODE_SET: ConditionSpec = condition(
    OF_NODE_SET,
    "The hosts are provisioned; absent where `preProvisioned` is set or there are no nodes. The message \
     has the count and the first five that have no machine, the worst first.",
    &[
        NOT_REQUIRED,
        PROVISIONED,
        PROVISIONING,
        WAITING_FOR_SSH,
        PROVISIONING_FAILED,
        MACHINES_NOT_SERVED,
        NAME_TAKEN,
        MACHINE_ELSEWHERE,
        SET_FULL,
        ReasonSpec::bad(
            "HostNameChanged",
            "A host has another name than the one by which its machine was asked for.",
            "No.",
            "Set `hostName` as the message says, or take the node out.",
        ),
        ReasonSpec::bad(
            "HostTwice",
            "A host has the name by which the machine of another one is known.",
            "No.",
            "Correct `hostName` as the message says.",
        ),
    ],
);

/// The reason of a deployment that waits for a machine.
pub(super) const MACHINE_NOT_READY: ReasonSpec = ReasonSpec::bad(
    "MachineNotReady",
    "The host's machine is not there.",
    "When it is.",
    "See `BaremetalReady`.",
);
