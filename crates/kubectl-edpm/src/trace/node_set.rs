//! Additional steps for hosts of node sets: the ConfigMap that kustomize generated, and the
//! deployment.

use api::conditions::{READY, find};
use api::dataplane::Deployment;
use api::dataplane::condition_types::UP_TO_DATE;
use api::shared::SourceKind;
use kube::ResourceExt;
use operator_core::data_sources::NamedSource as Source;
use operator_core::keyed::is_keyed;

use super::inputs::TraceInputs;
use super::occurrences::places;
use super::trace_step::{Mark, TraceStep};
use crate::cluster::Read;
use crate::conditions::said_so_far;
use crate::config_files::{Content, File};
use crate::deployments::{is_last, services, waiting};
use crate::host::Host;
use crate::kinds::DEPLOYMENT;
use crate::option_names::OptionNames;
use crate::option_sources::ServiceSources;

/// Checks the ConfigMap as generated, from the user's manifests or from the manifest that `kubectl
/// apply` recorded.
pub(super) fn generated(
    seen: &TraceInputs<'_>,
    given: &ServiceSources,
    named: &OptionNames,
) -> TraceStep {
    let step = |mark, lines| TraceStep { name: "generated", mark, lines };
    let found = given.sources.iter().filter_map(|(_, it)| it.found());
    let applied: Vec<&Vec<File>> = found.filter_map(|it| it.applied.as_ref()).collect();
    let (files, origin): (Vec<&File>, _) = match &seen.generated {
        Some(generated) => (generated.files.iter().collect(), generated.path.as_str()),
        None if !applied.is_empty() => {
            (applied.into_iter().flatten().collect(), "what was last applied")
        }
        None => {
            let line = "what was generated is unknown: kubectl apply keeps it on the ConfigMap, and \
                        --generated names a file with it";
            return step(Mark::Unknown, vec![line.to_owned()]);
        }
    };
    let mut lines = Vec::new();
    for file in &files {
        let place = format!("{origin}: {}, key {}", file.source, file.name);
        lines.extend(places(&place, &file.entries, named));
    }
    if lines.is_empty() {
        let is_kept = |(source, it): &(Source, Read<Content>)| {
            source.kind == SourceKind::Secret || it.found().is_some_and(|it| it.applied.is_some())
        };
        let is_known = seen.generated.is_some() || given.sources.iter().all(is_kept);
        let mark = match (is_known, seen.is_expected(named)) {
            (false, _) => Mark::Unknown,
            (true, true) => Mark::NotYet,
            (true, false) => Mark::Ok,
        };
        return step(mark, vec![format!("{origin} does not set it")]);
    }
    let values: Vec<String> = files.iter().flat_map(|it| named.values(&it.entries)).collect();
    let step = seen.compared(step(Mark::Ok, lines), &values, named);
    seen.blocked(step, &files, named)
}

/// Returns the objects that differ from those that the deployment used.
pub(super) fn changed(seen: &TraceInputs<'_>, given: &ServiceSources) -> Vec<String> {
    let Some(status) = seen.stage.deployment.and_then(|it| it.status.as_ref()) else {
        return vec![];
    };
    let mut changed = Vec::new();
    for (source, content) in &given.sources {
        let used = if source.kind == SourceKind::Secret {
            &status.secret_hashes
        } else {
            &status.config_map_hashes
        };
        let present: Option<&Content> = match content {
            Read::Found(content) => Some(content),
            Read::Missing => None,
            Read::Refused(_) => continue,
        };
        let is_changed = match (used.get(&source.name), present) {
            // Of a deployment that ended with a release before: only the operator has the key; its
            // condition lists what has changed.
            (Some(text), Some(_)) if is_keyed(text) => is_listed(
                seen,
                &format!("{} of service {}", source.title(), given.service.name_any()),
            ),
            (used, present) => used != present.map(|it| &it.hash),
        };
        if is_changed {
            changed.push(source.title());
        }
    }
    changed
}

/// Whether the host's node lists an input as changed since the last deployment.
fn is_listed(seen: &TraceInputs<'_>, input: &str) -> bool {
    seen.stage.condition(UP_TO_DATE).is_some_and(|it| it.message.contains(input))
}

pub(super) fn deployment(
    seen: &TraceInputs<'_>,
    given: &ServiceSources,
    changed: &[String],
) -> TraceStep {
    let (namespace, service) = (seen.host.namespace, given.service.name_any());
    let step = |mark, lines| TraceStep { name: "deployment", mark, lines };
    let Some(found) = seen.stage.deployment else {
        return step(Mark::NotYet, vec![none(seen.host, &service)]);
    };
    let set = seen.host.node.node_set().unwrap_or_default();
    let name = found.name_any();
    let mut lines =
        vec![format!("{DEPLOYMENT} {namespace}/{name} brings service {service} to {set}")];
    if let Some(newer) = waiting(seen.host) {
        lines.push(format!("{DEPLOYMENT} {} waits: {}", newer.name_any(), message(newer)));
    }
    if changed.is_empty() {
        return step(Mark::Ok, lines);
    }
    lines.push(format!("changed since it used it: {}", changed.join(", ")));
    step(Mark::NotYet, lines)
}

/// Says why no deployment has run a service.
fn none(host: &Host<'_>, service: &str) -> String {
    let set = host.node.node_set().unwrap_or_default();
    let Some(newest) = host.deployments.last() else {
        return format!("no {DEPLOYMENT} lists {set} in spec.nodeSets");
    };
    let name = newest.name_any();
    if !is_last(host.node, newest) {
        return format!("{DEPLOYMENT} {name} has not begun on {}: {}", host.name, message(newest));
    }
    let brought = services(Some(*newest), host.node_set);
    if brought.contains(&service) {
        return format!(
            "{DEPLOYMENT} {name} did not come to service {service}: {}",
            message(newest)
        );
    }
    format!("{DEPLOYMENT} {name} does not bring service {service}, but {}", brought.join(", "))
}

fn message(deployment: &Deployment) -> String {
    said_so_far(find(deployment.conditions(), READY))
}
