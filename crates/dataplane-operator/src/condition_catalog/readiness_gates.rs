//! The condition about readiness gates.

use api::dataplane::condition_types::READINESS_GATES_READY;
use operator_core::condition_catalog::{ConditionSpec, condition};

use crate::reasons;

/// The condition about readiness gates, of node sets and deployments.
pub(super) const READINESS_GATES: ConditionSpec = condition(
    READINESS_GATES_READY,
    "Every host satisfies each readiness gate of its services; absent where no service lists one, \
     and until every service has succeeded.",
    &[
        reasons::readiness_gates::READY,
        reasons::readiness_gates::HOSTS_NOT_READY,
        reasons::readiness_gates::GATE_AWAITED,
        reasons::readiness_gates::GATE_NOT_REPORTED,
    ],
);
