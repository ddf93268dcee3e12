//! Everything that a trace is made from, and what of it decides how far a step has come.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use nova_config::oslo::parse;

use super::answer::Answer;
use super::stop::{Mark, Stop};
use crate::cluster::Read;
use crate::host::Host;
use crate::named::Named;
use crate::option_sources::Road;
use crate::options::File;
use crate::stage::Stage;

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

impl Seen<'_> {
    /// What the host was found to have, where it was asked and has told.
    pub(super) fn said(&self) -> Option<&Answer> {
        self.answer.as_ref().and_then(|it| it.as_ref().ok())
    }

    /// Whether the human says that somebody has set the option.
    pub(super) fn is_expected(&self, named: &Named) -> bool {
        let sets = |it: &Snippet| !named.entries(&parse(&it.text).0).is_empty();
        self.file.is_some() || self.snippet.as_ref().is_some_and(sets)
    }

    /// A step that is to have the option in the file that the human named.
    pub(super) fn blocked(&self, mut stop: Stop, files: &[&File], named: &Named) -> Stop {
        let Some(asked) = &self.file else { return stop };
        let sets = |it: &&File| it.name == *asked && !named.entries(&it.entries).is_empty();
        if matches!(stop.mark, Mark::Ok) && !files.iter().copied().any(|it| sets(&it)) {
            stop.mark = Mark::NotYet;
            stop.lines.push(format!("no key {asked} sets it"));
        }
        stop
    }

    /// The same, where no later file may replace it.
    pub(super) fn outdone(&self, stop: Stop, files: &[File], named: &Named) -> Stop {
        let all: Vec<&File> = files.iter().collect();
        let mut stop = self.blocked(stop, &all, named);
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
    pub(super) fn compared(&self, mut stop: Stop, found: &[String], named: &Named) -> Stop {
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
