//! The reasons on runs.

use api::conditions::Reason;

pub(crate) const READY: Reason = Reason::good("Ready", "The Job succeeded on every host.");
pub(crate) const INPUT_VALID: Reason = Reason::good("Ready", "The spec can be run.");
pub(crate) const INVALID_SPEC: Reason = Reason::error(
    "InvalidSpec",
    "The spec is invalid; the message names the field and the allowed values.",
    "No.",
    "Correct it.",
);
pub(crate) const INIT: Reason =
    Reason::unknown("Init", "The Job has not started.", "Yes.", "Wait.");
pub(crate) const QUEUED: Reason = Reason::waiting(
    "Queued",
    "It waits for another run that touches the same host; a run in the same namespace is named.",
    "Yes.",
    "Wait; the log of ansibleee-operator names both runs if they are in different namespaces.",
);
pub(crate) const REQUESTED: Reason =
    Reason::waiting("Requested", "The Job is in progress.", "Yes.", "Wait.");
pub(crate) const JOB_REFUSED: Reason = Reason::warning(
    "JobRefused",
    "The API server rejects the Job: a quota, a policy, or a value that only it can detect as \
     wrong.",
    "Yes.",
    "As the message says.",
);
pub(crate) const POD_REFUSED: Reason = Reason::warning(
    "PodRefused",
    "The Job exists, and Kubernetes refuses its pod: a quota, a LimitRange, the pod security of the \
     namespace, or an admission webhook.",
    "When the pod is accepted; Kubernetes keeps trying.",
    "As the message says.",
);
pub(crate) const UNSCHEDULABLE: Reason = Reason::warning(
    "Unschedulable",
    "The pod cannot be scheduled on any worker.",
    "When the pod is scheduled.",
    "Make room, or correct `nodeSelector` and `tolerations`.",
);
pub(crate) const RUNNER_LOST: Reason = Reason::error(
    "RunnerLost",
    "The worker does not answer, so it is unknown whether the pod still works on the hosts; \
     they stay reserved for it.",
    "When the worker is back.",
    "If the machine is permanently off, run the command in the message.",
);
pub(crate) const HOSTS_FAILED: Reason = Reason::error(
    "HostsFailed",
    "It failed on hosts for more than one reason, or names no `spec.hosts`; `status.hosts` \
     and `status.failures` have the details.",
    "Its parent retries it if the reason allows.",
    "Look there.",
);
