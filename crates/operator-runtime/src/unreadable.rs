//! Reports objects that cannot be deserialized: by a gauge, a log line, one Event and, for kinds
//! whose status the operator writes, the `Ready` condition.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::conditions::{READY, printable, truncated};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::ApiResource;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Api, Client, Resource};
use serde_json::{Value, json};

use crate::api::action;
use crate::cache::item::REASON;
use crate::cache::{Cache, Unreadable, Watchable};
use crate::clock;
use crate::error::{During as _, Result};
use crate::lease::LeadershipWatch;
use crate::metrics::Metrics;

/// Delay before a failed report is retried.
const RETRY_DELAY: Duration = Duration::from_secs(30);

/// Reports unreadable objects to metrics, log, Events and conditions.
#[derive(Clone)]
pub struct UnreadableReporter {
    client: Client,
    recorder: Recorder,
    manager: &'static str,
    leadership: LeadershipWatch,
    metrics: Metrics,
}

/// The operator's relation to a kind.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// It reconciles the objects and writes their status.
    Owner,
    /// It only reads them.
    Reader,
}

/// UID, generation and fault of a reported object: each combination is reported once.
type Report = (Option<String>, Option<i64>, String);

impl UnreadableReporter {
    /// Creates a reporter that writes as field manager `manager`, from the replica `instance`.
    pub fn new(
        client: Client,
        manager: &'static str,
        instance: &str,
        leadership: LeadershipWatch,
        metrics: Metrics,
    ) -> Self {
        let reporter = Reporter { controller: manager.into(), instance: Some(instance.into()) };
        let recorder = Recorder::new(client.clone(), reporter);
        Self { client, recorder, manager, leadership, metrics }
    }

    /// Reports all unreadable objects of a cache until the process ends.
    ///
    /// Every process counts and logs them; only the leader writes Events and conditions.
    pub async fn report<K: Watchable>(self, cache: Arc<Cache<K>>, role: Role) {
        let mut all = cache.unreadable();
        let mut reported: BTreeSet<Report> = BTreeSet::new();
        loop {
            let present = all.borrow_and_update().clone();
            self.metrics.unreadable(&K::kind(&()), present.len());
            let mut now_reported = BTreeSet::new();
            for object in &present {
                if reported.contains(&state(object)) || self.report_one::<K>(object, role).await {
                    now_reported.insert(state(object));
                }
            }
            let is_complete = now_reported.len() == present.len();
            reported = now_reported;
            tokio::select! {
                change = all.changed() => if change.is_err() { return },
                () = tokio::time::sleep(RETRY_DELAY), if !is_complete => {}
            }
        }
    }

    /// Reports one object. Returns `false` when the report must be retried.
    async fn report_one<K: Watchable>(&self, object: &Unreadable, role: Role) -> bool {
        let (kind, fault) = (K::kind(&()), &object.fault);
        let (namespace, name) = (&object.metadata.namespace, &object.metadata.name);
        tracing::warn!(%kind, namespace, name, %fault, "an object cannot be read");
        if !self.leadership.borrow().leads() {
            return true;
        }
        let message = message(self.manager, object);
        let mut outcome = self.publish::<K>(object, &message).await;
        if role == Role::Owner && object.reported.as_ref() != Some(&message) {
            outcome = outcome.and(self.write_condition::<K>(object, &message).await);
        }
        if let Err(error) = &outcome
            && !error.is_expected()
        {
            tracing::warn!(reason = error.reason(), error = error.chain(), "could not be reported");
        }
        outcome.is_ok()
    }

    async fn publish<K: Watchable>(&self, object: &Unreadable, message: &str) -> Result<()> {
        let event = Event {
            type_: EventType::Warning,
            reason: REASON.into(),
            note: Some(message.to_owned()),
            action: action("Read", message),
            secondary: None,
        };
        let metadata = object.metadata.clone();
        let regarding = ObjectReference {
            api_version: Some(K::api_version(&()).into_owned()),
            kind: Some(K::kind(&()).into_owned()),
            namespace: metadata.namespace,
            name: metadata.name,
            uid: metadata.uid,
            ..ObjectReference::default()
        };
        self.recorder.publish(&event, &regarding).await.during("create event")
    }

    /// Writes the condition under a separate field manager; the operator's next status apply
    /// replaces it.
    async fn write_condition<K: Watchable>(
        &self,
        object: &Unreadable,
        message: &str,
    ) -> Result<()> {
        let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let resource = ApiResource::erase::<K>(&());
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), namespace, &resource);
        let params = PatchParams::apply(&format!("{}-unreadable", self.manager)).force();
        let body = status::<K>(object, message);
        let what = format!("write status of {} {namespace}/{name}", K::plural(&()));
        match api.patch_status(name, &params, &Patch::Apply(body)).await.during(what) {
            Err(error) if error.is_not_found() => Ok(()),
            written => written.map(drop),
        }
    }
}

fn state(object: &Unreadable) -> Report {
    let metadata = &object.metadata;
    (metadata.uid.clone(), metadata.generation, object.fault.to_string())
}

/// Returns the message for the object's author.
pub(crate) fn message(manager: &str, object: &Unreadable) -> String {
    let said = format!(
        "{}: {manager} leaves the object as it is until the field is corrected",
        object.fault
    );
    truncated(&printable(&said), 1000)
}

/// Returns a status with only this condition; the resource version ensures that it applies to the
/// object that was read.
fn status<K: Resource<DynamicType = ()>>(object: &Unreadable, message: &str) -> Value {
    let metadata = &object.metadata;
    json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        "metadata": { "name": metadata.name, "resourceVersion": metadata.resource_version },
        "status": { "conditions": [{
            "type": READY,
            "status": "False",
            "severity": "Error",
            "observedGeneration": metadata.generation,
            "lastTransitionTime": Time(clock::now()),
            "reason": REASON,
            "message": message,
        }] },
    })
}
