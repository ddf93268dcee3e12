//! What is wrong, and what is only surprising, in a configuration that a human wrote.

use super::{Entry, parse, parse::is_space};

/// The field that humans write a compute's configuration into.
const FIELD: &str = "spec.customServiceConfig";

/// Something in `spec.customServiceConfig` that oslo.config refuses: nova-compute would not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The field.
    pub path: &'static str,
    /// The line inside the field's text, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// Place, cause and the legal way, fit for a condition's message.
    pub message: String,
}

/// Something that oslo.config accepts and that a human should know: a warning, never a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The field.
    pub path: &'static str,
    /// The line inside the field's text, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The option as `[section] name`.
    pub option: String,
    /// Place, option and consequence, fit for an admission warning.
    pub message: String,
}

const AUTH: &[&str] = &["auth_type", "auth_url", "password", "username"];

/// The options that are the operator's to set, by section.
pub const OWNED_BY_OPERATOR: &[(&str, &[&str])] = &[
    ("DEFAULT", &["host", "my_ip", "state_path", "transport_url"]),
    ("cinder", AUTH),
    ("neutron", AUTH),
    ("placement", AUTH),
    ("service_user", AUTH),
];

/// Every place where oslo.config would refuse the text.
pub fn faults(custom_service_config: &str) -> Vec<Fault> {
    let (_, errors) = parse(custom_service_config);
    errors
        .into_iter()
        .map(|it| Fault {
            path: FIELD,
            line: it.line,
            column: it.column,
            message: format!("{}: {}", place(it.line, it.column), it.reason.message()),
        })
        .collect()
}

/// Entries that replace what the operator sets itself.
pub fn owned_options(entries: &[Entry]) -> Vec<Finding> {
    entries
        .iter()
        .filter(|entry| is_owned(entry))
        .map(|entry| {
            finding(
                entry,
                "is set by the operator; this value replaces it on the host, where nova-compute \
                 may then fail to start or register elsewhere: remove it unless that is intended",
            )
        })
        .collect()
}

/// Entries that oslo.config reads otherwise than they look, or that a compute must not have.
pub fn surprises(entries: &[Entry]) -> Vec<Finding> {
    entries.iter().filter_map(|entry| Some(finding(entry, surprise(entry)?))).collect()
}

fn is_owned(entry: &Entry) -> bool {
    let section = normalized(&entry.section);
    OWNED_BY_OPERATOR
        .iter()
        .any(|(owned, keys)| *owned == section && keys.contains(&entry.key.as_str()))
}

fn surprise(entry: &Entry) -> Option<&'static str> {
    let section = entry.section.as_str();
    if section != section.trim_matches(is_space) {
        return Some("is never read: its section's name has spaces inside the brackets");
    }
    if section != "DEFAULT" && section.eq_ignore_ascii_case("DEFAULT") {
        return Some("is never read: the section [DEFAULT] is written in capitals");
    }
    if matches!(normalized(section).as_str(), "api_database" | "database") {
        return Some(
            "has no place on a compute, which reaches the database through the conductor only",
        );
    }
    None
}

/// A section's name as oslo.config compares it.
fn normalized(section: &str) -> String {
    if section == "DEFAULT" { section.to_owned() } else { section.to_lowercase() }
}

pub(super) fn finding(entry: &Entry, consequence: &str) -> Finding {
    let Entry { line, column, .. } = *entry;
    let option = format!("[{}] {}", entry.section, entry.key);
    let message = format!("{}: {option} {consequence}", place(line, column));
    Finding { path: FIELD, line, column, option, message }
}

fn place(line: usize, column: usize) -> String {
    format!("{FIELD}, line {line}, column {column}")
}
