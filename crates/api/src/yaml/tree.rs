//! Writes YAML for Ansible from typed values: what is data can never become a template.
//!
//! The output is understood alike by YAML 1.1 (Ansible's) and 1.2 parsers: every string is quoted
//! as JSON quotes it, so that nothing is taken for a number, a date or a boolean.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Number, Value};

/// Keys longer than this need YAML's explicit form; the limit of parsers is 1,024.
const SIMPLE_KEY_LIMIT: usize = 512;

/// Words that YAML 1.1 takes for a boolean or for nothing.
const OTHER_THINGS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];

/// A value for Ansible.
#[derive(Clone, Debug, PartialEq)]
pub enum Var {
    /// Taken literally: each string in it that could hold an expression is tagged `!unsafe`, so
    /// Ansible does not evaluate it.
    Data(Value),
    /// May hold expressions that Ansible evaluates: its author is trusted like a playbook's.
    Template(Value),
}

/// A structure for Ansible.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// A mapping, written in the order of its keys.
    Map(BTreeMap<String, Self>),
    /// A list.
    Seq(Vec<Self>),
    /// A value; it may be a whole structure of its own.
    Scalar(Var),
    /// A mapping that was [written before](Tree::written_at) for this place.
    Written(String),
}

impl Tree {
    /// A mapping of the entries.
    pub fn map<K: Into<String>>(entries: impl IntoIterator<Item = (K, Self)>) -> Self {
        Self::Map(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }

    /// A value that is taken literally.
    pub fn data(value: impl Into<Value>) -> Self {
        Self::Scalar(Var::Data(value.into()))
    }

    /// A value that may hold expressions.
    pub fn template(value: impl Into<Value>) -> Self {
        Self::Scalar(Var::Template(value.into()))
    }

    /// The structure as a YAML document.
    pub fn render(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, 0, false);
        out
    }

    /// The structure as text that begins `indent` spaces in, for [`Tree::Written`].
    pub fn written_at(&self, indent: usize) -> String {
        let mut out = String::new();
        self.write(&mut out, indent, false);
        out
    }

    /// Writes the structure at a position behind a key or a dash (`inline`) or at a line's start.
    fn write(&self, out: &mut String, indent: usize, inline: bool) {
        match self {
            Self::Map(map) if !map.is_empty() => {
                if inline {
                    out.push('\n');
                }
                for (key, value) in map {
                    write_key(out, indent, key);
                    value.write(out, indent + 2, true);
                }
            }
            Self::Seq(items) if !items.is_empty() => {
                if inline {
                    out.push('\n');
                }
                for item in items {
                    let _ = write!(out, "{:indent$}-", "");
                    item.write(out, indent + 2, true);
                }
            }
            Self::Map(_) => leaf(out, inline, "{}"),
            Self::Seq(_) => leaf(out, inline, "[]"),
            Self::Scalar(var) => var.write(out, indent, inline),
            Self::Written(text) => {
                if inline {
                    out.push('\n');
                }
                out.push_str(text);
            }
        }
    }
}

impl Var {
    fn write(&self, out: &mut String, indent: usize, inline: bool) {
        let same_kind = |value: &Value| match self {
            Self::Data(_) => Tree::data(value.clone()),
            Self::Template(_) => Tree::template(value.clone()),
        };
        let (Self::Data(value) | Self::Template(value)) = self;
        match value {
            Value::Object(map) => {
                Tree::map(map.iter().map(|(key, value)| (key.clone(), same_kind(value))))
                    .write(out, indent, inline);
            }
            Value::Array(items) => {
                Tree::Seq(items.iter().map(same_kind).collect()).write(out, indent, inline);
            }
            Value::String(text) => {
                let tagged = matches!(self, Self::Data(_)) && !looks_like_another_type(text);
                let tag = if tagged { "!unsafe " } else { "" };
                leaf(out, inline, &format!("{tag}{}", quoted(text)));
            }
            Value::Number(number) => leaf(out, inline, &plain_number(number)),
            Value::Null | Value::Bool(_) => leaf(out, inline, &value.to_string()),
        }
    }
}

fn leaf(out: &mut String, inline: bool, text: &str) {
    if inline {
        out.push(' ');
    }
    out.push_str(text);
    out.push('\n');
}

fn write_key(out: &mut String, indent: usize, key: &str) {
    let text = if is_plain_key(key) { key.to_owned() } else { quoted(key) };
    if text.len() > SIMPLE_KEY_LIMIT {
        let _ = write!(out, "{:indent$}? {text}\n{:indent$}:", "", "");
    } else {
        let _ = write!(out, "{:indent$}{text}:", "");
    }
}

/// Whether a key needs no quotes: a word that YAML 1.1 does not take for something else.
fn is_plain_key(key: &str) -> bool {
    key.starts_with(|it: char| it.is_ascii_alphabetic())
        && key.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-'))
        && !OTHER_THINGS.contains(&key.to_ascii_lowercase().as_str())
}

