//! A namespace for each test, and operations in it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use api::conditions::Condition;
use futures::StreamExt as _;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace as CoreNamespace, ResourceQuota, Secret};
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{cluster, holds, says};

/// Time limit for what operators do without a run. It is generous, because other suites keep the
/// machine busy: only a test that fails waits for so long. It is less than the operators' resync period of
/// 15 minutes, which would hide a change that no watch has reported.
pub const SOON: Duration = Duration::from_mins(10);

/// The quota of [`Namespace::forbid`].
const QUOTA: &str = "no-more";

/// A kind that tests read and write.
pub trait Kind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + DeserializeOwned
    + Serialize
    + Send
    + Sync
    + 'static
{
}

impl<K> Kind for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Serialize
        + Send
        + Sync
        + 'static
{
}

/// A namespace that belongs to one test.
///
/// It stays when the test fails, so that it can be inspected; the next run of the test recreates
/// it.
pub struct Namespace {
    /// The client.
    pub client: Client,
    /// Its name.
    pub name: String,
}

impl Namespace {
    /// Creates an empty namespace, after removing that of an earlier run.
    ///
    /// It enforces the restricted Pod Security level, which runner pods must comply with.
    pub async fn new(test: &str) -> Result<Self> {
        Self::of(cluster::client().await?, test).await
    }

    /// The same with an existing client.
    pub async fn of(client: Client, test: &str) -> Result<Self> {
        let name = format!("e2e-{test}");
        let api: Api<CoreNamespace> = Api::all(client.clone());
        let earlier = Self::existing(&client, &name);
        if api.get_opt(&name).await?.is_some() {
            earlier.delete().await?;
            earlier.deleted(SOON).await.context("it is of an earlier run")?;
        }
        let object: CoreNamespace = serde_json::from_value(json!({
            "metadata": {
                "name": name,
                "labels": { "pod-security.kubernetes.io/enforce": "restricted" },
            },
        }))?;
        api.create(&PostParams::default(), &object).await?;
        Ok(Self { client, name })
    }

    /// Returns a namespace that exists already and stays.
    pub fn existing(client: &Client, name: &str) -> Self {
        Self { client: client.clone(), name: name.to_owned() }
    }

    /// Returns the API of a kind in the namespace.
    pub fn api<K: Kind>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// Creates an object from its spec.
    pub async fn create<K: Kind>(&self, name: &str, spec: Value) -> Result<K> {
        self.create_with(name, spec, json!({})).await
    }

    /// Creates an object from its spec and further metadata.
    pub async fn create_with<K: Kind>(
        &self,
        name: &str,
        spec: Value,
        mut metadata: Value,
    ) -> Result<K> {
        metadata["name"] = json!(name);
        let object = json!({
            "apiVersion": K::api_version(&()),
            "kind": K::kind(&()),
            "metadata": metadata,
            "spec": spec,
        });
        let object: K = serde_json::from_value(object)?;
        let api = self.api::<K>();
        api.create(&PostParams::default(), &object).await.with_context(|| format!("create {name}"))
    }

    /// Merges a change into an object, as `kubectl patch --type merge` does.
    pub async fn merge<K: Kind>(&self, name: &str, change: Value) -> Result<K> {
        let patch = Patch::Merge(&change);
        let changed = self.api::<K>().patch(name, &PatchParams::default(), &patch).await;
        changed.with_context(|| format!("change {name}"))
    }

    /// Merges a change into the status of an object.
    pub async fn merge_status<K: Kind>(&self, name: &str, status: Value) -> Result<()> {
        let patch = Patch::Merge(json!({ "status": status }));
        let changed = self.api::<K>().patch_status(name, &PatchParams::default(), &patch).await;
        changed.with_context(|| format!("change the status of {name}")).map(drop)
    }

    /// Sets an annotation of an object, or takes it away where the value is null.
    pub async fn annotate<K: Kind>(
        &self,
        name: &str,
        key: &str,
        value: impl Into<Value>,
    ) -> Result<K> {
        let annotations = json!({ key: value.into() });
        self.merge(name, json!({ "metadata": { "annotations": annotations } })).await
    }

