//! The conditions of a data plane.

use api::dataplane::condition_types::DEPLOYMENT_READY;
use operator_core::condition_catalog::{ConditionSpec, Repeats, WRITES, condition, summary};

use crate::data_plane::status::{ORPHANED, SETUP_READY};
use crate::reasons::data_plane::catalog as data_plane;

/// The conditions, in the order in which users read them.
pub(super) const DATA_PLANE: &[ConditionSpec] = &[
    summary("All of its roles and nodes are ready.", &[data_plane::SUMMARY]),
    condition(
        SETUP_READY,
        "Each entry of the maps is applied to the object of its name.",
        &[data_plane::SETUP],
    ),
    condition(
        DEPLOYMENT_READY,
        "All of its roles and nodes are ready; else the message has their counts and the first \
         five by name, the worst first.",
        &[data_plane::DEPLOYMENT],
    )
    .repeating(Repeats::Kind("OpenStackDataPlaneRole")),
    condition(
        ORPHANED,
        "Roles or nodes that belong to the data plane are no longer in its maps; `Ready` does not \
         depend on it.",
        &[data_plane::ORPHANS],
    ),
    WRITES,
];
