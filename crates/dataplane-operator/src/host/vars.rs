//! Variables from ConfigMaps and Secrets, merged per host with upstream's precedence.
//!
//! Later entries of a list take precedence over earlier ones. The fields and `ansibleVars` beside
//! the list take precedence over it. Everything of a node takes precedence over everything of its
//! role. Values of Secrets are not kept here, only their origins.

use std::collections::{BTreeMap, BTreeSet};

use api::dataplane::{NodeSection, NodeSet};
use api::problem::Problem;
use api::shared::DataSource;
use operator_core::data_sources::{NamedSource, SourceRef};
use operator_core::keyed::{Digest, Inputs, short};
use operator_runtime::source_cache::Content;
use serde_json::Value;

use crate::reasons;

/// The existing objects that lists of `ansibleVarsFrom` name.
pub type Objects = BTreeMap<SourceRef, Content>;

/// The origin of a variable.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Origin {
    /// The ConfigMap or Secret.
    pub source: SourceRef,
    /// The key within it.
    pub key: String,
    /// Digest of the value.
    pub digest: Digest,
    /// Whether the node names the object; otherwise its role does.
    pub is_of_node: bool,
}

impl Origin {
    /// Returns the value; `None` when the object or key is gone or the content is not text.
    pub fn value(&self, objects: &Objects) -> Option<Value> {
        objects.get(&self.source)?.text(&self.key).map(value)
    }
}

/// Maps the name of a variable to its origin.
pub type Origins = BTreeMap<String, Origin>;

/// Returns the objects that a list names, in its order.
pub fn named(entries: &[DataSource]) -> Vec<NamedSource> {
    entries.iter().filter_map(NamedSource::of).collect()
}

/// Returns the objects named in `ansibleVarsFrom` of a node set.
pub fn sources_of_vars(set: &NodeSet) -> Vec<NamedSource> {
    let template = set.spec.node_template.ansible.as_ref();
    let own = set.spec.nodes.values().filter_map(|it| it.ansible.as_ref());
    let lists = template.into_iter().chain(own).map(|it| it.ansible_vars_from.as_slice());
    lists.flat_map(named).collect()
}

/// A variable that an entry of a list provides.
pub struct VarSource<'a> {
    /// Its name, with the entry's prefix.
    pub name: String,
    /// The object that the entry names.
    pub source: SourceRef,
    /// The content of that object.
    pub content: &'a Content,
    /// The variable's key in the content.
    pub key: &'a str,
}

/// Returns the variables that a list provides, in its order; entries whose objects do not exist are
/// skipped.
pub fn given<'a>(
    namespace: &str,
    entries: &[DataSource],
    objects: &'a Objects,
) -> Vec<VarSource<'a>> {
    let mut found = Vec::new();
    for entry in entries {
        let Some(source) = NamedSource::of(entry).map(|it| it.source(namespace)) else { continue };
        let Some(content) = objects.get(&source) else { continue };
        let prefix = entry.prefix.as_deref().unwrap_or_default();
        let given = |key: &'a str| VarSource {
            name: format!("{prefix}{key}"),
            source: source.clone(),
            content,
            key,
        };
        found.extend(content.keys().map(given));
    }
    found
}

/// Returns the variables that the list of one level provides, except those that the level's own
/// fields and `ansibleVars` set.
pub fn of_level(
    namespace: &str,
    section: &NodeSection,
    is_of_node: bool,
    objects: &Objects,
) -> Origins {
    let origin = |it: VarSource<'_>| {
        let digest = it.content.digest(it.key).cloned().unwrap_or_default();
        (it.name, Origin { source: it.source, key: it.key.to_owned(), digest, is_of_node })
    };
    let given = given(namespace, &section.ansible_vars_from, objects);
    let mut found: Origins = given.into_iter().map(origin).collect();
    let set = set_by(section);
    found.retain(|it, _| !set.contains(it.as_str()) && !section.ansible_vars.contains_key(it));
    found
}

/// Returns the variables that the fields of one level set.
pub fn set_by(section: &NodeSection) -> BTreeSet<&'static str> {
    let template = section.network_config.as_ref().and_then(|it| it.template.as_ref());
    let fields = [
        ("ansible_user", section.ansible_user.is_some()),
        ("ansible_port", section.ansible_port.is_some()),
        ("management_network", section.management_network.is_some()),
        ("edpm_network_config_template", template.is_some()),
        ("ansible_ssh_private_key_file", section.ansible_ssh_private_key_secret.is_some()),
    ];
    fields.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name).collect()
}

/// Returns the inputs for these origins: `ansibleVarsFrom Secret x` → digest of its variables.
///
/// A key that is overridden is not part of it: changing it changes nothing.
pub fn inputs(origins: &Origins) -> Inputs {
    let mut given: BTreeMap<String, BTreeMap<&str, Digest>> = BTreeMap::new();
    for (name, origin) in origins {
        let title = format!("ansibleVarsFrom {}", title(&origin.source));
        given.entry(title).or_default().insert(name, origin.digest.clone());
    }
    given.into_iter().map(|(title, vars)| (title, short(&vars))).collect()
}

