//! Objects as users write them.

use kube::Resource;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Returns an object of the kind with these fields.
///
/// # Panics
///
/// When the fields are not those of the kind.
#[must_use]
#[track_caller]
pub fn object<K: Resource<DynamicType = ()> + DeserializeOwned>(mut fields: Value) -> K {
    fields["apiVersion"] = json!(K::api_version(&()));
    fields["kind"] = json!(K::kind(&()));
    serde_json::from_value(fields).expect("the object has its kind's form")
}

/// Returns the object of that name with these fields.
#[must_use]
#[track_caller]
pub fn named<K>(namespace: &str, name: &str, mut fields: Value) -> K
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    fields["metadata"]["namespace"] = json!(namespace);
    fields["metadata"]["name"] = json!(name);
    object(fields)
}

/// Returns an object that is new in its namespace; its UID is its name.
#[must_use]
#[track_caller]
pub fn new<K>(namespace: &str, name: &str, spec: &Value) -> K
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    named(namespace, name, json!({ "metadata": { "uid": name, "generation": 1 }, "spec": spec }))
}
