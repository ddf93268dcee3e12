//! The conditions of deployments, and their reasons.

use api::dataplane::condition_types::SETUP_READY;
use operator_core::condition_catalog::{
    ConditionSpec, QUEUED, ReasonSpec, Repeats, WRITES, condition, summary,
};
use operator_core::run_engine::outcome::FailureReason;

use crate::condition_catalog::inputs::{
    DATA_SOURCE_NOT_FOUND, NETWORK_NOT_FOUND, NETWORKS_NOT_SERVED, SERVICE_INVALID,
    SERVICE_NOT_FOUND, SERVICE_UNREADABLE, SSH_SECRET_INCOMPLETE, SSH_SECRET_NOT_FOUND,
};
use crate::deployment::status::{DEPLOYMENT_READY, INPUT_READY};

/// The conditions of `OpenStackDataPlaneDeployment`.
pub(super) const DEPLOYMENT: &[ConditionSpec] = &[
    summary(
        "Every service succeeded on every host.",
        &[ReasonSpec::good("Ready", "Every service succeeded on every host.")],
    ),
    condition(
        SETUP_READY,
        "Every node set exists and is set up; it counts until the deployment begins.",
        &[
            ReasonSpec::good("Ready", "Every node set is set up, or was when the deployment began."),
            NODE_SET_NOT_FOUND,
            NODE_SET_UNREADABLE,
            NODE_SET_NOT_READY,
            MACHINES_NOT_READY,
        ],
    ),
    condition(
        INPUT_READY,
        "Everything that the services which are still to run need is there.",
        &[
            ReasonSpec::good("Ready", "Every input is there."),
            NODE_SET_NOT_FOUND,
            NODE_SET_UNREADABLE,
            ReasonSpec::bad(
                "NodeSetReplaced",
                "A node set with which the deployment began was deleted, and another one has its name.",
                "No.",
                "Delete the deployment, and create one for the new node set.",
            ),
            MACHINES_NOT_READY,
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
            ReasonSpec::bad(
                "CertificatesNotReady",
                "A service has certificates, or brings those of others, and not every host has its own.",
                "When they are issued.",
                "See the node set's `NodeSetCertificatesReady`.",
            ),
            ReasonSpec::bad(
                "InventoryNotFound",
                "The Secret with the inventory of a node set does not exist.",
                "Yes, as soon as nothing else is wrong with the node set.",
                "Look at the node set.",
            ),
            SSH_SECRET_NOT_FOUND,
            SSH_SECRET_INCOMPLETE,
            NETWORK_NOT_FOUND,
            NETWORKS_NOT_SERVED,
            ReasonSpec::bad(
                "LimitMatchesNoHost",
                "`ansibleLimit` leaves out every host.",
                "When a host appears that it names.",
                "Delete the deployment, and create one with another limit.",
            ),
            ReasonSpec::bad(
                "NoHosts",
                "None of its node sets has hosts, so there is nothing to run on.",
                "When a node set gets hosts.",
                "Add nodes to a node set, or delete the deployment.",
            ),
            ReasonSpec::bad(
                "TooManyHosts",
                "A service that has one run for all node sets would have more than 500 hosts, or the \
                 status cannot tell of so many.",
                "No.",
                "Create several deployments, each with fewer node sets.",
            ),
        ],
    ),
    condition(
        DEPLOYMENT_READY,
        "Every service succeeded on every host; else the message has the first five hosts that fail.",
        &[
            ReasonSpec::good("Ready", "Every service succeeded on every host."),
            ReasonSpec::bad("Init", "The deployment has not begun.", "See the others.", "See the others.")
                .unknown(),
            ReasonSpec::bad("Requested", "Services are being deployed.", "Yes.", "Wait."),
            QUEUED,
            ReasonSpec::bad(
                "BackoffLimitExceeded",
                "All attempts of a service on some hosts failed, or another one would be refused as \
                 well; the other hosts are done. Nothing \
                 happens any more.",
                "No.",
                "Correct the causes in the message, and create another deployment.",
            ),
            ReasonSpec::bad(
                "DeletionNotConfirmed",
                "It is to be deleted while it runs on hosts: nothing new begins.",
                "It goes when what runs has ended.",
                "Wait, or annotate it as the message says.",
            ),
        ],
    )
    .repeating(Repeats::Attempts(&FailureReason::ALL)),
    WRITES,
];

const NODE_SET_NOT_FOUND: ReasonSpec = ReasonSpec::bad(
    "NodeSetNotFound",
    "A node set does not exist.",
    "When it appears.",
    "Create it, or delete the deployment and create it with the right name.",
);
const NODE_SET_UNREADABLE: ReasonSpec = ReasonSpec::bad(
    "NodeSetUnreadable",
    "A node set exists, and its operator cannot read it.",
    "When it is corrected.",
    "Correct the field that the message names.",
);
const MACHINES_NOT_READY: ReasonSpec = ReasonSpec::bad(
    "MachinesNotReady",
    "Machines of hosts are not there; nothing is deployed to these hosts.",
    "When they are.",
    "See the node set's `NodeSetBaremetalProvisionReady`; an `ansibleLimit` leaves hosts out.",
);
const NODE_SET_NOT_READY: ReasonSpec = ReasonSpec::bad(
    "NodeSetNotReady",
    "Something is missing for a node set; the message says what.",
    "When the node set is set up.",
    "See the node set's `InputReady` and `SetupReady`.",
);
