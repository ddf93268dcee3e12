//! One object of a list or a watch: deserialized, or identified by its metadata where that fails.
//!
//! A list that is deserialized as a whole fails as a whole: one object that its CRD accepts and its
//! Rust type does not would hide all others of its kind, in all namespaces. `kube`'s
//! `DeserializeGuard` also reads item by item, but does not name the field.

use std::borrow::Cow;

use api::conditions::{READY, printable, truncated};
use api::fault::Fault;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::object_size;

/// Maximum nesting depth of an object without its metadata: what is built from it nests deeper.
const MAX_DEPTH: usize = 64;

/// Reason of the Event and the condition of an object that cannot be deserialized.
pub(crate) const REASON: &str = "Unreadable";

/// An object that exists but cannot be deserialized into its type.
#[derive(Clone, Debug)]
pub struct Unreadable {
    /// Name, namespace, UID, resource version and generation only.
    pub metadata: ObjectMeta,
    /// The first field that cannot be deserialized, and why. Contains no value of the object.
    pub fault: Fault,
    /// The message of its `Ready` condition, if that condition already has the reason `Unreadable`.
    pub reported: Option<String>,
}

/// The outcome of deserializing one object.
#[derive(Clone, Debug)]
pub(crate) enum Item<K> {
    /// It was deserialized.
    Readable(K),
    /// It cannot be deserialized.
    Unreadable(Box<Unreadable>),
}

impl<K> Item<K> {
    /// Returns the object, or `None` when it could not be deserialized.
    pub(crate) fn readable(self) -> Option<K> {
        match self {
            Self::Readable(object) => Some(object),
            Self::Unreadable(_) => None,
        }
    }
}

impl<K: DeserializeOwned> Item<K> {
    /// Deserializes an object; never fails.
    pub(crate) fn read(object: &Value) -> Self {
        let unreadable = |fault| {
            let (metadata, reported) = (identity(object), reported_message(object));
            Self::Unreadable(Box::new(Unreadable { metadata, fault, reported }))
        };
        if let Some(path) = too_deep(object) {
            let message = format!("is nested deeper than {MAX_DEPTH} levels");
            return unreadable(Fault::new(path, message));
        }
        match serde_path_to_error::deserialize(object) {
            Ok(object) => Self::Readable(object),
            Err(error) => unreadable(fault(&error)),
        }
    }

    /// Deserializes an object's JSON text. Never fails, and never uses more memory than one object
    /// may take.
    fn read_text(text: &str) -> Self {
        let too_much = object_size::fault(text.as_bytes(), object_size::OF_OBJECT);
        let tree = if too_much.is_none() { serde_json::from_str::<Value>(text).ok() } else { None };
        if let Some(object) = tree {
            return Self::read(&object);
        }
        let message = too_much.unwrap_or_else(|| "cannot be read".into());
        Self::Unreadable(Box::new(Outline::of(text).unreadable(message)))
    }
}

// In a watch event the API server writes the type before the object; otherwise the object would
// already have been parsed before this is called.
impl<'de, K: DeserializeOwned> Deserialize<'de> for Item<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(|it| Self::read_text(it.get()))
    }
}

/// The fields that are read of an object too large to be parsed.
#[derive(Default, Deserialize)]
struct Outline<'a> {
    #[serde(default)]
    metadata: Identity,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
}

/// The metadata fields that identify an object.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Identity {
    namespace: Option<String>,
    name: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
}

impl<'a> Outline<'a> {
    fn of(text: &'a str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// Converts the outline into an unreadable object with that fault message.
    fn unreadable(self, message: String) -> Unreadable {
        let Identity { namespace, name, uid, resource_version, generation } = self.metadata;
        let metadata = ObjectMeta {
            namespace,
            name,
            uid,
            resource_version,
            generation,
            ..ObjectMeta::default()
        };
        let status = self.status.map(RawValue::get);
        let status =
            status.filter(|it| object_size::fault(it.as_bytes(), object_size::OF_OBJECT).is_none());
        let status = status.and_then(|it| serde_json::from_str::<Value>(it).ok());
        let reported = status.and_then(|it| reported_message(&serde_json::json!({ "status": it })));
        Unreadable { metadata, fault: Fault::new("spec", message), reported }
    }
}

impl<K: Resource<DynamicType = ()>> Resource for Item<K> {
    type DynamicType = ();
    type Scope = K::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        K::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        K::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        K::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::plural(&())
    }

