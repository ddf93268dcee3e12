//! Names of the controllers, in logs, metrics and the source cache.

/// The controller of data planes.
pub const DATA_PLANE: &str = "data-plane";
/// The controller of deployments.
pub const DEPLOYMENT: &str = "deployment";
/// The controller of node groups: a role with its nodes, or a node without a role.
pub const GROUP: &str = "group";
/// The controller of node sets.
pub const NODE_SET: &str = "node-set";
/// The controller of services.
pub const SERVICE: &str = "service";
