//! The entries of hosts in an inventory that was rendered, as text.
//!
//! An entry moves from one inventory into another line by line: a parser would lose which of its
//! texts are data and which are templates.

use std::collections::BTreeMap;

use serde_json::Value;

/// The line above the entries of the hosts.
const HOSTS: &str = "  hosts:";
/// What the first line of an entry begins with.
const ENTRY: &str = "    ";
/// What the line of a variable begins with.
const VARIABLE: &str = "      ";
/// What a further line of a variable begins with.
const NESTED: &str = "        ";
/// The tag of a text that is taken literally.
const DATA: &str = "!unsafe ";

/// The lines of each host, by its name in the inventory.
pub type Entries = BTreeMap<String, String>;

/// An inventory, split at the entries of its hosts.
#[derive(Default)]
struct Parts {
    head: String,
    entries: Entries,
    tail: String,
}

impl Parts {
    fn of(inventory: &str) -> Self {
        let mut parts = Self::default();
        let mut lines = inventory.split_inclusive('\n').peekable();
        parts.head.extend(lines.next());
        if lines.next_if(|it| it.trim_end() == HOSTS).is_some() {
            let mut host = String::new();
            while let Some(line) = lines.next_if(|it| it.starts_with(ENTRY)) {
                if !line.starts_with(VARIABLE) {
                    host = name_in(line);
                }
                parts.entries.entry(host.clone()).or_default().push_str(line);
            }
        }
        parts.tail.extend(lines);
        parts
    }

    fn joined(self) -> String {
        let hosts = if self.entries.is_empty() { String::new() } else { format!("{HOSTS}\n") };
        let entries: String = self.entries.into_values().collect();
        self.head + &hosts + &entries + &self.tail
    }
}

/// Returns the host whose entry begins with a line, which has the name in quotes if YAML needs
/// them.
fn name_in(line: &str) -> String {
    let key = line.trim().split(':').next().unwrap_or_default();
    key.trim_matches('"').to_owned()
}

/// Returns the entries of an inventory's hosts; none if the text is not one that was rendered.
pub fn entries(inventory: &str) -> Entries {
    Parts::of(inventory).entries
}

/// Returns an inventory with further entries. Hosts that it has keep their own.
pub fn with_entries(inventory: String, further: Entries) -> String {
    if further.is_empty() {
        return inventory;
    }
    let mut parts = Parts::of(&inventory);
    for (host, entry) in further {
        parts.entries.entry(host).or_insert(entry);
    }
    parts.joined()
}

/// Returns a variable of an entry; `None` if the entry lacks it or its value is a structure.
pub fn variable(entry: &str, name: &str) -> Option<Value> {
    let line = format!("{VARIABLE}{name}: ");
    let value = entry.lines().find_map(|it| it.strip_prefix(&line))?;
    serde_json::from_str(value.strip_prefix(DATA).unwrap_or(value)).ok()
}

/// Returns an inventory in which each host has a variable as another inventory has it.
pub fn with_variable_of(inventory: &str, other: &str, name: &str) -> String {
    let present = entries(other);
    let mut parts = Parts::of(inventory);
    for (host, entry) in &mut parts.entries {
        let Some(present) = present.get(host) else { continue };
        let ((rest, before), (_, now)) = (split_off(entry, name), split_off(present, name));
        if now != before {
            *entry = rest + &now;
        }
    }
    parts.joined()
}

/// Splits the lines of a variable off an entry: returns the other lines, and those.
fn split_off(entry: &str, name: &str) -> (String, String) {
    let first = format!("{VARIABLE}{name}:");
    let (mut rest, mut own, mut is_own) = (String::new(), String::new(), false);
    for line in entry.split_inclusive('\n') {
        is_own = line.starts_with(&first) || is_own && line.starts_with(NESTED);
        if is_own { own.push_str(line) } else { rest.push_str(line) }
    }
    (rest, own)
}

