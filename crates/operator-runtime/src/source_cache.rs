//! ConfigMaps and Secrets that others refer to: watched as metadata, read once per change.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// What may be known of a source's content everywhere: its keys and their digests.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Digests {
    /// Its resource version.
    pub version: String,
    /// The hash of its whole content, as upstream's operators publish it; of a Secret by the
    /// installation's key.
    pub published: Digest,
    /// Key → digest of the value.
    pub keys: BTreeMap<String, Digest>,
    /// Key → text, of the keys that are no secret and that the reader of the sources asked for.
    pub texts: BTreeMap<String, Arc<str>>,
}

/// The values of a Secret or ConfigMap. Not printable, so that no log can hold them.
#[derive(Clone, Default)]
pub struct Values {
    /// Its resource version.
    pub version: String,
    /// The hash of its whole content, as upstream's operators publish it; of a Secret by the
    /// installation's key.
    pub published: Digest,
    content: BTreeMap<String, Vec<u8>>,
    /// By which the digests of a Secret are made.
    keys: Keys,
}

impl Values {
    /// The values of an opaque Secret, as of a version; their digests have no key.
    pub fn new(version: impl Into<String>, values: BTreeMap<String, Vec<u8>>) -> Self {
        Self::keyed(version, values, &Keys::default())
    }

    /// The same, with digests by these keys.
    pub fn keyed(
        version: impl Into<String>,
        values: BTreeMap<String, Vec<u8>>,
        keys: &Keys,
    ) -> Self {
        let data = values.into_iter().map(|(key, value)| (key, ByteString(value))).collect();
        Self::of_data(version.into(), data, "Opaque", keys)
    }

    /// The values of a Secret that was read, with digests by these keys.
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

    /// The value of a key.
    pub fn bytes(&self, key: &str) -> Option<&[u8]> {
        self.content.get(key).map(Vec::as_slice)
    }

    /// The text of a key; `None` where it is absent or no UTF-8.
    pub fn text(&self, key: &str) -> Option<&str> {
        std::str::from_utf8(self.bytes(key)?).ok()
    }

    /// The keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.content.keys().map(String::as_str)
    }

    /// The keys with their values.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.content.iter().map(|(key, value)| (key.as_str(), value.as_slice()))
    }

    /// What may be known of them everywhere.
    pub fn digests(&self) -> Digests {
        let keys = self.content.iter().map(|(key, value)| (key.clone(), self.keys.of_bytes(value)));
        let (version, published) = (self.version.clone(), self.published.clone());
        Digests { version, published, keys: keys.collect(), texts: BTreeMap::new() }
    }

    /// The same, with the texts of some keys.
    fn digests_with(&self, kept: &[&str]) -> Digests {
        let text = |key: &&str| Some(((*key).to_owned(), Arc::from(self.text(key)?)));
        Digests { texts: kept.iter().filter_map(text).collect(), ..self.digests() }
    }
}

/// A cache of metadata that remembers which parts of its own objects `manager` still owns.
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

/// All sources of the watched namespaces, and who depends on which.
pub struct SourceCache {
    secrets: Arc<MetadataCache<Secret>>,
    config_maps: Arc<MetadataCache<ConfigMap>>,
    kept: &'static [&'static str],
    keys: Keys,
    digests: Mutex<BTreeMap<SourceRef, Digests>>,
    readers: Mutex<BTreeMap<Key, BTreeSet<SourceRef>>>,
    /// Held while a source of its share is read, so that nobody else reads the same content.
    reading: [tokio::sync::Mutex<()>; SHARES],
}

/// How many sources can be read at once.
const SHARES: usize = 16;

impl SourceCache {
    /// Over two caches of metadata, which their owner watches; the digests of Secrets are by `keys`.
    pub fn new(
        keys: &Keys,
        secrets: Arc<MetadataCache<Secret>>,
        config_maps: Arc<MetadataCache<ConfigMap>>,
    ) -> Arc<Self> {
        Self::keeping(&[], keys, secrets, config_maps)
    }

