//! The reasons of a compute whose host has lost its identity in nova.

use api::conditions::Reason;

pub(crate) const SERVERS: Reason = Reason::warning(
    "IdentityHasServers",
    "The host has lost its identity, or placement has its name under another one, and nova has \
     servers or open migrations there: nothing is restored or deleted.",
    "When they are gone.",
    "Delete or evacuate the servers that the message names, or restore the identity by hand as it \
     says.",
);
pub(crate) const IN_USE: Reason = Reason::warning(
    "IdentityInUse",
    "Another nova-compute uses the identity of the host, or reports under its name.",
    "When it does not any more.",
    "Stop that nova-compute; the message has the command.",
);
pub(crate) const NOT_CHECKED: Reason = Reason::warning(
    "IdentityNotChecked",
    "The host has lost its identity, and nova does not say whether it has servers there.",
    "When nova answers.",
    "Follow the message.",
);
