//! The reasons on deployments.

use api::conditions::Reason;

pub(crate) const READY: Reason = Reason::good("Ready", "Every service succeeded on every host.");
pub(crate) const SET_UP: Reason =
    Reason::good("Ready", "Every node set is set up, or was when the deployment began.");
pub(crate) const INPUT_COMPLETE: Reason = Reason::good("Ready", "Every input is there.");
pub(crate) const NODE_SET_REPLACED: Reason = Reason::error(
    "NodeSetReplaced",
    "A node set with which the deployment began was deleted, and another one has its name.",
    "No.",
    "Delete the deployment, and create one for the new node set.",
);
pub(crate) const CERTIFICATES_NOT_READY: Reason = Reason::warning(
    "CertificatesNotReady",
    "A service has certificates, or brings those of others, and not every host has its own.",
    "When they are issued.",
    "See the node set's `NodeSetCertificatesReady`.",
);
pub(crate) const INVENTORY_NOT_FOUND: Reason = Reason::warning(
    "InventoryNotFound",
    "The Secret with the inventory of a node set does not exist.",
    "Yes, as soon as nothing else is wrong with the node set.",
    "Look at the node set.",
);
pub(crate) const LIMIT_MATCHES_NO_HOST: Reason = Reason::error(
    "LimitMatchesNoHost",
    "`ansibleLimit` leaves out every host, or names one that no node set has.",
    "When a host appears that it names.",
    "Delete the deployment, and create one with another limit.",
);
pub(crate) const NO_HOSTS: Reason = Reason::warning(
    "NoHosts",
    "None of its node sets has hosts, so there is nothing to run on.",
    "When a node set gets hosts.",
    "Add nodes to a node set, or delete the deployment.",
);
pub(crate) const TOO_MANY_HOSTS: Reason = Reason::error(
    "TooManyHosts",
    "A service that has one run for all node sets would have more than 500 hosts, or the status \
     cannot list so many.",
    "No.",
    "Create several deployments, each with fewer node sets.",
);
pub(crate) const INIT: Reason =
    Reason::unknown("Init", "The deployment has not begun.", "See the others.", "See the others.");
pub(crate) const REQUESTED: Reason =
    Reason::waiting("Requested", "Services are being deployed.", "Yes.", "Wait.");
pub(crate) const BACKOFF_LIMIT_EXCEEDED: Reason = Reason::error(
    "BackoffLimitExceeded",
    "All attempts of a service on some hosts failed, or another one would be refused as \
     well; the other hosts are done. Nothing \
     happens any more.",
    "No.",
    "Correct the causes in the message, and create another deployment.",
);
pub(crate) const DELETION_NOT_CONFIRMED: Reason = Reason::warning(
    "DeletionNotConfirmed",
    "It is to be deleted while it runs on hosts: nothing new begins.",
    "It goes when what runs has ended.",
    "Wait, or annotate it as the message says.",
);
pub(crate) const NODE_SET_NOT_FOUND: Reason = Reason::warning(
    "NodeSetNotFound",
    "A node set does not exist.",
    "When it appears.",
    "Create it, or delete the deployment and create it with the right name.",
);
pub(crate) const NODE_SET_UNREADABLE: Reason = Reason::warning(
    "NodeSetUnreadable",
    "A node set exists, and its operator cannot read it.",
    "When it is corrected.",
    "Correct the field that the message names.",
);
pub(crate) const MACHINES_NOT_READY: Reason = Reason::warning(
    "MachinesNotReady",
    "Machines of hosts are not there; nothing is deployed to these hosts.",
    "When they are.",
    "See the node set's `NodeSetBaremetalProvisionReady`; an `ansibleLimit` leaves hosts out.",
);
pub(crate) const NODE_SET_NOT_READY: Reason = Reason::warning(
    "NodeSetNotReady",
    "Something is missing for a node set; the message says what.",
    "When the node set is set up.",
    "See the node set's `InputReady` and `SetupReady`.",
);
