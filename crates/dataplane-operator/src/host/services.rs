//! What runs of a service need, whichever way its hosts are brought into service: what it executes,
//! its data sources, and their faults.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::dataplane::{Service, service};
use api::problem::Problem;
use kube::ResourceExt;
use operator_core::data_sources::{NamedSource, SourceRef, service_type, sources_of};
use operator_core::plan::Target;
use operator_core::run_engine::run_template::{MountedSource, Play};
use operator_core::run_engine::sources::mounted;
use operator_runtime::source_cache::Digests;

use crate::collection::{self, RunnerImage};
use crate::default_services;
use crate::host::inputs::contents;
use crate::host::known_inputs;
use crate::reasons;

/// The Secret with the CA bundle of a user's service that names none; upstream's default.
const CA_BUNDLE: &str = "combined-ca-bundle";

/// The faults that keep services from running, independently of the host.
#[derive(Clone, Debug, Default)]
pub struct ServiceFaults {
    /// The faults that concern all services.
    pub of_all: Vec<Problem>,
    /// The faults of single services, each with the service's name, in the order of the list.
    pub of_services: Vec<(String, Problem)>,
}

impl ServiceFaults {
    /// Returns all faults.
    pub fn all(&self) -> impl Iterator<Item = &Problem> {
        self.of_all.iter().chain(self.of_services.iter().map(|it| &it.1))
    }

    /// Returns whether a host has to wait before this service.
    pub fn blocks(&self, service: &str) -> bool {
        !self.of_all.is_empty() || self.of_services.iter().any(|it| it.0 == service)
    }
}

/// Returns the Secret with a service's CA bundle, and whether its runs wait for the Secret.
///
/// They do not wait for the default Secret of a user's service that names none. Default services
/// always name theirs.
pub fn ca_bundle(service: &Service) -> Option<(&str, bool)> {
    if let Some(name) = service.spec.ca_certs.as_deref() {
        return (!name.is_empty()).then_some((name, true));
    }
    let is_default = default_services::is_default(&service.name_any());
    (!is_default).then_some((CA_BUNDLE, false))
}

/// Returns the data sources of services, with their CA bundles where these are mounted.
pub fn sources_and_bundles<'a>(
    namespace: &str,
    services: impl IntoIterator<Item = &'a Arc<Service>>,
    are_mounted: bool,
) -> BTreeSet<SourceRef> {
    let mut found = BTreeSet::new();
    for service in services {
        found.extend(sources_of(&service.spec).iter().map(|it| it.source(namespace)));
        let bundle = ca_bundle(service).filter(|_| are_mounted);
        found.extend(bundle.map(|it| SourceRef::secret(namespace, it.0)));
    }
    found
}

/// Returns what a service runs: the inline playbook, else the named one, as upstream does; a role
/// only when neither is set. An empty field counts as unset.
pub fn play(service: &Service) -> Play {
    let spec = &service.spec;
    let set = |it: Option<&String>| it.filter(|it| !it.is_empty()).cloned();
    match (set(contents(spec)), set(spec.playbook.as_ref()), set(spec.role.as_ref())) {
        (Some(text), _, _) => Play::Contents(text),
        (None, None, Some(role)) => Play::Role(role),
        (None, playbook, _) => Play::Playbook(playbook.unwrap_or_default()),
    }
}

/// Returns the existing objects whose keys a service gets as files.
pub fn sources(
    known: &BTreeMap<SourceRef, Digests>,
    namespace: &str,
    service: &Service,
) -> Vec<MountedSource> {
    let source = |named: NamedSource| {
        let digests = known.get(&named.source(namespace))?;
        let keys = digests.keys.keys().cloned().collect();
        Some(MountedSource { kind: named.kind, name: named.name, keys })
    };
    mounted(sources_of(&service.spec).into_iter().filter_map(source).collect())
}

/// Returns the fault of a service that a parent lists and that does not exist.
///
/// `unreadable` is set when the service exists, and says why it cannot be parsed.
pub fn absent_service(parent: &Target, name: &str, unreadable: Option<&String>) -> Problem {
    let place = format!("spec.services of {} {}", parent.kind.kind, parent.name);
    if let Some(why) = unreadable {
        return unreadable_service(name, &place, why);
    }
    Problem::new(
        &reasons::inputs::SERVICE_NOT_FOUND,
        format!(
            "OpenStackDataPlaneService {name}, listed in {place}, does not exist: create it or take \
             it off the list."
        ),
    )
}

