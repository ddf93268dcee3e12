//! Whether oslo.config's types accept a value; values that cannot be checked count as accepted.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde::Deserialize;

use super::parse::is_space;

/// Longer lists are not checked: oslo.config tries every way to join their parts.
const LONGEST_LIST: usize = 1_000;

/// A type of oslo.config, as far as its rules are implemented here.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(tag = "is", rename_all = "lowercase")]
pub enum Type {
    /// Any text, or one of `choices`.
    String {
        /// The allowed texts; empty means any.
        #[serde(default)]
        choices: Vec<String>,
        /// Whether the choices are compared case-insensitively.
        #[serde(default)]
        ignore_case: bool,
        /// The maximum number of characters.
        #[serde(default)]
        max_length: Option<usize>,
    },
    /// An integer; ports included.
    Integer(Bounds),
    /// A number.
    Float(Bounds),
    /// A boolean.
    Boolean,
    /// Values separated by commas.
    List {
        /// The type of each item.
        item: Box<Self>,
    },
    /// `NAME:VALUE` pairs separated by commas.
    Dict,
    /// A URI, of which only the scheme is checked.
    Uri {
        /// The allowed schemes; empty means any.
        #[serde(default)]
        schemes: Vec<String>,
    },
    /// An IP address.
    Address,
    /// A host name.
    Hostname,
    /// An IP address or a host name.
    Host,
    /// An IP address, or a host name that may have underscores.
    Domain,
}

/// The allowed numbers.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
pub struct Bounds {
    /// The minimum.
    #[serde(default)]
    pub min: Option<f64>,
    /// The maximum.
    #[serde(default)]
    pub max: Option<f64>,
    /// The only allowed numbers; empty means all.
    #[serde(default)]
    pub choices: Vec<f64>,
}

impl Type {
    /// Whether oslo.config accepts the value.
    ///
    /// # Guarantees
    /// Returns `false` only for a value that it rejects.
    pub fn takes(&self, value: &str) -> bool {
        match self {
            Self::String { choices, ignore_case, max_length } => {
                max_length.is_none_or(|it| value.chars().count() <= it)
                    && is_chosen(value, choices, *ignore_case)
            }
            Self::Integer(bounds) => is_number(value, integer, bounds),
            Self::Float(bounds) => is_number(value, float, bounds),
            Self::Boolean => boolean(value).is_some(),
            Self::List { item } => is_list(value, item),
            Self::Dict => is_dict(value),
            Self::Uri { schemes } => is_uri(value, schemes),
            Self::Address => is_address(value),
            Self::Hostname => is_host_name(value, false),
            Self::Host => is_address(value) || is_host_name(value, false),
            Self::Domain => is_address(value) || is_host_name(value, true),
        }
    }

    /// Returns the accepted values, as text for the user.
    pub fn expected(&self) -> String {
        match self {
            Self::String { choices, .. } if !choices.is_empty() => one_of(choices),
            Self::String { max_length, .. } => {
                format!("a text of at most {} characters", max_length.unwrap_or_default())
            }
            Self::Integer(bounds) => bounds.wanted("an integer"),
            Self::Float(bounds) => bounds.wanted("a number"),
            Self::Boolean => "true or false".to_owned(),
            Self::List { item } => format!("a list separated by commas, each {}", item.expected()),
            Self::Dict => "a list of NAME:VALUE separated by commas".to_owned(),
            Self::Uri { schemes } if schemes.is_empty() => "a URI with a scheme".to_owned(),
            Self::Uri { schemes } => format!("a URI whose scheme is {}", one_of(schemes)),
            Self::Address => "an IP address".to_owned(),
            Self::Hostname => "a host name".to_owned(),
            Self::Host | Self::Domain => "an IP address or a host name".to_owned(),
        }
    }
}

/// Returns the boolean of a word, as all of OpenStack reads it; `None` when it is none.
pub(crate) fn boolean(word: &str) -> Option<bool> {
    match word.to_lowercase().as_str() {
        "true" | "1" | "on" | "yes" => Some(true),
        "false" | "0" | "off" | "no" => Some(false),
        _ => None,
    }
}

