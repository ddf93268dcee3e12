//! Every condition that ansibleee-operator writes, and every reason, as the docs' table tells them.

use operator_core::condition_catalog::{Kind, Repeats, Word, aspect, summary};
use operator_core::engine::host_key_checking;
use operator_core::engine::outcome::Reason;

use crate::run::status::{INPUT_READY, JOB_READY};

/// The kinds and their conditions, in the order in which a human reads them.
pub const KINDS: &[Kind] = &[Kind {
    name: "OpenStackAnsibleEE",
    conditions: &[
        summary(
            "The Job has done what it should on every host.",
            &[Word::good("Ready", "The Job has done what it should on every host.")],
        ),
        aspect(
            INPUT_READY,
            "The spec can be run.",
            &[
                Word::good("Ready", "The spec can be run."),
                Word::bad(
                    "InvalidSpec",
                    "It cannot be run; the message has the field and the legal way.",
                    "No.",
                    "Correct it.",
                ),
            ],
        ),
        aspect(JOB_READY, "The Job has done what it should on every host.", JOB)
            .repeating(Repeats::Attempts(ENDS)),
        host_key_checking::ASPECT,
    ],
}];

const JOB: &[Word] = &[
    Word::good("Ready", "The Job has done what it should on every host."),
    Word::bad("Init", "The Job has not started.", "Yes.", "Wait.").unknown(),
    Word::bad(
        "Queued",
        "It waits for another run that touches the same host; one of its own namespace is named.",
        "Yes.",
        "Wait; the log of ansibleee-operator names both runs where they are of two namespaces.",
    ),
    Word::bad("Requested", "The Job is on its way.", "Yes.", "Wait."),
    Word::bad(
        "JobRefused",
        "The API server does not take the Job: a quota, a policy, a value that only it knows to be \
         wrong.",
        "Yes.",
        "As the message says.",
    ),
    Word::bad(
        "Unschedulable",
        "No worker takes the pod.",
        "When one does.",
        "Make room, or correct `nodeSelector` and `tolerations`.",
    ),
    Word::bad(
        "RunnerLost",
        "The worker does not answer, so nobody knows whether the pod still works on the hosts; \
         they stay reserved for it.",
        "When the worker is back.",
        "If the machine is off for good, the command in the message.",
    ),
    Word::bad(
        "HostsFailed",
        "It failed on hosts for more than one reason, or names no `spec.hosts`; `status.hosts` \
         and `status.failures` tell.",
        "Its parent tries again, where the reason allows.",
        "Look there.",
    ),
];

/// How a run ends, or does not start: what no single host can be told of, and what all its hosts in
/// trouble have in common.
const ENDS: &[Reason] = &[
    Reason::HostUnreachable,
    Reason::KeyRefused,
    Reason::HostKeyMismatch,
    Reason::ImagePullFailed,
    Reason::InputMissing,
    Reason::TaskFailed,
    Reason::NoHostMatched,
    Reason::InvalidPlaybook,
    Reason::InvalidSpec,
    Reason::PodEvicted,
    Reason::DeadlineExceeded,
    Reason::ResultUnknown,
];
