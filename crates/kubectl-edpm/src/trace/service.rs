//! The steps for a service: the ConfigMaps and Secrets that an `OpenStackDataPlaneService` mounts,
//! and the object that lists it. Hosts of node sets have additional steps: [`node_set`].

use api::conditions::ConditionStatus;
use api::dataplane::condition_types::UP_TO_DATE;
use kube::ResourceExt;

use super::file_steps::FileSteps;
use super::inputs::TraceInputs;
use super::node_set;
use super::occurrences::{places, winners};
use super::pod_steps::reported;
use super::trace_step::{Mark, TraceStep};
use crate::cluster::Read;
use crate::config_files::{File, is_read, title};
use crate::host::Step;
use crate::kinds::DEPLOYMENT;
use crate::option_names::OptionNames;
use crate::option_sources::ServiceSources;

pub(super) fn file_steps(
    seen: &TraceInputs<'_>,
    given: &ServiceSources,
    named: &OptionNames,
) -> FileSteps {
    let files = given.read();
    let known = files.as_deref().unwrap_or_default();
    let winner = named.winner(known).map(|(file, _)| file);
    let is_reported = is_reported(seen, given, winner, known);
    let mut steps =
        vec![written(seen, given, named), service(seen, given, named, known), listed(seen, given)];
    let has_present = if seen.host.node.node_set().is_some() {
        let changed =
            if is_reported == Some(true) { vec![] } else { node_set::changed(seen, given) };
        steps.push(node_set::deployment(seen, given, &changed));
        changed.is_empty()
    } else {
        is_reported.unwrap_or_else(|| seen.stage.truth(UP_TO_DATE) == ConditionStatus::True)
    };
    if seen.host.node.node_set().is_some() || seen.generated.is_some() {
        steps.insert(0, node_set::generated(seen, given, named));
    }
    let is_deployed = has_succeeded(seen, given) && has_present;
    FileSteps { service: given.service.name_any(), steps, files, is_deployed }
}

fn written(seen: &TraceInputs<'_>, given: &ServiceSources, named: &OptionNames) -> TraceStep {
    let (namespace, name) = (seen.host.namespace, given.service.name_any());
    let (mut mark, mut lines) = (Mark::Ok, Vec::new());
    for (source, content) in &given.sources {
        let object = title(&source.source(namespace));
        match content {
            Read::Found(_) => {}
            Read::Missing if source.is_optional => {
                lines
                    .push(format!("{object}, which service {name} may do without, does not exist"));
            }
            Read::Missing => {
                mark = Mark::NotYet;
                lines.push(format!("{object}, which service {name} needs, does not exist"));
            }
            Read::Refused(why) => {
                mark = if mark == Mark::Ok { Mark::Unknown } else { mark };
                lines.push(format!("{object} cannot be read: {why}"));
            }
        }
    }
    let files: Vec<&File> = given.files().chain(&given.beside).collect();
    for file in &files {
        let place = format!("{}, key {}", file.source, file.name);
        lines.extend(places(&place, &file.entries, named));
    }
    let found: Vec<String> = files.iter().flat_map(|it| named.values(&it.entries)).collect();
    if found.is_empty() {
        lines.push(format!("it is written nowhere: no ConfigMap or Secret of service {name}"));
    }
    let step = seen.compared(TraceStep { name: "written", mark, lines }, &found, named);
    seen.blocked(step, &files, named)
}

fn service(
    seen: &TraceInputs<'_>,
    given: &ServiceSources,
    named: &OptionNames,
    files: &[File],
) -> TraceStep {
    let title =
        format!("OpenStackDataPlaneService {}/{}", seen.host.namespace, given.service.name_any());
    let step = |mark, lines| TraceStep { name: "service", mark, lines };
    let is_of_set = seen.host.node.node_set().is_some();
    if let Some(absent) = given.absent.first().filter(|_| is_of_set && !given.is_listed) {
        let line = format!(
            "OpenStackDataPlaneService {}/{absent}, which is listed, does not exist",
            seen.host.namespace
        );
        return step(Mark::NotYet, vec![line]);
    }
    if let Some(file) = given.beside.first() {
        let line = format!("{title} does not name {} in spec.dataSources", file.source);
        return step(Mark::NotYet, vec![line]);
    }
    let ignored = given.files().find(|it| named.is_in(it) && !is_read(&it.name));
    if let Some(file) = ignored.filter(|_| named.winner(files).is_none()) {
        let line = format!(
            "{title} mounts {}, but nova-compute reads *nova*.conf alone and ignores key {}: name \
             it 25-nova-{}.conf",
            file.source,
            file.name,
            file.name.strip_suffix(".conf").unwrap_or(&file.name)
        );
        return step(Mark::NotYet, vec![line]);
    }
    let titles: Vec<String> = given.sources.iter().map(|(it, _)| it.title()).collect();
    let mounts = if titles.is_empty() { "nothing".to_owned() } else { titles.join(", ") };
    let mut lines = vec![format!("{title} mounts {mounts}")];
    lines.extend(winners(files, named));
    seen.outdone(step(Mark::Ok, lines), files, named)
}

fn listed(seen: &TraceInputs<'_>, given: &ServiceSources) -> TraceStep {
    let name = given.service.name_any();
    let (kind, group) = match &seen.host.group {
        Some(group) => (group.kind, group.name),
        None => (seen.stage.kind, seen.host.name),
    };
    let verb = if given.is_listed { "lists" } else { "does not list" };
    let line = format!("{kind} {}/{group} {verb} {name} in spec.services", seen.host.namespace);
    let step = |mark, lines| TraceStep { name: "listed", mark, lines };
    if let Some(rival) = &given.conflicting_service {
        let why = format!(
            "it lists {rival} before it, and of two services of one type the first one alone runs"
        );
        return step(Mark::NotYet, vec![line, why]);
    }
    let by = seen.stage.deployment.filter(|it| it.spec.services_override.contains(&name));
    match by {
        Some(by) if !given.is_listed => {
            let why = format!("{DEPLOYMENT} {} has it in spec.servicesOverride", by.name_any());
            step(Mark::Ok, vec![line, why])
        }
        _ => step(if given.is_listed { Mark::Ok } else { Mark::NotYet }, vec![line]),
    }
}

fn has_succeeded(seen: &TraceInputs<'_>, given: &ServiceSources) -> bool {
    let progress = seen.host.service(seen.stage, &given.service.name_any());
    progress.is_some_and(|it| it.state == Step::Succeeded)
}

/// Whether the run reported the deciding file and all later ones with their current digests.
/// Returns `None` when the run is not kept or has no report. The report is the most reliable
/// evidence.
fn is_reported(
    seen: &TraceInputs<'_>,
    given: &ServiceSources,
    winner: Option<&File>,
    files: &[File],
) -> Option<bool> {
    let progress = seen.host.service(seen.stage, &given.service.name_any())?;
    let digests = reported(progress.run?)?;
    let is_same = |file: &File| digests.get(&file.name) == Some(&file.digest);
    let begin = winner.map(|it| it.name.as_str()).unwrap_or_default();
    let mut later = digests.keys().filter(|it| it.as_str() > begin && is_read(it));
    let is_kept = |name: &String| files.iter().any(|it| it.name == *name && is_same(it));
    Some(winner.is_none_or(is_same) && later.all(is_kept))
}
