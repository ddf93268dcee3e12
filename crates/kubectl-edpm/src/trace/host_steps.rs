//! The steps on the host: its files, those of the container, and the value in the process.

use jiff::Timestamp;

use super::answer::{Answer, LiveQuestion};
use super::file_steps::EffectiveEntry;
use super::inputs::TraceInputs;
use super::trace_step::{Mark, TraceStep};
use crate::option_names::OptionNames;

/// The directory of nova's files on the host.
const ON_HOST: &str = "/var/lib/openstack/config/nova";
/// The directory of nova's files in the nova-compute container.
const IN_CONTAINER: &str = "/etc/nova/nova.conf.d";

pub(super) fn on_host(seen: &TraceInputs<'_>, effective: &EffectiveEntry<'_>) -> TraceStep {
    let host = seen.host.name;
    let answer = seen.said().filter(|it| !it.folder.is_empty());
    let (mark, line) = match (answer, effective.file()) {
        (Some(answer), Some(file)) => {
            let place = format!("{host}: {}/{}", answer.folder, file.name);
            compared(&place, answer.on_host(&file.name), &file.digest)
        }
        (Some(answer), None) => (Mark::Ok, format!("{host}: no file in {} sets it", answer.folder)),
        (None, _) if !effective.file_steps.is_deployed => {
            let recorded = effective.progress.as_ref().and_then(|it| it.recorded);
            let line = if recorded.is_some_and(|it| it.deployed_hash.is_some()) {
                "the host has the files of an earlier deployment; an earlier text may have had the \
                 option already"
            } else {
                "no deployment has reached the host yet"
            };
            (Mark::NotYet, line.to_owned())
        }
        (None, Some(file)) => {
            (Mark::Ok, format!("{host}: {ON_HOST}/{}, put there by the run", file.name))
        }
        (None, None) => (Mark::Ok, format!("{host}: no file in {ON_HOST} sets it")),
    };
    TraceStep { name: "host", mark, lines: vec![line] }
}

pub(super) fn in_container(seen: &TraceInputs<'_>, effective: &EffectiveEntry<'_>) -> TraceStep {
    let answer = seen.said();
    let (mark, line) = if let Some(why) = answer.and_then(Answer::not_running) {
        (Mark::NotYet, format!("nova_compute: {why}"))
    } else if let Some(answer) = answer.filter(|it| it.asked.files.is_empty()) {
        let why = answer.problem().unwrap_or("it was not reported");
        (Mark::Unknown, format!("nova_compute: {why}"))
    } else {
        match (answer, effective.file()) {
            (None, _) if !effective.file_steps.is_deployed => {
                (Mark::NotYet, "its container was not started with it yet".to_owned())
            }
            (_, None) => (Mark::Ok, format!("nova_compute: no file in {IN_CONTAINER} sets it")),
            (Some(answer), Some(file)) => blocked(answer, &file.name, &file.digest),
            (None, Some(file)) => {
                let place = format!("{IN_CONTAINER}/{}", file.name);
                (Mark::Ok, format!("nova_compute: {place}, compared by the run"))
            }
        }
    };
    TraceStep { name: "container", mark, lines: vec![line] }
}

fn blocked(answer: &Answer, name: &str, digest: &str) -> (Mark, String) {
    let found = answer.in_container(name);
    let path = found.map_or_else(|| format!("{IN_CONTAINER}/{name}"), |it| it.1.to_owned());
    let (mut mark, mut line) =
        compared(&format!("nova_compute: {path}"), found.map(|it| it.0), digest);
    if mark == Mark::Ok && answer.asked.newer.contains(&path) {
        mark = Mark::Stale;
        line += ", but was written after nova-compute began, which has not read it";
    }
    (mark, line)
}

/// Compares the digest prefix of a file with the expected one.
fn compared(place: &str, found: Option<&str>, wanted: &str) -> (Mark, String) {
    match found {
        None => (Mark::NotYet, format!("{place} does not exist")),
        Some(found) if found == wanted => (Mark::Ok, format!("{place}, SHA-256 {found}…")),
        Some(found) => (Mark::Stale, format!("{place} has SHA-256 {found}…, and not {wanted}…")),
    }
}

pub(super) fn process(
    seen: &TraceInputs<'_>,
    effective: &EffectiveEntry<'_>,
    named: &OptionNames,
) -> TraceStep {
    let step = |mark, lines| TraceStep { name: "process", mark, lines };
    let answer = match &seen.answer {
        None => {
            let line = "nova-compute itself was not asked: --ask does so, by a run on the host \
                        that only reads";
            return step(Mark::Unknown, vec![line.to_owned()]);
        }
        Some(Err(why)) => return step(Mark::Unknown, vec![why.clone()]),
        Some(Ok(answer)) => answer,
    };
    if answer.not_running().is_some() {
        return step(Mark::NotYet, vec!["nova-compute does not run".to_owned()]);
    }
    let (asked, said) = (&answer.asked, &answer.said);
    let option = &named.names[0].1;
    if !said.is_known() {
        let why =
            answer.problem().unwrap_or("its report does not have the option, or did not come");
        return step(Mark::Unknown, vec![format!("nova-compute did not say: {why}")]);
    }
    let mut lines =
        vec![format!("{option} = {}, says nova-compute, {}", said.shown(), since(asked))];
    let by_files = asked.by_files.clone().unwrap_or_default();
    // A value that the process hides entirely can only be checked by the files that it has read.
    let is_same = by_files == *said || (said.hidden && said.digest.is_none() && by_files.hidden);
    if !is_same && by_files.is_known() {
        lines.push(format!("its files say {} now: it has not read them", by_files.shown()));
        return step(Mark::Stale, lines);
    }
    if !asked.newer.is_empty() {
        let newer = asked.newer.join(", ");
        lines.push(format!("{newer} changed after it began: from which file it has it is unknown"));
        return step(Mark::Stale, lines);
    }
    lines.extend(origin(asked));
    let from = asked.origin.as_ref().filter(|it| it.kind == "user");
    let from = from.and_then(|it| it.detail.rsplit('/').next());
    match effective.file() {
        Some(file) if from != Some(&file.name) => {
            lines.push(format!("that is not {}", file.name));
            step(Mark::Stale, lines)
        }
        _ => step(Mark::Ok, lines),
    }
}

fn since(asked: &LiveQuestion) -> String {
    let began = asked.started.and_then(|it| Timestamp::from_second(it).ok());
    began.map_or_else(|| "that runs".to_owned(), |it| format!("running since {it}"))
}

fn origin(asked: &LiveQuestion) -> Option<String> {
    let origin = asked.origin.as_ref()?;
    Some(match origin.kind.as_str() {
        "user" => format!("from {}, says oslo.config", origin.detail),
        "environment" => format!("from the environment variable {}", origin.detail),
        "command_line" => "from its command line".to_owned(),
        _ => "no file sets it: nova's own default, says oslo.config".to_owned(),
    })
}
