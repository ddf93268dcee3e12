//! Network attachments: that they exist, and that a role and its nodes agree in them.
//!
//! The kind belongs to Multus, and a cluster may lack it: it is looked for only once somebody names
//! an attachment, and watched from when it is found.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use common::api::dataplane::Node;
use kube::ResourceExt;
use kube::core::{NamespaceResourceScope, ObjectMeta};
use serde::Deserialize;
use shell::api::Api;
use shell::cache::{Cache, Key};
use shell::error::Result;
use shell::leader::Watches;
use tokio::sync::Mutex;

use crate::group::faults::Fault;
use crate::group::observe::Observed;

/// When it is looked again for a kind that the cluster lacks.
pub const LOOK_AGAIN: Duration = Duration::from_secs(30);

const NOT_SERVED: &str = "NetworkAttachmentsNotServed";

/// A network attachment, of which the name is enough.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Attachment {
    metadata: ObjectMeta,
}

impl kube::Resource for Attachment {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind(_: &()) -> Cow<'_, str> {
        "NetworkAttachmentDefinition".into()
    }

    fn group(_: &()) -> Cow<'_, str> {
        "k8s.cni.cncf.io".into()
    }

    fn version(_: &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural(_: &()) -> Cow<'_, str> {
        "network-attachment-definitions".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
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

/// All network attachments of the cluster, if it has them.
pub struct Attachments {
    cache: Arc<Cache<Attachment>>,
    watches: Mutex<Watches>,
    is_watched: std::sync::OnceLock<()>,
}

impl Attachments {
    /// Not watched yet; `watches` is where they will be.
    pub fn new(watches: Watches) -> Self {
        let is_watched = std::sync::OnceLock::new();
        Self { cache: Cache::new(vec![]), watches: Mutex::new(watches), is_watched }
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
        if self.is_watched.get().is_none() {
            let mut watches = self.watches.lock().await;
            if self.is_watched.get().is_none() {
                if !api.serves::<Attachment>().await? {
                    return Ok(Networks::NotServed);
                }
                watches.watch(&self.cache, "");
                watches.ready().await;
                let _ = self.is_watched.set(());
            }
        }
        let all = self.cache.all();
        let here = all.iter().filter(|it| it.namespace().as_deref() == Some(namespace));
        Ok(Networks::Known(here.map(|it| it.name_any()).collect()))
    }
}

/// Whether faults say that the cluster lacks the kind: no watch tells when it comes.
pub fn are_unserved(faults: &[Fault]) -> bool {
    faults.iter().any(|it| it.reason == NOT_SERVED)
}

/// What is wrong with the role's list.
pub fn of_role(seen: &Observed) -> Vec<Fault> {
    let Some(role) = &seen.role else { return Vec::new() };
    missing(seen, &role.spec.network_attachments, "OpenStackDataPlaneRole", &role.name_any())
}

/// What is wrong with the node's own list.
pub fn of_node(seen: &Observed, node: &Node) -> Vec<Fault> {
    let own = &node.spec.network_attachments;
    let mut faults = missing(seen, own, "OpenStackDataPlaneNode", &node.name_any());
    faults.extend(disagreement(seen, node));
    faults
}

fn missing(seen: &Observed, names: &[String], kind: &str, object: &str) -> Vec<Fault> {
    let place = format!("spec.networkAttachments of {kind} {object}");
    let absent = |name: &String| {
        let text = format!(
            "NetworkAttachmentDefinition {name}, named in {place}, does not exist: create it, or \
             correct the list."
        );
        Fault::missing("NetworkAttachmentNotFound", text)
    };
    match &seen.networks {
        Networks::Known(known) => {
            names.iter().filter(|it| !known.contains(*it)).map(absent).collect()
        }
        Networks::NotServed if !names.is_empty() => vec![Fault::missing(
            NOT_SERVED,
            format!(
                "{place} is set, but this cluster has no kind NetworkAttachmentDefinition \
                 (k8s.cni.cncf.io/v1): install Multus, or empty the list."
            ),
        )],
        Networks::NotServed | Networks::NotNamed => Vec::new(),
    }
}

/// A role's list holds for all; without one, the first node that has a list sets the measure.
fn disagreement(seen: &Observed, node: &Node) -> Option<Fault> {
    let own = &node.spec.network_attachments;
    if own.is_empty() {
        return None;
    }
    let of_role = seen.role.as_ref().filter(|it| !it.spec.network_attachments.is_empty());
    let (kind, name, expected) = match of_role {
        Some(role) => ("OpenStackDataPlaneRole", role.name_any(), &role.spec.network_attachments),
        None => {
            let first = seen.nodes.iter().find(|it| !it.spec.network_attachments.is_empty())?;
            ("OpenStackDataPlaneNode", first.name_any(), &first.spec.network_attachments)
        }
    };
    (own != expected).then(|| {
        let text = format!(
            "spec.networkAttachments of OpenStackDataPlaneNode {} ({}) and of {kind} {name} ({}) \
             differ: make them equal, in the same order, or empty the node's.",
            node.name_any(),
            own.join(", "),
            expected.join(", ")
        );
        Fault::wrong("NetworkAttachmentsDiffer", text)
    })
}
