//! ConfigMaps and Secrets that other objects refer to: watched as metadata, read once per change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::shared::SourceKind;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource;
use operator_core::data_sources::SourceRef;
use operator_core::keyed::Keys;
use operator_core::object_key::Key;
use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

use crate::api::Api;
use crate::cache::MetadataCache;
use crate::error::Result;
use crate::managed_fields::ManagedFields;

mod dependencies;
mod values;

use dependencies::Dependencies;
pub use values::{Content, Digests, Values};

/// All sources of the watched namespaces, and the objects that depend on them.
///
/// One cache serves all controllers of an operator, so that a source is read once for all of them.
pub struct SourceCache {
    secrets: Arc<MetadataCache<Secret>>,
    config_maps: Arc<MetadataCache<ConfigMap>>,
    kept: &'static [&'static str],
    keys: Keys,
    entries: Mutex<BTreeMap<SourceRef, Arc<Entry>>>,
    dependencies: Mutex<Dependencies>,
}

/// What was read of a source. Its lock is held while the source is read, so that concurrent readers
/// cause one request.
type Entry = tokio::sync::Mutex<Read>;

/// The last read of a source; empty before the first one, and when it did not exist.
#[derive(Default)]
struct Read {
    /// The digests, with the version that was read.
    digests: Option<Digests>,
    /// The content of that version, kept only if a caller asked for it.
    content: Option<Content>,
}

