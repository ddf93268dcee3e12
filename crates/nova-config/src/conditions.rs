//! The types of the conditions that nova-operator writes, besides `Ready`, by the kind of the
//! object.

// OpenStackDataPlaneNode, Role, NodeSet and Service

/// Type of the condition that this operator writes on a node with a compute.
pub const COMPUTE_CONDITION: &str = "nova.openstack.org/Compute";
/// Type of the condition on a node that repeats [`SERVICE_UP`] of its compute.
pub const NODE_SERVICE_UP: &str = "nova.openstack.org/ServiceUp";
/// Type of the condition on a node that repeats [`DRAINED`] of its compute.
pub const NODE_DRAINED: &str = "nova.openstack.org/Drained";
/// Type of the condition on a node that repeats [`CONFIGURATION_IN_SYNC`] of its compute.
pub const NODE_CONFIGURATION_IN_SYNC: &str = "nova.openstack.org/ConfigurationInSync";
/// Type of the condition on a node that repeats [`REDEPLOY_REQUESTED`] of its compute;
/// dataplane-operator serves what ends like that
/// ([`REDEPLOY_REQUESTED`](api::dataplane::node::REDEPLOY_REQUESTED)).
pub const NODE_REDEPLOY_REQUESTED: &str = "nova.openstack.org/RedeployRequested";
/// Type of the condition on a role or a node set: every compute of its hosts reports to nova;
/// absent where there is none, or nova's API is not read.
pub const HOSTS_COMPUTES_UP: &str = "nova.openstack.org/ComputesUp";
/// Type of the condition on a node, a role or a node set: an annotation there counts for nothing;
/// present only while there is one.
pub const ANNOTATIONS_IGNORED: &str = "nova.openstack.org/AnnotationsIgnored";
/// Type of the condition that this operator writes on a service of type nova.
pub const CONFIG_CONDITION: &str = "nova.openstack.org/Config";

// NovaExternalCompute and NovaCell

/// On a compute: all inputs of the configuration and the runs are present. On a cell: both of its
/// Secrets are present and complete.
pub const INPUT_READY: &str = "InputReady";
/// Nova has a host, or all hosts of a cell, under the identities that were recorded when they
/// registered; present only while that is not so.
pub const NOVA_MATCHES: &str = "NovaMatches";
/// The files of a compute, or those that the computes of a cell share, are rendered.
pub const SERVICE_CONFIG_READY: &str = "ServiceConfigReady";

// NovaExternalCompute

/// The node can be used.
pub const NODE_READY: &str = "NodeReady";
/// The cell can be used.
pub const NOVA_CELL_READY: &str = "NovaCellReady";
/// The user's options contain something surprising; it does not affect `Ready`.
pub const CONFIG_WARNINGS: &str = "ConfigWarnings";
/// Every service has succeeded.
pub const DEPLOYMENT_READY: &str = "DeploymentReady";
/// The last deployment used the current inputs.
pub const UP_TO_DATE: &str = "UpToDate";
/// The compute is in the cell that its node requests.
pub const CELL_MATCHES: &str = "CellMatches";
/// nova-compute reports to nova; absent where nova's API is not read.
pub const SERVICE_UP: &str = "ServiceUp";
/// Nova has mapped the host to its cell; absent where nova's API is not read.
pub const HOST_MAPPED: &str = "HostMapped";
/// Nova schedules nothing to the host, which has no servers; only while a drain is requested.
pub const DRAINED: &str = "Drained";
/// The host is as it was deployed, says the last audit; only while audits are requested.
pub const CONFIGURATION_IN_SYNC: &str = "ConfigurationInSync";
/// All services of the host's node are to be deployed once more, because an audit found
/// differences; only until the host was deployed since.
pub const REDEPLOY_REQUESTED: &str = "RedeployRequested";
/// The host is cleaned up; only on a compute that is being deleted.
pub const HOST_CLEANED: &str = "HostCleaned";
/// What nova keeps of the host is on record in the cell; only on a compute that is being deleted and
/// waits for a place there.
pub const LEFTOVER_RECORDED: &str = "LeftoverRecorded";
/// Nova has no service of the host; only on a compute whose deletion uses nova's API.
pub const SERVICE_DELETED: &str = "ServiceDeleted";
/// Placement has no provider of the host; only on a compute whose deletion uses nova's API.
pub const PLACEMENT_CLEAN: &str = "PlacementClean";
/// Nova has no mapping of the host; only on a compute whose deletion uses nova's API.
pub const HOST_UNMAPPED: &str = "HostUnmapped";
/// Neutron has no dead agents of the host; only on a compute whose deletion uses nova's API.
pub const AGENTS_DELETED: &str = "AgentsDeleted";

// NovaCell

/// Every broker accepts the login.
pub const MESSAGE_BUS_READY: &str = "MessageBusReady";
/// Keystone answers.
pub const KEYSTONE_READY: &str = "KeystoneReady";
/// Nova's API answers; it does not affect `Ready`, and is absent where that API is not read.
pub const NOVA_API_READY: &str = "NovaAPIReady";
/// Every compute reports to nova; it does not affect `Ready`.
pub const COMPUTES_UP: &str = "ComputesUp";
/// The hosts of the cell are discovered; present only where the operator discovers them, and it
/// does not affect `Ready`.
pub const HOST_DISCOVERED: &str = "HostDiscovery";
/// Every compute uses the cell's current credentials; it does not affect `Ready`.
pub const COMPUTES_UP_TO_DATE: &str = "ComputesUpToDate";
/// Present only while a compute got no response from a conductor; it does not affect `Ready`.
pub const CONDUCTOR_ANSWERS: &str = "ConductorAnswers";
/// No compute holds the cell; present only on a cell that is being deleted.
pub const RELEASED: &str = "Released";
