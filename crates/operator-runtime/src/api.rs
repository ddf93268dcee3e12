//! Uncached reads, and the single place that executes plans.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use api::conditions::{printable, shortened};
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::{Namespace, ObjectReference};
use kube::api::{
    DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, Preconditions,
};
use kube::core::ApiResource;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Client, Resource};
use operator_core::hash;
use operator_core::object_key::Key;
use operator_core::plan::{EventDraft, Kind, Plan, Step, Target, Write, rows};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::cache::{Item, Watchable, WriteThrough};
use crate::error::{During, Error, Result};
use crate::lease::LeadershipWatch;

/// A plan whose execution failed part-way.
#[derive(Debug)]
pub struct PlanStopped {
    /// Index of the failed step in [`Plan::all`]. The plan's steps before it were executed, and as
    /// many of the independent writes as could be.
    pub at: usize,
    /// The error of that step.
    pub error: Error,
}

/// Writes under way at a time: more would only wait in the API server, whose own limits are shared with
/// all its other clients.
const WRITES_AT_ONCE: usize = 16;

/// Holder of the Kubernetes client: every read and write outside the informers.
pub struct Api {
    client: Client,
    manager: String,
    recorder: Recorder,
    leadership: LeadershipWatch,
    caches: Vec<Arc<dyn WriteThrough>>,
    /// One permit for each write under way, granted first come, first served.
    places: Semaphore,
}

impl Api {
    /// Creates a client that writes as field manager `manager`, and only while this process leads.
    ///
    /// Every written object is stored in the cache of its kind, so that the next decision sees it.
    pub fn new(
        client: Client,
        manager: &str,
        instance: &str,
        leadership: LeadershipWatch,
        caches: Vec<Arc<dyn WriteThrough>>,
    ) -> Self {
        let reporter = Reporter { controller: manager.into(), instance: Some(instance.into()) };
        let recorder = Recorder::new(client.clone(), reporter);
        let places = Semaphore::new(WRITES_AT_ONCE);
        Self { client, manager: manager.into(), recorder, leadership, caches, places }
    }

    /// Reads one object consistently. Returns `None` when it does not exist.
    pub async fn get<K: Watchable>(&self, key: &Key) -> Result<Option<K>> {
        let api: kube::Api<K> = kube::Api::namespaced(self.client.clone(), &key.namespace);
        api.get_opt(&key.name).await.during(format!("get {} {key}", K::plural(&())))
    }

    /// Lists the objects of a namespace that match the label selector `labels`, by a consistent
    /// read. Objects that cannot be deserialized are left out.
    pub async fn list<K: Watchable>(&self, namespace: &str, labels: &str) -> Result<Vec<K>> {
        self.list_with(namespace, labels, ListParams::default().labels(labels)).await
    }

    /// Lists the objects of a namespace that match the field selector `fields`, as
    /// [`Api::list`] does by labels.
    pub async fn list_by_fields<K: Watchable>(
        &self,
        namespace: &str,
        fields: &str,
    ) -> Result<Vec<K>> {
        self.list_with(namespace, fields, ListParams::default().fields(fields)).await
    }

    async fn list_with<K: Watchable>(
        &self,
        namespace: &str,
        selector: &str,
        params: ListParams,
    ) -> Result<Vec<K>> {
        let api: kube::Api<Item<K>> = kube::Api::namespaced(self.client.clone(), namespace);
        let what = format!("list {} of {namespace} with {selector}", K::plural(&()));
        let items = api.list(&params).await.during(what)?.items;
        Ok(items.into_iter().filter_map(Item::readable).collect())
    }