    // Without this, Secrets cached as metadata would be listed with their content.
    fn metadata_api() -> bool {
        K::metadata_api()
    }

    fn meta(&self) -> &ObjectMeta {
        match self {
            Self::Readable(object) => object.meta(),
            Self::Unreadable(it) => &it.metadata,
        }
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Readable(object) => object.meta_mut(),
            Self::Unreadable(it) => &mut it.metadata,
        }
    }
}

/// Extracts the identifying metadata field by field, as the rest may be what cannot be
/// deserialized.
fn identity(object: &Value) -> ObjectMeta {
    let metadata = &object["metadata"];
    let text = |name: &str| metadata[name].as_str().map(str::to_owned);
    ObjectMeta {
        namespace: text("namespace"),
        name: text("name"),
        uid: text("uid"),
        resource_version: text("resourceVersion"),
        generation: metadata["generation"].as_i64(),
        ..ObjectMeta::default()
    }
}

fn reported_message(object: &Value) -> Option<String> {
    let conditions = object["status"]["conditions"].as_array()?;
    let ready = conditions.iter().find(|it| it["type"] == READY && it["reason"] == REASON)?;
    Some(ready["message"].as_str()?.to_owned())
}

/// Returns the path and the expected type, but not the value, which may be confidential.
fn fault(error: &serde_path_to_error::Error<serde_json::Error>) -> Fault {
    let said = error.inner().to_string();
    let missing = said.strip_prefix("missing field `").and_then(|it| it.split('`').next());
    let expected = said.rsplit_once("expected ").map(|(_, expected)| truncated(expected, 100));
    let message = match (missing, expected) {
        (Some(field), _) => format!("cannot be read; it lacks {field}"),
        (None, Some(expected)) => format!("cannot be read; expected {expected}"),
        (None, None) => "cannot be read".into(),
    };
    Fault::new(truncated(&printable(&error.path().to_string()), 200), printable(&message))
}

/// Returns the path of the first field that nests too deep, shortened to its beginning.
fn too_deep(object: &Value) -> Option<String> {
    let fields = object.as_object()?.iter().filter(|(name, _)| *name != "metadata");
    fields.into_iter().find_map(|(name, value)| {
        let mut path = Vec::new();
        descend(value, MAX_DEPTH - 1, &mut path).then(|| {
            let shown = path.iter().rev().take(4).fold(name.clone(), |shown, it| shown + it);
            truncated(&printable(&shown), 200)
        })
    })
}

