//! The conditions of a data plane.

use api::conditions::Reason;
use api::dataplane::condition_types::DEPLOYMENT_READY;
use operator_core::condition_catalog::{ConditionSpec, Repeats, WRITES, condition, summary};

use crate::data_plane::status::{ORPHANED, SETUP_READY};
use crate::reasons;

/// The conditions, in the order in which users read them.
pub(super) const DATA_PLANE: &[ConditionSpec] = &[
    summary("All of its roles and nodes are ready.", &[reasons::data_plane::ROLES_AND_NODES_READY]),
    condition(SETUP_READY, "Each entry of the maps is applied to the object of its name.", SETUP),
    condition(
        DEPLOYMENT_READY,
        "All of its roles and nodes are ready; else the message has their counts and the first five \
         by name, the worst first.",
        &[
            reasons::data_plane::ROLES_AND_NODES_READY,
            reasons::data_plane::NOT_OBSERVED,
            reasons::data_plane::SETUP_INCOMPLETE,
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

const SETUP: &[Reason] = &[
    reasons::data_plane::APPLIED,
    reasons::data_plane::APPLYING,
    reasons::data_plane::TERMINATING,
    reasons::data_plane::INVALID_NAME,
    reasons::data_plane::NOT_OURS,
];

const ORPHANS: &[Reason] = &[
    reasons::data_plane::NO_ORPHANS,
    reasons::data_plane::ORPHANS_KEPT,
    reasons::data_plane::PRUNING,
];
