//! The objects that hold a group's inventory: their names, and what stands on them.

use operator_core::data_sources::SourceRef;
use operator_runtime::managed_fields::ManagedFields;
use operator_runtime::source_cache::SourceCache;

/// Annotation with the hash of an inventory object's content.
pub const INVENTORY_HASH: &str = "edpm.openstack.org/content-hash";

/// Name of the inventory object of a node.
pub fn node_inventory_name(node: &str) -> String {
    format!("dataplanenode-{node}")
}

/// Name of the inventory object of a role.
pub fn role_inventory_name(role: &str) -> String {
    format!("dataplanerole-{role}")
}

/// An inventory object, as far as its metadata tells.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Inventory {
    /// Hash of the content that was written.
    pub hash: String,
    /// What of it nobody has changed since.
    pub managed_fields: ManagedFields,
    /// Whether it would go with its owner, as earlier versions made it.
    pub has_owner: bool,
}

impl Inventory {
    /// What stands on an inventory object; nothing where there is none, or none of ours.
    pub fn of(sources: &SourceCache, object: &SourceRef) -> Option<Self> {
        let hash = sources.annotation(object, INVENTORY_HASH)?;
        Some(Self {
            hash,
            managed_fields: sources.owned(object),
            has_owner: sources.has_owner(object),
        })
    }
}
