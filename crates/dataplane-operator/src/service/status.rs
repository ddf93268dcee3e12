//! The status of a service: its faults, its playbook, its data sources and its ports.

use api::conditions::{
    self, Condition, ConditionDraft, ConditionStatus, READY, Severity, first_names,
};
use api::dataplane::Service;
use api::dataplane::service::faults::{faults, warnings};
use api::fault::Fault;
use kube::ResourceExt;
use operator_core::data_sources::{NamedSource, service_type, sources_of};
use operator_core::rejected_write::{RejectedWrite, WRITES_ACCEPTED};
use operator_core::run_engine::run_template::{MountedSource, Play};
use operator_core::run_engine::sources::clashes;

use crate::endpoints::decide;
use crate::host::services::play;
use crate::service::observed::Observed;
use crate::spec_warnings::{self, SPEC_WARNINGS, message};
use crate::{collection, default_services, reasons};

/// Condition type: the service can be deployed as written.
pub const SPEC_VALID: &str = "SpecValid";
/// Condition type: the project's collection contains the playbook. Does not affect `Ready`, because
/// the runner image may be another one.
pub const PLAYBOOK_INCLUDED: &str = "PlaybookIncluded";
/// Condition type: no other client keeps changing a default service. Does not affect `Ready`, because
/// the shipped spec is deployed all the same.
pub const AS_SHIPPED: &str = "AsShipped";
/// Condition type: every required data source exists.
pub const DATA_SOURCES_USED: &str = "DataSourcesUsed";
/// Condition type: several data sources have the same key. Does not affect `Ready`, because the
/// last one is mounted.
pub const DATA_SOURCE_KEYS_CLASH: &str = "DataSourceKeysClash";

/// How many items of one kind a message names.
const NAMED: usize = 5;

/// Returns all conditions of a service.
pub fn conditions(
    seen: &Observed,
    service: &Service,
    rejection: Option<&RejectedWrite>,
    previous: &[Condition],
) -> Vec<ConditionDraft> {
    let sources = data_sources_used(seen, service);
    let is_unused = sources.status == ConditionStatus::Unknown;
    let mut drafts = vec![spec_valid(service)];
    drafts.extend(Some(&sources).filter(|_| !is_unused).cloned());
    drafts.extend(seen.ports.as_ref().and_then(decide::condition));
    drafts.extend(rejection.map(|it| it.condition(WRITES_ACCEPTED, previous)));
    let text = if is_unused {
        "No role, node or node set lists it, so that what it lacks stops nothing; see \
         DataSourcesUsed."
    } else {
        "Everything that the service names is there."
    };
    let good = reasons::service::READY.condition(READY, text);
    drafts.push(conditions::ready(&drafts, good));
    drafts.extend(Some(sources).filter(|_| is_unused));
    drafts.extend([without_effect(service), playbook_included(service), keys_clash(seen, service)]);
    drafts
}

/// Returns the condition of a default service that another client changes again and again.
pub fn contested(service: &Service) -> ConditionDraft {
    let name = service.name_any();
    let type_ = service_type(&service.spec, &name);
    let text = format!(
        "OpenStackDataPlaneService {name} is a default service, and another client changes its spec \
         each time it was restored, so that it is restored every few minutes only; hosts get the \
         shipped spec all the same. Take it out of what that client applies, and for your own create \
         a copy under another name with edpmServiceType: {type_}."
    );
    reasons::service::CONTESTED.condition(AS_SHIPPED, text)
}

fn spec_valid(service: &Service) -> ConditionDraft {
    let found = faults(service);
    if found.is_empty() {
        return reasons::service::VALID
            .condition(SPEC_VALID, "The service can be deployed as it is written.");
    }
    reasons::service::INVALID_SPEC.condition(SPEC_VALID, message(&title(service), &found))
}

fn without_effect(service: &Service) -> ConditionDraft {
    let mut found = warnings(service);
    found.extend(unread_images(service));
    spec_warnings::condition(&title(service), &found).unwrap_or_else(|| {
        let text = "Nothing in the spec is to be corrected.";
        reasons::service::NO_WARNINGS.condition(SPEC_WARNINGS, text)
    })
}

/// Returns that the service names images that are read from nowhere; a default service is as upstream
/// has it, and not its user's.
fn unread_images(service: &Service) -> Option<Fault> {
    let is_own = !default_services::is_default(&service.name_any());
    (is_own && !service.spec.container_image_fields.is_empty()).then(|| {
        let message = "no OpenStackVersion is read, so no image follows from it: set the images as \
                       variables of the hosts, and take it out";
        Fault::new("spec.containerImageFields", message)
    })
}

