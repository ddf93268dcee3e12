//! What is wrong, and what is only surprising, in a configuration that a human wrote.

use super::bounded_list::{BoundedList, LIST_LIMIT};
use super::parse::{Entry, SyntaxError, is_space, parse};
use super::schema::normalized;
use super::text::FIELD;

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
    /// The line inside the text, from 1.
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

/// The places where oslo.config would refuse the text, the first [`TOLD`] of them.
pub fn faults(custom_service_config: &str) -> BoundedList<Fault> {
    let (_, errors) = parse(custom_service_config);
    let fault = |it: SyntaxError| Fault {
        path: FIELD,
        line: it.line,
        column: it.column,
        message: format!("{}: {}", place(FIELD, it.line, it.column), it.reason.message()),
    };
    BoundedList::of(errors.into_iter().map(fault), LIST_LIMIT)
}

/// What is told of an entry whatever the release: that it replaces what the operator sets itself,
/// that oslo.config reads it otherwise than it looks, or that a compute must not have it.
pub(super) fn of_entry(source: &str, entry: &Entry) -> Vec<Finding> {
    let owned = is_owned(entry).then_some(
        "is set by the operator; this value replaces it on the host, where nova-compute may then \
         fail to start or register elsewhere: remove it unless that is intended",
    );
    let told = owned.into_iter().chain(surprise(entry));
    told.map(|it| condition(source, entry, it)).collect()
}

fn is_owned(entry: &Entry) -> bool {
    let section = normalized(&entry.section);
    OWNED_BY_OPERATOR
        .iter()
        .any(|(owned, keys)| *owned == section && keys.contains(&entry.key.as_str()))
}

/// What is surprising about an entry whatever the release.
pub(super) fn surprise(entry: &Entry) -> Option<&'static str> {
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

pub(super) fn condition(source: &str, entry: &Entry, consequence: &str) -> Finding {
    let Entry { line, column, .. } = *entry;
    let option = format!("[{}] {}", shown(&entry.section), shown(&entry.key));
    let message = format!("{}: {option} {consequence}", place(source, line, column));
    Finding { line, column, option, message }
}

/// A name that is fit for a message, whatever a human made of it.
fn shown(name: &str) -> String {
    const LONGEST: usize = 60;
    let mut shown: String = name.chars().take(LONGEST).collect();
    if shown.len() < name.len() {
        shown.push('…');
    }
    shown
}

fn place(source: &str, line: usize, column: usize) -> String {
    format!("{source}, line {line}, column {column}")
}