    /// Returns whether the API server serves the kind. A foreign kind may not be installed.
    pub async fn serves<K: Resource<DynamicType = ()>>(&self) -> Result<bool> {
        let version = K::api_version(&());
        let found = self.client.list_api_group_resources(&version).await;
        match found.during(format!("look for {version}")) {
            Ok(list) => Ok(list.resources.iter().any(|it| it.name == K::plural(&()))),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns whether this process leads. Code that writes outside [`Api::carry_out`] must check
    /// it first.
    pub fn leads(&self) -> bool {
        // Checked against the clock: a process that was suspended must not trust its last known
        // state.
        self.leadership.borrow().leads()
    }

    /// Executes a plan.
    ///
    /// # Guarantees
    /// Steps run in order, each only while this process leads, and the first failure ends the plan:
    /// a later step may rely on the earlier ones being in etcd, but for those of its [row](rows),
    /// which are made together unless the plan is [one by one](Plan::one_by_one). [`Error::Gone`]
    /// ends it too: a decision about a deleted object is void, and so are the later steps.
    /// Independent writes come first, row by row: all are tried, and the first rejected one is
    /// returned. The steps run after a rejection too, except status writes: the caller reports the
    /// rejection in that status. When this returns, every written object is in the cache of its
    /// kind.
    ///
    /// All plans of this process share [`WRITES_AT_ONCE`], first come, first served: a long plan
    /// delays a short one by little.
    ///
    /// # Caveats
    /// A step whose response was lost may have taken effect; every write is safe to repeat.
    pub async fn carry_out<O>(&self, plan: &Plan<O>) -> Result<(), PlanStopped> {
        let apart = self.carry_out_apart(&plan.independent).await;
        let is_refused = match &apart {
            Err(PlanStopped { error, .. }) if !error.is_answer() || error.is_gone() => {
                return apart;
            }
            Err(stopped) => stopped.error.rejection().is_some(),
            Ok(()) => false,
        };
        let mut at = plan.independent.len();
        let most = if plan.one_by_one { 1 } else { plan.steps.len().max(1) };
        for row in rows(&plan.steps).flat_map(|it| it.chunks(most)) {
            if !is_refused || !matches!(row[0].write, Write::Status { .. }) {
                let failed = self.carry_out_together(at, row, |_| false).await;
                failed.into_iter().next().map_or(Ok(()), Err)?;
            }
            at += row.len();
        }
        if self.leads() {
            for (target, event) in &plan.events {
                self.publish(target, event).await;
            }
        }
        apart
    }

    /// Tries every step, whatever the API server answers to the others.
    async fn carry_out_apart(&self, steps: &[Step]) -> Result<(), PlanStopped> {
        let (mut failed, mut at) = (Vec::new(), 0);
        for row in rows(steps) {
            failed.extend(self.carry_out_together(at, row, Error::is_answer).await);
            if failed.iter().any(|it| !it.error.is_answer()) {
                break;
            }
            at += row.len();
        }
        // A rejection is reported on the object; every other error is only retried.
        failed.sort_by_key(|it| it.error.rejection().is_none());
        failed.into_iter().next().map_or(Ok(()), Err)
    }

    /// Carries out steps of which the first is at this place in the plan. Once one has failed no other
    /// begins, unless more are tried after its error; those under way are awaited, because what they
    /// write has to be in the caches. Returns the failures by their places.
    async fn carry_out_together(
        &self,
        first: usize,
        steps: &[Step],
        goes_on: fn(&Error) -> bool,
    ) -> Vec<PlanStopped> {
        let (is_stopped, failed) = (AtomicBool::new(false), Mutex::new(Vec::new()));
        let (is_stopped, failures) = (&is_stopped, &failed);
        let carry_out = |(at, step)| async move {
            if let Err(error) = self.carry_out_step(step, is_stopped).await {
                is_stopped.fetch_or(!goes_on(&error), Relaxed);
                failures.lock().push(PlanStopped { at, error });
            }
        };
        let steps = stream::iter((first..).zip(steps));
        steps.for_each_concurrent(WRITES_AT_ONCE, carry_out).await;
        let mut failed = failed.into_inner();
        failed.sort_by_key(|it| it.at);
        failed
    }

    /// Makes one write once it has a place, unless its row is stopped by then.
    async fn carry_out_step(&self, step: &Step, is_stopped: &AtomicBool) -> Result<()> {
        let place = self.places.acquire().await;
        if is_stopped.load(Relaxed) {
            return Ok(());
        }
        self.require_leadership(step)?;
        let target = &step.target;
        tracing::info!(
            kind = target.kind.kind,
            object = %format_args!("{}/{}", target.namespace, target.name),
            write = name_of(&step.write),
            because = step.reason,
            "write"
        );
        self.write(step).await?;
        // Events do not count as writes of a plan, and may be slow.
        drop(place);
        if let Write::Status { notices, .. } = &step.write {
            for notice in notices {
                self.publish(target, notice).await;
            }
        }
        Ok(())
    }

    fn require_leadership(&self, step: &Step) -> Result<()> {
        if self.leads() { Ok(()) } else { Err(Error::NotLeading { what: what(step) }) }
    }

    async fn write(&self, step: &Step) -> Result<()> {
        match &step.write {
            Write::Apply { object, force, manager } => {
                let manager = manager.as_deref().unwrap_or(&self.manager);
                let mut params = PatchParams::apply(manager);
                params.force = *force;
                let api = self.api(&step.target);
                let written = api.patch(&step.target.name, &params, &Patch::Apply(object)).await;
                self.absorb(&written.during(what(step))?);
            }
            Write::Create { object, identity } => self.create(step, object, identity).await?,
            Write::Status { status, resource_version, .. } => {
                self.write_status(step, status, resource_version.as_deref()).await?;
            }
            Write::Delete { resource_version } => {
                self.delete(step, resource_version.as_deref()).await?;
            }
            Write::AddFinalizer { finalizer } => self.add_finalizer(step, finalizer).await?,
            Write::RemoveFinalizer { rest, resource_version } => {
                self.release(step, rest, resource_version.as_deref()).await?;
            }
        }
        Ok(())
    }

    /// Creates an object. An existing one counts as created if its `identity` and its owner match
    /// (D4).
    async fn create(&self, step: &Step, object: &Value, identity: &str) -> Result<()> {
        let api = self.api(&step.target);
        let params = PostParams { field_manager: Some(self.manager.clone()), ..Default::default() };
        let typed: DynamicObject = serde_json::from_value(object.clone())
            .map_err(|error| Error::Transport { what: what(step), source: error.into() })?;
        let error = match api.create(&params, &typed).await.during(what(step)) {
            Ok(created) => {
                self.absorb(&created);
                return Ok(());
            }
            Err(error) if error.already_exists() => error,
            Err(error) => return Err(error),
        };
        let found = api.get_opt(&step.target.name).await.during(what(step))?;
        let found = serde_json::to_value(&found).unwrap_or_default();
        let is_same = found.pointer(identity) == object.pointer(identity)
            && owner_uid(&found) == owner_uid(object);
        if !is_same {
            return Err(error);
        }
        self.absorb(&found);
        Ok(())
    }

    async fn write_status(
        &self,
        step: &Step,
        status: &Value,
        resource_version: Option<&str>,
    ) -> Result<()> {
        let target = &step.target;
        let written = self.apply_status(step, status, resource_version).await?;
        if target.uid.is_some() && written.metadata.uid != target.uid {
            return self.take_back_status(step, &written).await;
        }
        self.absorb(&written);
        Ok(())
    }

    async fn apply_status(
        &self,
        step: &Step,
        status: &Value,
        resource_version: Option<&str>,
    ) -> Result<DynamicObject> {
        let target = &step.target;
        let body = with_status(target, status, resource_version);
        let params = PatchParams::apply(&self.manager).force();
        let written =
            self.api(target).patch_status(&target.name, &params, &Patch::Apply(body)).await;
        match written.during(what(step)) {
            Err(error) if error.is_not_found() => Err(Error::Gone { what: what(step) }),
            written => written,
        }
    }

    /// Clears a status that was written to a different object: the object that was read was deleted
    /// and its name reused. The API server does not compare UIDs when it accepts the status of a
    /// custom resource.
    async fn take_back_status(&self, step: &Step, other: &DynamicObject) -> Result<()> {
        let version = other.metadata.resource_version.as_deref();
        self.apply_status(step, &json!({}), version).await?;
        Err(Error::Gone { what: what(step) })
    }

    async fn delete(&self, step: &Step, resource_version: Option<&str>) -> Result<()> {
        let preconditions = Preconditions {
            uid: step.target.uid.clone(),
            resource_version: resource_version.map(str::to_owned),
        };
        let params = DeleteParams::background().preconditions(preconditions);
        match self.api(&step.target).delete(&step.target.name, &params).await.during(what(step)) {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    /// Adds a finalizer under a separate field manager, so that no apply of other fields removes
    /// it.
    ///
    /// The UID prevents the apply from recreating an object that was deleted meanwhile.
    async fn add_finalizer(&self, step: &Step, finalizer: &str) -> Result<()> {
        let target = &step.target;
        let body = json!({
            "apiVersion": target.kind.api_version(),
            "kind": target.kind.kind,
            "metadata": { "name": target.name, "uid": target.uid, "finalizers": [finalizer] },
        });
        let params = PatchParams::apply(&format!("{}-hold", self.manager)).force();
        let api = self.api(target);
        let held = api.patch(&target.name, &params, &Patch::Apply(&body)).await;
        match held.during(what(step)) {
            Ok(held) => self.absorb(&held),
            // An object that is being deleted accepts no new finalizer; its watch events cover the
            // rest.
            Err(error) if error.is_not_found() || error.names_field("metadata.finalizers") => {
                return Err(Error::Gone { what: what(step) });
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Removes a finalizer, whichever field manager added it. An object that is already gone counts
    /// as released.
    async fn release(
        &self,
        step: &Step,
        rest: &[String],
        resource_version: Option<&str>,
    ) -> Result<()> {
        let metadata = json!({ "resourceVersion": resource_version, "finalizers": rest });
        let params =
            PatchParams { field_manager: Some(self.manager.clone()), ..Default::default() };
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        let released = self.api(&step.target).patch(&step.target.name, &params, &patch).await;
        match released.during(what(step)) {
            Ok(released) => self.absorb(&released),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Returns whether the namespace is being deleted or gone, by one consistent read.
    pub async fn is_namespace_terminating(&self, namespace: &str) -> Result<bool> {
        let api: kube::Api<Namespace> = kube::Api::all(self.client.clone());
        let found = api.get_opt(namespace).await.during(format!("get namespaces {namespace}"))?;
        Ok(found.is_none_or(|it| it.metadata.deletion_timestamp.is_some()))
    }

    /// Publishes an Event. Events are a convenience: a lost one is logged and stops nothing.
    async fn publish(&self, target: &Target, notice: &EventDraft) {
        let note = shortened(&printable(&notice.note), 1000);
        let notice = EventDraft { note, ..notice.clone() };
        if let Err(error) = publish(&self.recorder, target, "Reconcile", notice).await {
            if error.is_expected() {
                return tracing::debug!(error = error.chain(), "event lost");
            }
            tracing::warn!(reason = error.reason(), error = error.chain(), "event lost");
        }
    }

    fn absorb(&self, written: &impl serde::Serialize) {
        let written = serde_json::to_value(written).unwrap_or_default();
        let group_version = written["apiVersion"].as_str().unwrap_or_default();
        let group = group_version.split_once('/').map_or("", |(group, _)| group);
        let kind = format!("{group}/{}", written["kind"].as_str().unwrap_or_default());
        for cache in self.caches.iter().filter(|it| it.kind() == kind) {
            cache.absorb(&written);
        }
    }

    fn api(&self, target: &Target) -> kube::Api<DynamicObject> {
        api_of(&self.client, target)
    }
}

/// Publishes an Event whose action has `verb`, and is another one for each note.
///
/// The recorder counts up an earlier Event with the same action and reason and keeps its note, so that
/// a second failure would never be read.
pub(crate) async fn publish(
    recorder: &Recorder,
    target: &Target,
    verb: &str,
    draft: EventDraft,
) -> Result<()> {
    let event = Event {
        type_: if draft.warning { EventType::Warning } else { EventType::Normal },
        reason: draft.reason,
        action: format!("{verb}-{}", hash::short(&draft.note)),
        note: Some(draft.note),
        secondary: None,
    };
    let regarding = ObjectReference {
        api_version: Some(target.kind.api_version()),
        kind: Some(target.kind.kind.clone()),
        namespace: Some(target.namespace.clone()),
        name: Some(target.name.clone()),
        uid: target.uid.clone(),
        ..Default::default()
    };
    recorder.publish(&event, &regarding).await.during("create event")
}

/// Returns the API of a kind in the namespace of an object.
pub(crate) fn api_of(client: &Client, target: &Target) -> kube::Api<DynamicObject> {
    let Kind { group, version, kind, plural } = target.kind.clone();
    let api_version = target.kind.api_version();
    let resource = ApiResource { group, version, api_version, kind, plural };
    kube::Api::namespaced_with(client.clone(), &target.namespace, &resource)
}

/// Returns an object with this status alone; the version ensures that it applies to what was read.
pub(crate) fn with_status(target: &Target, status: &Value, version: Option<&str>) -> Value {
    let mut metadata = json!({ "name": target.name });
    if let Some(version) = version {
        metadata["resourceVersion"] = json!(version);
    }
    json!({
        "apiVersion": target.kind.api_version(),
        "kind": target.kind.kind,
        "metadata": metadata,
        "status": status,
    })
}

fn owner_uid(object: &Value) -> Option<&str> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|it| it["controller"] == true)?["uid"].as_str()
}

fn what(step: &Step) -> String {
    let target = &step.target;
    format!("{} {} {}/{}", name_of(&step.write), target.kind.plural, target.namespace, target.name)
}

fn name_of(write: &Write) -> &'static str {
    match write {
        Write::Apply { .. } => "apply",
        Write::Create { .. } => "create",
        Write::Status { .. } => "apply status",
        Write::Delete { .. } => "delete",
        Write::AddFinalizer { .. } => "hold",
        Write::RemoveFinalizer { .. } => "release",
    }
}

#[cfg(test)]
pub(crate) mod tests;
