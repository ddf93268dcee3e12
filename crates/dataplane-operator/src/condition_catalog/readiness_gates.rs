//! The condition about readiness gates.

use api::dataplane::condition_types::READINESS_GATES_READY;
use operator_core::condition_catalog::{ConditionSpec, condition};

use crate::reasons::readiness_gates::catalog as readiness_gates;

/// The condition about readiness gates, of node sets and deployments.
pub(super) const READINESS_GATES: ConditionSpec = condition(
    READINESS_GATES_READY,
    "Every host satisfies each readiness gate of its services; absent where no service lists one, \
     and until every service has succeeded.",
    &[readiness_gates::GATES],
);
