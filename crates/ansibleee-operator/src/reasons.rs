//! The reasons on runs.

use api::conditions::Reason;

pub(crate) const READY: Reason =
    Reason::good("Ready", "The Job has done what it should on every host.");
pub(crate) const INPUT_VALID: Reason = Reason::good("Ready", "The spec can be run.");
pub(crate) const INVALID_SPEC: Reason = Reason::error(
    "InvalidSpec",
    "It cannot be run; the message has the field and the legal way.",
    "No.",
    "Correct it.",
);
pub(crate) const INIT: Reason =
    Reason::unknown("Init", "The Job has not started.", "Yes.", "Wait.");
pub(crate) const QUEUED: Reason = Reason::waiting(
    "Queued",
    "It waits for another run that touches the same host; one of its own namespace is named.",
    "Yes.",
    "Wait; the log of ansibleee-operator names both runs where they are of two namespaces.",
);
pub(crate) const REQUESTED: Reason =
    Reason::waiting("Requested", "The Job is on its way.", "Yes.", "Wait.");
pub(crate) const JOB_REFUSED: Reason = Reason::warning(
    "JobRefused",
    "The API server does not take the Job: a quota, a policy, a value that only it knows to be \
     wrong.",
    "Yes.",
    "As the message says.",
);
pub(crate) const UNSCHEDULABLE: Reason = Reason::warning(
    "Unschedulable",
    "No worker takes the pod.",
    "When one does.",
    "Make room, or correct `nodeSelector` and `tolerations`.",
);
pub(crate) const RUNNER_LOST: Reason = Reason::error(
    "RunnerLost",
    "The worker does not answer, so nobody knows whether the pod still works on the hosts; \
     they stay reserved for it.",
    "When the worker is back.",
    "If the machine is off for good, the command in the message.",
);
pub(crate) const HOSTS_FAILED: Reason = Reason::error(
    "HostsFailed",
    "It failed on hosts for more than one reason, or names no `spec.hosts`; `status.hosts` \
     and `status.failures` tell.",
    "Its parent tries again, where the reason allows.",
    "Look there.",
);
