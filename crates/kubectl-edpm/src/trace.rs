//! Traces an option of a host step by step, as far as the cluster and the host know.
//!
//! The first steps depend on the source (`compute`, `service`) and end at the files that a run
//! copies; the steps from the run on are common to all sources (`carried`, `reached`).

use nova_config::oslo::parse;

use crate::color::{Paint, Tone, table};
use crate::option_names::OptionNames;
use crate::option_sources::ConfigPath;

pub mod answer;
mod compute;
mod ending;
mod file_steps;
mod host_steps;
pub mod inputs;
mod next;
mod node_set;
mod occurrences;
mod pod_steps;
mod service;
mod trace_step;

use file_steps::{EffectiveEntry, FileSteps};
use inputs::{Snippet, TraceInputs};
use occurrences::places;
use trace_step::{Mark, TraceStep};

impl TraceInputs<'_> {
    fn file_steps(&self, named: &OptionNames) -> FileSteps {
        match &self.road {
            ConfigPath::Compute(options) => compute::file_steps(self, options, named),
            ConfigPath::Service(given) => service::file_steps(self, given, named),
        }
    }
}

/// The result of a trace.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TraceText {
    /// The full text.
    pub text: String,
    /// Whether the option is in force, as far as the trace has checked.
    pub is_in_force: bool,
}

/// Renders the trace of an option.
pub fn render(
    seen: &TraceInputs<'_>,
    asked: (&str, &str),
    named: &OptionNames,
    paint: Paint,
) -> TraceText {
    let file_steps = seen.file_steps(named);
    let effective = effective(seen, &file_steps, named);
    let steps = steps(seen, &effective, named);
    let (section, key) = asked;
    let file = seen.file.as_deref().unwrap_or("nova.conf");
    let mut out =
        format!("{file} [{section}] {key} on {}\n", paint.text(Tone::Bold, seen.host.name));
    out += &named.note.as_ref().map(|it| format!("note: {it}\n")).unwrap_or_default();
    let mut lines = Vec::new();
    for (idx, step) in steps.iter().enumerate() {
        let mut begin = vec![
            format!("{}. {}", idx + 1, step.name),
            paint.text(step.mark.tone(), step.mark.word()),
        ];
        for line in &step.lines {
            begin.push(line.clone());
            lines.push(std::mem::replace(&mut begin, vec![String::new(), String::new()]));
        }
    }
    out += &table(&lines);
    out += &ending::text(&steps, seen, &effective);
    TraceText { text: out, is_in_force: ending::is_in_force(&steps, seen, &effective) }
}

fn effective<'a>(
    seen: &'a TraceInputs<'a>,
    file_steps: &'a FileSteps,
    named: &OptionNames,
) -> EffectiveEntry<'a> {
    let winner = named.winner(file_steps.files.as_deref().unwrap_or_default());
    EffectiveEntry {
        file_steps,
        winner,
        progress: seen.host.service(seen.stage, &file_steps.service),
    }
}

/// Returns the steps from the user's file to the process.
fn steps(
    seen: &TraceInputs<'_>,
    effective: &EffectiveEntry<'_>,
    named: &OptionNames,
) -> Vec<TraceStep> {
    let mut steps = Vec::new();
    steps.extend(match &seen.snippet {
        Some(snippet) => Some(in_snippet(snippet, named)),
        None => seen.host.node.node_set().map(|_| no_snippet()),
    });
    steps.extend(effective.file_steps.steps.iter().cloned());
    steps.extend([
        pod_steps::run(seen, effective),
        pod_steps::job(seen, effective),
        pod_steps::in_pod(effective),
        host_steps::on_host(seen, effective),
        host_steps::in_container(seen, effective),
        host_steps::process(seen, effective, named),
    ]);
    steps
}

fn in_snippet(snippet: &Snippet, named: &OptionNames) -> TraceStep {
    let lines = places(&snippet.path, &parse(&snippet.text).0, named);
    if lines.is_empty() {
        let lines = vec![format!("{} does not set it", snippet.path)];
        return TraceStep { name: "snippet", mark: Mark::NotYet, lines };
    }
    TraceStep { name: "snippet", mark: Mark::Ok, lines }
}

/// The cluster does not record where a snippet began.
fn no_snippet() -> TraceStep {
    let line = "the file that it began in is unknown: --snippet names it";
    TraceStep { name: "snippet", mark: Mark::Unknown, lines: vec![line.to_owned()] }
}

#[cfg(test)]
mod tests;