    /// Makes a change that must be denied with all of these words.
    pub async fn denied<K: Kind>(&self, name: &str, change: Value, words: &[&str]) -> Result<()> {
        let text = change.to_string();
        let Err(error) = self.merge::<K>(name, change).await else {
            bail!("{name}: {text} passed")
        };
        let error = format!("{error:#}");
        for word in words {
            assert!(error.contains(word), "{text}: {word} is not in: {error}");
        }
        Ok(())
    }

    /// Asserts that no object of a kind contains any of the values, and that objects exist.
    pub async fn holds_nowhere<K: Kind>(&self, values: &[&str]) -> Result<()> {
        let (kind, objects) = (K::kind(&()), self.list::<K>().await?);
        assert!(!objects.is_empty(), "no {kind}");
        let text = serde_json::to_string(&objects)?;
        for value in values {
            assert!(!text.contains(value), "a {kind} holds {value}: {text}");
        }
        Ok(())
    }

    /// Creates or replaces a Secret's content.
    pub async fn secret(&self, name: &str, content: &[(&str, &str)]) -> Result<()> {
        let content: BTreeMap<&str, &str> = content.iter().copied().collect();
        let object: Secret = serde_json::from_value(json!({
            "metadata": { "name": name },
            "stringData": content,
        }))?;
        let api = self.api::<Secret>();
        if api.get_opt(name).await?.is_some() {
            api.delete(name, &DeleteParams::default()).await?;
        }
        api.create(&PostParams::default(), &object).await?;
        Ok(())
    }

    /// Creates a ConfigMap.
    pub async fn config_map(&self, name: &str, content: &[(&str, &str)]) -> Result<()> {
        let content: BTreeMap<&str, &str> = content.iter().copied().collect();
        let object: ConfigMap = serde_json::from_value(json!({
            "metadata": { "name": name },
            "data": content,
        }))?;
        self.api::<ConfigMap>().create(&PostParams::default(), &object).await?;
        Ok(())
    }

    /// Waits, by a watch, until an object satisfies `holds`; `what` describes that in the error.
    pub async fn wait<K: Kind>(
        &self,
        name: &str,
        what: &str,
        within: Duration,
        holds: impl Fn(&K) -> bool,
    ) -> Result<K> {
        let condition = |it: Option<&K>| it.is_some_and(&holds);
        let waiting = await_condition(self.api::<K>(), name, condition);
        if let Ok(found) = tokio::time::timeout(within, waiting).await {
            return found?.with_context(|| format!("{name} went away"));
        }
        let found = self.api::<K>().get_opt(name).await?;
        let text = serde_json::to_string_pretty(&found)?;
        bail!("{} {name}: not {what} within {} s; it is {text}", K::kind(&()), within.as_secs())
    }

    /// Waits until a condition of an object has this reason, and all of these words in its message.
    pub async fn reports<K: Kind>(
        &self,
        name: &str,
        type_: &str,
        reason: &str,
        words: &[&str],
        within: Duration,
    ) -> Result<K> {
        let what = format!("{type_} {reason} with {words:?}");
        let is_reported = |it: &K| says(&conditions_of(it), type_, reason, words);
        self.wait(name, &what, within, is_reported).await
    }

    /// Waits until all conditions of these types are True in the status of an object.
    pub async fn good<K: Kind>(&self, name: &str, types: &[&str], within: Duration) -> Result<K> {
        let are_good = |it: &K| {
            let all = conditions_of(it);
            types.iter().all(|type_| holds(&all, type_))
        };
        self.wait(name, &types.join(" and "), within, are_good).await
    }

    /// Waits, by a watch, for any object of a kind that satisfies `holds`.
    pub async fn wait_any<K: Kind>(
        &self,
        within: Duration,
        what: &str,
        holds: impl Fn(&K) -> bool,
    ) -> Result<K> {
        let watching = watcher(self.api::<K>(), watcher::Config::default());
        let mut objects = std::pin::pin!(watching.default_backoff().applied_objects());
        let find = async {
            while let Some(object) = objects.next().await {
                match object {
                    Ok(object) if holds(&object) => return Ok(object),
                    Ok(_) | Err(_) => {}
                }
            }
            bail!("the watch ended")
        };
        let found = tokio::time::timeout(within, find).await;
        found.with_context(|| format!("{what}: not within {} s", within.as_secs()))?
    }

    /// Waits, by a watch, until an object is gone.
    pub async fn gone<K: Kind>(&self, name: &str, within: Duration) -> Result<()> {
        let gone = await_condition(self.api::<K>(), name, |it: Option<&K>| it.is_none());
        let waited = tokio::time::timeout(within, gone).await;
        waited.with_context(|| format!("{name} is still there"))?.map(drop).map_err(Into::into)
    }

