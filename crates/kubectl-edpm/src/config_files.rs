//! nova's configuration files: which are loaded, in which order, and which values are masked.

use std::collections::BTreeMap;

use api::nova::ConfigFile;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use nova_config::oslo::{Entry, parse};
use nova_config::rendered_secret::CONFIG_FILES;
use operator_core::data_sources::SourceRef;
use operator_core::{hash, upstream_hash};

pub use nova_config::file_names::is_loaded as is_read;

/// Replaces a secret value.
pub const MASK: &str = "********";

/// A configuration file: one key of a ConfigMap or Secret.
#[derive(Clone, Debug)]
pub struct File {
    /// Its name, which is the key.
    pub name: String,
    /// Kind, namespace and name of the object that it originates from; empty when unknown.
    pub source: String,
    /// The object that runs mount it from.
    pub object: SourceRef,
    /// The first 12 hex digits of its SHA-256.
    pub digest: String,
    /// The same for its text without secret values, as the play reports it.
    pub open_digest: String,
    /// Its options.
    pub entries: Vec<Entry>,
}

/// The content of a ConfigMap or Secret.
#[derive(Clone, Debug, Default)]
pub struct Content {
    /// All its keys as files.
    pub files: Vec<File>,
    /// The hash that deployment statuses record. For a Secret it matches only statuses of releases
    /// that did not key the hash.
    pub hash: String,
    /// The keys in the last applied manifest, or `None` when `kubectl apply` did not record it.
    pub applied: Option<Vec<File>>,
}

/// The annotation in which `kubectl apply` stores the manifest.
const APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

impl Content {
    /// Reads a ConfigMap.
    pub fn of_config_map(config_map: &ConfigMap, namespace: &str) -> Self {
        let texts = config_map.data.clone().unwrap_or_default();
        let binary = config_map.binary_data.clone().unwrap_or_default();
        let applied = config_map.annotations().get(APPLIED);
        let applied = applied.and_then(|it| serde_json::from_str::<ConfigMap>(it).ok());
        let object = SourceRef::config_map(namespace, &config_map.name_any());
        let mut files = keys(&object, &texts, String::as_bytes);
        files.extend(keys(&object, &binary, |it| &it.0));
        Self {
            files,
            hash: upstream_hash::of_config_map(&texts, &binary),
            applied: applied.map(|it| Self::of_config_map(&it, namespace).files),
        }
    }

    /// Reads a Secret.
    pub fn of_secret(secret: &Secret, namespace: &str) -> Self {
        let data = secret.data.clone().unwrap_or_default();
        let object = SourceRef::secret(namespace, &secret.name_any());
        let type_ = secret.type_.as_deref().unwrap_or_default();
        let hash = upstream_hash::of_secret(&data, type_);
        Self { files: keys(&object, &data, |it| &it.0), hash, applied: None }
    }
}

fn keys<T>(object: &SourceRef, data: &BTreeMap<String, T>, bytes: fn(&T) -> &[u8]) -> Vec<File> {
    data.iter().map(|(key, it)| File::of_key(object, key, bytes(it))).collect()
}

/// Returns kind, namespace and name as text.
pub fn title(object: &SourceRef) -> String {
    object.kind.title(&object.key.to_string())
}

impl File {
    /// Creates a file from one key of an object, which is also its source.
    pub fn of_key(object: &SourceRef, name: &str, content: &[u8]) -> Self {
        let text = String::from_utf8_lossy(content);
        Self {
            name: name.to_owned(),
            source: title(object),
            object: object.clone(),
            digest: hash::of_bytes(content)[..DIGEST].to_owned(),
            open_digest: hash::of_bytes(without_secrets(&text))[..DIGEST].to_owned(),
            entries: parse(&text).0,
        }
    }
}

/// Returns a file's text without the values of options with secret names and without logins in
/// URLs. It must match exactly what the play `report.yml` of `osp.edpm.edpm_nova` removes.
fn without_secrets(text: &str) -> String {
    let mut lines = Vec::new();
    let mut is_secret = false;
    for line in text.split('\n') {
        if is_secret && line.starts_with([' ', '\t']) {
            continue;
        }
        let key = line.find(['=', ':']).map(|end| &line[..=end]);
        let key = key.filter(|it| SECRET_NAMES.iter().any(|name| has(it, name)));
        is_secret = key.is_some();
        lines.push(key.map_or_else(|| without_logins(line), str::to_owned));
    }
    lines.join("\n")
}

