//! Every condition and reason that ansibleee-operator writes, for the table in the docs.

use api::conditions::Reason;
use operator_core::condition_catalog::{KindConditions, Repeats, condition, summary};
use operator_core::run_engine::host_key_checking;
use operator_core::run_engine::outcome::FailureReason;

use crate::reasons;
use crate::run::status::{INPUT_READY, JOB_READY};

/// The kinds and their conditions, in reading order.
pub const KINDS: &[KindConditions] = &[KindConditions {
    name: "OpenStackAnsibleEE",
    conditions: &[
        summary("The Job succeeded on every host.", &[reasons::READY]),
        condition(
            INPUT_READY,
            "The spec can be run.",
            &[reasons::INPUT_VALID, reasons::INVALID_SPEC],
        ),
        condition(JOB_READY, "The Job succeeded on every host.", JOB)
            .repeating(Repeats::Attempts(ENDS)),
        host_key_checking::CONDITION,
    ],
}];

const JOB: &[Reason] = &[
    reasons::READY,
    reasons::INIT,
    reasons::QUEUED,
    reasons::REQUESTED,
    reasons::JOB_REFUSED,
    reasons::POD_REFUSED,
    reasons::UNSCHEDULABLE,
    reasons::RUNNER_LOST,
    reasons::HOSTS_FAILED,
];

/// How a run ends, or why it does not start.
///
/// These reasons concern no single host, or are shared by all its failing hosts.
const ENDS: &[FailureReason] = &[
    FailureReason::HostUnreachable,
    FailureReason::KeyRefused,
    FailureReason::HostKeyMismatch,
    FailureReason::ImagePullFailed,
    FailureReason::InputMissing,
    FailureReason::TaskFailed,
    FailureReason::NoHostMatched,
    FailureReason::InvalidPlaybook,
    FailureReason::InvalidSpec,
    FailureReason::PodEvicted,
    FailureReason::DeadlineExceeded,
    FailureReason::ResultUnknown,
];