/// Returns `Secret x` or `ConfigMap x`.
pub fn title(source: &SourceRef) -> String {
    format!("{} {}", source.kind.as_str(), source.key.name)
}

/// Parses a text as JSON, as Ansible gets it; anything that is not JSON is a string.
///
/// A number that would be written differently than it was (`1.10`, `1e3`) stays a string too.
pub fn value(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(Value::Number(number)) if number.to_string() != text.trim() => text.into(),
        Ok(value) => value,
        Err(_) => text.into(),
    }
}

/// Returns the faults of the objects that a list names; `place` is the path of the list.
pub fn faults(
    namespace: &str,
    objects: &Objects,
    entries: &[DataSource],
    place: &str,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    for named in named(entries) {
        let title = named.title();
        match objects.get(&named.source(namespace)) {
            None if named.is_optional => {}
            None => problems.push(Problem::new(
                &reasons::inputs::VARIABLES_NOT_FOUND,
                format!(
                    "{title}, named in {place}, does not exist: create it, or set optional: true \
                     there."
                ),
            )),
            Some(content) => {
                let binary = content.keys().find(|it| content.text(it).is_none());
                problems.extend(binary.map(|key| {
                    Problem::new(
                        &reasons::inputs::VARIABLES_INVALID,
                        format!(
                            "{title}, named in {place}, has a key {key} that is no text, and a \
                             variable can hold nothing else: take it out."
                        ),
                    )
                }));
            }
        }
    }
    problems.dedup();
    problems
}

/// Returns whether faults mean that variables of the host are unknown at present.
pub fn are_unknown(problems: &[Problem]) -> bool {
    let unknown = [&reasons::inputs::VARIABLES_NOT_FOUND, &reasons::inputs::VARIABLES_INVALID];
    problems.iter().any(|it| unknown.contains(&it.reason))
}

#[cfg(test)]
mod tests {
    use operator_runtime::source_cache::Values;
    use serde_json::json;

    use super::*;

    fn objects() -> Objects {
        let content = |pairs: &[(&str, &str)]| {
            let values = pairs.iter().map(|(k, v)| ((*k).to_owned(), v.as_bytes().to_vec()));
            Content::from(Values::new("1", values.collect()))
        };
        Objects::from([
            (SourceRef::config_map("ns", "m"), content(&[("a", "1"), ("b", "m"), ("c", "m")])),
            (SourceRef::secret("ns", "s"), content(&[("b", "s"), ("c", "s"), ("user", "s")])),
        ])
    }

    fn level(section: &Value) -> Vec<String> {
        let section: NodeSection = serde_json::from_value(section.clone()).unwrap();
        let origins = of_level("ns", &section, false, &objects());
        origins.iter().map(|(name, it)| format!("{name} {}", title(&it.source))).collect()
    }

    #[test]
    fn later_entries_win_and_a_prefix_tells_keys_apart() {
        let (m, s) = (json!({ "name": "m" }), json!({ "name": "s" }));
        let both = json!([{ "configMapRef": m }, { "secretRef": s }]);
        assert_eq!(
            level(&json!({ "ansibleVarsFrom": both })),
            ["a ConfigMap m", "b Secret s", "c Secret s", "user Secret s"]
        );
        let prefixed = json!([{ "prefix": "x_", "secretRef": s }, { "configMapRef": m }]);
        assert_eq!(
            level(&json!({ "ansibleVarsFrom": prefixed })),
            ["a ConfigMap m", "b ConfigMap m", "c ConfigMap m"]
                .into_iter()
                .chain(["x_b Secret s", "x_c Secret s", "x_user Secret s"])
                .collect::<Vec<_>>()
        );
        // An entry that names both refers to the ConfigMap, as upstream does.
        let one = json!([{ "configMapRef": m, "secretRef": s }]);
        assert_eq!(level(&json!({ "ansibleVarsFrom": one })).len(), 3);
    }

    #[test]
    fn fields_and_variables_of_the_same_level_win() {
        let from = json!([{ "prefix": "ansible_", "secretRef": { "name": "s" } }]);
        let found = level(&json!({
            "ansibleVarsFrom": from, "ansibleUser": "u", "ansibleVars": { "ansible_b": 1 },
        }));
        assert_eq!(found, ["ansible_c Secret s"]);
    }

    #[test]
    fn json_keeps_its_type_and_nothing_else_is_guessed() {
        for (text, expected) in [
            ("12", json!(12)),
            (" true\n", json!(true)),
            (r#"{"a": ["{{ b }}"]}"#, json!({ "a": ["{{ b }}"] })),
            ("\"quoted\"", json!("quoted")),
            ("null", Value::Null),
            ("", json!("")),
            ("123 abc", json!("123 abc")),
            ("007", json!("007")),
            ("1.10", json!("1.10")),
            ("1e3", json!("1e3")),
            ("123456789012345678901234567890", json!("123456789012345678901234567890")),
            ("yes", json!("yes")),
            ("{{ greeting }}", json!("{{ greeting }}")),
        ] {
            assert_eq!(value(text), expected, "{text}");
        }
    }
}
