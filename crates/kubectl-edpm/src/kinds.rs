//! The kinds of objects that describe hosts, and of what is deployed to them.

/// The kind of a host of its own.
pub const NODE: &str = "OpenStackDataPlaneNode";
/// The kind of hosts that are deployed together.
pub const NODE_SET: &str = "OpenStackDataPlaneNodeSet";
/// The kind that deploys them.
pub const DEPLOYMENT: &str = "OpenStackDataPlaneDeployment";
