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

/// The host is provisioned.
pub const BAREMETAL_READY: &str = "BaremetalReady";

/// The machines of a node set are provisioned; absent for pre-provisioned and empty node sets.
pub const NODE_SET_PROVISION_READY: &str = "NodeSetBaremetalProvisionReady";

/// The hosts of a node set have their certificates.
pub const CERTIFICATES_READY: &str = "NodeSetCertificatesReady";

/// What keeps hosts of a node set from having nodes; absent without.
pub const NODES_ACCEPTED: &str = "NodesAccepted";
