//! Hosts' own ssh keys as claims have them: by which key a claim is found, and which keys may be shared.

use std::collections::BTreeSet;

use operator_core::object_key::Key;
use operator_core::run_engine::host_key::HostKey;

/// Annotation on a node or node set: fingerprints, separated by commas or spaces, of keys that its hosts
/// may show although others do as well.
pub const ACCEPT_SHARED: &str = "dataplane.openstack.org/accept-shared-host-key";

/// How many fingerprints an annotation may list.
pub const MAX_ACCEPTED: usize = 500;

/// The key of the index [`BY_HOST`](crate::indexes::BY_HOST) for who shows an ssh key.
pub fn key_of(namespace: &str, key: &HostKey) -> Key {
    Key::new(namespace, format!("key {key}"))
}

/// The fingerprints in the value of [`ACCEPT_SHARED`].
pub fn accepted(annotation: Option<&String>) -> BTreeSet<String> {
    let words = annotation.map(String::as_str).unwrap_or_default().split([',', ' ', '\n']);
    let fingerprints = words.filter(|it| it.starts_with("SHA256:")).take(MAX_ACCEPTED);
    fingerprints.map(str::to_owned).collect()
}
