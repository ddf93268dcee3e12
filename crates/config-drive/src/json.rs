//! Deterministic JSON: sorted keys, indentation of two spaces, a line break at the end.

use serde_json::Value;

/// Returns the text of a value; its keys are in order, whichever map type [`Value`] has in this build.
pub(crate) fn text(value: &Value) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    serde_json::to_string_pretty(&value).expect("keys are texts") + "\n"
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
