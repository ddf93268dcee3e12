//! The reasons on node sets.

pub(crate) use operator_core::reasons::{
    NODE_SET_DEPLOYED as DEPLOYED, NODE_SET_DEPLOYING as DEPLOYING,
    NODE_SET_DEPLOYMENT_GONE as DEPLOYMENT_GONE, NODE_SET_NOT_DEPLOYED as NOT_DEPLOYED,
};

use api::conditions::Reason;

use crate::reasons::machines;

pub(crate) const READY: Reason =
    Reason::good("Ready", "The last deployment succeeded on every host.");
pub(crate) const SET_UP: Reason = Reason::good("Ready", "The inventory is written.");
pub(crate) const NOT_SERVED_YET: Reason = Reason::waiting(
    "NotServedYet",
    "Addresses or names are missing; the message names the condition.",
    "When they are there.",
    "See that condition.",
);
pub(crate) const DEPLOYMENT_UNDER_WAY: Reason = Reason::waiting(
    "DeploymentUnderWay",
    "The node set was changed while a deployment runs, whose inventory stays until its end.",
    "When that deployment has ended.",
    "Wait, or look at the deployment.",
);
pub(crate) const DELETION_WAITS: Reason = Reason::warning(
    "DeletionWaits",
    "The node set is to be deleted; the message names the deployment that needs it, or \
     the finalizers of others.",
    "When that deployment has ended.",
    "Wait, or delete the deployment.",
);
pub(crate) const NO_SERVICE_ACCOUNT: Reason =
    Reason::good("NotRequired", "Runs have no account of their own, and need none.");
pub(crate) const TOO_MANY_HOSTS: Reason = Reason::error(
    "TooManyHosts",
    "The node set has more than 500 nodes.",
    "No.",
    "Divide them among several node sets.",
);
pub(crate) const INVENTORY_TOO_LARGE: Reason = Reason::error(
    "InventoryTooLarge",
    "The inventory does not fit into one object.",
    "No.",
    "Divide the nodes, or put large variables into files of a service's `dataSources`.",
);
pub(crate) const HOST_NAME_INVALID: Reason = Reason::error(
    "HostNameInvalid",
    "A node's host name is one that no host can have.",
    "No.",
    "Correct `hostName`, or the node's key.",
);
pub(crate) const HOST_NAME_CHANGED: Reason = machines::HOST_NAME_CHANGED.described(
    "A host has another name than the one by which its machine was asked for.",
    "No.",
    "Set `hostName` as the message says, or take the node out.",
);
pub(crate) const HOST_ADDRESS_MISSING: Reason = Reason::error(
    "HostAddressMissing",
    "A pre-provisioned node has no IP address in `ansible.ansibleHost`.",
    "No.",
    "Set it.",
);
pub(crate) const HOST_TWICE: Reason = Reason::error(
    "HostTwice",
    "Two nodes of the set are one host.",
    "No.",
    "Take one of them out, or correct it.",
);
pub(crate) const VOLUME_NAME_INVALID: Reason = Reason::error(
    "VolumeNameInvalid",
    "A volume of `extraMounts` has a name that no volume can have.",
    "No.",
    "Correct it.",
);
pub(crate) const DEPLOYMENT_UNREADABLE: Reason = Reason::error(
    "DeploymentUnreadable",
    "A deployment that the node set has counted, or that may be at its hosts, cannot be read.",
    "When it is corrected, or gone.",
    "Correct the field that the message names, or delete the deployment and create another one.",
);