    /// Deletes an object.
    pub async fn remove<K: Kind>(&self, name: &str) -> Result<()> {
        self.api::<K>().delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Deletes an object, and waits until it is gone.
    pub async fn removed<K: Kind>(&self, name: &str, within: Duration) -> Result<()> {
        self.remove::<K>(name).await?;
        self.gone::<K>(name, within).await
    }

    /// Lists all objects of a kind.
    pub async fn list<K: Kind>(&self) -> Result<Vec<K>> {
        Ok(self.api::<K>().list(&ListParams::default()).await?.items)
    }

    /// Waits for an Event with this reason on an object; Events are published after the status is
    /// written.
    pub async fn event(&self, kind: &str, name: &str, reason: &str) -> Result<()> {
        let what = format!("Event {reason} on {kind} {name}");
        let is_it = |it: &Event| {
            let regarding = it.regarding.as_ref();
            it.reason.as_deref() == Some(reason)
                && regarding.and_then(|it| it.kind.as_deref()) == Some(kind)
                && regarding.and_then(|it| it.name.as_deref()) == Some(name)
        };
        self.wait_any(SOON, &what, is_it).await.map(drop)
    }

    /// Forbids more objects of a resource, as in `count/jobs.batch`.
    pub async fn forbid(&self, resource: &str) -> Result<()> {
        self.limit(resource, 0).await
    }

    /// Forbids more than that many objects of a resource by a quota, and waits until it is enforced.
    pub async fn limit(&self, resource: &str, n_objects: u32) -> Result<()> {
        let spec = json!({ "hard": { resource: n_objects.to_string() } });
        self.create::<ResourceQuota>(QUOTA, spec).await?;
        let counts = |it: &ResourceQuota| {
            let used = it.status.as_ref().and_then(|it| it.used.as_ref());
            used.is_some_and(|it| it.contains_key(resource))
        };
        self.wait::<ResourceQuota>(QUOTA, "counting", SOON, counts).await.map(drop)
    }

    /// Allows again what [`Self::forbid`] forbids.
    pub async fn allow(&self) -> Result<()> {
        self.remove::<ResourceQuota>(QUOTA).await
    }

    /// Ends a test: deletes the namespace without waiting for its objects.
    pub async fn done(self) -> Result<()> {
        self.delete().await
    }

    /// Deletes the namespace without waiting for its objects.
    pub async fn delete(&self) -> Result<()> {
        let api: Api<CoreNamespace> = Api::all(self.client.clone());
        api.delete(&self.name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Waits until the namespace, which is being deleted, is gone; otherwise the error has what its
    /// conditions say is left in it.
    pub async fn deleted(&self, within: Duration) -> Result<()> {
        let api: Api<CoreNamespace> = Api::all(self.client.clone());
        let Some(found) = api.get_opt(&self.name).await? else { return Ok(()) };
        let uid = found.uid().unwrap_or_default();
        let gone = await_condition(api.clone(), &self.name, conditions::is_deleted(&uid));
        if let Ok(waited) = tokio::time::timeout(within, gone).await {
            return waited.map(drop).map_err(Into::into);
        }
        let status = api.get_opt(&self.name).await?.and_then(|it| it.status);
        let conditions = serde_json::to_string_pretty(&status.and_then(|it| it.conditions))?;
        let (name, seconds) = (&self.name, within.as_secs());
        bail!("namespace {name} does not go within {seconds} s; its conditions: {conditions}")
    }
}

/// Returns the conditions in the status of an object.
fn conditions_of(object: &impl Serialize) -> Vec<Condition> {
    let mut object = serde_json::to_value(object).unwrap_or_default();
    serde_json::from_value(object["status"]["conditions"].take()).unwrap_or_default()
}

/// Waits until an answer is true: caches and policies of the API server lag behind what is written.
pub async fn eventually(what: &str, ask: impl AsyncFn() -> Result<bool>) -> Result<()> {
    let mut tick = tokio::time::interval(Duration::from_millis(200));
    let asking = async {
        while !ask().await? {
            tick.tick().await;
        }
        Ok(())
    };
    tokio::time::timeout(SOON, asking).await.with_context(|| format!("not yet: {what}"))?
}
