//! The reasons on computes that are being deleted.

api::reasons! {
    pub(crate) mod catalog;

    /// The stop of nova-compute on the host.
    const HOST;

    HOST_CLEANED: good "HostCleaned"
        means "nova-compute is stopped; the message lists what nova still has.";
    CLEANING_HOST: waiting "CleaningHost" means "nova-compute is being stopped."
        heals "Yes." step "Wait.";
    QUEUED: waiting "Queued" means "The run waits for another that touches the host."
        heals "Yes." step "Wait.";
    RUNNER_LOST: warning "RunnerLost"
        means "The run's worker does not answer, so it is unknown whether it still works on the \
            host."
        heals "When the worker is back."
        step "If the machine is off for good, the command in the message; or go on without the \
            host.";
    UNSCHEDULABLE: warning "Unschedulable" means "The run's pod cannot be scheduled on any worker."
        heals "When the pod is scheduled."
        step "Make room; or go on without the host, with the command in the message.";
    JOB_REFUSED: warning "JobRefused" means "The API server does not take the run's Job."
        heals "Yes." step "As the message says; or go on without the host, with the command there.";
    POD_REFUSED: warning "PodRefused" means "Kubernetes does not take the pod of the run's Job."
        heals "When the pod is accepted."
        step "As the message says; or go on without the host, with the command there.";
    INVALID_SPEC: warning "InvalidSpec"
        means "The run cannot be made of the compute's spec; the message has the field."
        heals "No." step "Go on without the host, with the command in the message.";
    HOST_NOT_CLEANED: error "HostNotCleaned"
        means "Three attempts failed, or the host cannot be reached any more; the compute goes."
        heals "No."
        step "Stop nova-compute on the host, then remove nova's records; the message has the \
            commands.";
    CLEANUP_SKIPPED: error "CleanupSkipped"
        means "The annotation `nova.openstack.org/skip-cleanup` says that the host is left as it \
            is."
        heals "No."
        step "Stop nova-compute on the host if it still runs, then remove nova's records.";

    /// The record of what nova keeps of a host.
    const LEFTOVERS;

    LEFTOVERS_FULL: warning "LeftoversFull"
        means "`status.leftovers` of the cell has fifty entries whose UUIDs are still to be \
            deleted, so what nova keeps of the host cannot be recorded there; the host is held \
            until then."
        heals "When an entry is worked off, or taken off the list."
        step "See what the entries wait for; the message has the command.";
}