/// Returns whether an entry has a variable.
pub fn has_variable(entry: &str, name: &str) -> bool {
    let line = format!("{VARIABLE}{name}:");
    entry.lines().any(|it| it.starts_with(&line))
}

#[cfg(test)]
mod tests {
    use api::yaml::{Tree, Var};
    use serde_json::json;

    use super::*;

    fn rendered(hosts: &[&str]) -> String {
        let vars = |host: &str| {
            Tree::map([
                ("ansible_host", Tree::data(format!("{host}.example.com"))),
                ("ansible_port", Tree::data("2022")),
                ("text", Tree::template("a\n    n9:\n  vars: {{ x }}")),
                ("tree", Tree::Scalar(Var::Template(json!({ "b": [1, { "c": "d" }], "e": {} })))),
            ])
        };
        let mut group = BTreeMap::from([("vars".to_owned(), Tree::map([("v", Tree::data(1))]))]);
        if !hosts.is_empty() {
            let hosts = hosts.iter().map(|it| ((*it).to_owned(), vars(it)));
            group.insert("hosts".into(), Tree::map(hosts));
        }
        Tree::map([("compute", Tree::Map(group))]).render()
    }

    #[test]
    fn an_entry_that_moves_into_another_inventory_is_as_it_was_rendered() {
        let all = rendered(&["0a", "n0", "n1", "no"]);
        let found = entries(&all);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["0a", "n0", "n1", "no"]);
        for rest in [vec!["n0", "n1", "no"], vec!["0a", "n1"], vec![]] {
            let mut further = found.clone();
            further.retain(|host, _| !rest.contains(&host.as_str()));
            assert_eq!(with_entries(rendered(&rest), further), all, "{rest:?}");
        }
        assert_eq!(with_entries(all.clone(), Entries::new()), all);
    }

    #[test]
    fn a_host_of_the_inventory_keeps_its_own_entry() {
        let old = Entries::from([("n0".to_owned(), "    n0:\n      old: 1\n".to_owned())]);
        let all = rendered(&["n0"]);
        assert_eq!(with_entries(all.clone(), old), all);
    }

    #[test]
    fn variables_of_an_entry_are_read_whatever_their_tag() {
        let entry = &entries(&rendered(&["n0"]))["n0"];
        assert_eq!(variable(entry, "ansible_host"), Some(json!("n0.example.com")));
        assert_eq!(variable(entry, "ansible_port"), Some(json!("2022")));
        assert_eq!(variable(entry, "text"), Some(json!("a\n    n9:\n  vars: {{ x }}")));
        assert_eq!((variable(entry, "tree"), variable(entry, "ansible")), (None, None));
        assert!(has_variable(entry, "tree") && !has_variable(entry, "b"));
    }

    #[test]
    fn a_variable_of_another_inventory_takes_the_place_of_that_of_each_host() {
        let all = rendered(&["n0", "n1"]);
        let other = rendered(&["n0"]).replace("        b:", "        x:");
        let merged = with_variable_of(&all, &other, "tree");
        assert_eq!(entries(&merged)["n1"], entries(&all)["n1"], "the other one lacks the host");
        let sorted = |inventory: &str| {
            let mut lines: Vec<String> =
                entries(inventory)["n0"].lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&merged), sorted(&other));
        assert_eq!(with_variable_of(&merged, &other, "tree"), merged, "it stays");
        assert_eq!(with_variable_of(&all, &all, "tree"), all);
        let without = with_variable_of(&all, &other.replace("tree:", "other:"), "tree");
        let entry = &entries(&without)["n0"];
        assert!(!has_variable(entry, "tree") && has_variable(entry, "text"), "{without}");
        assert!(!entry.contains(" b:"), "{without}");
    }

    #[test]
    fn a_text_that_was_not_rendered_has_no_entries() {
        for text in ["", "compute: {hosts: {n0: {}}}", "all:\n  children:\n    n0:\n", "{"] {
            assert_eq!(entries(text), Entries::new(), "{text:?}");
        }
    }
}
