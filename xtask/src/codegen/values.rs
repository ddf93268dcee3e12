//! The table of the chart's values, from the comments in values.yaml.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// A value of the chart.
struct Entry {
    path: Vec<String>,
    comment: String,
}

impl Entry {
    fn name(&self) -> String {
        self.path.join(".")
    }
}

/// Returns the Markdown table of all values, in the order of the file.
pub(super) fn table(text: &str) -> Result<String> {
    let values: Value = api::yaml::from_str(text)?;
    let mut table = "| Value | Default | Meaning |\n| --- | --- | --- |\n".to_owned();
    for entry in entries(text)? {
        let default = values.pointer(&format!("/{}", entry.path.join("/")));
        let default = default.with_context(|| format!("no value {}", entry.name()))?;
        let (name, meaning) = (entry.name(), entry.comment.replace('|', "\\|"));
        writeln!(table, "| `{name}` | `{default}` | {meaning} |")?;
    }
    Ok(table)
}

/// Returns the keys that have a comment; the value below such a key is its default.
///
/// # Assumptions
///
/// The file is formatted as in this repository: block mappings indented by two, comments right
/// above their key.
fn entries(text: &str) -> Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut path: Vec<String> = Vec::new();
    let mut comment: Vec<&str> = Vec::new();
    for line in text.lines() {
        let content = line.trim_start();
        let depth = (line.len() - content.len()) / 2;
        if let Some(words) = content.strip_prefix('#') {
            comment.push(words.trim());
            continue;
        }
        let Some((key, value)) = content.split_once(':') else {
            comment.clear();
            continue;
        };
        path.truncate(depth);
        path.push(key.to_owned());
        if entries.last().is_some_and(|it| path.len() > it.path.len() && path.starts_with(&it.path))
        {
            continue;
        }
        let is_group = comment.is_empty() && value.trim().is_empty();
        ensure!(is_group || !comment.is_empty(), "{} has no comment", path.join("."));
        if !is_group {
            entries.push(Entry { path: path.clone(), comment: comment.join(" ") });
            comment.clear();
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::super::chart::CHART;
    use super::*;
    use crate::paths;

    fn read(name: &str) -> String {
        fs::read_to_string(paths::repo().join(CHART).join(name)).unwrap()
    }

    #[test]
    fn every_value_has_a_line_with_its_default() {
        let text = "# The file.\n\n# One\n# or more.\na: 1\n\nb:\n  # A | B.\n  c: {}\n  # D.\n  \
                    d:\n    e: 2\n    f: 3\n# G.\ng: \"\"\n";
        let lines: Vec<String> = table(text).unwrap().lines().skip(2).map(str::to_owned).collect();
        let expected = [
            "| `a` | `1` | One or more. |",
            "| `b.c` | `{}` | A \\| B. |",
            "| `b.d` | `{\"e\":2,\"f\":3}` | D. |",
            "| `g` | `\"\"` | G. |",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_value_without_a_comment_is_refused() {
        let error = table("# A.\na: 1\nb: 2\n").unwrap_err();
        assert!(error.to_string().contains("b has no comment"), "{error}");
    }

    #[test]
    fn the_schema_knows_the_values_and_no_others() {
        let schema: Value = serde_json::from_str(&read("values.schema.json")).unwrap();
        let mut known = BTreeSet::new();
        leaves("", &schema, &mut known);
        // Helm's own value, which any parent chart may set.
        known.remove("global");
        let entries = entries(&read("values.yaml")).unwrap();
        let values: BTreeSet<String> = entries.iter().map(Entry::name).collect();
        assert_eq!(known, values);
    }

    /// Collects the paths of a schema that have no properties.
    fn leaves(path: &str, schema: &Value, found: &mut BTreeSet<String>) {
        let Some(properties) = schema["properties"].as_object() else {
            found.insert(path.to_owned());
            return;
        };
        assert_eq!(schema["additionalProperties"], false, "{path} accepts typos");
        for (name, schema) in properties {
            let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            leaves(&below, schema, found);
        }
    }

    #[test]
    fn every_definition_has_its_switch_and_no_switch_is_left() {
        let values: Value = api::yaml::from_str(&read("values.yaml")).unwrap();
        let switches: BTreeSet<String> =
            values["crds"].as_object().unwrap().keys().cloned().collect();
        let kinds: BTreeSet<String> =
            api::definitions::all().into_iter().map(|it| it.spec.names.kind).collect();
        assert_eq!(switches, kinds);
    }
}
