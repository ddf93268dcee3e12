//! Where an option of a host comes from, step by step, as far as the cluster and the host know.
//!
//! A road begins with what humans wrote ([`compute`], [`service`]) and ends in files that a run is to
//! bring; from the run on all roads are one ([`carried`], [`reached`]).

use common::api::ansibleee::AnsibleEe;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use nova_operator::oslo::{Entry, parse};

use crate::cluster::Read;
use crate::diff::Options;
use crate::host::{Host, Progress, Stage};
use crate::named::Named;
use crate::options::{File, shown};
use crate::paint::{Paint, Tone, table};

pub mod answer;
mod carried;
mod compute;
mod ending;
mod next;
mod node_set;
mod reached;
pub mod service;

use answer::Answer;
use service::Given;

/// The folder of nova's files in the pod of a run.
const IN_POD: &str = "/var/lib/openstack/configs/nova";

/// Everything that a trace is made from.
pub struct Seen<'a> {
    /// The host.
    pub host: &'a Host<'a>,
    /// Its stage in which nova's files are brought.
    pub stage: &'a Stage<'a>,
    /// What the files are made from.
    pub road: Road<'a>,
    /// The file of nova-compute's that the option is to come from, where one is named.
    pub file: Option<String>,
    /// The human's own file, where one is named.
    pub snippet: Option<Snippet>,
    /// The manifests that the human generated, where they are named.
    pub generated: Option<Generated>,
    /// The Job of the newest run that brings the files, where that run is kept and has one.
    pub job: Option<Read<Job>>,
    /// The pod of that Job.
    pub pod: Option<Read<Pod>>,
    /// What the host was found to have, or why that is not known; nothing where nobody asked.
    pub answer: Option<Result<Answer, String>>,
}

/// What nova's files of a host are made from.
pub enum Road<'a> {
    /// A `NovaExternalCompute`.
    Compute(&'a Options<'a>),
    /// A service of type nova.
    Service(&'a Given),
}

/// A file that a human keeps outside of the cluster.
#[derive(Clone, Debug)]
pub struct Snippet {
    /// Where.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// The ConfigMaps of manifests that a human keeps outside of the cluster.
#[derive(Clone, Debug)]
pub struct Generated {
    /// Where.
    pub path: String,
    /// All their keys.
    pub files: Vec<File>,
}

/// One step of the way.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Stop {
    /// Its name.
    pub name: &'static str,
    /// How far the option has come there.
    pub mark: Mark,
    /// What is there.
    pub lines: Vec<String>,
}

/// How far an option has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mark {
    /// It is there.
    Ok,
    /// It is not there yet.
    NotYet,
    /// Something else is there, of earlier or of another origin.
    Stale,
    /// Nobody knows.
    Unknown,
}

impl Mark {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::NotYet => "NOT YET",
            Self::Stale => "STALE",
            Self::Unknown => "unknown",
        }
    }

    fn tone(self) -> Tone {
        match self {
            Self::Ok => Tone::Good,
            Self::NotYet | Self::Stale => Tone::Bad,
            Self::Unknown => Tone::Warn,
        }
    }

    /// Whether what was written has not come that far.
    fn is_open(self) -> bool {
        matches!(self, Self::NotYet | Self::Stale)
    }
}

/// A road up to the files that a run is to bring.
struct Way {
    /// The service whose runs bring them.
    service: String,
    /// The steps so far.
    stops: Vec<Stop>,
    /// The files that nova-compute is to read, in its order; nothing where they cannot be read.
    files: Option<Vec<File>>,
    /// Whether the present files are those of the last deployment, or of the one that goes on.
    is_deployed: bool,
}

/// A way, the file of it that decides, and how its service stands.
struct Came<'a> {
    way: &'a Way,
    winner: Option<(&'a File, &'a Entry)>,
    progress: Option<Progress<'a>>,
}

impl<'a> Came<'a> {
    fn file(&self) -> Option<&'a File> {
        self.winner.map(|it| it.0)
    }

    fn run(&self) -> Option<&'a AnsibleEe> {
        self.progress.as_ref().and_then(|it| it.run)
    }
}

