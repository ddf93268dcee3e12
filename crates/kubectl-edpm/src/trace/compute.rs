//! The steps for a compute: its configuration as written, and the Secret rendered from it.

use api::conditions::{Condition, ConditionStatus};
use api::dataplane::condition_types::UP_TO_DATE;
use kube::ResourceExt;
use nova_config::conditions::SERVICE_CONFIG_READY;
use nova_config::conf::{DEFAULT_FILE, OVERRIDE_FILE};
use nova_config::oslo::parse;
use nova_config::rendered_secret::compute_secret_name;
use nova_config::services::NOVA;

use super::file_steps::FileSteps;
use super::inputs::TraceInputs;
use super::occurrences::{places, winners};
use super::trace_step::{Mark, TraceStep};
use crate::cluster::Read;
use crate::conditions::{OPERATOR_CHANGED, because};
use crate::config_files::{File, files};
use crate::diff::changes::differing;
use crate::host::{Progress, Step};
use crate::option_names::OptionNames;
use crate::option_sources::Options;

pub(super) fn file_steps(
    seen: &TraceInputs<'_>,
    options: &Options<'_>,
    named: &OptionNames,
) -> FileSteps {
    let rendered = options.secret.found().map(files);
    let known = rendered.as_deref().unwrap_or_default();
    let winner = named.winner(known).map(|(file, _)| file.name.as_str());
    let is_deployed = is_deployed(seen, options, winner);
    let steps = vec![written(seen, options, named), in_secret(seen, options, named, known)];
    FileSteps { service: NOVA.to_owned(), steps, files: rendered, is_deployed }
}

fn written(seen: &TraceInputs<'_>, options: &Options<'_>, named: &OptionNames) -> TraceStep {
    let custom = options.compute.spec.custom_service_config.as_deref().unwrap_or_default();
    let (namespace, name) = (seen.host.namespace, options.compute.name_any());
    let mut mark = Mark::Ok;
    let mut lines = Vec::new();
    let mut found = Vec::new();
    let mut add = |lines: &mut Vec<String>, place: &str, text: &str| {
        let entries = parse(text).0;
        lines.extend(places(place, &entries, named));
        found.extend(named.values(&entries));
    };
    if let Some(default) = &options.default_config {
        let object = format!("ConfigMap {namespace}/{}", default.name);
        match &default.text {
            Read::Found((key, text)) => add(&mut lines, &format!("{object}, key {key}"), text),
            Read::Missing => {
                lines.push(format!("{object}, which the node or its role names, has no such text"));
            }
            Read::Refused(why) => {
                mark = Mark::Unknown;
                lines.push(format!("{object} cannot be read: {why}"));
            }
        }
    }
    let place = format!("NovaExternalCompute {namespace}/{name}, spec.customServiceConfig");
    add(&mut lines, &place, custom);
    if lines.is_empty() {
        lines.push(
            "it is written nowhere: neither spec.customServiceConfig nor a default".to_owned(),
        );
    }
    seen.compared(TraceStep { name: "written", mark, lines }, &found, named)
}

fn in_secret(
    seen: &TraceInputs<'_>,
    options: &Options<'_>,
    named: &OptionNames,
    rendered: &[File],
) -> TraceStep {
    let name = compute_secret_name(&options.compute.name_any());
    let object = format!("Secret {}/{name}", seen.host.namespace);
    let step = |mark, lines| TraceStep { name: "rendered", mark, lines };
    match &options.secret {
        Read::Missing => {
            let why = because(seen.stage.condition(SERVICE_CONFIG_READY));
            return step(Mark::NotYet, vec![format!("{object} does not exist{why}")]);
        }
        Read::Refused(why) => {
            return step(Mark::Unknown, vec![format!("{object} cannot be read: {why}")]);
        }
        Read::Found(_) => {}
    }
    let mut lines = vec![object];
    lines.extend(winners(rendered, named));
    let behind = behind(seen, options, rendered, named);
    let mark = if behind.is_empty() { Mark::Ok } else { Mark::NotYet };
    lines.extend(behind);
    seen.outdone(step(mark, lines), rendered, named)
}

/// Lists the files whose rendered text differs in this option from what is written now.
fn behind(
    seen: &TraceInputs<'_>,
    options: &Options<'_>,
    rendered: &[File],
    named: &OptionNames,
) -> Vec<String> {
    let is_behind = |(file, text): &(&str, &str)| {
        let of_file = rendered.iter().find(|it| it.name == *file);
        named.values(of_file.map(|it| it.entries.as_slice()).unwrap_or_default())
            != named.values(&parse(text).0)
    };
    let why =
        seen.stage.condition(SERVICE_CONFIG_READY).filter(|it| it.status != ConditionStatus::True);
    let why = because(why);
    let difference =
        |(file, _): (&str, &str)| format!("{file} is not rendered from what was written{why}");
    options.written().into_iter().filter(is_behind).map(difference).collect()
}

/// Whether the deciding texts are those of the last deployment, or of the one in progress.
fn is_deployed(seen: &TraceInputs<'_>, options: &Options<'_>, winner: Option<&str>) -> bool {
    let is_succeeded = |it: &Progress<'_>| it.state == Step::Succeeded;
    let progress = seen.host.progress(seen.stage);
    let nova_is_done = progress.iter().any(|it| it.service == NOVA && is_succeeded(it));
    let goes_on = progress.iter().any(|it| !is_succeeded(it));
    if goes_on {
        // A change that affects nova would have made it due again.
        return nova_is_done && seen.stage.deploys == Some(true);
    }
    if !nova_is_done {
        return false;
    }
    let differing = differing(seen.stage, options);
    let of_texts = |it: &String| it == "customServiceConfig" || it.starts_with("ConfigMap ");
    match winner {
        Some(OVERRIDE_FILE) => !differing.iter().any(|it| it == "customServiceConfig"),
        Some(DEFAULT_FILE) => !differing.iter().any(of_texts),
        _ => {
            let is_current = |it: &Condition| {
                it.status == ConditionStatus::True || it.reason == OPERATOR_CHANGED
            };
            seen.stage.condition(UP_TO_DATE).is_some_and(is_current) && differing.is_empty()
        }
    }
}
