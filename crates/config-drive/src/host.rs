//! Validation of a host's names, users and password.

use api::names::{is_dns_label, is_dns_subdomain};
use api::secret::Secret;

use crate::authorized_key;
use crate::fault::Fault;
use crate::input::{Host, User};

/// Maximum length of a Linux host name; distributions set the fully qualified name.
const NAME_LIMIT: usize = 64;
/// Maximum length of a login name: useradd rejects longer ones.
const LOGIN_LIMIT: usize = 32;

/// Returns the faults of what only the user data contains.
pub(crate) fn login_faults(host: &Host) -> Vec<Fault> {
    let mut faults: Vec<Fault> =
        of_user(&host.user).into_iter().map(|it| it.below("user")).collect();
    faults.extend(host.root_password.as_ref().and_then(of_password));
    faults
}

/// Returns the faults of the names, which every drive has.
pub(crate) fn name_faults(host: &Host) -> Vec<Fault> {
    let mut faults = Vec::new();
    let Host { host_name, fqdn, .. } = host;
    if !is_dns_label(host_name) {
        let way = "use 1 to 63 of a-z, 0-9 and -, no - at either end; put the domain into fqdn";
        faults.push(Fault::new("hostName", host_name, "is not a DNS label (RFC 1123)", way));
    }
    if let Some(fqdn) = fqdn.as_ref().filter(|_| is_dns_label(host_name)) {
        let is_same_host = fqdn.split('.').next() == Some(host_name);
        if !is_dns_subdomain(fqdn) || !is_same_host || fqdn.len() > NAME_LIMIT {
            let cause = "is not the host name with a domain in lower case, 64 characters at most";
            faults.push(Fault::new("fqdn", fqdn, cause, format!("write {host_name}.DOMAIN")));
        }
    }
    faults
}

fn of_user(user: &User) -> Vec<Fault> {
    let mut faults = Vec::new();
    let User { name, authorized_keys } = user;
    if !is_login(name) {
        let way = "use 1 to 32 of a-z, 0-9, _ and -, with a letter or _ first";
        faults.push(Fault::new("name", name, "is not a valid login name", way));
    }
    if authorized_keys.is_empty() {
        let way = "give at least one: without it the user cannot log in";
        faults.push(Fault::hidden("authorizedKeys", "has no entry", way));
    }
    for (idx, line) in authorized_keys.iter().enumerate() {
        if let Some((cause, way)) = authorized_key::fault(line) {
            faults.push(Fault::hidden(format!("authorizedKeys[{idx}]"), cause, way));
        }
    }
    faults
}

fn is_login(name: &str) -> bool {
    let is_inner = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || b"_-".contains(&it);
    let is_start = name.starts_with(|it: char| it.is_ascii_lowercase() || it == '_');
    is_start && name.len() <= LOGIN_LIMIT && name.bytes().all(is_inner)
}

/// Returns whether a password is given as a crypt(5) hash.
pub(crate) fn is_hash(password: &str) -> bool {
    password.starts_with('$') && password.matches('$').count() >= 3
}

fn of_password(password: &Secret<String>) -> Option<Fault> {
    let text = password.expose();
    let is_inner = |it: u8| it.is_ascii_graphic() && !b":*!\\;".contains(&it);
    // The text passes through YAML and one line of chpasswd's input.
    let is_bad = |it: char| it.is_control() || ('\u{fffe}'..='\u{ffff}').contains(&it);
    let (cause, way) = if text.is_empty() {
        ("is empty", "give one, or leave rootPassword out")
    } else if is_hash(text) && !text.bytes().all(is_inner) {
        ("is not a crypt(5) hash", "use the output of `mkpasswd`: $y$… or $6$…")
    } else if text.contains(is_bad) {
        ("has characters that cannot be typed", "leave out line breaks and the like")
    } else {
        return None;
    };
    Some(Fault::hidden("rootPassword", cause, way))
}