    /// The same; the texts of these keys, which are no secret, are kept beside the digests.
    pub fn keeping(
        kept: &'static [&'static str],
        keys: &Keys,
        secrets: Arc<MetadataCache<Secret>>,
        config_maps: Arc<MetadataCache<ConfigMap>>,
    ) -> Arc<Self> {
        let (digests, readers, reading) = (Mutex::default(), Mutex::default(), Default::default());
        Arc::new(Self { secrets, config_maps, kept, keys: keys.clone(), digests, readers, reading })
    }

    /// The keys by which the digests of Secrets are made.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Calls `wake` with each reader of a source that changes.
    pub fn on_change(self: &Arc<Self>, wake: impl Fn(Key) + Clone + Send + Sync + 'static) {
        let (this, wake_reader) = (Arc::clone(self), wake.clone());
        self.secrets.on_change(move |it| {
            this.changed(&SourceRef { is_secret: true, key: Key::of(it) }, &wake_reader);
        });
        let this = Arc::clone(self);
        self.config_maps.on_change(move |it| {
            this.changed(&SourceRef { is_secret: false, key: Key::of(it) }, &wake);
        });
    }

    /// Remembers what `reader` depends on, existing or not; replaces what was said before.
    pub fn depends(&self, reader: &Key, on: BTreeSet<SourceRef>) {
        let mut readers = lock(&self.readers);
        if on.is_empty() {
            readers.remove(reader);
        } else {
            readers.insert(reader.clone(), on);
        }
    }

    /// The digests of a source; `None` where it does not exist.
    ///
    /// Reads the API server only where the version has changed since the last time, and once however
    /// many ask.
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

    /// The values of a source, by one read; `None` where it does not exist.
    pub async fn values(&self, api: &Api, source: &SourceRef) -> Result<Option<Values>> {
        if self.version(source).is_none() {
            return Ok(None);
        }
        if source.is_secret {
            let read: Option<Secret> = api.get(&source.key).await?;
            return Ok(read.map(|it| Values::of_secret(it, &self.keys)));
        }
        let read: Option<ConfigMap> = api.get(&source.key).await?;
        Ok(read.map(|it| Values::of_config_map(it.resource_version().unwrap_or_default(), it)))
    }

    /// The resource version of a source; `None` where it does not exist.
    pub fn version(&self, source: &SourceRef) -> Option<String> {
        if source.is_secret {
            self.secrets.get(&source.key)?.resource_version()
        } else {
            self.config_maps.get(&source.key)?.resource_version()
        }
    }

    /// An annotation of a source.
    pub fn annotation(&self, source: &SourceRef, name: &str) -> Option<String> {
        if source.is_secret {
            self.secrets.get(&source.key)?.annotations().get(name).cloned()
        } else {
            self.config_maps.get(&source.key)?.annotations().get(name).cloned()
        }
    }

    /// Whether a source goes with another object that owns it.
    pub fn has_owner(&self, source: &SourceRef) -> bool {
        let has = |owners: &[OwnerReference]| !owners.is_empty();
        if source.is_secret {
            self.secrets.get(&source.key).is_some_and(|it| has(it.owner_references()))
        } else {
            self.config_maps.get(&source.key).is_some_and(|it| has(it.owner_references()))
        }
    }

    /// Which parts of a source the operator has written and nobody has changed since; nothing where
    /// it does not exist.
    pub fn owned(&self, source: &SourceRef) -> ManagedFields {
        let meta = if source.is_secret {
            self.secrets.get(&source.key).map(|it| ManagedFields::of(it.meta()))
        } else {
            self.config_maps.get(&source.key).map(|it| ManagedFields::of(it.meta()))
        };
        meta.unwrap_or_default()
    }

    /// UID of the object that a source belongs to; `None` where it belongs to none.
    pub fn controller(&self, source: &SourceRef) -> Option<String> {
        let uid = |owners: &[OwnerReference]| {
            owners.iter().find(|it| it.controller == Some(true)).map(|it| it.uid.clone())
        };
        if source.is_secret {
            uid(self.secrets.get(&source.key)?.owner_references())
        } else {
            uid(self.config_maps.get(&source.key)?.owner_references())
        }
    }

    fn changed(&self, source: &SourceRef, wake: &impl Fn(Key)) {
        let readers = lock(&self.readers);
        for (reader, _) in readers.iter().filter(|(_, on)| on.contains(source)) {
            wake(reader.clone());
        }
    }
}

/// A poisoned lock only means that a reader panicked; the maps themselves are whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
