//! The default services, which are data files that are compiled in and parsed once.
//!
//! They are kept as shipped: a user's change to one is reverted. To have another version, the user
//! creates a service under another name and lists that. One option of the operator adds readiness
//! gates to them, see [`DefaultServices`].

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use api::dataplane::Service;
use api::dataplane::service::{DEFAULT_SERVICE_LABEL, ReadinessGate};
use api::yaml;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use operator_core::certificates::certificate_sources;
use operator_core::hash;
use operator_core::object_key::Key;
use operator_core::plan::{EventDraft, Step, Target, Write};
use operator_runtime::cache::Cache;
use operator_runtime::error::Error;
use serde_json::json;

/// Annotation with the hash of the written spec: it distinguishes a user's edit from the spec that
/// another version of the operator wrote.
pub(crate) const CONTENT_HASH: &str = "edpm.openstack.org/content-hash";

/// Annotation with the times at which edits were last taken back.
pub(crate) const RESTORED: &str = "edpm.openstack.org/restored";
/// How many edits are taken back within [`PERIOD`]: a client that applies the service again and again
/// would never stop.
const RESTORATIONS: usize = 3;
/// How long a restoration counts.
const PERIOD: SignedDuration = SignedDuration::from_mins(10);

const FILES: &[&str] = &include!(concat!(env!("OUT_DIR"), "/default_services.rs"));

/// The services as their files have them, by name.
pub(crate) static AS_SHIPPED: LazyLock<BTreeMap<String, Service>> = LazyLock::new(|| {
    let parse = |text: &&str| yaml::from_str(text).expect("the files are checked by a test");
    FILES.iter().map(parse).map(|it: Service| (it.name_any(), it)).collect()
});

/// The content of the default services: their files, and the readiness gates that the operator's
/// options add.
#[derive(Clone, Debug, Default)]
pub struct DefaultServices {
    /// Those with further gates, by name.
    gated: Arc<BTreeMap<String, Service>>,
}

/// A readiness gate that a default service lists beyond its file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DefaultGate {
    service: String,
    condition_type: String,
}

impl FromStr for DefaultGate {
    type Err = String;

    /// Reads `SERVICE=TYPE`, where the service is a default service.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((service, condition_type))
                if is_default(service) && !condition_type.is_empty() =>
            {
                let (service, condition_type) = (service.to_owned(), condition_type.to_owned());
                Ok(Self { service, condition_type })
            }
            _ => Err("expected SERVICE=TYPE with the name of a default service".into()),
        }
    }
}

/// Returns whether a default service has that name.
pub fn is_default(name: &str) -> bool {
    AS_SHIPPED.contains_key(name)
}

/// Returns which field of an object cannot be read, and why.
pub fn fault_of(error: Error) -> String {
    if let Error::Unreadable { fault, .. } = error { fault } else { error.chain() }
}

/// Services by name, with the specs that are in force; see
/// [`DefaultServices::as_it_holds`].
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Those that can be parsed.
    pub services: BTreeMap<String, Arc<Service>>,
    /// For each of the others, which field cannot be parsed, and why.
    pub unreadable: BTreeMap<String, String>,
}

impl Found {
    /// Returns those of the named services that exist, from a cache and the content of the default
    /// services.
    pub fn of(
        services: (&Cache<Service>, &DefaultServices),
        namespace: &str,
        names: impl IntoIterator<Item = String>,
    ) -> Self {
        let mut found = Self::default();
        found.lookup(services, namespace, names);
        found
    }

    /// Returns, for those of these services that define no certificates, the service whose certificates
    /// they use; `listed` are the services of their hosts.
    pub fn lent<'a>(
        known: (&Cache<Service>, &DefaultServices),
        namespace: &str,
        services: impl IntoIterator<Item = (&'a String, &'a Arc<Service>)>,
        listed: &[String],
    ) -> Self {
        let mut lent = Self::default();
        let get = |name: &str| {
            lent.lookup(known, namespace, [name.to_owned()]);
            lent.services.get(name).cloned()
        };
        let services = certificate_sources(services, listed, get);
        Self { services, ..lent }
    }

    /// Adds those of the named services that exist.
    pub fn lookup(
        &mut self,
        (services, defaults): (&Cache<Service>, &DefaultServices),
        namespace: &str,
        names: impl IntoIterator<Item = String>,
    ) {
        for name in names {
            match services.try_get(&Key::new(namespace, &name)) {
                Ok(found) => self.services.extend(found.map(|it| (name, defaults.as_it_holds(it)))),
                Err(error) => drop(self.unreadable.insert(name, fault_of(error))),
            }
        }
    }
}

impl DefaultServices {
    /// Returns the services as their files have them, and with these gates.
    pub fn with_gates(gates: &[DefaultGate]) -> Self {
        let mut changed: BTreeMap<String, Service> = BTreeMap::new();
        for DefaultGate { service, condition_type } in gates {
            let Some(shipped) = AS_SHIPPED.get(service) else { continue };
            let service = changed.entry(service.clone()).or_insert_with(|| shipped.clone());
            let gate = ReadinessGate { condition_type: condition_type.clone() };
            service.spec.readiness_gates.push(gate);
        }
        Self { gated: Arc::new(changed) }
    }

