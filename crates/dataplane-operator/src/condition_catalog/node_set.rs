//! The conditions of a node set.

use api::conditions::Reason;
use api::dataplane::condition_types::{
    DEPLOYMENT_READY, INPUT_READY, SERVICE_INPUTS_READY, SETUP_READY, UP_TO_DATE,
};
use operator_core::condition_catalog::{ConditionSpec, Repeats, WRITES, condition, summary};
use operator_core::run_engine::host_key_checking;
use operator_core::run_engine::outcome::FailureReason;

use super::external::{CERTIFICATES, DNS_DATA, IP_RESERVATION};
use super::machines;
use super::readiness_gates::READINESS_GATES;
use crate::host::conflicts::shared_keys;
use crate::node_set::status::SERVICE_ACCOUNT_READY;
use crate::reasons;

/// The conditions, in the order in which users read them.
pub(super) const NODE_SET: &[ConditionSpec] = &[
    summary("The last deployment succeeded on every host.", &[reasons::node_set::READY]),
    condition(
        INPUT_READY,
        "What the node set itself names is there: ssh key, variables, addresses, networks.",
        INPUTS,
    ),
    condition(
        SERVICE_INPUTS_READY,
        "Everything that its services need is there. `Ready` does not depend on it: a deployment waits \
         for what the services that it runs need.",
        SERVICE_INPUTS,
    ),
    IP_RESERVATION,
    DNS_DATA,
    CERTIFICATES,
    condition(
        SETUP_READY,
        "There is an inventory that deployments can begin with.",
        &[
            reasons::node_set::SET_UP,
            reasons::inputs::INPUT_MISSING,
            reasons::node_set::NOT_SERVED_YET,
            reasons::node_set::DEPLOYMENT_UNDER_WAY,
            reasons::node_set::DELETION_WAITS,
        ],
    ),
    condition(
        SERVICE_ACCOUNT_READY,
        "What upstream's runs need as an account is there.",
        &[reasons::node_set::NO_SERVICE_ACCOUNT],
    ),
    machines::NODE_SET,
    machines::LEAVING,
    condition(DEPLOYMENT_READY, "The last deployment succeeded on every host.", DEPLOYMENT)
        .repeating(Repeats::Attempts(&FailureReason::ALL)),
    READINESS_GATES,
    condition(
        UP_TO_DATE,
        "The last deployment used the present inputs.",
        &[
            reasons::UP_TO_DATE,
            reasons::NEVER_DEPLOYED,
            reasons::INPUTS_CHANGED,
            reasons::node_set::DEPLOYING,
        ],
    ),
    shared_keys::CONDITION,
    host_key_checking::CONDITION,
    WRITES,
];

const INPUTS: &[Reason] = &[
    reasons::inputs::INPUT_COMPLETE,
    reasons::node_set::TOO_MANY_HOSTS,
    reasons::node_set::INVENTORY_TOO_LARGE,
    reasons::node_set::HOST_NAME_INVALID,
    reasons::node_set::HOST_NAME_CHANGED,
    reasons::node_set::HOST_ADDRESS_MISSING,
    reasons::inputs::HOST_ADDRESS_INVALID,
    reasons::node_set::HOST_TWICE,
    reasons::inputs::HOST_TAKEN,
    reasons::inputs::HOST_KEY_SHARED,
    reasons::inputs::SSH_SECRET_NOT_FOUND,
    reasons::inputs::SSH_SECRET_INCOMPLETE,
    reasons::inputs::SSH_SECRET_INVALID,
    reasons::inputs::VARIABLES_NOT_FOUND,
    reasons::inputs::VARIABLES_INVALID,
    reasons::node_set::VOLUME_NAME_INVALID,
    reasons::inputs::NETWORK_ATTACHMENT_NOT_FOUND,
    reasons::inputs::NETWORK_ATTACHMENTS_NOT_SERVED,
];

/// The reasons of what services lack; of a False condition each is a warning.
const SERVICE_INPUTS: &[Reason] = &[
    reasons::inputs::SERVICE_INPUTS_COMPLETE,
    reasons::inputs::SERVICE_NOT_FOUND,
    reasons::inputs::SERVICE_UNREADABLE,
    reasons::inputs::SERVICE_INVALID,
    reasons::inputs::SERVICE_TYPE_TWICE,
    reasons::inputs::DATA_SOURCE_NOT_FOUND,
    reasons::inputs::DATA_SOURCE_INCOMPLETE,
    reasons::inputs::DATA_SOURCE_INVALID,
    reasons::service::NOT_INCLUDED,
];

const DEPLOYMENT: &[Reason] = &[
    reasons::node_set::DEPLOYED,
    reasons::node_set::DEPLOYING,
    reasons::node_set::DEPLOYMENT_UNREADABLE,
    reasons::node_set::NOT_DEPLOYED,
    reasons::node_set::DEPLOYMENT_GONE,
];
