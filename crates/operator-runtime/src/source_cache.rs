//! ConfigMaps and Secrets that other objects refer to: watched as metadata, read once per change.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::shared::SourceKind;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::PartialObjectMeta;
use kube::{Resource, ResourceExt};
use operator_core::data_sources::SourceRef;
use operator_core::keyed::{Digest, Keys};
use operator_core::object_key::Key;
use operator_core::upstream_hash;

use crate::api::Api;
use crate::cache::{Cache, Index, IndexName, MetadataCache, Watchable};
use crate::error::Result;
use crate::managed_fields::ManagedFields;

/// What may leave this crate of a source's content: its keys and the digests of their values.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Digests {
    /// The source's resource version.
    pub version: String,
    /// Hash of the whole content, as upstream's operators publish it; for a Secret keyed with the
    /// installation's key.
    pub published: Digest,
    /// Key → digest of the value.
    pub keys: BTreeMap<String, Digest>,
    /// Key → text, for the non-secret keys that the source cache was configured to keep.
    pub texts: BTreeMap<String, Arc<str>>,
}

/// The values of a Secret or ConfigMap. Does not implement `Debug`, so that no log can contain
/// them.
#[derive(Clone, Default)]
pub struct Values {
    /// The source's resource version.
    pub version: String,
    /// Hash of the whole content, as upstream's operators publish it; for a Secret keyed with the
    /// installation's key.
    pub published: Digest,
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
        let published = upstream_hash::of_secret_by(keys, &data, type_);
        let content = data.into_iter().map(|(key, value)| (key, value.0)).collect();
        Self { version, published, content, keys: keys.clone() }
    }

    fn of_config_map(version: String, read: ConfigMap) -> Self {
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
        Digests { version, published, keys: keys.collect(), texts: BTreeMap::new() }
    }

    /// Returns the digests together with the texts of the given keys.
    fn digests_with(&self, kept: &[&str]) -> Digests {
        let text = |key: &&str| Some(((*key).to_owned(), Arc::from(self.text(key)?)));
        Digests { texts: kept.iter().filter_map(text).collect(), ..self.digests() }
    }
}

/// Creates a metadata cache that keeps which fields of its own objects `manager` still owns.
pub fn metadata<K>(
    manager: &'static str,
    indexes: Vec<(IndexName, Index<PartialObjectMeta<K>>)>,
) -> Arc<MetadataCache<K>>
where
    PartialObjectMeta<K>: Watchable,
{
    Cache::trimmed(indexes, move |it: &mut PartialObjectMeta<K>| {
        ManagedFields::keep(it.meta_mut(), manager);
    })
}

/// All sources of the watched namespaces, and the objects that depend on them.
pub struct SourceCache {
    secrets: Arc<MetadataCache<Secret>>,
    config_maps: Arc<MetadataCache<ConfigMap>>,
    kept: &'static [&'static str],
    keys: Keys,
    digests: Mutex<BTreeMap<SourceRef, Digests>>,
    readers: Mutex<BTreeMap<Key, BTreeSet<SourceRef>>>,
    /// One lock per share, held while a source of that share is read, so that concurrent readers
    /// cause one read.
    reading: [tokio::sync::Mutex<()>; SHARES],
}

/// Number of sources that can be read concurrently.
const SHARES: usize = 16;

impl SourceCache {
    /// Creates a source cache over two metadata caches, which the caller watches; digests of
    /// Secrets are keyed by `keys`.
    pub fn new(
        keys: &Keys,
        secrets: Arc<MetadataCache<Secret>>,
        config_maps: Arc<MetadataCache<ConfigMap>>,
    ) -> Arc<Self> {
        Self::keeping(&[], keys, secrets, config_maps)
    }