/// Returns whether a value has more than `levels` levels; `path` is then the path down, innermost
/// first.
fn descend(value: &Value, levels: usize, path: &mut Vec<String>) -> bool {
    let mut below = |step: String, child: &Value| {
        let is_deep = levels == 0 || descend(child, levels - 1, path);
        if is_deep {
            path.push(step);
        }
        is_deep
    };
    match value {
        Value::Object(fields) => fields.iter().any(|(name, it)| below(format!(".{name}"), it)),
        Value::Array(items) => {
            items.iter().enumerate().any(|(at, it)| below(format!("[{at}]"), it))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Pod, Secret};
    use kube::core::{ObjectList, PartialObjectMeta};
    use serde_json::json;

    use super::*;

    fn pod(spec: &Value) -> Value {
        let metadata = json!({
            "namespace": "ns", "name": "a", "uid": "1", "resourceVersion": "7", "generation": 3,
        });
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec })
    }

    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!("x"), |inner, _| json!({ "a": inner }))
    }

    /// Returns the fault of an object that cannot be deserialized.
    fn shown(object: &Value) -> String {
        match Item::<Pod>::read(object) {
            Item::Readable(_) => "readable".into(),
            Item::Unreadable(it) => it.fault.to_string(),
        }
    }

    #[test]
    fn the_field_is_named_and_its_value_is_not() {
        let cases = [
            (json!({ "containers": [] }), "readable"),
            (
                json!({ "containers": [{ "name": "c", "tty": "secret" }] }),
                "spec.containers[0].tty: cannot be read; expected a boolean",
            ),
            (
                json!({ "containers": [], "priority": 3_000_000_000_i64 }),
                "spec.priority: cannot be read; expected i32",
            ),
        ];
        for (spec, expected) in cases {
            assert_eq!(shown(&pod(&spec)), expected);
        }
    }

    #[test]
    fn a_field_that_is_missing_is_named() {
        let item = Item::<api::infra::IpSet>::read(&json!({
            "metadata": { "name": "a" }, "spec": { "networks": [{ "name": "ctlplane" }] },
        }));
        let Item::Unreadable(it) = item else { panic!("it was read") };
        let expected = "spec.networks[0]: cannot be read; it lacks subnetName";
        assert_eq!(it.fault.to_string(), expected);
    }

    #[test]
    fn the_name_of_a_field_is_nothing_that_a_terminal_obeys() {
        let mut named = pod(&json!({ "containers": [] }));
        named["metadata"]["labels"] = json!({ "\u{1b}[2Jx": 7 });
        let expected = "metadata.labels.[2Jx: cannot be read; expected a string";
        assert_eq!(shown(&named), expected);
        let spec = json!({ "containers": [], "\u{1b}\u{202e}x": nested(MAX_DEPTH) });
        assert!(shown(&pod(&spec)).starts_with("spec.x.a"), "{}", shown(&pod(&spec)));
    }

    #[test]
    fn an_object_that_nests_too_deep_is_named_by_the_beginning_of_its_path() {
        let deep = |levels| pod(&json!({ "containers": [], "x": nested(levels) }));
        assert_eq!(shown(&deep(MAX_DEPTH - 2)), "readable");
        let expected = "spec.x.a.a.a: is nested deeper than 64 levels";
        assert_eq!(shown(&deep(MAX_DEPTH - 1)), expected);
        let mut managed = pod(&json!({ "containers": [] }));
        managed["metadata"]["managedFields"] = json!([{ "fieldsV1": nested(80) }]);
        assert_eq!(shown(&managed), "readable", "its author cannot make metadata flatter");
    }

    #[test]
    fn an_object_that_would_take_more_memory_than_one_may_is_known_by_its_name_alone() {
        let mut object = pod(&json!({ "containers": [] }));
        let ready = json!({ "type": "Ready", "reason": REASON, "message": "told" });
        object["status"] = json!({ "conditions": [ready] });
        // 700 KiB, of which every 7 bytes are a tree of their own.
        object["spec"]["x"] = Value::Array(vec![json!({ "": 0 }); 100_000]);
        let list = json!({ "metadata": {}, "items": [object, pod(&json!({ "containers": [] }))] });
        let list: ObjectList<Item<Pod>> = serde_json::from_str(&list.to_string()).unwrap();
        let [Item::Unreadable(it), Item::Readable(_)] = list.items.as_slice() else {
            panic!("{:?}", list.items.len())
        };
        assert_eq!(it.fault.to_string(), "spec: takes more than 24 MiB in memory");
        let meta = &it.metadata;
        assert_eq!((meta.name.as_deref(), meta.generation), (Some("a"), Some(3)));
        assert_eq!((meta.uid.as_deref(), it.reported.as_deref()), (Some("1"), Some("told")));
    }

    #[test]
    fn a_list_is_read_whatever_one_of_its_items_is() {
        let good = pod(&json!({ "containers": [] }));
        let items = [good.clone(), pod(&json!(7)), json!("nothing"), good];
        let list = json!({ "metadata": { "resourceVersion": "9" }, "items": items });
        let list: ObjectList<Item<Pod>> = serde_json::from_str(&list.to_string()).unwrap();
        let is_readable = |it: &Item<Pod>| matches!(it, Item::Readable(_));
        let readable: Vec<bool> = list.iter().map(is_readable).collect();
        assert_eq!(readable, [true, false, false, true]);
        let meta = list.items[1].meta();
        assert_eq!((meta.name.as_deref(), meta.generation), (Some("a"), Some(3)));
    }

    #[test]
    fn metadata_stays_all_that_is_asked_for() {
        assert!(Item::<PartialObjectMeta<Secret>>::metadata_api());
        assert!(!Item::<Secret>::metadata_api());
    }
}
