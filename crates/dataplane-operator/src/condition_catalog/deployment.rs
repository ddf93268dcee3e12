//! The conditions of deployments, and their reasons.

use api::dataplane::condition_types::SETUP_READY;
use operator_core::condition_catalog::{ConditionSpec, Repeats, WRITES, condition, summary};
use operator_core::run_engine::outcome::FailureReason;

use super::readiness_gates::READINESS_GATES;
use crate::deployment::status::{DEPLOYMENT_READY, INPUT_READY};
use crate::reasons::{deployment::catalog as deployment, inputs::catalog as inputs};

/// The conditions of `OpenStackDataPlaneDeployment`.
pub(super) const DEPLOYMENT: &[ConditionSpec] = &[
    summary("Every service succeeded on every host.", &[deployment::SUMMARY]),
    condition(
        SETUP_READY,
        "Every node set exists and is set up, and no other deployment goes first; it counts until \
         the deployment begins.",
        &[deployment::SETUP],
    ),
    condition(
        INPUT_READY,
        "Everything that the services which are still to run need is there.",
        &[
            deployment::INPUTS,
            inputs::DEPLOYED_SERVICES,
            deployment::FILES,
            inputs::SSH,
            inputs::NETWORKS,
            deployment::HOSTS,
        ],
    ),
    condition(
        DEPLOYMENT_READY,
        "Every service succeeded on every host; else the message has the first five hosts that \
         fail.",
        &[deployment::DEPLOYMENT],
    )
    .repeating(Repeats::Attempts(&FailureReason::ALL)),
    READINESS_GATES,
    WRITES,
];