/// Returns whether a service of a host does not exist or cannot be parsed.
pub fn lack_services(problems: &[Problem]) -> bool {
    let lacking = [&reasons::inputs::SERVICE_NOT_FOUND, &reasons::inputs::SERVICE_UNREADABLE];
    problems.iter().any(|it| lacking.contains(&it.reason))
}

/// Returns the fault of a service that is listed at `place` and exists, but cannot be parsed.
pub fn unreadable_service(name: &str, place: &str, why: &str) -> Problem {
    let text = format!(
        "OpenStackDataPlaneService {name}, listed in {place}, exists and cannot be read: {why}. \
         Correct that field of it."
    );
    Problem::new(&reasons::inputs::SERVICE_UNREADABLE, text)
}

/// Returns the faults of services that are listed at `place` after another one of their type: both
/// would write the same files.
pub fn of_one_type(
    place: &str,
    names: &[String],
    services: &BTreeMap<String, Arc<Service>>,
) -> Vec<Problem> {
    let mut first: BTreeMap<String, &String> = BTreeMap::new();
    let mut problems = Vec::new();
    for name in names {
        let Some(service) = services.get(name) else { continue };
        let type_ = service_type(&service.spec, name);
        let before = *first.entry(type_.clone()).or_insert(name);
        if before != name {
            let text = format!(
                "OpenStackDataPlaneServices {before} and {name}, listed in {place}, both have the \
                 edpmServiceType {type_}, and would write the same files: list only one of them, or \
                 give one of them another edpmServiceType."
            );
            problems.push(Problem::new(&reasons::inputs::SERVICE_TYPE_TWICE, text));
        }
    }
    problems
}

/// Returns the fault of an object that a service needs: it does not exist, or lacks a key without
/// which the service's plays fail. `found` are its digests, if it exists.
pub fn source_fault(
    namespace: &str,
    service: &str,
    named: &NamedSource,
    found: Option<&Digests>,
) -> Option<Problem> {
    let what = format!("{}, named by OpenStackDataPlaneService {service},", named.title());
    let Some(digests) = found else {
        let way = known_inputs::way_to_make(namespace, named);
        let text = format!("{what} does not exist: {way}.");
        let problem = Problem::new(&reasons::inputs::DATA_SOURCE_NOT_FOUND, text);
        return (!named.is_optional).then_some(problem);
    };
    let key = known_inputs::missing_key(named, |it| digests.keys.contains_key(it))?;
    let text = format!("{what} has no key {key}: add it.");
    Some(Problem::new(&reasons::inputs::DATA_SOURCE_INCOMPLETE, text))
}

/// Returns the fault of a service whose playbook or role the installation's runner image lacks.
pub fn not_included(service: &Service, runner: RunnerImage) -> Option<Problem> {
    let has_image = service.spec.open_stack_ansible_ee_runner_image.is_some();
    let play = play(service);
    if has_image || runner != RunnerImage::Own || collection::has(&play) != Some(false) {
        return None;
    }
    let what = match play {
        Play::Contents(_) => return None,
        Play::Playbook(name) => format!("playbook {name}"),
        Play::Role(name) => format!("role {name}"),
    };
    let text = format!(
        "OpenStackDataPlaneService {} runs {what}, which the installation's runner image does not have: \
         take the service off the list, or have an image that has it, see PlaybookIncluded of the \
         service.",
        service.name_any()
    );
    Some(Problem::new(&reasons::service::NOT_INCLUDED, text))
}

/// Returns the first fault that the CRD's own validation rules reject where they are in force.
pub fn invalid(service: &Service) -> Option<Problem> {
    let first = service::faults::faults(service).into_iter().next()?;
    let name = service.name_any();
    let text = format!("OpenStackDataPlaneService {name} cannot be deployed: {first}.");
    Some(Problem::new(&reasons::inputs::SERVICE_INVALID, text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_service_runs_its_text_else_its_playbook_else_its_role() {
        let of = |spec: serde_json::Value| {
            play(&Service::new("s", serde_json::from_value(spec).unwrap()))
        };
        let (text, name) = (json!("[]"), json!("a.b.c"));
        let contents = Play::Contents("[]".into());
        assert_eq!(of(json!({ "playbookContents": text, "playbook": name })), contents);
        assert_eq!(of(json!({ "play": text, "role": name })), contents);
        let playbook = Play::Playbook("a.b.c".into());
        assert_eq!(of(json!({ "playbook": name, "role": "x" })), playbook);
        assert_eq!(of(json!({ "role": name })), Play::Role("a.b.c".into()));
        assert_eq!(of(json!({ "role": name, "playbook": "" })), Play::Role("a.b.c".into()));
    }
}
