//! The finalizers of nova-operator: what each of them keeps, and until when.

/// On a node that has a compute of its own: until the compute is gone.
pub const NODE: &str = "nova.openstack.org/compute";
/// On a compute that has run, or will: until its host is done with and what is left is told.
pub const COMPUTE: &str = "nova.openstack.org/cleanup";
/// On a cell of ours that has computes: until it has none.
pub const CELL: &str = "nova.openstack.org/in-use";
