//! The reasons of the condition about readiness gates, of node sets and deployments.

use api::conditions::Reason;

pub(crate) const READY: Reason =
    Reason::good("HostsReady", "Every host satisfies each readiness gate of its services.");
pub(crate) const HOSTS_NOT_READY: Reason = Reason::waiting(
    "HostsNotReady",
    "Hosts do not satisfy a readiness gate; the message has the first five with their causes.",
    "When the operator that reports the gate lists them no more.",
    "See the causes, and the `OpenStackDataPlaneHostReadiness` for the other hosts.",
);
pub(crate) const GATE_AWAITED: Reason = Reason::unknown(
    "GateAwaited",
    "A readiness gate is not reported yet since the last deployment.",
    "When its operator reports it.",
    "Wait five minutes at most.",
);
pub(crate) const GATE_NOT_REPORTED: Reason = Reason::warning(
    "GateNotReported",
    "For five minutes no operator has reported a readiness gate since the last deployment.",
    "When its operator reports it.",
    "Start that operator, correct `conditionType`, or list a service without the gate.",
);
