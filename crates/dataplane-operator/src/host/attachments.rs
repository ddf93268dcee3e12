//! The network attachments of a cluster, whose kind may not be installed.
//!
//! The kind belongs to Multus. Its informer starts when the first object names an attachment.

use std::borrow::Cow;

use kube::ResourceExt;
use kube::core::{NamespaceResourceScope, ObjectMeta};
use operator_core::object_key::Key;
use operator_runtime::api::Api;
use operator_runtime::cache_registry::CacheRegistry;
use operator_runtime::error::Result;
use operator_runtime::manager::ManagerBuilder;
use operator_runtime::optional_informer::OptionalInformer;
use serde::Deserialize;

use crate::host::networks::Networks;

/// A network attachment, reduced to its metadata: only the name is needed.
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

/// All network attachments of the cluster, if it serves the kind.
pub struct Attachments(OptionalInformer<Attachment>);

impl Attachments {
    /// Creates the cache without starting the informer.
    pub fn new(builder: &ManagerBuilder, registry: &mut CacheRegistry) -> Self {
        Self(OptionalInformer::new(builder, registry))
    }

    /// Calls `enqueue` with the key of each attachment that is added, changed or deleted.
    pub fn on_change(&self, enqueue: impl Fn(Key) + Send + Sync + 'static) {
        self.0.on_change(enqueue);
    }

    /// Returns the attachments of a namespace; reads nothing unless `are_named` is set.
    pub async fn seen(&self, api: &Api, namespace: &str, are_named: bool) -> Result<Networks> {
        if !are_named {
            return Ok(Networks::NotNamed);
        }
        let here = self.0.seen(api, namespace).await?;
        Ok(here.map_or(Networks::NotServed, |here| {
            Networks::Known(here.iter().map(|it| it.name_any()).collect())
        }))
    }
}