/// Whether a text may stand for a number, a date, a boolean or null where it is not quoted.
///
/// ansible-core 2.19 and later make a text below `!unsafe` such a value in spite of its quotes, so
/// it must stay untagged; and it can, for no expression is made of these characters alone.
fn looks_like_another_type(text: &str) -> bool {
    let start = |it: char| it.is_ascii_digit() || "+-.~=<".contains(it);
    let other = |it: char| it.is_ascii_alphanumeric() || "+-.~=<_: \t".contains(it);
    text.is_empty()
        || (text.starts_with(start) && text.chars().all(other))
        || OTHER_THINGS.contains(&text.to_ascii_lowercase().as_str())
}

/// A text in double quotes, with every character escaped that YAML 1.1 does not print or folds.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for it in text.chars() {
        match it {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            ' '..='~'
            | '\u{a0}'..='\u{2027}'
            | '\u{202a}'..='\u{fefe}'
            | '\u{ff00}'..='\u{fffd}'
            | '\u{10000}'..='\u{10ffff}' => out.push(it),
            _ => {
                let _ = write!(out, "\\u{:04x}", u32::from(it));
            }
        }
    }
    out.push('"');
    out
}

/// A number in a form that YAML 1.1 also takes for one: an exponent needs a dot and a sign.
fn plain_number(number: &Number) -> String {
    let text = number.to_string();
    let Some((mantissa, exponent)) = text.split_once(['e', 'E']) else { return text };
    let dot = if mantissa.contains('.') { "" } else { ".0" };
    let sign = if exponent.starts_with(['+', '-']) { "" } else { "+" };
    format!("{mantissa}{dot}e{sign}{exponent}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::yaml;

    #[test]
    fn an_inventory_reads_well() {
        let vars = json!({"a": "{{ b }}", "list": [1, {"x": "y"}, []], "off": false, "none": null});
        let tree = Tree::map([(
            "edpm-compute-0",
            Tree::map([
                ("ansible_host", Tree::data("192.168.122.100")),
                ("hosts", Tree::Seq(vec![Tree::data("a"), Tree::map([("k", Tree::data("v"))])])),
                ("vars", Tree::template(vars)),
                ("empty", Tree::Map(BTreeMap::new())),
            ]),
        )]);
        let expected = r#"edpm-compute-0:
  ansible_host: "192.168.122.100"
  empty: {}
  hosts:
    - !unsafe "a"
    -
      k: !unsafe "v"
  vars:
    a: "{{ b }}"
    list:
      - 1
      -
        x: "y"
      - []
    none: null
    "off": false
"#;
        assert_eq!(tree.render(), expected);
        let Tree::Map(hosts) = &tree else { unreachable!() };
        let written = Tree::Written(hosts["edpm-compute-0"].written_at(2));
        assert_eq!(Tree::map([("edpm-compute-0", written)]).render(), expected);
    }

    #[test]
    fn every_string_inside_data_is_tagged() {
        let text = Tree::data(json!({"a": ["{{ x }}", {"b": "{% y %}"}]})).render();
        assert_eq!(text.matches("!unsafe").count(), 2, "{text}");
    }

    #[test]
    fn data_stays_text_for_parsers_that_retype_what_is_tagged() {
        for text in
            ["", "0x1f", "12", "1:30", "1e3", ".5", "-.inf", "~", "Yes", "null", "2001-01-01"]
        {
            assert_eq!(Tree::data(text).render(), format!("{}\n", quoted(text)));
        }
        for text in ["1{{ x }}", "{{ x }}", "yes{# #}", "#jinja2:a", "-{% x %}", "a", "10 %"] {
            assert_eq!(Tree::data(text).render(), format!("!unsafe {}\n", quoted(text)));
        }
    }

    #[test]
    fn characters_that_parsers_refuse_or_fold_are_escaped() {
        assert_eq!(quoted("\0\u{7f}\u{85}\u{2028}\u{feff}"), r#""\u0000\u007f\u0085\u2028\ufeff""#);
        assert_eq!(quoted("a\"\\\n\tä\u{1f600}"), "\"a\\\"\\\\\\n\\tä\u{1f600}\"");
    }

    #[test]
    fn large_numbers_stay_numbers_for_yaml_1_1() {
        assert_eq!(plain_number(&Number::from_f64(1e100).unwrap()), "1.0e+100");
        assert_eq!(plain_number(&Number::from_f64(2.5e-9).unwrap()), "2.5e-9");
        assert_eq!(plain_number(&Number::from(7)), "7");
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "[ ~!@#&*%{}:,'?|>-]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..5)
                    .prop_map(|it| Value::Object(it.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(value in any_value()) {
            let text = Tree::template(value.clone()).render();
            prop_assert_eq!(yaml::from_str::<Value>(&text).unwrap(), value, "{}", text);
        }
    }

    #[test]
    fn a_long_key_is_read_again() {
        let value = json!({"k".repeat(2000): {"a": [1]}});
        let text = Tree::template(value.clone()).render();
        assert_eq!(yaml::from_str::<Value>(&text).unwrap(), value);
    }
}
