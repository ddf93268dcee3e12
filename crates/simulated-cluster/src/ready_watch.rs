//! Watches `Ready` of every object: it falls only after a user's change or an injected fault.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use api::conditions::{ConditionStatus, READY, Severity};
use futures::StreamExt as _;
use kube::api::DynamicObject;
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, ResourceExt as _};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// The kinds whose `Ready` is watched, and those whose content users change: group, kind, plural.
const KINDS: [(&str, &str, &str); 12] = [
    ("", "ConfigMap", "configmaps"),
    ("", "Secret", "secrets"),
    ("ansibleee.openstack.org", "OpenStackAnsibleEE", "openstackansibleees"),
    ("baremetal.openstack.org", "OpenStackBaremetalSet", "openstackbaremetalsets"),
    ("dataplane.openstack.org", "OpenStackDataPlane", "openstackdataplanes"),
    ("dataplane.openstack.org", "OpenStackDataPlaneDeployment", "openstackdataplanedeployments"),
    ("dataplane.openstack.org", "OpenStackDataPlaneNode", "openstackdataplanenodes"),
    ("dataplane.openstack.org", "OpenStackDataPlaneNodeSet", "openstackdataplanenodesets"),
    ("dataplane.openstack.org", "OpenStackDataPlaneRole", "openstackdataplaneroles"),
    ("dataplane.openstack.org", "OpenStackDataPlaneService", "openstackdataplaneservices"),
    ("nova.openstack.org", "NovaCell", "novacells"),
    ("nova.openstack.org", "NovaExternalCompute", "novaexternalcomputes"),
];
/// How long before `Ready` became True a user's change may have been made that the operator had not
/// seen by then.
const UNSEEN: Duration = Duration::from_secs(1);
/// The same for objects that sum up others. They are ready before they have any, and a busy machine shows
/// a new one late.
const UNSEEN_BY_SUMS: Duration = Duration::from_secs(10);
/// The kinds that sum up others.
const SUMS: [&str; 2] = ["OpenStackDataPlane ", "OpenStackDataPlaneRole "];

/// The record of what became of `Ready` of all objects.
#[derive(Clone, Default)]
pub struct ReadyWatch {
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    /// Namespace → when a user changed something in it.
    changes: BTreeMap<String, Vec<Moment>>,
    /// Namespace, and kind with name → the object.
    objects: BTreeMap<(String, String), Known>,
    falls: Vec<Fall>,
}

/// A moment of the cluster: the revision of its store, and the time.
#[derive(Clone, Copy, Debug)]
struct Moment {
    version: u64,
    at: Instant,
}

/// What is known of an object.
struct Known {
    uid: Option<String>,
    /// What users change of it.
    content: Value,
    /// Since when `Ready` is True; `None` while it is not.
    ready_since: Option<Moment>,
}

/// `Ready` of an object fell.
#[derive(Debug)]
struct Fall {
    namespace: String,
    object: String,
    since: Moment,
    to: Moment,
    cause: String,
}

impl ReadyWatch {
    /// Watches all objects as long as the process runs.
    pub(crate) fn start(client: &Client) -> Self {
        let watch = Self::default();
        for (group, kind, plural) in KINDS {
            let version = if group.is_empty() { "v1" } else { "v1beta1" };
            let kind = GroupVersionKind::gvk(group, version, kind);
            let resource = ApiResource::from_gvk_with_plural(&kind, plural);
            tokio::spawn(watch.clone().follow(client.clone(), resource));
        }
        watch
    }

    async fn follow(self, client: Client, resource: ApiResource) {
        let all: Api<DynamicObject> = Api::all_with(client, &resource);
        let mut events = std::pin::pin!(watcher(all, watcher::Config::default()).default_backoff());
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Apply(it) | Event::InitApply(it)) => {
                    self.seen.lock().take(&resource.kind, &it);
                }
                Ok(Event::Delete(it)) => self.seen.lock().lose(&resource.kind, &it),
                Ok(Event::Init | Event::InitDone) | Err(_) => {}
            }
        }
    }

    /// Returns the objects of a namespace whose `Ready` fell although nothing was changed since it
    /// became True. Those that report a fault are not among them: a test has injected it.
    pub fn unexplained(&self, namespace: &str) -> Vec<String> {
        let seen = self.seen.lock();
        let changes = seen.changes.get(namespace).map(Vec::as_slice).unwrap_or_default();
        let is_explained = |fall: &&Fall| {
            let is_sum = SUMS.iter().any(|it| fall.object.starts_with(it));
            let unseen = if is_sum { UNSEEN_BY_SUMS } else { UNSEEN };
            changes.iter().any(|it| {
                let is_since = it.version > fall.since.version || it.at + unseen > fall.since.at;
                is_since && it.version < fall.to.version
            })
        };
        let here = seen.falls.iter().filter(|it| it.namespace == namespace);
        let text = |it: &Fall| {
            format!("Ready of {} fell and nothing was changed: {}", it.object, it.cause)
        };
        here.filter(|it| !is_explained(it)).map(text).collect()
    }
}

