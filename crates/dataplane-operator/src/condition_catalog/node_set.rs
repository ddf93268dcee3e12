//! The conditions of a node set.

use api::dataplane::condition_types::{
    DEPLOYMENT_READY, INPUT_READY, NODES_ACCEPTED, SERVICE_INPUTS_READY, SETUP_READY, UP_TO_DATE,
};
use operator_core::condition_catalog::{ConditionSpec, Repeats, WRITES, condition, summary};
use operator_core::host_key_checking;
use operator_core::run_engine::outcome::FailureReason;

use super::external::{CERTIFICATES, DNS_DATA, IP_RESERVATION};
use super::machines;
use super::readiness_gates::READINESS_GATES;
use crate::host::conflicts::shared_keys;
use crate::ignored_annotations;
use crate::node_set::status::SERVICE_ACCOUNT_READY;
use crate::reasons::{
    inputs::catalog as inputs, node_set::catalog as node_set, service::catalog as service,
};
use crate::spec_warnings;

/// The conditions, in the order in which users read them.
pub(super) const NODE_SET: &[ConditionSpec] = &[
    summary("The last deployment succeeded on every host.", &[node_set::SUMMARY]),
    condition(
        INPUT_READY,
        "What the node set itself names is there: ssh key, variables, addresses, networks.",
        &[
            inputs::COMPLETE,
            node_set::INPUTS,
            node_set::RENAMED,
            inputs::HOSTS,
            inputs::SSH,
            inputs::VARIABLES,
            inputs::NETWORKS,
        ],
    ),
    condition(
        SERVICE_INPUTS_READY,
        "Everything that its services need is there. `Ready` does not depend on it: a deployment \
         waits for what the services that it runs need.",
        &[inputs::SERVICES_COMPLETE, inputs::DEPLOYED_SERVICES, &[service::NOT_INCLUDED]],
    ),
    IP_RESERVATION,
    DNS_DATA,
    CERTIFICATES,
    condition(
        SETUP_READY,
        "There is an inventory that deployments can begin with.",
        &[node_set::SETUP],
    ),
    condition(
        SERVICE_ACCOUNT_READY,
        "What upstream's runs need as an account is there.",
        &[node_set::ACCOUNT],
    ),
    machines::NODE_SET,
    machines::LEAVING,
    condition(
        DEPLOYMENT_READY,
        "The last deployment succeeded on every host.",
        &[node_set::DEPLOYMENT],
    )
    .repeating(Repeats::Attempts(&FailureReason::ALL)),
    READINESS_GATES,
    condition(UP_TO_DATE, "The last deployment used the present inputs.", &[node_set::CHANGES]),
    shared_keys::CONDITION,
    host_key_checking::CONDITION,
    ignored_annotations::CONDITION,
    spec_warnings::CONDITION,
    condition(
        NODES_ACCEPTED,
        "Never said: the condition is absent unless the `OpenStackDataPlaneNode` of a host cannot \
         be written, or is another's. `Ready` does not depend on it.",
        &[node_set::NODES],
    ),
    WRITES,
];