    /// As [`SourceCache::new`], but also keeps the texts of the given keys, which must not be
    /// secret.
    pub fn keeping(
        kept: &'static [&'static str],
        keys: &Keys,
        secrets: Arc<MetadataCache<Secret>>,
        config_maps: Arc<MetadataCache<ConfigMap>>,
    ) -> Arc<Self> {
        let (digests, readers, reading) = (Mutex::default(), Mutex::default(), Default::default());
        Arc::new(Self { secrets, config_maps, kept, keys: keys.clone(), digests, readers, reading })
    }

    /// Returns the keys that digests of Secrets are made with.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Calls `enqueue` with the key of each reader of a source that changes.
    pub fn on_change(self: &Arc<Self>, enqueue: impl Fn(Key) + Clone + Send + Sync + 'static) {
        let (this, enqueue_reader) = (Arc::clone(self), enqueue.clone());
        self.secrets.on_change(move |it| {
            this.changed(
                &SourceRef { kind: SourceKind::Secret, key: Key::of(it) },
                &enqueue_reader,
            );
        });
        let this = Arc::clone(self);
        self.config_maps.on_change(move |it| {
            this.changed(&SourceRef { kind: SourceKind::ConfigMap, key: Key::of(it) }, &enqueue);
        });
    }

    /// Records the sources that `reader` depends on, existing or not; replaces its previous set.
    pub fn depends(&self, reader: &Key, on: BTreeSet<SourceRef>) {
        let mut readers = lock(&self.readers);
        if on.is_empty() {
            readers.remove(reader);
        } else {
            readers.insert(reader.clone(), on);
        }
    }

    /// Returns the digests of each of these sources that exists, by source.
    pub async fn digests_of(
        &self,
        api: &Api,
        sources: impl IntoIterator<Item = SourceRef>,
    ) -> Result<BTreeMap<SourceRef, Digests>> {
        let mut found = BTreeMap::new();
        for source in sources {
            if let Some(digests) = self.digests(api, &source).await? {
                found.insert(source, digests);
            }
        }
        Ok(found)
    }

    /// Returns the digests of a source, or `None` when it does not exist.
    ///
    /// Reads from the API server only when the version has changed since the last read, and once
    /// however many callers ask concurrently.
    pub async fn digests(&self, api: &Api, source: &SourceRef) -> Result<Option<Digests>> {
        let mut hasher = DefaultHasher::new();
        source.hash(&mut hasher);
        let share = usize::try_from(hasher.finish() % SHARES as u64).unwrap_or_default();
        let _reading = self.reading[share].lock().await;
        let Some(version) = self.version(source) else {
            lock(&self.digests).remove(source);
            return Ok(None);
        };
        let known = lock(&self.digests).get(source).filter(|it| it.version == version).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let read = self.values(api, source).await?.map(|it| it.digests_with(self.kept));
        if let Some(digests) = &read {
            lock(&self.digests).insert(source.clone(), digests.clone());
        }
        Ok(read)
    }

    /// Reads the values of a source. Returns `None` when it does not exist.
    pub async fn values(&self, api: &Api, source: &SourceRef) -> Result<Option<Values>> {
        if self.version(source).is_none() {
            return Ok(None);
        }
        if source.kind == SourceKind::Secret {
            let read: Option<Secret> = api.get(&source.key).await?;
            return Ok(read.map(|it| Values::of_secret(it, &self.keys)));
        }
        let read: Option<ConfigMap> = api.get(&source.key).await?;
        Ok(read.map(|it| Values::of_config_map(it.resource_version().unwrap_or_default(), it)))
    }

    /// Returns the resource version of a source, or `None` when it does not exist.
    pub fn version(&self, source: &SourceRef) -> Option<String> {
        if source.kind == SourceKind::Secret {
            self.secrets.get(&source.key)?.resource_version()
        } else {
            self.config_maps.get(&source.key)?.resource_version()
        }
    }

    /// Returns an annotation of a source, or `None` when the source or the annotation does not
    /// exist.
    pub fn annotation(&self, source: &SourceRef, name: &str) -> Option<String> {
        if source.kind == SourceKind::Secret {
            self.secrets.get(&source.key)?.annotations().get(name).cloned()
        } else {
            self.config_maps.get(&source.key)?.annotations().get(name).cloned()
        }
    }

    /// Returns whether a source has an owner reference, so that it is garbage-collected with its
    /// owner.
    pub fn has_owner(&self, source: &SourceRef) -> bool {
        let has = |owners: &[OwnerReference]| !owners.is_empty();
        if source.kind == SourceKind::Secret {
            self.secrets.get(&source.key).is_some_and(|it| has(it.owner_references()))
        } else {
            self.config_maps.get(&source.key).is_some_and(|it| has(it.owner_references()))
        }
    }

    /// Returns the fields of a source that the operator applied and still owns; empty when it does
    /// not exist.
    pub fn owned(&self, source: &SourceRef) -> ManagedFields {
        let meta = if source.kind == SourceKind::Secret {
            self.secrets.get(&source.key).map(|it| ManagedFields::of(it.meta()))
        } else {
            self.config_maps.get(&source.key).map(|it| ManagedFields::of(it.meta()))
        };
        meta.unwrap_or_default()
    }

    /// Returns the UID of the source's controller owner, or `None` when it has none.
    pub fn controller(&self, source: &SourceRef) -> Option<String> {
        let uid = |owners: &[OwnerReference]| {
            owners.iter().find(|it| it.controller == Some(true)).map(|it| it.uid.clone())
        };
        if source.kind == SourceKind::Secret {
            uid(self.secrets.get(&source.key)?.owner_references())
        } else {
            uid(self.config_maps.get(&source.key)?.owner_references())
        }
    }

    fn changed(&self, source: &SourceRef, enqueue: &impl Fn(Key)) {
        let readers = lock(&self.readers);
        for (reader, _) in readers.iter().filter(|(_, on)| on.contains(source)) {
            enqueue(reader.clone());
        }
    }
}

/// Ignores poisoning: it only means that a reader panicked, and the maps are consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
