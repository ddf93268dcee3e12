//! Applies a JSON Patch to a machine's fields, completely or not at all.

use serde_json::{Map, Value, json};

use crate::answer::Answer;

/// Returns the fields after the patch, or the rejection.
pub(crate) fn applied(
    fields: &Map<String, Value>,
    patch: &Value,
) -> Result<Map<String, Value>, Answer> {
    let mut fields = fields.clone();
    for change in patch.as_array().into_iter().flatten() {
        apply_change(&mut fields, change)?;
    }
    if let Some(faulty) = faulty(&fields) {
        let words = format!("Invalid network_data: {faulty}");
        return Err(Answer::refused(400, &words));
    }
    Ok(fields)
}

fn apply_change(fields: &mut Map<String, Value>, change: &Value) -> Result<(), Answer> {
    let path = change["path"].as_str().unwrap_or_default().trim_start_matches('/');
    let (field, key) = path.split_once('/').map_or((path, None), |(it, key)| (it, Some(key)));
    let is_removed = change["op"] == "remove";
    let missing = |name: &str| {
        let reason = format!("can't remove a non-existent object '{name}'");
        let words = format!("Couldn't apply patch '{}'. Reason: {reason}", python(change));
        Answer::refused(400, &words)
    };
    let place = fields.get_mut(field).ok_or_else(|| missing(field))?;
    match (key, place.as_object_mut()) {
        (Some(key), Some(inner)) if is_removed => {
            inner.remove(key).ok_or_else(|| missing(key))?;
        }
        (Some(key), Some(inner)) => {
            inner.insert(key.to_owned(), change["value"].clone());
        }
        (None, inner) if is_removed => {
            *place = if inner.is_some() { json!({}) } else { Value::Null };
        }
        (_, _) => *place = change["value"].clone(),
    }
    Ok(())
}

/// Returns the schema error of `network_data` when a network or a link lacks a required key.
fn faulty(fields: &Map<String, Value>) -> Option<String> {
    let data = fields.get("network_data")?;
    let lacks = |it: &&Value, keys: &[&str]| keys.iter().any(|key| it.get(key).is_none());
    let of = |list: &str| data[list].as_array().cloned().unwrap_or_default();
    let network = of("networks");
    let mut networks = network.iter().filter(|it| lacks(it, &["id", "link", "network_id", "type"]));
    let link = of("links");
    let mut links = link.iter().filter(|it| lacks(it, &["id", "type", "ethernet_mac_address"]));
    let found = networks.next().or_else(|| links.next())?;
    Some(format!("{} is not valid under any of the given schemas", python(found)))
}

/// Formats a value as Python does.
fn python(value: &Value) -> String {
    let joined = |it: Vec<String>| it.join(", ");
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("'{text}'"),
        Value::Array(items) => format!("[{}]", joined(items.iter().map(python).collect())),
        Value::Object(pairs) => {
            let pairs = pairs.iter().map(|(key, it)| format!("'{key}': {}", python(it)));
            format!("{{{}}}", joined(pairs.collect()))
        }
    }
}
