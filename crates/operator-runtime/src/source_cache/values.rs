//! What is known of a ConfigMap's or Secret's content: its values, and the digests of them.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use operator_core::keyed::{Digest, Keys};
use operator_core::run_engine::ssh_secret::{KNOWN_HOSTS, KeyFault, PRIVATE_KEY, SshSecret};
use operator_core::upstream_hash::{self, Published};

/// What may leave this crate of a source's content: its keys and the digests of their values.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Digests {
    /// The source's resource version.
    pub version: String,
    /// Hash of the whole content, as upstream's operators publish it.
    pub published: Published,
    /// Key → digest of the value.
    pub keys: BTreeMap<String, Digest>,
    /// Key → text, for the non-secret keys that the source cache was configured to keep.
    pub texts: BTreeMap<String, Arc<str>>,
    /// Why ssh cannot use the private key, if the source has one.
    pub ssh_key_fault: Option<KeyFault>,
}

impl Digests {
    /// Returns what runs need of the ssh Secret of that name; without digests it does not exist.
    pub fn ssh_secret<'a>(name: &'a str, digests: Option<&'a Self>) -> SshSecret<'a> {
        SshSecret {
            name,
            version: digests.map(|it| it.version.as_str()).unwrap_or_default(),
            has_known_hosts: digests.is_some_and(|it| it.keys.contains_key(KNOWN_HOSTS)),
        }
    }
}

/// The values of a Secret or ConfigMap. Does not implement `Debug`, so that no log can contain
/// them.
#[derive(Clone, Default)]
pub struct Values {
    /// The source's resource version.
    pub version: String,
    /// Hash of the whole content, as upstream's operators publish it.
    pub published: Published,
    content: BTreeMap<String, Vec<u8>>,
    /// Keys for the digests of a Secret's values.
    keys: Keys,
}

impl Values {
    /// Creates the values of an opaque Secret at a version, with unkeyed digests.
    pub fn new(version: impl Into<String>, values: BTreeMap<String, Vec<u8>>) -> Self {
        Self::keyed(version, values, &Keys::default())
    }

    /// Creates the values of an opaque Secret at a version, with digests keyed by `keys`.
    pub fn keyed(
        version: impl Into<String>,
        values: BTreeMap<String, Vec<u8>>,
        keys: &Keys,
    ) -> Self {
        let data = values.into_iter().map(|(key, value)| (key, ByteString(value))).collect();
        Self::of_data(version.into(), data, "Opaque", keys)
    }

    /// Creates the values of a Secret that was read, with digests keyed by `keys`.
    pub fn of_secret(read: Secret, keys: &Keys) -> Self {
        let version = read.resource_version().unwrap_or_default();
        let type_ = read.type_.unwrap_or_default();
        Self::of_data(version, read.data.unwrap_or_default(), &type_, keys)
    }

    fn of_data(
        version: String,
        data: BTreeMap<String, ByteString>,
        type_: &str,
        keys: &Keys,
    ) -> Self {
        let published = upstream_hash::of_secret_by(keys, &data, type_).into();
        let content = data.into_iter().map(|(key, value)| (key, value.0)).collect();
        Self { version, published, content, keys: keys.clone() }
    }

    /// Creates the values of a ConfigMap that was read.
    pub(super) fn of_config_map(read: ConfigMap) -> Self {
        let version = read.resource_version().unwrap_or_default();
        let texts = read.data.unwrap_or_default();
        let binary = read.binary_data.unwrap_or_default();
        let published = upstream_hash::of_config_map(&texts, &binary).into();
        let texts = texts.into_iter().map(|(key, text)| (key, text.into_bytes()));
        let binary = binary.into_iter().map(|(key, value)| (key, value.0));
        let content = texts.chain(binary).collect();
        Self { version, published, content, keys: Keys::default() }
    }

    /// Returns the value of a key, or `None` when the key is absent.
    pub fn bytes(&self, key: &str) -> Option<&[u8]> {
        self.content.get(key).map(Vec::as_slice)
    }

    /// Returns the text of a key, or `None` when it is absent or not UTF-8.
    pub fn text(&self, key: &str) -> Option<&str> {
        std::str::from_utf8(self.bytes(key)?).ok()
    }

    /// Returns the keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.content.keys().map(String::as_str)
    }

    /// Returns the keys with their values.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.content.iter().map(|(key, value)| (key.as_str(), value.as_slice()))
    }

    /// Returns the digests of the values, without any text.
    pub fn digests(&self) -> Digests {
        let keys = self.content.iter().map(|(key, value)| (key.clone(), self.keys.of_bytes(value)));
        let (version, published) = (self.version.clone(), self.published.clone());
        let ssh_key_fault = self.bytes(PRIVATE_KEY).and_then(KeyFault::of);
        Digests { version, published, keys: keys.collect(), texts: BTreeMap::new(), ssh_key_fault }
    }

    /// Returns the digests together with the texts of the given keys.
    pub(super) fn digests_with(&self, kept: &[&str]) -> Digests {
        let text = |key: &&str| Some(((*key).to_owned(), Arc::from(self.text(key)?)));
        Digests { texts: kept.iter().filter_map(text).collect(), ..self.digests() }
    }
}

/// The content of a source. Its `Debug` output hides it.
#[derive(Clone, Default)]
pub struct Content(Arc<Evaluated>);

#[derive(Default)]
struct Evaluated {
    values: Values,
    /// Computed once: the content for a role is evaluated for each of its nodes.
    digests: Digests,
}

impl Content {
    /// Creates the content of values whose digests are known.
    pub(super) fn with_digests(values: Values, digests: Digests) -> Self {
        Self(Arc::new(Evaluated { values, digests }))
    }

    /// Returns the digests of the values, by key.
    pub fn digests(&self) -> &BTreeMap<String, Digest> {
        &self.0.digests.keys
    }

    /// Returns the digest of a key's value, or `None` when the key is absent.
    pub fn digest(&self, key: &str) -> Option<&Digest> {
        self.0.digests.keys.get(key)
    }
}

impl Deref for Content {
    type Target = Values;

    fn deref(&self) -> &Values {
        &self.0.values
    }
}

impl From<Values> for Content {
    fn from(values: Values) -> Self {
        let digests = values.digests();
        Self::with_digests(values, digests)
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Content")
    }
}
