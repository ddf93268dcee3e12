//! The content of the Secrets and ConfigMaps that others are made from, read once per change and
//! shared by all who need it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use operator_core::data_sources::SourceRef;
use operator_core::keyed::Digest;
use tokio::sync::Mutex;

use crate::api::Api;
use crate::error::Result;
use crate::source_cache::{Digests, SourceCache, Values};

/// Content by source, as of its version.
#[derive(Default)]
pub struct SourceContents(Mutex<BTreeMap<SourceRef, Content>>);

/// The content of a source. `Debug` hides it.
#[derive(Clone, Default)]
pub struct Content(Arc<Known>);

#[derive(Default)]
struct Known {
    values: Values,
    /// Made once: a role's content is looked at for each of its nodes.
    digests: Digests,
}

impl Content {
    /// The digest of a key's value; `None` where there is no such key.
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
    /// The content of a source; `None` where it does not exist.
    pub async fn content(
        &self,
        api: &Api,
        sources: &SourceCache,
        source: &SourceRef,
    ) -> Result<Option<Content>> {
        // Held while it is read, so that many readers of one change make one request.
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