/// Parts of option names whose values the play removes.
const SECRET_NAMES: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "credential",
    "connection",
    "transport_url",
    "fixed_key",
    "auth_key",
    "access_key",
    "private_key",
];

fn has(key: &str, name: &str) -> bool {
    key.to_ascii_lowercase().contains(name)
}

/// Reduces `scheme://user:password@host` to `scheme://host`.
fn without_logins(line: &str) -> String {
    const SEPARATOR: &str = "://";
    let mut parts = line.split(SEPARATOR);
    let mut open = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(['/', '?', '#', ' ', '\t']).unwrap_or(part.len());
        let begin = part[..end].rfind('@').map_or(0, |it| it + 1);
        open += SEPARATOR;
        open += &part[begin..];
    }
    open
}

/// The number of hex digits of a digest that the plays report.
const DIGEST: usize = 12;

/// Returns the files that nova-compute loads, in its order: the last value wins.
pub fn files(secret: &Secret) -> Vec<File> {
    let listed = secret.annotations().get(CONFIG_FILES);
    let listed: Vec<ConfigFile> =
        listed.and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
    let sources: BTreeMap<&str, &str> =
        listed.iter().map(|it| (it.name.as_str(), it.source.as_str())).collect();
    let data = secret.data.iter().flatten().filter(|(name, _)| is_read(name));
    let object = SourceRef::secret(&secret.namespace().unwrap_or_default(), &secret.name_any());
    data.map(|(name, content)| File {
        source: sources.get(name.as_str()).copied().unwrap_or_default().to_owned(),
        ..File::of_key(&object, name, &content.0)
    })
    .collect()
}

/// Whether oslo.config treats two section names as the same.
pub fn is_section(one: &str, other: &str) -> bool {
    normalized(one) == normalized(other)
}

/// Returns a section name as oslo.config compares it: lower case, except `DEFAULT`.
pub fn normalized(section: &str) -> String {
    if section == "DEFAULT" { section.to_owned() } else { section.to_lowercase() }
}

/// Returns an option for display as `[section] key = value`, with secrets masked.
pub fn shown(entry: &Entry) -> String {
    format!("[{}] {} = {}", entry.section, entry.key, value(entry))
}

/// Returns a value on one line, or a mask if it is secret.
pub fn value(entry: &Entry) -> String {
    if is_secret(&entry.key, &entry.value) {
        MASK.to_owned()
    } else {
        entry.value.replace('\n', " ")
    }
}

/// Whether an option's value must be masked; in doubt it is.
fn is_secret(key: &str, value: &str) -> bool {
    let is_switch = matches!(value.to_lowercase().as_str(), "true" | "false" | "");
    (has_secret_name(key) && !is_switch) || has_login(value)
}

/// Whether options of this name have secret values, unless the value is only a boolean.
pub fn has_secret_name(key: &str) -> bool {
    let key = key.to_lowercase().replace('-', "_");
    ["password", "passwd", "passphrase", "secret", "token", "credential"]
        .iter()
        .any(|it| key.contains(it))
        || ["connection", "slave_connection", "transport_url", "fixed_key", "auth_key"]
            .contains(&key.as_str())
        || ["_connection", "_transport_url", "access_key", "private_key"]
            .iter()
            .any(|it| key.ends_with(it))
}

/// Whether the value has a URL with a user: `scheme://user…@host`.
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
    fn secret_values_have_no_part_in_what_a_play_tells_of_a_file() {
        // As in ansible/tests/test_callback_report.py.
        let text = "[DEFAULT]\ntransport_url = rabbit://nova:hunter2@h/\ndebug = true\n\
                    memcache = http://u:hunter2@h, http://h\n[keystone]\n#Admin-Password: hunter2\n  \
                    hunter2\nx = 1\n";
        let object = SourceRef::secret("ns", "s");
        let of = |text: &str| File::of_key(&object, "01-nova.conf", text.as_bytes());
        let file = of(text);
        assert_eq!(file.open_digest, "595d1c78f778");
        assert_ne!(file.digest, file.open_digest);
        assert_eq!(of(&text.replace("hunter2", "another")).open_digest, file.open_digest);
        assert_ne!(of(&text.replace("x = 1", "x = 2")).open_digest, file.open_digest);
        let open = of("[libvirt]\ncpu_models = Nehalem\n");
        assert_eq!(open.digest, open.open_digest);
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
