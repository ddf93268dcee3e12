//! What an operator last applied to an object, as recorded in the object's annotation.

use serde_json::Value;

/// Annotation on a role or node with the hash of what was last applied to it.
///
/// It reveals that a field was removed from an entry, which comparing the objects cannot.
pub const APPLIED: &str = "dataplane.openstack.org/applied";

/// Returns whether `found` contains all of `desired`. Null and empty maps and lists may be absent.
pub fn contains_desired(found: Option<&Value>, desired: &Value) -> bool {
    match desired {
        Value::Object(map) => {
            map.iter().all(|(key, it)| contains_desired(found.and_then(|found| found.get(key)), it))
        }
        Value::Array(items) => {
            let found = found.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            found.len() == items.len()
                && found.iter().zip(items).all(|(found, it)| contains_desired(Some(found), it))
        }
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) | Value::String(_) => found == Some(desired),
    }
}
