//! The conditions of a node set.

use api::dataplane::condition_types::{DEPLOYMENT_READY, INPUT_READY, SETUP_READY, UP_TO_DATE};
use operator_core::condition_catalog::{
    ConditionSpec, INPUTS_CHANGED, NEVER_DEPLOYED, ReasonSpec, Repeats, UP_TO_DATE as CURRENT,
    WRITES, condition, summary,
};
use operator_core::run_engine::host_key_checking;
use operator_core::run_engine::outcome::FailureReason;

use super::machines;
use super::others::{CERTIFICATES, DNS_DATA, IP_RESERVATION};
use crate::condition_catalog::inputs::{
    DATA_SOURCE_NOT_FOUND, HOST_ADDRESS_INVALID, HOST_TAKEN, INPUT_COMPLETE, KEY_SHARED,
    KEY_UNIQUE, NETWORK_NOT_FOUND, NETWORKS_NOT_SERVED, SERVICE_INVALID, SERVICE_NOT_FOUND,
    SERVICE_UNREADABLE, SSH_SECRET_INCOMPLETE, SSH_SECRET_NOT_FOUND, VARIABLES_INVALID,
    VARIABLES_NOT_FOUND,
};
use crate::node_set::status::SERVICE_ACCOUNT_READY;

const UNDER_WAY: ReasonSpec = ReasonSpec::bad(
    "Deploying",
    "A deployment is under way; the message names it.",
    "Yes.",
    "Wait, or look at the deployment.",
);

/// The conditions, in the order in which users read them.
pub(super) const NODE_SET: &[ConditionSpec] = &[
    summary(
        "The last deployment succeeded on every host.",
        &[ReasonSpec::good("Ready", "The last deployment succeeded on every host.")],
    ),
    condition(INPUT_READY, "Everything that a deployment needs is there.", INPUTS),
    IP_RESERVATION,
    DNS_DATA,
    CERTIFICATES,
    condition(
        SETUP_READY,
        "There is an inventory that deployments can begin with.",
        &[
            ReasonSpec::good("Ready", "The inventory is written."),
            ReasonSpec::bad(
                "InputMissing",
                "An input is missing.",
                "When it appears.",
                "See `InputReady`.",
            ),
            ReasonSpec::bad(
                "NotServedYet",
                "Addresses or names are missing; the message names the condition.",
                "When they are there.",
                "See that condition.",
            ),
            ReasonSpec::bad(
                "DeploymentUnderWay",
                "The node set was changed while a deployment runs, whose inventory stays until its end.",
                "When that deployment has ended.",
                "Wait, or look at the deployment.",
            ),
            ReasonSpec::bad(
                "DeletionWaits",
                "The node set is to be deleted; the message names the deployment that needs it, or \
                 the finalizers of others.",
                "When that deployment has ended.",
                "Wait, or delete the deployment.",
            ),
        ],
    ),
    condition(
        SERVICE_ACCOUNT_READY,
        "What upstream's runs need as an account is there.",
        &[ReasonSpec::good("NotRequired", "Runs have no account of their own, and need none.")],
    ),
    machines::NODE_SET,
    condition(DEPLOYMENT_READY, "The last deployment succeeded on every host.", DEPLOYMENT)
        .repeating(Repeats::Attempts(&FailureReason::ALL)),
    condition(
        UP_TO_DATE,
        "The last deployment used the present inputs.",
        &[CURRENT, NEVER_DEPLOYED, INPUTS_CHANGED, UNDER_WAY],
    ),
    KEY_UNIQUE,
    host_key_checking::CONDITION,
    WRITES,
];

const INPUTS: &[ReasonSpec] = &[
    INPUT_COMPLETE,
    ReasonSpec::bad(
        "TooManyHosts",
        "The node set has more than 500 nodes.",
        "No.",
        "Divide them among several node sets.",
    ),
    ReasonSpec::bad(
        "InventoryTooLarge",
        "The inventory does not fit into one object.",
        "No.",
        "Divide the nodes, or put large variables into files of a service's `dataSources`.",
    ),
    ReasonSpec::bad(
        "HostNameInvalid",
        "A node's host name is one that no host can have.",
        "No.",
        "Correct `hostName`, or the node's key.",
    ),
    ReasonSpec::bad(
        "HostNameChanged",
        "A host has another name than the one by which its machine was asked for.",
        "No.",
        "Set `hostName` as the message says, or take the node out.",
    ),
    ReasonSpec::bad(
        "HostAddressMissing",
        "A pre-provisioned node has no IP address in `ansible.ansibleHost`.",
        "No.",
        "Set it.",
    ),
    HOST_ADDRESS_INVALID,
    ReasonSpec::bad(
        "HostTwice",
        "Two nodes of the set are one host.",
        "No.",
        "Take one of them out, or correct it.",
    ),
    HOST_TAKEN,
    KEY_SHARED,
    SSH_SECRET_NOT_FOUND,
    SSH_SECRET_INCOMPLETE,
    SERVICE_NOT_FOUND,
    SERVICE_UNREADABLE,
    SERVICE_INVALID,
    DATA_SOURCE_NOT_FOUND,
    ReasonSpec::bad(
        "DataSourceInvalid",
        "A key of a service's object is no plain file name.",
        "When it is corrected.",
        "Rename the key.",
    ),
    VARIABLES_NOT_FOUND,
    VARIABLES_INVALID,
    ReasonSpec::bad(
        "VolumeNameInvalid",
        "A volume of `extraMounts` has a name that no volume can have.",
        "No.",
        "Correct it.",
    ),
    NETWORK_NOT_FOUND,
    NETWORKS_NOT_SERVED,
];

const DEPLOYMENT: &[ReasonSpec] = &[
    ReasonSpec::good("Deployed", "The last deployment succeeded on every host."),
    UNDER_WAY,
    ReasonSpec::bad(
        "DeploymentUnreadable",
        "A deployment that the node set has counted, or that may be at its hosts, cannot be read.",
        "When it is corrected, or gone.",
        "Correct the field that the message names, or delete the deployment and create another one.",
    ),
    ReasonSpec::bad(
        "NotDeployed",
        "Hosts of the set have nothing deployed.",
        "No.",
        "Create an `OpenStackDataPlaneDeployment` that names the node set.",
    ),
    ReasonSpec::bad(
        "DeploymentGone",
        "The deployment that was at the named hosts was deleted, or nothing is known of its failure.",
        "No.",
        "Create another one.",
    ),
];
