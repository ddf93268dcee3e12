//! The services that exist without a human writing them: data files, read once.
//!
//! They are kept as they are shipped: what a human changes in one is taken back, and who wants
//! another one makes it under a name of its own and lists that.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use api::dataplane::Service;
use api::dataplane::service::DEFAULT_SERVICE_LABEL;
use api::yaml;
use kube::ResourceExt;
use operator_core::hash;
use operator_core::object_key::Key;
use operator_core::plan::{EventDraft, Step, Target};
use operator_runtime::cache::Cache;
use operator_runtime::error::Error;
use serde_json::json;

/// Annotation with the hash of the spec that was written: it tells an edit from another version's.
const CONTENT_HASH: &str = "edpm.openstack.org/content-hash";

const FILES: &[&str] = &include!(concat!(env!("OUT_DIR"), "/default_services.rs"));

static SERVICES: LazyLock<BTreeMap<String, Service>> = LazyLock::new(|| {
    let parse = |text: &&str| yaml::from_str(text).expect("the files are checked by a test");
    FILES.iter().map(parse).map(|it: Service| (it.name_any(), it)).collect()
});

/// The default service of that name.
pub fn find(name: &str) -> Option<&'static Service> {
    SERVICES.get(name)
}

/// Which field of an object cannot be read, and why.
pub fn fault_of(error: Error) -> String {
    if let Error::Unreadable { fault, .. } = error { fault } else { error.chain() }
}

/// Services by name, as they hold.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Those that can be read.
    pub services: BTreeMap<String, Arc<Service>>,
    /// Which field of the others cannot be read, and why.
    pub unreadable: BTreeMap<String, String>,
}

impl Found {
    /// Takes in the services of these names that exist.
    pub fn lookup(
        &mut self,
        services: &Cache<Service>,
        namespace: &str,
        names: impl IntoIterator<Item = String>,
    ) {
        for name in names {
            match services.try_get(&Key::new(namespace, &name)) {
                Ok(found) => self.services.extend(found.map(|it| (name, as_it_holds(it)))),
                Err(error) => drop(self.unreadable.insert(name, fault_of(error))),
            }
        }
    }
}

/// The steps that make the default services that are listed and do not exist; a human's own are left
/// alone, those that cannot be read among them.
pub fn missing(
    namespace: &str,
    listed: &[String],
    known: &BTreeMap<String, Arc<Service>>,
    unreadable: &BTreeMap<String, String>,
) -> Vec<Step> {
    let is_there = |it: &String| known.contains_key(it) || unreadable.contains_key(it);
    let missing = listed.iter().filter(|it| !is_there(it));
    missing.filter_map(|it| step(namespace, it, "it is listed")).collect()
}

/// The names of all default services.
pub fn names() -> impl Iterator<Item = &'static str> {
    SERVICES.keys().map(String::as_str)
}

/// The step that makes the default service of that name what it is to be; labels and annotations of
/// others stay, fields of others do not.
pub fn step(namespace: &str, name: &str, because: &str) -> Option<Step> {
    let shipped = find(name)?;
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

/// A service as it holds: until a changed default one is restored, nobody deploys the change.
pub fn as_it_holds(found: Arc<Service>) -> Arc<Service> {
    match find(&found.name_any()) {
        Some(shipped) if shipped.spec != found.spec && is_marked(&found) => {
            Arc::new(Service { spec: shipped.spec.clone(), ..Service::clone(&found) })
        }
        _ => found,
    }
}

/// Whether we have made a service, or taken it for what we ship. Whatever else has such a name was
/// there first, perhaps before it was a default's: it is its author's, and hosts may run by it.
fn is_marked(found: &Service) -> bool {
    let has_label = found.labels().get(DEFAULT_SERVICE_LABEL).is_some_and(|it| it == "true");
    has_label || found.annotations().contains_key(CONTENT_HASH)
}

/// The step that restores a service that is not what it is to be, with an Event where a human has
/// changed it.
pub fn restoration(found: &Service) -> Option<(Step, Option<EventDraft>)> {
    let (name, namespace) = (found.name_any(), found.namespace().unwrap_or_default());
    let shipped = find(&name)?;
    let (is_same, written) = (found.spec == shipped.spec, found.annotations().get(CONTENT_HASH));
    let is_ours = written.is_some_and(|it| *it == hash::short(&shipped.spec));
    let is_intact =
        is_ours && found.labels().get(DEFAULT_SERVICE_LABEL).is_some_and(|it| it == "true");
    if (is_same && is_intact) || (!is_same && !is_marked(found)) {
        return None;
    }
    let step = step(&namespace, &name, "a default service differs from what is shipped")?;
    // Another version's is no edit.
    let is_edited = !is_same && (is_ours || written.is_none());
    Some((step, is_edited.then(|| restored(&name, shipped))))
}

/// Object, cause and next step.
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
