//! Every condition and reason that ansibleee-operator writes, for the table in the docs.

use operator_core::condition_catalog::{KindConditions, ReasonSpec, Repeats, condition, summary};
use operator_core::run_engine::host_key_checking;
use operator_core::run_engine::outcome::FailureReason;

use crate::run::status::{INPUT_READY, JOB_READY};

/// The kinds and their conditions, in reading order.
pub const KINDS: &[KindConditions] = &[KindConditions {
    name: "OpenStackAnsibleEE",
    conditions: &[
        summary(
            "The Job has done what it should on every host.",
            &[ReasonSpec::good("Ready", "The Job has done what it should on every host.")],
        ),
        condition(
            INPUT_READY,
            "The spec can be run.",
            &[
                ReasonSpec::good("Ready", "The spec can be run."),
                ReasonSpec::bad(
                    "InvalidSpec",
                    "It cannot be run; the message has the field and the legal way.",
                    "No.",
                    "Correct it.",
                ),
            ],
        ),
        condition(JOB_READY, "The Job has done what it should on every host.", JOB)
            .repeating(Repeats::Attempts(ENDS)),
        host_key_checking::CONDITION,
    ],
}];

const JOB: &[ReasonSpec] = &[
    ReasonSpec::good("Ready", "The Job has done what it should on every host."),
    ReasonSpec::bad("Init", "The Job has not started.", "Yes.", "Wait.").unknown(),
    ReasonSpec::bad(
        "Queued",
        "It waits for another run that touches the same host; one of its own namespace is named.",
        "Yes.",
        "Wait; the log of ansibleee-operator names both runs where they are of two namespaces.",
    ),
    ReasonSpec::bad("Requested", "The Job is on its way.", "Yes.", "Wait."),
    ReasonSpec::bad(
        "JobRefused",
        "The API server does not take the Job: a quota, a policy, a value that only it knows to be \
         wrong.",
        "Yes.",
        "As the message says.",
    ),
    ReasonSpec::bad(
        "Unschedulable",
        "No worker takes the pod.",
        "When one does.",
        "Make room, or correct `nodeSelector` and `tolerations`.",
    ),
    ReasonSpec::bad(
        "RunnerLost",
        "The worker does not answer, so nobody knows whether the pod still works on the hosts; \
         they stay reserved for it.",
        "When the worker is back.",
        "If the machine is off for good, the command in the message.",
    ),
    ReasonSpec::bad(
        "HostsFailed",
        "It failed on hosts for more than one reason, or names no `spec.hosts`; `status.hosts` \
         and `status.failures` tell.",
        "Its parent tries again, where the reason allows.",
        "Look there.",
    ),
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
