//! Which parts of an object its writer still owns: how an edit by another is noticed from metadata.
//!
//! The API server keeps for each field manager which fields it has applied, and takes a field from
//! it as soon as anybody else changes that field's value. So an object whose writer owns all that it
//! has applied is as it was written, whatever its resource version, and nobody has to read its
//! content to know.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry, ObjectMeta};
use serde_json::{Value, json};

/// Where the keys are that are looked after, as managed fields have them, and the prefix of each.
const PLACES: [(&str, &str); 2] =
    [("/f:data", "data"), ("/f:metadata/f:annotations", "annotation")];

/// The keys of data and the annotations that a writer has applied and nobody has changed since.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ManagedFields(BTreeSet<String>);

impl ManagedFields {
    /// Leaves of an object's managed fields only what [`Owned::of`] needs: a short list, and none
    /// at all on objects of others.
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

    /// What was kept of an object.
    pub fn of(meta: &ObjectMeta) -> Self {
        let entry = meta.managed_fields.iter().flatten().next();
        let names = entry.and_then(|it| it.fields_v1.as_ref()?.0.as_array());
        let names = names.into_iter().flatten().filter_map(Value::as_str);
        Self(names.map(str::to_owned).collect())
    }

    /// What the writer of an object owns right after it was applied.
    pub fn applied(object: &Value) -> Self {
        let places = [("/data", "data"), ("/metadata/annotations", "annotation")];
        let keys = |(pointer, prefix): (&str, &'static str)| {
            let map = object.pointer(pointer).and_then(Value::as_object);
            map.into_iter().flat_map(serde_json::Map::keys).map(move |it| format!("{prefix}/{it}"))
        };
        Self(places.into_iter().flat_map(keys).collect())
    }

    /// Whether all of these are as they were written.
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
        // Who sets the same value owns it too, and changes nothing.
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
        // What is kept reads the same once more.
        let mut meta: ObjectMeta =
            serde_json::from_value(json!({ "managedFields": [entry("op", "Apply", &ours())] }))
                .unwrap();
        ManagedFields::keep(&mut meta, "op");
        assert!(serde_json::to_string(&meta).unwrap().len() < 120);
    }
}
