//! The reasons on runs.

api::reasons! {
    pub(crate) mod catalog;

    /// Whether the run has succeeded.
    const SUMMARY;

    READY: good "Ready" means "The Job succeeded on every host.";

    /// The spec of the run.
    const INPUTS;

    INPUT_VALID: good "Ready" means "The spec can be run.";
    INVALID_SPEC: error "InvalidSpec"
        means "The spec is invalid; the message names the field and the allowed values."
        heals "No." step "Correct it.";

    /// The Job of the run.
    const JOB;

    READY;
    INIT: unknown "Init" means "The Job has not started."
        heals "Yes." step "Wait.";
    QUEUED: waiting "Queued"
        means "It waits for another run that touches the same host; a run in the same namespace is \
            named."
        heals "Yes."
        step "Wait; the log of ansibleee-operator names both runs if they are in different \
            namespaces.";
    REQUESTED: waiting "Requested" means "The Job is in progress."
        heals "Yes." step "Wait.";
    JOB_REFUSED: warning "JobRefused"
        means "The API server rejects the Job: a quota, a policy, or a value that only it can \
            detect as wrong."
        heals "Yes." step "As the message says.";
    POD_REFUSED: warning "PodRefused"
        means "The Job exists, and Kubernetes refuses its pod: a quota, a LimitRange, the pod \
            security of the namespace, or an admission webhook."
        heals "When the pod is accepted; Kubernetes keeps trying." step "As the message says.";
    UNSCHEDULABLE: warning "Unschedulable" means "The pod cannot be scheduled on any worker."
        heals "When the pod is scheduled."
        step "Make room, or correct `nodeSelector` and `tolerations`.";
    RUNNER_LOST: error "RunnerLost"
        means "The worker does not answer, so it is unknown whether the pod still works on the \
            hosts; they stay reserved for it."
        heals "When the worker is back."
        step "If the machine is permanently off, run the command in the message.";
    HOSTS_FAILED: error "HostsFailed"
        means "It failed on hosts for more than one reason, or names no `spec.hosts`; \
            `status.hosts` and `status.failures` have the details."
        heals "Its parent retries it if the reason allows." step "Look there.";
}
