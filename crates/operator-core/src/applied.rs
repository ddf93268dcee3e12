//! What an operator applied to an object, as the object's annotation keeps it.

use serde_json::Value;

/// Annotation on a role or node with the hash of what was last applied to it: it tells that a field
/// was taken out of an entry, which no comparison of the objects can.
pub const APPLIED: &str = "dataplane.openstack.org/applied";

/// Whether everything that is wanted stands in what was found; what is empty may be absent.
pub fn says(found: Option<&Value>, desired: &Value) -> bool {
    match desired {
        Value::Object(map) => {
            map.iter().all(|(key, it)| says(found.and_then(|found| found.get(key)), it))
        }
        Value::Array(items) => {
            let found = found.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            found.len() == items.len()
                && found.iter().zip(items).all(|(found, it)| says(Some(found), it))
        }
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) | Value::String(_) => found == Some(desired),
    }
}