impl SourceCache {
    /// Creates a source cache over two metadata caches, which the caller watches.
    ///
    /// Digests of Secrets are keyed by `keys`, and have the texts of the keys in `kept`, which must
    /// not be secret.
    pub fn new(
        kept: &'static [&'static str],
        keys: &Keys,
        secrets: &Arc<MetadataCache<Secret>>,
        config_maps: &Arc<MetadataCache<ConfigMap>>,
    ) -> Arc<Self> {
        let (secrets, config_maps) = (Arc::clone(secrets), Arc::clone(config_maps));
        let (entries, dependencies) = (Mutex::default(), Mutex::default());
        Arc::new(Self { secrets, config_maps, kept, keys: keys.clone(), entries, dependencies })
    }

    /// Returns the keys that digests of Secrets are made with.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Calls `enqueue` with the key of each object of a controller that depends on a changed source.
    pub fn on_change(
        self: &Arc<Self>,
        controller: &'static str,
        enqueue: impl Fn(Key) + Clone + Send + Sync + 'static,
    ) {
        let (this, enqueue_reader) = (Arc::clone(self), enqueue.clone());
        self.secrets.on_change(move |it| {
            let source = SourceRef { kind: SourceKind::Secret, key: Key::of(it) };
            this.readers_of(controller, &source).into_iter().for_each(&enqueue_reader);
        });
        let this = Arc::clone(self);
        self.config_maps.on_change(move |it| {
            let source = SourceRef { kind: SourceKind::ConfigMap, key: Key::of(it) };
            this.readers_of(controller, &source).into_iter().for_each(&enqueue);
        });
    }

    /// Calls `enqueue` with the key of each ConfigMap and Secret that changes.
    pub fn on_each(&self, enqueue: impl Fn(Key) + Clone + Send + Sync + 'static) {
        let enqueue_secret = enqueue.clone();
        self.secrets.on_change(move |it| enqueue_secret(Key::of(it)));
        self.config_maps.on_change(move |it| enqueue(Key::of(it)));
    }

    /// Records the sources that an object of a controller depends on, existing or not; replaces its
    /// previous set.
    pub fn depends(&self, controller: &'static str, object: &Key, on: BTreeSet<SourceRef>) {
        self.dependencies.lock().set(controller, object, on);
    }

    fn readers_of(&self, controller: &str, source: &SourceRef) -> Vec<Key> {
        self.dependencies.lock().readers(controller, source)
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

    /// Returns the contents of each of these sources that exists, by source.
    pub async fn contents_of(
        &self,
        api: &Api,
        sources: impl IntoIterator<Item = SourceRef>,
    ) -> Result<BTreeMap<SourceRef, Content>> {
        let mut found = BTreeMap::new();
        for source in sources {
            if let Some(content) = self.content(api, &source).await? {
                found.insert(source, content);
            }
        }
        Ok(found)
    }

    /// Returns the digests of a source, or `None` when it does not exist.
    ///
    /// Reads from the API server only when the version has changed since the last read, and once
    /// however many callers ask concurrently.
    pub async fn digests(&self, api: &Api, source: &SourceRef) -> Result<Option<Digests>> {
        let read = self.current(api, source, false).await?;
        Ok(read.and_then(|it| it.digests.clone()))
    }

    /// Returns the content of a source, or `None` when it does not exist; it is read as
    /// [`SourceCache::digests`] are.
    pub async fn content(&self, api: &Api, source: &SourceRef) -> Result<Option<Content>> {
        let read = self.current(api, source, true).await?;
        Ok(read.and_then(|it| it.content.clone()))
    }

    /// Returns the read of a source's present version, which is made if there is none, or none with
    /// the content that is needed. Returns `None` when the source does not exist.
    async fn current(
        &self,
        api: &Api,
        source: &SourceRef,
        needs_content: bool,
    ) -> Result<Option<OwnedMutexGuard<Read>>> {
        let Some(entry) = self.entry(source) else { return Ok(None) };
        let mut read = entry.lock_owned().await;
        // Under the lock: a caller that waited for another read must not compare it with an
        // older version.
        let version = self.version(source);
        let is_current = read.digests.as_ref().map(|it| &it.version) == version.as_ref();
        if !is_current || (needs_content && read.content.is_none()) {
            let keeps_content = needs_content || read.content.is_some();
            *read = self.read(api, source, keeps_content).await?;
        }
        Ok(Some(read))
    }

    /// Returns what was read of a source, or `None` when it does not exist.
    fn entry(&self, source: &SourceRef) -> Option<Arc<Entry>> {
        let exists = self.version(source).is_some();
        let mut entries = self.entries.lock();
        if !exists {
            entries.remove(source);
            return None;
        }
        Some(Arc::clone(entries.entry(source.clone()).or_default()))
    }

    /// Reads a source; keeps its values in memory only if `keeps_content`.
    async fn read(&self, api: &Api, source: &SourceRef, keeps_content: bool) -> Result<Read> {
        let values = match source.kind {
            SourceKind::Secret => {
                api.get(&source.key).await?.map(|it: Secret| Values::of_secret(it, &self.keys))
            }
            SourceKind::ConfigMap => api.get(&source.key).await?.map(Values::of_config_map),
        };
        let Some(values) = values else { return Ok(Read::default()) };
        let digests = values.digests_with(self.kept);
        let content = keeps_content.then(|| Content::with_digests(values, digests.clone()));
        Ok(Read { digests: Some(digests), content })
    }

    /// Returns the resource version of a source, or `None` when it does not exist.
    pub fn version(&self, source: &SourceRef) -> Option<String> {
        self.metadata(source, |it| it.resource_version.clone())?
    }

    /// Returns an annotation of a source, or `None` when the source or the annotation does not
    /// exist.
    pub fn annotation(&self, source: &SourceRef, name: &str) -> Option<String> {
        self.metadata(source, |it| it.annotations.as_ref()?.get(name).cloned())?
    }

    /// Returns whether a source has an owner reference, so that it is garbage-collected with its
    /// owner.
    pub fn has_owner(&self, source: &SourceRef) -> bool {
        let has_owner = |it: &ObjectMeta| it.owner_references.iter().flatten().next().is_some();
        self.metadata(source, has_owner).unwrap_or_default()
    }

    /// Returns the fields of a source that the operator applied and still owns; empty when it does
    /// not exist.
    pub fn owned(&self, source: &SourceRef) -> ManagedFields {
        self.metadata(source, ManagedFields::of).unwrap_or_default()
    }

    /// Returns the UID of the source's controller owner, or `None` when it has none.
    pub fn controller(&self, source: &SourceRef) -> Option<String> {
        let controls = |it: &&OwnerReference| it.controller == Some(true);
        let uid = |it: &ObjectMeta| {
            it.owner_references.iter().flatten().find(controls).map(|it| it.uid.clone())
        };
        self.metadata(source, uid)?
    }

    /// Evaluates the metadata of a source; `None` when it does not exist.
    fn metadata<T>(&self, source: &SourceRef, read: impl FnOnce(&ObjectMeta) -> T) -> Option<T> {
        match source.kind {
            SourceKind::Secret => self.secrets.get(&source.key).map(|it| read(it.meta())),
            SourceKind::ConfigMap => self.config_maps.get(&source.key).map(|it| read(it.meta())),
        }
    }
}

#[cfg(test)]
mod tests;
