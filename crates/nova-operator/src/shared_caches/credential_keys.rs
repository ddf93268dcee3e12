//! The keys by which credentials are looked up: the objects that hosts log in with.

use api::nova::{Credential, CredentialKind, ExternalCompute};
use kube::ResourceExt;
use operator_core::object_key::Key;

/// Returns the key of a credential's object in the index and in the work queue.
pub fn key(namespace: &str, credential: &Credential) -> Key {
    Key::new(namespace, format!("{}/{}", credential.kind, credential.name))
}

/// Returns the keys of what a compute uses.
pub fn keys_of(compute: &ExternalCompute) -> Vec<Key> {
    let namespace = compute.namespace().unwrap_or_default();
    let used = compute.status.iter().flat_map(|it| &it.credentials);
    used.map(|it| key(&namespace, it)).collect()
}

/// Returns the credential of a key.
pub fn credential_of(key: &Key) -> Option<Credential> {
    let (kind, name) = key.name.split_once('/')?;
    let kind = CredentialKind::ALL.into_iter().find(|it| it.to_string() == kind)?;
    Some(Credential { kind, name: name.to_owned() })
}
