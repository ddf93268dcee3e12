//! nova's files as they were rendered: which are read, in which order, and what must not be shown.

use std::collections::BTreeMap;

use common::api::nova::ConfigFile;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use nova_operator::compute::config::CONFIG_FILES;
use nova_operator::oslo::{Entry, parse};

pub use nova_operator::service_config::keys::is_loaded as is_read;

/// What stands in the place of a secret value.
pub const MASK: &str = "********";

/// A file of a compute that nova-compute reads.
#[derive(Clone, Debug)]
pub struct File {
    /// Its name.
    pub name: String,
    /// Kind, namespace and name of the object that it comes from; empty where nobody tells.
    pub source: String,
    /// Its options.
    pub entries: Vec<Entry>,
}

/// The files that nova-compute reads, in the order in which it does: the last value counts.
pub fn files(secret: &Secret) -> Vec<File> {
    let listed = secret.annotations().get(CONFIG_FILES);
    let listed: Vec<ConfigFile> =
        listed.and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
    let sources: BTreeMap<&str, &str> =
        listed.iter().map(|it| (it.name.as_str(), it.source.as_str())).collect();
    let data = secret.data.iter().flatten().filter(|(name, _)| is_read(name));
    data.map(|(name, content)| File {
        name: name.clone(),
        source: sources.get(name.as_str()).copied().unwrap_or_default().to_owned(),
        entries: parse(&String::from_utf8_lossy(&content.0)).0,
    })
    .collect()
}

/// Whether two names of sections are one to oslo.config.
pub fn is_section(one: &str, other: &str) -> bool {
    normalized(one) == normalized(other)
}

/// A section's name as oslo.config compares it.
pub fn normalized(section: &str) -> String {
    if section == "DEFAULT" { section.to_owned() } else { section.to_lowercase() }
}

/// An option as it may be shown: `[section] key = value`.
pub fn shown(entry: &Entry) -> String {
    format!("[{}] {} = {}", entry.section, entry.key, value(entry))
}

/// A value on one line, or a mask.
pub fn value(entry: &Entry) -> String {
    if is_secret(&entry.key, &entry.value) {
        MASK.to_owned()
    } else {
        entry.value.replace('\n', " ")
    }
}

/// Whether an option's value must not be shown: rather one too many than one too few.
fn is_secret(key: &str, value: &str) -> bool {
    let key = key.to_lowercase().replace('-', "_");
    let is_switch = matches!(value.to_lowercase().as_str(), "true" | "false" | "");
    let has_secret_name = ["password", "passwd", "passphrase", "secret", "token", "credential"]
        .iter()
        .any(|it| key.contains(it))
        || ["connection", "slave_connection", "transport_url", "fixed_key", "auth_key"]
            .contains(&key.as_str())
        || ["_connection", "_transport_url", "access_key", "private_key"]
            .iter()
            .any(|it| key.ends_with(it));
    (has_secret_name && !is_switch) || has_login(value)
}

/// Whether a URL in the value names a user: `scheme://user…@host`.
fn has_login(value: &str) -> bool {
    value.match_indices("://").any(|(at, separator)| {
        let rest = &value[at + separator.len()..];
        let authority = rest.split(['/', '?', '#', ' ', '\n']).next().unwrap_or_default();
        authority.contains('@')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_logs_in_anywhere_is_masked() {
        let secret = [
            ("password", "x"),
            ("transport_url", "rabbit://a:b@h:1/c"),
            ("connection", "mysql+pymysql://a@h/b"),
            ("metadata_proxy_shared_secret", "x"),
            ("memcache_servers", "http://a:b@h"),
            ("application_credential_secret", "x"),
            ("API-Token", "x"),
            ("fixed_key", "0"),
        ];
        for (key, value) in secret {
            assert!(is_secret(key, value), "{key}");
        }
        let open = [
            ("cpu_models", "Nehalem"),
            ("send_service_user_token", "True"),
            ("auth_url", "http://10.96.10.10:5000"),
            ("connection_uri", "qemu:///system"),
            ("password", ""),
            ("volume_drivers", "a@b"),
        ];
        for (key, value) in open {
            assert!(!is_secret(key, value), "{key}");
        }
    }

    #[test]
    fn only_what_kolla_copies_is_read() {
        for name in ["01-nova.conf", "02-nova-override.conf", "nova-blank.conf"] {
            assert!(is_read(name), "{name}");
        }
        for name in ["tls-ca-bundle.pem", "extra.conf", "nova.conf.bak"] {
            assert!(!is_read(name), "{name}");
        }
    }
}