    /// Returns the default service of that name; `None` when there is none.
    pub fn find(&self, name: &str) -> Option<&Service> {
        self.gated.get(name).or_else(|| AS_SHIPPED.get(name))
    }

    /// Returns the steps that create the default services that are listed and do not exist.
    ///
    /// Services that exist but cannot be parsed do exist: they are the user's and are left alone.
    pub fn missing(
        &self,
        namespace: &str,
        listed: &[String],
        known: &BTreeMap<String, Arc<Service>>,
        unreadable: &BTreeMap<String, String>,
    ) -> Vec<Step> {
        let is_there = |it: &String| known.contains_key(it) || unreadable.contains_key(it);
        let missing = listed.iter().filter(|it| !is_there(it));
        missing.filter_map(|it| self.step(namespace, it, "it is listed")).collect()
    }

    /// Returns the step that applies the default service of that name; `None` when there is none.
    ///
    /// Other writers' labels and annotations stay; their fields in the spec do not.
    pub fn step(&self, namespace: &str, name: &str, because: &str) -> Option<Step> {
        let shipped = self.find(name)?;
        let target = Target::named::<Service>(namespace, name);
        let object = json!({
            "metadata": {
                "labels": { DEFAULT_SERVICE_LABEL: "true" },
                "annotations": { CONTENT_HASH: hash::short(&shipped.spec) },
            },
            "spec": shipped.spec,
        });
        Some(Step::apply(target, object, because))
    }

    /// Returns the service with the spec that is in force.
    ///
    /// Until a changed default service is restored, its shipped spec is deployed, not the change.
    pub fn as_it_holds(&self, found: Arc<Service>) -> Arc<Service> {
        match self.find(&found.name_any()) {
            Some(shipped) if shipped.spec != found.spec && is_marked(&found) => {
                Arc::new(Service { spec: shipped.spec.clone(), ..Service::clone(&found) })
            }
            _ => found,
        }
    }

    /// Returns the step that restores a default service, with an Event if a user changed the service.
    ///
    /// Returns `None` when nothing differs, or when the service is a user's own.
    pub fn restoration(&self, found: &Service) -> Option<(Step, Option<EventDraft>)> {
        let (name, namespace) = (found.name_any(), found.namespace().unwrap_or_default());
        let shipped = self.find(&name)?;
        let (is_same, written) =
            (found.spec == shipped.spec, found.annotations().get(CONTENT_HASH));
        let is_ours = written.is_some_and(|it| *it == hash::short(&shipped.spec));
        let is_intact =
            is_ours && found.labels().get(DEFAULT_SERVICE_LABEL).is_some_and(|it| it == "true");
        if (is_same && is_intact) || (!is_same && !is_marked(found)) {
            return None;
        }
        let step =
            self.step(&namespace, &name, "a default service differs from what is shipped")?;
        // A spec that another version of the operator wrote is not an edit.
        let is_edited = !is_same && (is_ours || written.is_none());
        Some((step, is_edited.then(|| restored(&name, shipped))))
    }
}

/// Returns when the next edit of a service is taken back; `None` means at once.
pub fn contested_until(found: &Service, now: Timestamp) -> Option<Timestamp> {
    let times = restored_lately(found, now);
    let oldest = times.iter().min().filter(|_| times.len() >= RESTORATIONS)?;
    Some(*oldest + PERIOD)
}

/// Returns the step of a restoration that also records when it takes back an edit.
pub fn taking_back(mut step: Step, found: &Service, now: Timestamp) -> Step {
    let times = restored_lately(found, now).into_iter().chain([now]);
    let times: Vec<String> = times.map(|it| it.to_string()).collect();
    if let Write::Apply { object, .. } = &mut step.write {
        object["metadata"]["annotations"][RESTORED] = json!(times.join(","));
    }
    step
}

/// Returns when edits of a service were taken back in the last [`PERIOD`].
fn restored_lately(found: &Service, now: Timestamp) -> Vec<Timestamp> {
    let text = found.annotations().get(RESTORED).map(String::as_str).unwrap_or_default();
    let times = text.split(',').filter_map(|it| it.parse::<Timestamp>().ok());
    times.filter(|it| *it <= now && now.duration_since(*it) < PERIOD).collect()
}

/// Returns the names of all default services.
pub fn names() -> impl Iterator<Item = &'static str> {
    AS_SHIPPED.keys().map(String::as_str)
}

/// Returns whether this operator created the service or adopted it as a default.
///
/// An unmarked service of that name existed first, perhaps before the name was a default. It stays
/// its author's, and hosts may be deployed with it.
fn is_marked(found: &Service) -> bool {
    let has_label = found.labels().get(DEFAULT_SERVICE_LABEL).is_some_and(|it| it == "true");
    has_label || found.annotations().contains_key(CONTENT_HASH)
}

/// Returns the Event with object, cause and next step.
fn restored(name: &str, shipped: &Service) -> EventDraft {
    let type_ = shipped.spec.edpm_service_type.as_deref().unwrap_or(name);
    let note = format!(
        "OpenStackDataPlaneService {name} is a default service and was changed, so it is what it was \
         again: to have your own, create a copy under another name with edpmServiceType: {type_}, \
         and list that in spec.services in the place of {name}."
    );
    EventDraft { warning: true, reason: "DefaultServiceRestored".to_owned(), note }
}

#[cfg(test)]
mod tests;
