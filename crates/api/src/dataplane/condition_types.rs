//! The types of conditions that several kinds of the data plane have.

/// Everything that a deployment needs is there.
pub const INPUT_READY: &str = "InputReady";

/// Everything that the listed services need is there; `Ready` does not sum it up.
pub const SERVICE_INPUTS_READY: &str = "ServiceInputsReady";

/// Every service succeeded.
pub const DEPLOYMENT_READY: &str = "DeploymentReady";

/// The last deployment used the present inputs.
pub const UP_TO_DATE: &str = "UpToDate";

/// Every host satisfies each readiness gate of its services.
pub const READINESS_GATES_READY: &str = "ReadinessGatesReady";

/// There is an inventory that deployments can begin with.
pub const SETUP_READY: &str = "SetupReady";
