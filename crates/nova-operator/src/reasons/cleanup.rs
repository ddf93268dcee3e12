//! The reasons on computes that are being deleted.

use api::conditions::Reason;

pub(crate) const HOST_CLEANED: Reason =
    Reason::good("HostCleaned", "nova-compute is stopped; the message lists what nova still has.");
pub(crate) const CLEANING_HOST: Reason =
    Reason::waiting("CleaningHost", "nova-compute is being stopped.", "Yes.", "Wait.");
pub(crate) const QUEUED: Reason =
    Reason::waiting("Queued", "The run waits for another that touches the host.", "Yes.", "Wait.");
pub(crate) const RUNNER_LOST: Reason = Reason::warning(
    "RunnerLost",
    "The run's worker does not answer, so it is unknown whether it still works on the host.",
    "When the worker is back.",
    "If the machine is off for good, the command in the message; or go on without the host.",
);
pub(crate) const UNSCHEDULABLE: Reason = Reason::warning(
    "Unschedulable",
    "The run's pod cannot be scheduled on any worker.",
    "When the pod is scheduled.",
    "Make room; or go on without the host, with the command in the message.",
);
pub(crate) const JOB_REFUSED: Reason = Reason::warning(
    "JobRefused",
    "The API server does not take the run's Job.",
    "Yes.",
    "As the message says; or go on without the host, with the command there.",
);
pub(crate) const POD_REFUSED: Reason = Reason::warning(
    "PodRefused",
    "Kubernetes does not take the pod of the run's Job.",
    "When the pod is accepted.",
    "As the message says; or go on without the host, with the command there.",
);
pub(crate) const INVALID_SPEC: Reason = Reason::warning(
    "InvalidSpec",
    "The run cannot be made of the compute's spec; the message has the field.",
    "No.",
    "Go on without the host, with the command in the message.",
);
pub(crate) const HOST_NOT_CLEANED: Reason = Reason::error(
    "HostNotCleaned",
    "Three attempts failed, or the host cannot be reached any more; the compute goes.",
    "No.",
    "Stop nova-compute on the host, then remove nova's records; the message has the commands.",
);
pub(crate) const LEFTOVERS_FULL: Reason = Reason::warning(
    "LeftoversFull",
    "`status.leftovers` of the cell has fifty entries whose UUIDs are still to be deleted, so what \
     nova keeps of the host cannot be recorded there; the host is held until then.",
    "When an entry is worked off, or taken off the list.",
    "See what the entries wait for; the message has the command.",
);
pub(crate) const CLEANUP_SKIPPED: Reason = Reason::error(
    "CleanupSkipped",
    "The annotation `nova.openstack.org/skip-cleanup` says that the host is left as it is.",
    "No.",
    "Stop nova-compute on the host if it still runs, then remove nova's records.",
);
