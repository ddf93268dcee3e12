//! The network attachments of a cluster that may have none.
//!
//! The kind belongs to Multus: it is looked for only once somebody names an attachment, and watched
//! from when it is found.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use kube::ResourceExt;
use kube::core::{NamespaceResourceScope, ObjectMeta};
use serde::Deserialize;
use shell::api::Api;
use shell::cache::{Cache, Key};
use shell::error::Result;
use shell::leader::Watches;
use tokio::sync::Mutex;

use crate::group::networks::Networks;

/// A network attachment, of which the name is enough.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Attachment {
    metadata: ObjectMeta,
}

impl kube::Resource for Attachment {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "NetworkAttachmentDefinition".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "k8s.cni.cncf.io".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "network-attachment-definitions".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// All network attachments of the cluster, if it has them.
pub struct Attachments {
    cache: Arc<Cache<Attachment>>,
    opening: Mutex<Opening>,
    is_watched: OnceLock<()>,
}

/// Where the watch is, or will be.
struct Opening {
    watches: Watches,
    is_open: bool,
}

impl Attachments {
    /// Not watched yet; `watches` is where they will be.
    pub fn new(watches: Watches) -> Self {
        let opening = Mutex::new(Opening { watches, is_open: false });
        Self { cache: Cache::new(vec![]), opening, is_watched: OnceLock::new() }
    }

    /// Calls `wake` with each attachment that comes, changes or goes.
    pub fn on_change(&self, wake: impl Fn(Key) + Send + Sync + 'static) {
        self.cache.on_change(move |it| wake(Key::of(it)));
    }

    /// What there is in a namespace; nothing is asked where nobody names any.
    pub async fn seen(&self, api: &Api, namespace: &str, are_named: bool) -> Result<Networks> {
        if !are_named {
            return Ok(Networks::NotNamed);
        }
        if self.is_watched.get().is_none() && !self.open(api).await? {
            return Ok(Networks::NotServed);
        }
        let all = self.cache.all();
        let here = all.iter().filter(|it| it.namespace().as_deref() == Some(namespace));
        Ok(Networks::Known(here.map(|it| it.name_any()).collect()))
    }

    /// Waits for the first list; false where the cluster has no such kind.
    async fn open(&self, api: &Api) -> Result<bool> {
        let mut opening = self.opening.lock().await;
        if !opening.is_open {
            if !api.serves::<Attachment>().await? {
                return Ok(false);
            }
            opening.watches.watch(&self.cache, "");
            opening.is_open = true;
        }
        opening.watches.ready().await;
        let _ = self.is_watched.set(());
        Ok(true)
    }
}
