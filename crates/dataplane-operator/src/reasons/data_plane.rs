//! The reasons on data planes.

use api::conditions::Reason;

pub(crate) const ROLES_AND_NODES_READY: Reason = Reason::good(
    "RolesAndNodesReady",
    "Each role and node of the maps is ready, in its present form and under its role's.",
);
pub(crate) const NOT_OBSERVED: Reason = Reason::waiting(
    "NotObserved",
    "A role or node has changed, and its status does not describe that yet.",
    "Yes.",
    "Wait.",
);
pub(crate) const SETUP_INCOMPLETE: Reason = Reason::waiting(
    "SetupIncomplete",
    "A role or node is not there yet, or belongs to others.",
    "",
    "See `SetupReady`.",
);
pub(crate) const APPLIED: Reason = Reason::good("Applied", "Each entry is applied.");
pub(crate) const APPLYING: Reason =
    Reason::waiting("Applying", "Some are not yet; many are made in portions.", "Yes.", "Wait.");
pub(crate) const TERMINATING: Reason = Reason::waiting(
    "Terminating",
    "Objects of these names are being deleted, and are made again when gone.",
    "Yes.",
    "Wait.",
);
pub(crate) const INVALID_NAME: Reason =
    Reason::error("InvalidName", "A key cannot be the name of an object.", "No.", "Rename it.");
pub(crate) const NOT_OURS: Reason = Reason::error(
    "NotOurs",
    "An object of the name belongs to others, or has no owner, and is left alone.",
    "No.",
    "Take the key out of the map, or hand the object over; the message has the command.",
);
pub(crate) const NO_ORPHANS: Reason =
    Reason::absent("NoOrphans", "Whatever belongs to it is in its maps.");
pub(crate) const ORPHANS_KEPT: Reason = Reason::notable(
    "OrphansKept",
    "The named objects were taken out of the maps and go on as they are.",
    "No.",
    "Put the keys back, delete the objects, or set `prune: true`.",
);
pub(crate) const PRUNING: Reason = Reason::notable(
    "Pruning",
    "The named objects are being deleted; a role stays for as long as nodes name it.",
    "Yes.",
    "Wait.",
);
