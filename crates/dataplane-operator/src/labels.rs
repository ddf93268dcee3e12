//! The labels by which this operator finds objects that it has made.

/// Label of all objects that expose ports; the watches select by it.
pub const PORTS: &str = "edpm.openstack.org/ports";

/// Label of the runs that look for guests before a machine is given back, with the UID of the object that
/// describes the host.
pub const LAST_LOOK: &str = "dataplane.openstack.org/last-look";

/// Label of certificates and of their Secrets with the node set.
pub const OF_NODE_SET: &str = "osdpns";

/// Label of certificates and of their Secrets with the role.
pub const OF_ROLE: &str = "osdp-role";
