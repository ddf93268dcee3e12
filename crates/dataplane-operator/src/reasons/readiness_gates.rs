//! The reasons of the condition about readiness gates, of node sets and deployments.

api::reasons! {
    pub(crate) mod catalog;

    /// The readiness gates of hosts.
    const GATES;

    READY: good "HostsReady" means "Every host satisfies each readiness gate of its services.";
    HOSTS_NOT_READY: waiting "HostsNotReady"
        means "Hosts do not satisfy a readiness gate; the message has the first five with their \
            causes."
        heals "When the operator that reports the gate says True on each node."
        step "See the causes, and the condition of that type on the nodes of the other hosts.";
    GATE_AWAITED: unknown "GateAwaited"
        means "A readiness gate is not reported yet since the last deployment."
        heals "When its operator reports it." step "Wait five minutes at most.";
    GATE_NOT_REPORTED: warning "GateNotReported"
        means "For five minutes no operator has reported a readiness gate since the last \
            deployment."
        heals "When its operator reports it."
        step "Start that operator, correct `conditionType`, or list a service without the gate.";
}
