//! Kinds of dataplane.openstack.org: hosts, and the services that are deployed to them.

pub mod ansible_opts;
pub mod bare_metal;
pub mod condition_types;
pub mod data_plane;
pub mod deployment;
pub mod disruption;
pub mod execution_summary;
pub mod host_machine;
pub mod node;
pub mod node_section;
pub mod node_set;
pub mod role;
pub mod service;
pub mod service_run;

pub use ansible_opts::AnsibleOpts;
pub use bare_metal::NodeSetMachines;
pub use data_plane::{DataPlane, DataPlaneSpec, DataPlaneStatus};
pub use deployment::{
    Deployment, DeploymentFailure, DeploymentNodeSet, DeploymentSpec, DeploymentStatus,
};
pub use disruption::{Disruption, DisruptionHolder, DisruptionTarget, SeenDeployment};
pub use execution_summary::ExecutionSummary;
pub use host_machine::HostMachine;
pub use node::{
    HostTls, HostVars, NODE_SET_UID, Node, NodeDeployment, NodeSpec, NodeStatus, ObservedNodeSet,
    ObservedRole,
};
pub use node_section::{DeployStrategy, NodeSection};
pub use node_set::{
    HostState, NodeSet, NodeSetFailure, NodeSetHost, NodeSetNode, NodeSetSpec, NodeSetStatus,
    NodeTemplate,
};
pub use role::{Role, RoleSpec, RoleStatus};
pub use service::{ReadinessGate, Service, ServiceSpec, ServiceStatus};
pub use service_run::{RunState, ServiceRun};

crate::conditions::has_conditions!(DataPlane, Deployment, Node, NodeSet, Role, Service);