fn title(service: &Service) -> String {
    format!("OpenStackDataPlaneService {}", service.name_any())
}

fn playbook_included(service: &Service) -> ConditionDraft {
    let play = play(service);
    let what = match &play {
        Play::Contents(_) => {
            let text = "The service has its playbook in itself.";
            return reasons::service::IN_SERVICE.condition(PLAYBOOK_INCLUDED, text);
        }
        Play::Playbook(name) => format!("Playbook {name}"),
        Play::Role(name) => format!("Role {name}"),
    };
    let has_image = service.spec.open_stack_ansible_ee_runner_image.is_some();
    let collection = collection::name();
    match collection::has(&play).filter(|_| !has_image) {
        Some(true) => {
            let text = format!("{what} is in the project's own collection {collection}.");
            reasons::service::INCLUDED.condition(PLAYBOOK_INCLUDED, text)
        }
        Some(false) => {
            let text = format!(
                "{what} is not in the project's own collection {collection}, so the project's runner \
                 image cannot run it: have another one that can, for all runs by the chart's value \
                 relatedImages.ansibleEERunner, or for a service of your own by \
                 openStackAnsibleEERunnerImage."
            );
            reasons::service::NOT_INCLUDED.condition(PLAYBOOK_INCLUDED, text)
        }
        None => {
            let text = format!("Only a run shows whether the runner image has it: {what}.");
            reasons::service::NOT_KNOWN.condition(PLAYBOOK_INCLUDED, text)
        }
    }
}

fn data_sources_used(seen: &Observed, service: &Service) -> ConditionDraft {
    let named = sources_of(&service.spec);
    let is_there = |it: &NamedSource| seen.sources.contains_key(&it.source(&seen.namespace));
    let titles = |all: Vec<&NamedSource>| {
        first_names(&all.iter().map(|it| it.title()).collect::<Vec<_>>(), NAMED)
    };
    let (there, absent): (Vec<&NamedSource>, Vec<&NamedSource>) =
        named.iter().partition(|it| is_there(it));
    let (optional, missing): (Vec<&NamedSource>, Vec<&NamedSource>) =
        absent.into_iter().partition(|it| it.is_optional);
    if !missing.is_empty() && !seen.is_listed {
        let text = format!(
            "No role, node or node set lists OpenStackDataPlaneService {}. It mounts what does not exist \
             yet: {}.",
            service.name_any(),
            titles(missing)
        );
        return reasons::service::NOT_USED.condition(DATA_SOURCES_USED, text);
    }
    if !missing.is_empty() {
        let text = format!(
            "What lists OpenStackDataPlaneService {} in its services waits until these exist: {}. \
             Create them for it, or set optional: true in a service of your own. Nothing else \
             needs them.",
            service.name_any(),
            titles(missing)
        );
        // The objects that list the service report this as a warning.
        return reasons::inputs::DATA_SOURCE_NOT_FOUND
            .condition(DATA_SOURCES_USED, text)
            .with_severity(Severity::Info);
    }
    let mut text = if there.is_empty() {
        "No data source is mounted.".to_owned()
    } else {
        format!("Mounted: {}.", titles(there))
    };
    if !optional.is_empty() {
        text = format!("{text} Optional, and not there: {}.", titles(optional));
    }
    reasons::service::ALL_FOUND.condition(DATA_SOURCES_USED, text)
}

fn keys_clash(seen: &Observed, service: &Service) -> ConditionDraft {
    let source = |it: NamedSource| {
        let keys = seen.sources.get(&it.source(&seen.namespace))?.clone();
        Some(MountedSource { kind: it.kind, name: it.name, keys })
    };
    let sources: Vec<MountedSource> =
        sources_of(&service.spec).into_iter().filter_map(source).collect();
    let title = |it: &&MountedSource| it.kind.title(&it.name);
    let found: Vec<String> = clashes(&sources)
        .into_iter()
        .filter_map(|(key, having)| {
            let titles: Vec<String> = having.iter().map(title).collect();
            let (last, others) = titles.split_last()?;
            let others = others.join(", ");
            Some(format!("Key {key} of {last} is mounted, the same key of {others} is not"))
        })
        .collect();
    if found.is_empty() {
        let text = "No two data sources have a key in common.";
        return reasons::service::KEYS_DIFFER.condition(DATA_SOURCE_KEYS_CLASH, text);
    }
    let text = format!(
        "{}. The last data source listed wins: rename keys if you want both.",
        found.iter().take(NAMED).cloned().collect::<Vec<_>>().join(". ")
    );
    reasons::service::KEYS_CLASH.condition(DATA_SOURCE_KEYS_CLASH, text)
}