impl Bounds {
    fn holds(&self, number: f64) -> bool {
        if !self.choices.is_empty() {
            return self.choices.contains(&number);
        }
        // Compared in this direction so that NaN is within all bounds, as in Python.
        let is_below = self.min.is_some_and(|it| number < it);
        let is_above = self.max.is_some_and(|it| number > it);
        !is_below && !is_above
    }

    fn wanted(&self, what: &str) -> String {
        if !self.choices.is_empty() {
            let choices: Vec<String> = self.choices.iter().map(ToString::to_string).collect();
            return one_of(&choices);
        }
        match (self.min, self.max) {
            (None, None) => what.to_owned(),
            (Some(min), None) => format!("{what} of at least {min}"),
            (None, Some(max)) => format!("{what} of at most {max}"),
            (Some(min), Some(max)) => format!("{what} from {min} to {max}"),
        }
    }
}

fn one_of(choices: &[String]) -> String {
    let quoted = |it: &String| if it.is_empty() { "the empty text".to_owned() } else { it.clone() };
    match choices {
        [only] => quoted(only),
        _ => format!("one of {}", choices.iter().map(quoted).collect::<Vec<_>>().join(", ")),
    }
}

fn is_chosen(value: &str, choices: &[String], ignore_case: bool) -> bool {
    choices.is_empty()
        || choices
            .iter()
            .any(|it| it == value || (ignore_case && it.to_lowercase() == value.to_lowercase()))
}

fn is_number(value: &str, read: fn(&str) -> Option<f64>, bounds: &Bounds) -> bool {
    let value = value.trim_matches(is_space);
    // An empty value is read as None, and Python accepts the digits of every script.
    if value.is_empty() || !value.is_ascii() {
        return true;
    }
    read(value).is_some_and(|it| bounds.holds(it))
}

fn integer(text: &str) -> Option<f64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_integer = digits
        .split('_')
        .all(|it| !it.is_empty() && it.bytes().all(|digit| digit.is_ascii_digit()));
    if is_integer { text.replace('_', "").parse().ok() } else { None }
}

fn float(text: &str) -> Option<f64> {
    let bytes = text.as_bytes();
    let is_digit = |idx: usize| bytes.get(idx).is_some_and(u8::is_ascii_digit);
    let is_separator = |(idx, _): (usize, &str)| idx > 0 && is_digit(idx - 1) && is_digit(idx + 1);
    if !text.match_indices('_').all(is_separator) {
        return None;
    }
    text.replace('_', "").parse().ok()
}

/// Whether a value is a list of `item`. A rejected part is tried again together with the next one:
/// it may contain the comma.
fn is_list(value: &str, item: &Type) -> bool {
    let value = value.trim_matches(is_space).trim_end_matches(',');
    if value.is_empty() || value.split(',').count() > LONGEST_LIST {
        return true;
    }
    let mut refused: Option<String> = None;
    for part in value.split(',') {
        let text = match refused.take() {
            Some(before) => format!("{before},{part}"),
            None => part.to_owned(),
        };
        if !item.takes(text.trim_matches(is_space)) {
            refused = Some(text);
        }
    }
    refused.is_none()
}

fn is_dict(value: &str) -> bool {
    let value = value.trim_matches(is_space);
    if value.is_empty() || value.split(',').count() > LONGEST_LIST {
        return true;
    }
    let mut names = std::collections::BTreeSet::new();
    let mut joined: Option<String> = None;
    for part in value.split(',') {
        let pair = match joined.take() {
            Some(before) => format!("{before},{part}"),
            None => part.to_owned(),
        };
        match pair.split_once(':') {
            Some((name, _)) => {
                let name = name.trim_matches(is_space);
                if name.is_empty() || !names.insert(name.to_owned()) {
                    return false;
                }
            }
            None => joined = Some(pair),
        }
    }
    joined.is_none()
}

fn is_uri(value: &str, schemes: &[String]) -> bool {
    let Some((scheme, _)) = value.split_once(':') else { return false };
    let mut letters = scheme.chars();
    let is_scheme = letters.next().is_some_and(|it| it.is_ascii_alphabetic())
        && letters.all(|it| it.is_ascii_alphanumeric() || "+-.".contains(it));
    is_scheme && (schemes.is_empty() || schemes.iter().any(|it| it.eq_ignore_ascii_case(scheme)))
}

fn is_address(value: &str) -> bool {
    value.parse::<Ipv4Addr>().is_ok() || value.parse::<Ipv6Addr>().is_ok()
}

