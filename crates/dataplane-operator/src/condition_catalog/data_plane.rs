//! The conditions of a data plane.

use api::conditions::ConditionStatus;
use api::dataplane::condition_types::DEPLOYMENT_READY;
use operator_core::condition_catalog::{
    ConditionSpec, ReasonSpec, Repeats, WRITES, condition, summary,
};

use crate::data_plane::status::{ORPHANED, SETUP_READY};

const ALL_READY: ReasonSpec = ReasonSpec::good(
    "RolesAndNodesReady",
    "Each role and node of the maps is ready, in its present form and under its role's.",
);

/// The conditions, in the order in which users read them.
pub(super) const DATA_PLANE: &[ConditionSpec] = &[
    summary("All of its roles and nodes are ready.", &[ALL_READY]),
    condition(SETUP_READY, "Each entry of the maps is applied to the object of its name.", SETUP),
    condition(
        DEPLOYMENT_READY,
        "All of its roles and nodes are ready; else the message has their counts and the first five \
         by name, the worst first.",
        &[
            ALL_READY,
            ReasonSpec::bad(
                "NotObserved",
                "A role or node has changed, and its status does not speak of that yet.",
                "Yes.",
                "Wait.",
            ),
            ReasonSpec::bad(
                "SetupIncomplete",
                "A role or node is not there yet, or belongs to others.",
                "",
                "See `SetupReady`.",
            ),
        ],
    )
    .repeating(Repeats::Kind("OpenStackDataPlaneRole")),
    condition(
        ORPHANED,
        "Roles or nodes that belong to the data plane are no longer in its maps; `Ready` does not \
         depend on it.",
        ORPHANS,
    ),
    WRITES,
];

const SETUP: &[ReasonSpec] = &[
    ReasonSpec::good("Applied", "Each entry is applied."),
    ReasonSpec::bad("Applying", "Some are not yet; many are made in portions.", "Yes.", "Wait."),
    ReasonSpec::bad(
        "Terminating",
        "Objects of these names are being deleted, and are made again when gone.",
        "Yes.",
        "Wait.",
    ),
    ReasonSpec::bad("InvalidName", "A key cannot be the name of an object.", "No.", "Rename it."),
    ReasonSpec::bad(
        "NotOurs",
        "An object of the name belongs to others, or to nobody, and is left alone.",
        "No.",
        "Take the key out of the map, or hand the object over; the message has the command.",
    ),
];

const ORPHANS: &[ReasonSpec] = &[
    ReasonSpec::bad("NoOrphans", "Whatever belongs to it is in its maps.", "", ""),
    holds(
        "OrphansKept",
        "The named objects were taken out of the maps and go on as they are.",
        "No.",
        "Put the keys back, delete the objects, or set `prune: true`.",
    ),
    holds(
        "Pruning",
        "The named objects are being deleted; a role stays for as long as nodes name it.",
        "Yes.",
        "Wait.",
    ),
];

/// Returns a reason for which a condition holds although a user may want to act.
const fn holds(
    reason: &'static str,
    meaning: &'static str,
    heals: &'static str,
    step: &'static str,
) -> ReasonSpec {
    ReasonSpec { reason, status: ConditionStatus::True, meaning, heals, step }
}
