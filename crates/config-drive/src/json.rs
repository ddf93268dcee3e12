//! Deterministic JSON: sorted keys, indentation of two spaces, a line break at the end.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

/// A value whose keys are serialized in order, whichever map type [`Value`] has in this build.
#[derive(Serialize)]
#[serde(untagged)]
enum Sorted<'a> {
    Object(BTreeMap<&'a str, Self>),
    List(Vec<Self>),
    Plain(&'a Value),
}

impl<'a> Sorted<'a> {
    fn of(value: &'a Value) -> Self {
        match value {
            Value::Object(map) => {
                Self::Object(map.iter().map(|(key, it)| (key.as_str(), Self::of(it))).collect())
            }
            Value::Array(items) => Self::List(items.iter().map(Self::of).collect()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                Self::Plain(value)
            }
        }
    }
}

/// Returns the text of a value.
pub(crate) fn text(value: &Value) -> String {
    let text = serde_json::to_string_pretty(&Sorted::of(value));
    text.expect("keys are texts") + "\n"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_sorted_at_every_depth() {
        let value = json!({"b": [{"z": 1, "a": null}], "a": "ä\"\n"});
        let expected = r#"{
  "a": "ä\"\n",
  "b": [
    {
      "a": null,
      "z": 1
    }
  ]
}
"#;
        assert_eq!(text(&value), expected);
    }
}
