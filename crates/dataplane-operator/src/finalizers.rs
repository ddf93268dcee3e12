//! The finalizers that the operator puts on objects.

/// On a node or role that has an inventory object: until nobody else holds it any more.
pub const INVENTORY: &str = "dataplane.openstack.org/inventory";

/// On a set of machines, until these are given back.
pub const MACHINES: &str = "baremetal.openstack.org/machines";
