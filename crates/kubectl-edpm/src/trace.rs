//! Traces an option of a host step by step, as far as the cluster and the host know.
//!
//! The first steps depend on the source (`compute`, `service`) and end at the files that a run
//! copies; the steps from the run on are common to all sources (`carried`, `reached`).

use nova_config::oslo::parse;

use crate::color::{Paint, Tone, table};
use crate::option_names::OptionNames;
use crate::option_sources::ConfigPath;

pub mod answer;
mod carried;
mod compute;
mod ending;
mod next;
mod node_set;
mod occurrences;
mod reached;
pub mod seen;
mod service;
mod stop;
mod way;

use occurrences::places;
use seen::{Seen, Snippet};
use stop::{Mark, Stop};
use way::{Came, Way};

impl Seen<'_> {
    fn way(&self, named: &OptionNames) -> Way {
        match &self.road {
            ConfigPath::Compute(options) => compute::way(self, options, named),
            ConfigPath::Service(given) => service::way(self, given, named),
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
pub fn message(
    seen: &Seen<'_>,
    asked: (&str, &str),
    named: &OptionNames,
    paint: Paint,
) -> TraceText {
    let way = seen.way(named);
    let came = came(seen, &way, named);
    let stops = stops(seen, &came, named);
    let (section, key) = asked;
    let file = seen.file.as_deref().unwrap_or("nova.conf");
    let mut out =
        format!("{file} [{section}] {key} on {}\n", paint.text(Tone::Bold, &seen.host.name));
    out += &named.note.as_ref().map(|it| format!("note: {it}\n")).unwrap_or_default();
    let mut lines = Vec::new();
    for (idx, stop) in stops.iter().enumerate() {
        let mut begin = vec![
            format!("{}. {}", idx + 1, stop.name),
            paint.text(stop.mark.tone(), stop.mark.word()),
        ];
        for line in &stop.lines {
            begin.push(line.clone());
            lines.push(std::mem::replace(&mut begin, vec![String::new(), String::new()]));
        }
    }
    out += &table(&lines);
    out += &ending::text(&stops, seen, &came);
    TraceText { text: out, is_in_force: ending::is_in_force(&stops, seen, &came) }
}

fn came<'a>(seen: &'a Seen<'a>, way: &'a Way, named: &OptionNames) -> Came<'a> {
    let winner = named.winner(way.files.as_deref().unwrap_or_default());
    let progress = seen.host.progress(seen.stage);
    Came { way, winner, progress: progress.into_iter().find(|it| it.service == way.service) }
}

/// Returns the steps from the user's file to the process.
fn stops(seen: &Seen<'_>, came: &Came<'_>, named: &OptionNames) -> Vec<Stop> {
    let mut stops = Vec::new();
    stops.extend(match &seen.snippet {
        Some(snippet) => Some(in_snippet(snippet, named)),
        None => seen.host.member.as_ref().map(|_| no_snippet()),
    });
    stops.extend(came.way.stops.iter().cloned());
    stops.extend([
        carried::run(seen, came),
        carried::job(seen, came),
        carried::in_pod(came),
        reached::on_host(seen, came),
        reached::in_container(seen, came),
        reached::process(seen, came, named),
    ]);
    stops
}

fn in_snippet(snippet: &Snippet, named: &OptionNames) -> Stop {
    let lines = places(&snippet.path, &parse(&snippet.text).0, named);
    if lines.is_empty() {
        let lines = vec![format!("{} does not set it", snippet.path)];
        return Stop { name: "snippet", mark: Mark::NotYet, lines };
    }
    Stop { name: "snippet", mark: Mark::Ok, lines }
}

/// The cluster does not record where a snippet began.
fn no_snippet() -> Stop {
    let line = "the file that it began in is unknown: --snippet names it";
    Stop { name: "snippet", mark: Mark::Unknown, lines: vec![line.to_owned()] }
}

#[cfg(test)]
mod tests;
