//! Names of the kinds that describe hosts and their deployments.

/// The kind of a single host.
pub const NODE: &str = "OpenStackDataPlaneNode";
/// The kind of a set of hosts that are deployed together.
pub const NODE_SET: &str = "OpenStackDataPlaneNodeSet";
/// The kind that deploys node sets.
pub const DEPLOYMENT: &str = "OpenStackDataPlaneDeployment";
