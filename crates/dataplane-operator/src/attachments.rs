//! The network attachments of a cluster that may have none.
//!
//! The kind belongs to Multus: it is looked for only once somebody names an attachment.

use std::borrow::Cow;
use std::collections::BTreeSet;

use kube::ResourceExt;
use kube::core::{NamespaceResourceScope, ObjectMeta};
use operator_core::object_key::Key;
use operator_runtime::api::Api;
use operator_runtime::error::Result;
use operator_runtime::manager::Informers;
use operator_runtime::optional_informer::OptionalInformer;
use serde::Deserialize;

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
pub struct Attachments(OptionalInformer<Attachment>);

impl Attachments {
    /// Not watched yet; `watches` is where they will be.
    pub fn new(informers: Informers) -> Self {
        Self(OptionalInformer::new(informers))
    }

    /// Calls `wake` with each attachment that comes, changes or goes.
    pub fn on_change(&self, wake: impl Fn(Key) + Send + Sync + 'static) {
        self.0.on_change(wake);
    }

    /// What there is in a namespace; nothing is asked where nobody names any.
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

/// What is known of a namespace's network attachments.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Networks {
    /// Nobody names any.
    #[default]
    NotNamed,
    /// The cluster lacks the kind.
    NotServed,
    /// Their names.
    Known(BTreeSet<String>),
}