impl Seen {
    /// Takes in how an object is now.
    fn take(&mut self, kind: &str, object: &DynamicObject) {
        let (key, moment) = (key(kind, object), moment(object));
        let before = self.objects.remove(&key).filter(|it| it.uid == object.uid());
        let content = content(object);
        let is_changed = before.as_ref().is_none_or(|it| it.content != content);
        let is_deleted = object.metadata.deletion_timestamp.is_some();
        if is_changed && (is_deleted || !is_operators(object)) {
            self.changes.entry(key.0.clone()).or_default().push(moment);
        }
        let since = before.and_then(|it| it.ready_since);
        let ready = ready(object);
        let is_true = ready.is_some_and(|it| it["status"] == json!(ConditionStatus::True));
        let is_fault = ready.is_some_and(|it| {
            [Severity::Error, Severity::Warning].iter().any(|of| it["severity"] == json!(of))
        });
        if let (Some(since), Some(ready), false, false) = (since, ready, is_true, is_fault) {
            let (namespace, object) = key.clone();
            let cause = format!("{}: {}", ready["reason"], ready["message"]);
            self.falls.push(Fall { namespace, object, since, to: moment, cause });
        }
        let ready_since = is_true.then(|| since.unwrap_or(moment));
        self.objects.insert(key, Known { uid: object.uid(), content, ready_since });
    }

    /// Takes in that an object is gone.
    fn lose(&mut self, kind: &str, object: &DynamicObject) {
        let key = key(kind, object);
        self.objects.remove(&key);
        if !is_operators(object) {
            self.changes.entry(key.0).or_default().push(moment(object));
        }
    }
}

fn key(kind: &str, object: &DynamicObject) -> (String, String) {
    (object.namespace().unwrap_or_default(), format!("{kind} {}", object.name_any()))
}

fn moment(object: &DynamicObject) -> Moment {
    let version = object.resource_version().and_then(|it| it.parse().ok()).unwrap_or_default();
    Moment { version, at: Instant::now() }
}

/// Returns what users change of an object: its generation follows its spec, and its deletion.
fn content(object: &DynamicObject) -> Value {
    let metadata = &object.metadata;
    json!({
        "generation": metadata.generation,
        "annotations": metadata.annotations,
        "labels": metadata.labels,
        "data": object.data.get("data"),
    })
}

/// Whether operators alone have written an object.
fn is_operators(object: &DynamicObject) -> bool {
    let writers = object.managed_fields();
    let is_operator =
        |it: Option<&str>| it.is_some_and(|it| it.contains("-operator") || it.starts_with("kube-"));
    !writers.is_empty() && writers.iter().all(|it| is_operator(it.manager.as_deref()))
}

fn ready(object: &DynamicObject) -> Option<&Value> {
    let conditions = object.data["status"]["conditions"].as_array()?;
    conditions.iter().find(|it| it["type"] == READY)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An object as a manager writes it, with its `Ready`.
    fn object(version: u64, generation: i64, ready: &str, severity: Option<&str>) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "nova.openstack.org/v1beta1", "kind": "NovaExternalCompute",
            "metadata": {
                "name": "n0", "namespace": "ns", "uid": "u", "generation": generation,
                "resourceVersion": version.to_string(),
            },
            "status": { "conditions": [{
                "type": "Ready", "status": ready, "severity": severity, "reason": "Why",
                "message": "so it is.",
            }] },
        }))
        .unwrap()
    }

    /// Takes in these states, the first of which was long before the others.
    fn unexplained(states: &[DynamicObject]) -> usize {
        let watch = ReadyWatch::default();
        for (index, it) in states.iter().enumerate() {
            let mut seen = watch.seen.lock();
            seen.take("NovaExternalCompute", it);
            if index == 0 {
                for change in seen.changes.get_mut("ns").unwrap() {
                    change.at -= UNSEEN * 2;
                }
            }
        }
        assert_eq!(watch.unexplained("other"), [""; 0]);
        watch.unexplained("ns").len()
    }

    #[test]
    fn ready_may_fall_only_after_a_change_or_with_a_fault() {
        let waits = || object(1, 1, "False", Some("Info"));
        let is_ready = || object(2, 1, "True", None);
        let falls = |severity| object(3, 1, "False", severity);
        assert_eq!(unexplained(&[waits(), is_ready(), falls(Some("Info"))]), 1);
        assert_eq!(unexplained(&[waits(), is_ready(), falls(None)]), 1);
        assert_eq!(unexplained(&[waits(), is_ready(), falls(Some("Warning"))]), 0);
        let changed = object(3, 2, "True", None);
        let after = object(4, 2, "False", Some("Info"));
        assert_eq!(unexplained(&[waits(), is_ready(), changed, after]), 0);
        assert_eq!(unexplained(&[waits(), is_ready()]), 0);
    }
}
