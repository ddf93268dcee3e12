//! The conditions of deployments, and their reasons.

use api::dataplane::condition_types::SETUP_READY;
use operator_core::condition_catalog::{ConditionSpec, Repeats, WRITES, condition, summary};
use operator_core::run_engine::outcome::FailureReason;

use super::readiness_gates::READINESS_GATES;
use crate::deployment::status::{DEPLOYMENT_READY, INPUT_READY};
use crate::reasons;

/// The conditions of `OpenStackDataPlaneDeployment`.
pub(super) const DEPLOYMENT: &[ConditionSpec] = &[
    summary(
        "Every service succeeded on every host.",
        &[reasons::deployment::READY],
    ),
    condition(
        SETUP_READY,
        "Every node set exists and is set up; it counts until the deployment begins.",
        &[
            reasons::deployment::SET_UP,
            reasons::deployment::NODE_SET_NOT_FOUND,
            reasons::deployment::NODE_SET_UNREADABLE,
            reasons::deployment::NODE_SET_NOT_READY,
            reasons::deployment::MACHINES_NOT_READY,
        ],
    ),
    condition(
        INPUT_READY,
        "Everything that the services which are still to run need is there.",
        &[
            reasons::deployment::INPUT_COMPLETE,
            reasons::deployment::NODE_SET_NOT_FOUND,
            reasons::deployment::NODE_SET_UNREADABLE,
            reasons::deployment::NODE_SET_REPLACED,
            reasons::deployment::MACHINES_NOT_READY,
            reasons::inputs::SERVICE_NOT_FOUND,
            reasons::inputs::SERVICE_UNREADABLE,
            reasons::inputs::SERVICE_INVALID,
            reasons::inputs::SERVICE_TYPE_TWICE,
            reasons::inputs::DATA_SOURCE_NOT_FOUND,
            reasons::inputs::DATA_SOURCE_INCOMPLETE,
            reasons::inputs::DATA_SOURCE_INVALID,
            reasons::deployment::CERTIFICATES_NOT_READY,
            reasons::deployment::INVENTORY_NOT_FOUND,
            reasons::inputs::SSH_SECRET_NOT_FOUND,
            reasons::inputs::SSH_SECRET_INCOMPLETE,
            reasons::inputs::SSH_SECRET_INVALID,
            reasons::inputs::NETWORK_ATTACHMENT_NOT_FOUND,
            reasons::inputs::NETWORK_ATTACHMENTS_NOT_SERVED,
            reasons::deployment::LIMIT_MATCHES_NO_HOST,
            reasons::deployment::NO_HOSTS,
            reasons::deployment::TOO_MANY_HOSTS,
        ],
    ),
    condition(
        DEPLOYMENT_READY,
        "Every service succeeded on every host; else the message has the first five hosts that fail.",
        &[
            reasons::deployment::READY,
            reasons::deployment::INIT,
            reasons::deployment::REQUESTED,
            reasons::QUEUED,
            reasons::RUN_BLOCKED,
            reasons::AWAITING_DISRUPTION,
            reasons::deployment::BACKOFF_LIMIT_EXCEEDED,
            reasons::deployment::DELETION_NOT_CONFIRMED,
        ],
    )
    .repeating(Repeats::Attempts(&FailureReason::ALL)),
    READINESS_GATES,
    WRITES,
];
