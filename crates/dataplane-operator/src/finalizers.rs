//! The finalizers that the operator puts on objects.

/// On a node or role that has an inventory object: until nobody else holds it any more.
pub const INVENTORY: &str = "dataplane.openstack.org/inventory";
