//! Faults and warnings in a configuration that a user wrote.

use super::bounded_list::{BoundedList, LIST_LIMIT};
use super::looks::differences;
use super::parse::{Entry, SyntaxError, is_space, parse};
use super::schema::normalized;
use super::text::FIELD;

/// An error in `spec.customServiceConfig` that oslo.config rejects: nova-compute would not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The field.
    pub path: &'static str,
    /// The line inside the field's text, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// Position, cause and correction, as text of a condition message.
    pub message: String,
}

/// Something that oslo.config accepts and that the user should know: a warning, never a rejection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The line inside the text, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The option as `[section] name`.
    pub option: String,
    /// Position, option and consequence, as text of an admission warning.
    pub message: String,
}

const AUTH: &[&str] = &["auth_type", "auth_url", "password", "username"];

/// The options that the operator sets itself, by section.
pub const OWNED_BY_OPERATOR: &[(&str, &[&str])] = &[
    ("DEFAULT", &["host", "my_ip", "state_path", "transport_url"]),
    ("cinder", AUTH),
    ("neutron", AUTH),
    ("placement", AUTH),
    ("service_user", AUTH),
];

/// Returns the errors that oslo.config would reject the text for, at most [`LIST_LIMIT`] of them.
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

/// Returns the warnings on an entry that hold for every release: it replaces an option of the
/// operator, oslo.config reads it differently than it looks, or a compute must not have it.
pub(super) fn of_entry(source: &str, entry: &Entry) -> Vec<Finding> {
    let found = owned(entry).into_iter().chain(of_migration(entry)).chain(surprise(entry));
    let found = found.chain(differences(entry));
    found.map(|it| finding(source, entry, it)).collect()
}

/// Returns what follows where an entry replaces an option of the operator, or `None`.
fn owned(entry: &Entry) -> Option<&'static str> {
    let section = normalized(&entry.section);
    let is_owned = OWNED_BY_OPERATOR
        .iter()
        .any(|(owned, keys)| *owned == section && keys.contains(&entry.key.as_str()));
    if (section.as_str(), entry.key.as_str()) == ("DEFAULT", "host") {
        return Some(
            "is set by the operator, which finds the compute in nova by that name when it deploys, \
             drains and removes it; a nova-compute that has registered under another name refuses \
             to start (Possible rename detected): remove it",
        );
    }
    is_owned.then_some(
        "is set by the operator; this value replaces it on the host, where nova-compute may then \
         fail to start or register elsewhere: remove it unless that is intended",
    )
}

/// Returns what follows where an entry decides how guests move to other hosts, or `None`: the play
/// sets that by what a host has, its certificate or the key for migrations.
fn of_migration(entry: &Entry) -> Option<&'static str> {
    if normalized(&entry.section) != "libvirt" {
        return None;
    }
    match (entry.key.as_str(), entry.value.trim()) {
        ("live_migration_scheme", "tcp") => Some(WITHOUT_LOGIN),
        ("live_migration_uri", uri) if uri.contains("+tcp:") => Some(WITHOUT_LOGIN),
        ("live_migration_uri", _) => Some(
            "replaces live_migration_scheme and live_migration_inbound_addr, which the play sets by \
             what the host has (its certificate, else the key of Secret nova-migration-ssh-key): \
             remove it unless that is intended",
        ),
        (
            "live_migration_inbound_addr"
            | "live_migration_scheme"
            | "live_migration_with_native_tls",
            _,
        ) => Some(
            "is set by the play, by what the host has (its certificate, else the key of Secret \
             nova-migration-ssh-key); with another value guests may not move to or from the host: \
             remove it unless that is intended",
        ),
        ("live_migration_tunnelled", value) if !value.eq_ignore_ascii_case("false") => Some(
            "excludes live_migration_with_native_tls, which the play sets on a host with a \
             certificate, where nova-compute then does not start: remove it",
        ),
        _ => None,
    }
}

/// What follows where guests are to move over TCP alone.
const WITHOUT_LOGIN: &str = "has guests moved over a connection that neither asks who calls nor \
                             encrypts, and no libvirt that the play starts listens for it: remove it";

/// What follows where an option is of the control plane.
const ELSEWHERE: &str =
    "has no effect on a compute: set it where nova's scheduler and conductor run";
/// The options of the scheduler that nova-compute reads too.
const READ_HERE: &[&str] = &["pci_in_placement", "track_instance_changes"];

/// Returns what is surprising about an entry in every release, or `None`.
pub(super) fn surprise(entry: &Entry) -> Option<&'static str> {
    let section = entry.section.as_str();
    if section != section.trim_matches(is_space) {
        return Some("is never read: its section's name has spaces inside the brackets");
    }
    if section != "DEFAULT" && section.eq_ignore_ascii_case("DEFAULT") {
        return Some("is never read: the section [DEFAULT] is written in capitals");
    }
    match normalized(section).as_str() {
        "api_database" | "database" => {
            Some("has no place on a compute, which reaches the database through the conductor only")
        }
        "conductor" | "scheduler" => Some(ELSEWHERE),
        "filter_scheduler" if !READ_HERE.contains(&entry.key.as_str()) => Some(ELSEWHERE),
        _ => None,
    }
}

pub(super) fn finding(source: &str, entry: &Entry, consequence: &str) -> Finding {
    let Entry { line, column, .. } = *entry;
    let option = format!("[{}] {}", shown(&entry.section), shown(&entry.key));
    let message = format!("{}: {option} {consequence}", place(source, line, column));
    Finding { line, column, option, message }
}

/// Returns a name for a message, truncated: a user may have written any length.
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
