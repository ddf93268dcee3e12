//! Reports objects that cannot be deserialized: by a gauge, a log line, one Event and, for kinds
//! whose status the operator writes, the `Ready` condition.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::conditions::{READY, printable, truncated};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Client;
use kube::api::{Patch, PatchParams};
use kube::runtime::events::{Recorder, Reporter};
use operator_core::plan::{EventDraft, Target};
use serde_json::{Value, json};

use crate::api::{api_of, publish, with_status};
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
        let meta = &object.metadata;
        let named = Target::named::<K>(
            meta.namespace.clone().unwrap_or_default(),
            meta.name.clone().unwrap_or_default(),
        );
        let target = Target { uid: meta.uid.clone(), ..named };
        let draft = EventDraft { warning: true, reason: REASON.into(), note: message.clone() };
        let mut outcome = publish(&self.recorder, &target, "Read", draft).await;
        if role == Role::Owner && object.reported.as_ref() != Some(&message) {
            outcome = outcome.and(self.write_condition(&target, object, &message).await);
        }
        if let Err(error) = &outcome
            && !error.is_expected()
        {
            tracing::warn!(reason = error.reason(), error = error.chain(), "could not be reported");
        }
        outcome.is_ok()
    }

    /// Writes the condition under a separate field manager; the operator's next status apply
    /// replaces it.
    async fn write_condition(
        &self,
        target: &Target,
        object: &Unreadable,
        message: &str,
    ) -> Result<()> {
        let Target { kind, namespace, name, .. } = target;
        let params = PatchParams::apply(&format!("{}-unreadable", self.manager)).force();
        let version = object.metadata.resource_version.as_deref();
        let body = with_status(target, &status(object, message), version);
        let what = format!("write status of {} {namespace}/{name}", kind.plural);
        let api = api_of(&self.client, target);
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

/// Returns a status with only this condition.
fn status(object: &Unreadable, message: &str) -> Value {
    json!({ "conditions": [{
        "type": READY,
        "status": "False",
        "severity": "Error",
        "observedGeneration": object.metadata.generation,
        "lastTransitionTime": Time(clock::now()),
        "reason": REASON,
        "message": message,
    }] })
}
