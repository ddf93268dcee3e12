//! The finalizers that the operator puts on objects.

/// The finalizer on a node or role with an inventory object; it stays until no other finalizer
/// does.
pub const INVENTORY: &str = "dataplane.openstack.org/inventory";
