//! The finalizers that the operator puts on objects.

use kube::ResourceExt;

/// The finalizer on a node or role with an inventory object; it stays until no other finalizer
/// does.
pub const INVENTORY_FINALIZER: &str = "dataplane.openstack.org/inventory";

/// Returns the finalizers of others than the operator.
pub fn of_others(object: &impl ResourceExt) -> Vec<&str> {
    let all = object.finalizers().iter().map(String::as_str);
    all.filter(|it| *it != INVENTORY_FINALIZER).collect()
}

/// Returns whether others than the operator hold an object by finalizers, so that its machines are
/// in use.
pub fn is_used(object: &impl ResourceExt) -> bool {
    !of_others(object).is_empty()
}
