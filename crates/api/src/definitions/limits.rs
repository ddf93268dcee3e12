//! Limits of what a definition accepts where a field says none: what no type of ours could read, and
//! sizes that are not intended.
//!
//! `format: int32` alone is not enough: the API servers that we support do not all judge by it.

use serde_json::{Map, Value, json};

/// How long a text of a `spec` may be, in characters: Linux takes no longer argument or variable.
pub const MAX_TEXT: u64 = 131_072;
/// How many entries a list or mapping of a `spec` may have.
pub const MAX_ENTRIES: u64 = 10_000;
/// The greatest integer of a `spec`: every reader of JSON keeps integers up to it apart.
pub const MAX_INTEGER: i64 = (1 << 53) - 1;

/// The times that we can read; the format `date-time` alone also takes offsets of 99 hours, and times
/// in the year 10000.
const TIME: &str =
    r"^[0-8]\d{3}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$";
/// Fields that are a number of 32 bits or a text; all others of that kind are quantities.
const SMALL_OR_TEXT: [&str; 2] = ["maxUnavailable", "port"];

/// Puts limits on the fields of an object's schema that have none.
///
/// # Caveats
/// Sizes are for `spec` alone: a `status` is written by the operators, and one that is refused would
/// stop them.
pub(super) fn add(schema: &mut Value) {
    for (part, is_written_by_humans) in [("spec", true), ("status", false)] {
        if let Some(schema) = schema["properties"].get_mut(part) {
            walk(part, schema, is_written_by_humans);
        }
    }
}

fn walk(name: &str, schema: &mut Value, with_sizes: bool) {
    let Some(fields) = schema.as_object_mut() else { return };
    narrow(name, fields);
    if with_sizes {
        limit(fields);
    }
    for (name, property) in
        fields.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten()
    {
        walk(name, property, with_sizes);
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(schema) = fields.get_mut(inner) {
            walk(name, schema, with_sizes);
        }
    }
}

/// What the type of the field could not read is refused.
fn narrow(name: &str, schema: &mut Map<String, Value>) {
    let is_small = schema.get("format").is_some_and(|it| it == "int32");
    let is_either = schema.contains_key("x-kubernetes-int-or-string");
    if is_small || is_either && SMALL_OR_TEXT.contains(&name) {
        or_insert(schema, "minimum", json!(i32::MIN));
        or_insert(schema, "maximum", json!(i32::MAX));
    }
    if schema.get("format").is_some_and(|it| it == "date-time") {
        or_insert(schema, "pattern", json!(TIME));
    }
}

/// What is larger than anybody means is refused.
fn limit(schema: &mut Map<String, Value>) {
    match schema.get("type").and_then(Value::as_str) {
        Some("string") if !schema.contains_key("enum") => {
            or_insert(schema, "maxLength", json!(MAX_TEXT));
        }
        Some("array") => or_insert(schema, "maxItems", json!(MAX_ENTRIES)),
        Some("object") if schema.get("additionalProperties").is_some_and(Value::is_object) => {
            or_insert(schema, "maxProperties", json!(MAX_ENTRIES));
        }
        Some("integer") => {
            or_insert(schema, "minimum", json!(-MAX_INTEGER));
            or_insert(schema, "maximum", json!(MAX_INTEGER));
        }
        _ => {}
    }
}

fn or_insert(schema: &mut Map<String, Value>, key: &str, value: Value) {
    schema.entry(key).or_insert(value);
}
