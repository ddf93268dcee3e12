//! The finalizers of nova-operator: what each of them holds, and until when.

/// On a node that owns a compute: until the compute is gone.
pub const NODE: &str = "nova.openstack.org/compute";
/// On a compute that has run, or will: until its host is cleaned up and leftovers are reported.
pub const COMPUTE: &str = "nova.openstack.org/cleanup";
/// On a cell that this operator reconciles and that has computes: until it has none.
pub const CELL: &str = "nova.openstack.org/in-use";
