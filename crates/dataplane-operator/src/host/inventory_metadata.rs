//! The metadata of the objects that hold inventories, by which it is seen whether they are intact.

use operator_core::data_sources::SourceRef;
use operator_runtime::managed_fields::ManagedFields;
use operator_runtime::source_cache::SourceCache;

/// Annotation with the hash of an inventory object's content.
pub const INVENTORY_HASH: &str = "edpm.openstack.org/content-hash";

/// The metadata of an inventory object.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Inventory {
    /// Hash of the content that was written.
    pub hash: String,
    /// The fields of it that no other writer has changed since.
    pub managed_fields: ManagedFields,
    /// Whether it has an owner and would be deleted with it, as earlier versions created it.
    pub has_owner: bool,
}

impl Inventory {
    /// Reads an inventory object's metadata; `None` when it does not exist or was not written by
    /// us.
    pub fn of(sources: &SourceCache, object: &SourceRef) -> Option<Self> {
        let hash = sources.annotation(object, INVENTORY_HASH)?;
        Some(Self {
            hash,
            managed_fields: sources.owned(object),
            has_owner: sources.has_owner(object),
        })
    }
}

#[cfg(test)]
impl Inventory {
    /// Returns the metadata of an inventory object that was just written.
    pub(crate) fn written(object: &serde_json::Value) -> Self {
        assert!(object["metadata"]["ownerReferences"].is_null());
        let hash = object["metadata"]["annotations"][INVENTORY_HASH].as_str();
        let managed_fields = ManagedFields::applied(object);
        Self { hash: hash.unwrap().to_owned(), managed_fields, has_owner: false }
    }
}
