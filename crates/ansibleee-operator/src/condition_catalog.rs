//! Every condition and reason that ansibleee-operator writes, for the table in the docs.

use operator_core::condition_catalog::{KindConditions, Repeats, condition, summary};
use operator_core::host_key_checking;
use operator_core::run_engine::outcome::FailureReason;

use crate::reasons::catalog;
use crate::run::status::{INPUT_READY, JOB_READY};

/// The kinds and their conditions, in reading order.
pub const KINDS: &[KindConditions] = &[KindConditions {
    name: "OpenStackAnsibleEE",
    conditions: &[
        summary("The Job succeeded on every host.", &[catalog::SUMMARY]),
        condition(INPUT_READY, "The spec can be run.", &[catalog::INPUTS]),
        condition(JOB_READY, "The Job succeeded on every host.", &[catalog::JOB])
            .repeating(Repeats::Attempts(ENDS)),
        host_key_checking::CONDITION,
    ],
}];

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
