//! The content of Secrets and ConfigMaps that other objects are built from, read once per change
//! and shared by all readers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use operator_core::data_sources::SourceRef;
use operator_core::keyed::Digest;
use tokio::sync::Mutex;

use crate::api::Api;
use crate::error::Result;
use crate::source_cache::{Digests, SourceCache, Values};

/// Cached content by source, each with the version it was read at.
#[derive(Default)]
pub struct SourceContents(Mutex<BTreeMap<SourceRef, Content>>);

/// The content of a source. Its `Debug` output hides it.
#[derive(Clone, Default)]
pub struct Content(Arc<Known>);

#[derive(Default)]
struct Known {
    values: Values,
    /// Computed once: the content for a role is evaluated for each of its nodes.
    digests: Digests,
}

impl Content {
    /// Returns the digest of a key's value, or `None` when the key is absent.
    pub fn digest(&self, key: &str) -> Option<&Digest> {
        self.0.digests.keys.get(key)
    }
}

impl std::ops::Deref for Content {
    type Target = Values;

    fn deref(&self) -> &Values {
        &self.0.values
    }
}

impl From<Values> for Content {
    fn from(values: Values) -> Self {
        let digests = values.digests();
        Self(Arc::new(Known { values, digests }))
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Content")
    }
}

impl SourceContents {
    /// Returns the content of each of these sources that exists, by source.
    pub async fn contents_of(
        &self,
        api: &Api,
        cache: &SourceCache,
        sources: impl IntoIterator<Item = SourceRef>,
    ) -> Result<BTreeMap<SourceRef, Content>> {
        let mut found = BTreeMap::new();
        for source in sources {
            if let Some(content) = self.content(api, cache, &source).await? {
                found.insert(source, content);
            }
        }
        Ok(found)
    }

    /// Returns the content of a source, or `None` when it does not exist.
    pub async fn content(
        &self,
        api: &Api,
        sources: &SourceCache,
        source: &SourceRef,
    ) -> Result<Option<Content>> {
        // Held during the read, so that many readers of one change make one request.
        let mut contents = self.0.lock().await;
        let Some(version) = sources.version(source) else {
            contents.remove(source);
            return Ok(None);
        };
        if let Some(known) = contents.get(source).filter(|it| it.version == version) {
            return Ok(Some(known.clone()));
        }
        let read = sources.values(api, source).await?.map(Content::from);
        if let Some(content) = &read {
            contents.insert(source.clone(), content.clone());
        }
        Ok(read)
    }
}
