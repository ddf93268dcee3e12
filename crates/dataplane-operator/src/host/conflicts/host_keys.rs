//! Ssh host keys in claims: the index key of a claim, and the keys that may be shared.

use std::collections::BTreeSet;

use operator_core::object_key::Key;
use operator_core::run_engine::host_key::HostKey;

/// Maximum number of fingerprints in the annotation.
pub const MAX_ACCEPTED: usize = 500;

/// Returns the key of the index [`BY_HOST`](crate::indexes::BY_HOST) for hosts that present an ssh
/// key.
pub fn key_of(namespace: &str, key: &HostKey) -> Key {
    Key::new(namespace, format!("key {key}"))
}

/// Parses the value of [`ACCEPT_SHARED`](crate::annotations::ACCEPT_SHARED).
pub fn accepted(annotation: Option<&String>) -> BTreeSet<String> {
    let words = annotation.map(String::as_str).unwrap_or_default().split([',', ' ', '\n']);
    let fingerprints = words.filter(|it| it.starts_with("SHA256:")).take(MAX_ACCEPTED);
    fingerprints.map(str::to_owned).collect()
}
