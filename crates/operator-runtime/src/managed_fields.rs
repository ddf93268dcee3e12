//! The fields of an object that its writer still owns: detects edits by others from metadata alone.
//!
//! The API server records for each field manager the fields it has applied, and removes a field
//! from it when another manager changes that field's value. So an object whose writer still owns
//! everything it applied is unchanged, whatever its resource version, and its content need not be
//! read.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry, ObjectMeta};
use serde_json::{Value, json};

/// Paths in managed fields of the tracked keys, and the prefix used for each.
const PLACES: [(&str, &str); 2] =
    [("/f:data", "data"), ("/f:metadata/f:annotations", "annotation")];

/// The data keys and annotations that a writer applied and that no other manager has changed since.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ManagedFields(BTreeSet<String>);

impl ManagedFields {
    /// Reduces an object's managed fields to what [`ManagedFields::of`] needs: a short list, and
    /// none on objects of other writers.
    pub fn keep(meta: &mut ObjectMeta, manager: &str) {
        let applied = meta.managed_fields.take().into_iter().flatten().find(|it| {
            it.manager.as_deref() == Some(manager)
                && it.operation.as_deref() == Some("Apply")
                && it.subresource.as_deref().unwrap_or_default().is_empty()
        });
        let names = applied.and_then(|it| it.fields_v1).map(|it| names(&it.0));
        meta.managed_fields = names.filter(|it| !it.is_empty()).map(|it| {
            let fields_v1 = Some(FieldsV1(json!(it)));
            vec![ManagedFieldsEntry { fields_v1, ..ManagedFieldsEntry::default() }]
        });
    }

    /// Returns what [`ManagedFields::keep`] kept of an object.
    pub fn of(meta: &ObjectMeta) -> Self {
        let entry = meta.managed_fields.iter().flatten().next();
        let names = entry.and_then(|it| it.fields_v1.as_ref()?.0.as_array());
        let names = names.into_iter().flatten().filter_map(Value::as_str);
        Self(names.map(str::to_owned).collect())
    }

    /// Returns what the writer of an object owns right after applying it.
    pub fn applied(object: &Value) -> Self {
        let places = [("/data", "data"), ("/metadata/annotations", "annotation")];
        let keys = |(pointer, prefix): (&str, &'static str)| {
            let map = object.pointer(pointer).and_then(Value::as_object);
            map.into_iter().flat_map(serde_json::Map::keys).map(move |it| format!("{prefix}/{it}"))
        };
        Self(places.into_iter().flat_map(keys).collect())
    }

    /// Returns whether all of these annotations and data keys are still owned.
    pub fn has<'a>(
        &self,
        annotations: impl IntoIterator<Item = &'a str>,
        data: impl IntoIterator<Item = &'a str>,
    ) -> bool {
        annotations.into_iter().all(|it| self.0.contains(&format!("annotation/{it}")))
            && data.into_iter().all(|it| self.0.contains(&format!("data/{it}")))
    }
}

fn names(fields: &Value) -> Vec<String> {
    let keys = |(pointer, prefix): (&str, &'static str)| {
        let map = fields.pointer(pointer).and_then(Value::as_object);
        map.into_iter()
            .flat_map(serde_json::Map::keys)
            .filter_map(|it| it.strip_prefix("f:"))
            .map(move |it| format!("{prefix}/{it}"))
    };
    PLACES.into_iter().flat_map(keys).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({ "manager": manager, "operation": operation, "fieldsV1": fields })
    }

    fn kept(entries: &[Value]) -> ManagedFields {
        let mut meta: ObjectMeta =
            serde_json::from_value(json!({ "managedFields": entries })).unwrap();
        ManagedFields::keep(&mut meta, "op");
        ManagedFields::of(&meta)
    }

    fn ours() -> Value {
        json!({
            "f:data": { ".": {}, "f:inventory": {}, "f:network": {} },
            "f:metadata": { "f:annotations": { "f:hash": {} }, "f:labels": { "f:x": {} } },
        })
    }

    #[test]
    fn what_was_applied_is_owned_until_another_changes_it() {
        let whole = kept(&[entry("op", "Apply", &ours())]);
        assert!(whole.has(["hash"], ["inventory", "network"]));
        let object = json!({
            "metadata": { "annotations": { "hash": "1" } },
            "data": { "inventory": "", "network": "" },
        });
        assert_eq!(whole, ManagedFields::applied(&object));

        let theirs = json!({ "f:data": { "f:inventory": {} } });
        let mut left = ours();
        left["f:data"] = json!({ "f:network": {} });
        let edited = [entry("kubectl-edit", "Update", &theirs), entry("op", "Apply", &left)];
        assert!(!kept(&edited).has(["hash"], ["inventory", "network"]));
        // A manager that applies the same value becomes a co-owner and changes nothing.
        let shared = [entry("kubectl-edit", "Update", &theirs), entry("op", "Apply", &ours())];
        assert!(kept(&shared).has(["hash"], ["inventory", "network"]));
    }

    #[test]
    fn a_changed_annotation_and_a_forgotten_history_are_noticed() {
        let mut fields = ours();
        fields["f:metadata"] = json!({});
        assert!(!kept(&[entry("op", "Apply", &fields)]).has(["hash"], ["inventory"]));
        assert!(!kept(&[]).has([], ["inventory"]));
        assert!(!kept(&[entry("op", "Update", &ours())]).has([], ["inventory"]));
    }

    #[test]
    fn nothing_is_kept_of_objects_that_others_wrote() {
        let list = json!([entry("kubectl", "Apply", &ours())]);
        let mut meta: ObjectMeta =
            serde_json::from_value(json!({ "managedFields": list })).unwrap();
        ManagedFields::keep(&mut meta, "op");
        assert_eq!(meta.managed_fields, None);
        // Applying it again to its own result keeps the same.
        let mut meta: ObjectMeta =
            serde_json::from_value(json!({ "managedFields": [entry("op", "Apply", &ours())] }))
                .unwrap();
        ManagedFields::keep(&mut meta, "op");
        assert!(serde_json::to_string(&meta).unwrap().len() < 120);
    }
}