fn is_host_name(value: &str, with_underscores: bool) -> bool {
    // Python matches non-ASCII letters case-insensitively in its own way, so they are accepted.
    if !value.is_ascii() {
        return true;
    }
    let length = value.len();
    let value = value.strip_suffix('.').unwrap_or(value);
    let is_letter = |it: u8| it.is_ascii_alphanumeric() || it == b'-';
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|it| is_letter(it) || (with_underscores && it == b'_'))
    };
    let last = value.rsplit('.').next().unwrap_or_default();
    (1..=253).contains(&length)
        && last.bytes().any(|it| it.is_ascii_alphabetic() || it == b'-')
        && value.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Checks a type with values that it accepts, values that it rejects, and its description.
    #[track_caller]
    fn check(kind: serde_json::Value, taken: &[&str], refused: &[&str], wanted: &str) {
        let kind: Type = serde_json::from_value(kind).unwrap();
        for value in taken {
            assert!(kind.takes(value), "{kind:?} does not take {value:?}");
        }
        for value in refused {
            assert!(!kind.takes(value), "{kind:?} takes {value:?}");
        }
        assert_eq!(kind.expected(), wanted);
    }

    #[test]
    fn numbers_are_read_as_python_reads_them() {
        check(
            json!({ "is": "integer", "min": 0, "max": 65535 }),
            &["0", "65535", "+1", " 1 ", "1_000", "", "٣", "007"],
            &["-1", "65536", "1.5", "1_", "_1", "1__0", "0x10", "1e3", "a", "+", "1\n2"],
            "an integer from 0 to 65535",
        );
        check(
            json!({ "is": "float", "min": 0.0 }),
            &["0", "1.5", ".5", "5.", "1e3", "inf", "NaN", "1_0.5", ""],
            &["-0.1", "1,5", "1_.5", "0x1", ".", "1_e3"],
            "a number of at least 0",
        );
        check(json!({ "is": "integer", "choices": [1, 4] }), &["1", "04"], &["2"], "one of 1, 4");
    }

    #[test]
    fn words_are_compared_as_oslo_config_does() {
        check(
            json!({ "is": "boolean" }),
            &["True", "yes", "ON", "0"],
            &["", "ja", "2", " true"],
            "true or false",
        );
        let choices = json!({ "is": "string", "choices": ["none", "qcow2", ""] });
        check(choices, &["none", ""], &["None", "raw"], "one of none, qcow2, the empty text");
        let choices = json!({ "is": "string", "choices": ["MAC"], "ignore_case": true });
        check(choices, &["mac"], &["macs"], "MAC");
        let short = json!({ "is": "string", "max_length": 3 });
        check(short, &["äöü"], &["four"], "a text of at most 3 characters");
    }

    #[test]
    fn lists_and_pairs_are_judged_part_by_part() {
        check(
            json!({ "is": "list", "item": { "is": "integer" } }),
            &["1, 2,3", "", "1,,", ",", "1,,2"],
            &["1,a", "1;2"],
            "a list separated by commas, each an integer",
        );
        check(
            json!({ "is": "dict" }),
            &["node:0,size:2048,count:64", "", "a:b:c", "a:1,b,c:2", "a,b:"],
            &["a", "a:1,a:2", ":1", "a:1,b"],
            "a list of NAME:VALUE separated by commas",
        );
    }

    #[test]
    fn addresses_and_names_are_told_from_anything_else() {
        check(
            json!({ "is": "host" }),
            &["10.0.0.1", "::1", "compute-0.example.com.", "a", "1.a"],
            &["10.0.0.256", "10.0.0", "-a", "a-", "a_b", "", "a..b", "::g", "a b"],
            "an IP address or a host name",
        );
        check(json!({ "is": "domain" }), &["a_b"], &["a/b"], "an IP address or a host name");
        check(json!({ "is": "address" }), &["::"], &["a"], "an IP address");
        check(json!({ "is": "hostname" }), &["a"], &["::"], "a host name");
        let uri = json!({ "is": "uri", "schemes": ["http", "https"] });
        check(
            uri,
            &["HTTP://a"],
            &["ws://a", "a", "://a"],
            "a URI whose scheme is one of http, https",
        );
    }
}
