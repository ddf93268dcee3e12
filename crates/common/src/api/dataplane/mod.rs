//! Kinds of dataplane.openstack.org: hosts, and the services that are deployed to them.

pub mod data_plane;
pub mod node;
pub mod node_section;
pub mod role;
pub mod service;
pub mod service_run;

pub use data_plane::{DataPlane, DataPlaneSpec, DataPlaneStatus};
pub use node::{Node, NodeSpec, NodeStatus, ObservedRole};
pub use node_section::{DeployStrategy, NodeSection};
pub use role::{Role, RoleSpec, RoleStatus};
pub use service::{Service, ServiceSpec, ServiceStatus};
pub use service_run::{RunState, ServiceRun};