impl Seen<'_> {
    fn way(&self, named: &Named) -> Way {
        match &self.road {
            Road::Compute(options) => compute::way(self, options, named),
            Road::Service(given) => service::way(self, given, named),
        }
    }

    fn said(&self) -> Option<&Answer> {
        self.answer.as_ref().and_then(|it| it.as_ref().ok())
    }

    /// Whether the human says that somebody has set the option.
    fn is_expected(&self, named: &Named) -> bool {
        let sets = |it: &Snippet| !named.entries(&parse(&it.text).0).is_empty();
        self.file.is_some() || self.snippet.as_ref().is_some_and(sets)
    }

    /// A step that is to have the option in the file that the human named.
    fn held(&self, mut stop: Stop, files: &[&File], named: &Named) -> Stop {
        let Some(asked) = &self.file else { return stop };
        let sets = |it: &&File| it.name == *asked && !named.entries(&it.entries).is_empty();
        if matches!(stop.mark, Mark::Ok) && !files.iter().copied().any(|it| sets(&it)) {
            stop.mark = Mark::NotYet;
            stop.lines.push(format!("no key {asked} sets it"));
        }
        stop
    }

    /// The same, where no later file may replace it.
    fn outdone(&self, stop: Stop, files: &[File], named: &Named) -> Stop {
        let all: Vec<&File> = files.iter().collect();
        let mut stop = self.held(stop, &all, named);
        let winner = named.winner(files).map(|it| it.0.name.as_str());
        let (Some(asked), Some(winner), Mark::Ok) = (&self.file, winner, stop.mark) else {
            return stop;
        };
        if winner != asked && !named.is_multi {
            stop.mark = Mark::Stale;
            stop.lines.push(format!("{winner} is read after {asked} and sets it again"));
        }
        stop
    }

    /// A step whose values are to be those of the human's own file, where one is named.
    fn compared(&self, mut stop: Stop, found: &[String], named: &Named) -> Stop {
        let Some(snippet) = &self.snippet else { return stop };
        let entries = parse(&snippet.text).0;
        let Some(wanted) = named.entries(&entries).last().copied() else { return stop };
        if stop.mark == Mark::Ok && !found.contains(&wanted.value) {
            stop.mark = if found.is_empty() { Mark::NotYet } else { Mark::Stale };
            stop.lines.push(format!("nothing there has what {} says", snippet.path));
        }
        stop
    }
}

/// What is told of an option.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Told {
    /// The whole text.
    pub text: String,
    /// Whether what was written is in force, as far as anybody was asked.
    pub is_in_force: bool,
}

/// Tells the way of an option.
pub fn told(seen: &Seen<'_>, asked: (&str, &str), named: &Named, paint: Paint) -> Told {
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
    Told { text: out, is_in_force: ending::is_in_force(&stops, seen, &came) }
}

fn came<'a>(seen: &'a Seen<'a>, way: &'a Way, named: &Named) -> Came<'a> {
    let winner = named.winner(way.files.as_deref().unwrap_or_default());
    let progress = seen.host.progress(seen.stage);
    Came { way, winner, progress: progress.into_iter().find(|it| it.service == way.service) }
}

/// The steps from what was written to the process.
fn stops(seen: &Seen<'_>, came: &Came<'_>, named: &Named) -> Vec<Stop> {
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

fn in_snippet(snippet: &Snippet, named: &Named) -> Stop {
    let lines = places(&snippet.path, &parse(&snippet.text).0, named);
    if lines.is_empty() {
        let lines = vec![format!("{} does not set it", snippet.path)];
        return Stop { name: "snippet", mark: Mark::NotYet, lines };
    }
    Stop { name: "snippet", mark: Mark::Ok, lines }
}

/// Where a snippet began is no business of the cluster's.
fn no_snippet() -> Stop {
    let line = "the file that it began in is unknown: --snippet names it";
    Stop { name: "snippet", mark: Mark::Unknown, lines: vec![line.to_owned()] }
}

/// Every line of a text that sets the option.
fn places(place: &str, entries: &[Entry], named: &Named) -> Vec<String> {
    let found = named.entries(entries);
    found.into_iter().map(|it| format!("{place}, line {}: {}", it.line, shown(it))).collect()
}

/// Which of the files set the option, and which of them decides.
fn winners(files: &[File], named: &Named) -> Vec<String> {
    let winner = named.winner(files);
    let mut lines = Vec::new();
    for file in files {
        for entry in named.entries(&file.entries) {
            let is_winner = winner.is_some_and(|(it, last)| it.name == file.name && last == entry);
            let why = match (named.is_multi, is_winner) {
                (true, _) => "  <- counts: every value of this option does",
                (false, true) => "  <- wins: the last one, by name of file, that sets it",
                (false, false) => "",
            };
            lines.push(format!("{}, line {}: {}{why}", file.name, entry.line, shown(entry)));
        }
    }
    if winner.is_none() && !files.is_empty() {
        let all: Vec<&str> = files.iter().map(|it| it.name.as_str()).collect();
        lines.push(format!("none of {} sets it", all.join(", ")));
    }
    lines
}

#[cfg(test)]
mod tests;
