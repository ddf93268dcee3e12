//! The inputs of a trace, and checks that the steps share.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use nova_config::oslo::parse;

use super::answer::Answer;
use super::trace_step::{Mark, TraceStep};
use crate::cluster::Read;
use crate::config_files::File;
use crate::host::Host;
use crate::option_names::OptionNames;
use crate::option_sources::ConfigPath;
use crate::stage::Stage;

/// The inputs of a trace.
pub struct TraceInputs<'a> {
    /// The host.
    pub host: &'a Host<'a>,
    /// The stage that deploys nova's files.
    pub stage: &'a Stage<'a>,
    /// The source of the files.
    pub road: ConfigPath<'a>,
    /// The file of nova-compute that the user expects the option in, if named.
    pub file: Option<String>,
    /// The user's own file, if named.
    pub snippet: Option<Snippet>,
    /// The user's generated manifests, if named.
    pub generated: Option<Generated>,
    /// The Job of the newest run that copies the files, if that run is kept and has one.
    pub job: Read<Job>,
    /// The pod of that Job.
    pub pod: Read<Pod>,
    /// The answer of the host, or why there is none; `None` without `--ask`.
    pub answer: Option<Result<Answer, String>>,
}

/// A file that the user keeps outside the cluster.
#[derive(Clone, Debug)]
pub struct Snippet {
    /// Its path.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// The ConfigMaps in manifests that the user keeps outside the cluster.
#[derive(Clone, Debug)]
pub struct Generated {
    /// Their path.
    pub path: String,
    /// All their keys.
    pub files: Vec<File>,
}

impl TraceInputs<'_> {
    /// Returns the answer of the host, if it was queried and has answered.
    pub(super) fn said(&self) -> Option<&Answer> {
        self.answer.as_ref().and_then(|it| it.as_ref().ok())
    }

    /// Whether the user's arguments imply that the option is set: a file is named, or the snippet
    /// sets it.
    pub(super) fn is_expected(&self, named: &OptionNames) -> bool {
        let sets = |it: &Snippet| !named.entries(&parse(&it.text).0).is_empty();
        self.file.is_some() || self.snippet.as_ref().is_some_and(sets)
    }

    /// Marks a step `NotYet` if the file that the user named does not set the option.
    pub(super) fn blocked(
        &self,
        mut step: TraceStep,
        files: &[&File],
        named: &OptionNames,
    ) -> TraceStep {
        let Some(asked) = &self.file else { return step };
        let sets = |it: &&File| it.name == *asked && named.is_in(it);
        if step.mark == Mark::Ok && !files.iter().any(sets) {
            step.mark = Mark::NotYet;
            step.lines.push(format!("no key {asked} sets it"));
        }
        step
    }

    /// Also marks a step `Stale` if a later file overrides the option.
    pub(super) fn outdone(
        &self,
        step: TraceStep,
        files: &[File],
        named: &OptionNames,
    ) -> TraceStep {
        let all: Vec<&File> = files.iter().collect();
        let mut step = self.blocked(step, &all, named);
        let winner = named.winner(files).map(|it| it.0.name.as_str());
        let (Some(asked), Some(winner), Mark::Ok) = (&self.file, winner, step.mark) else {
            return step;
        };
        if winner != asked && !named.is_multi {
            step.mark = Mark::Stale;
            step.lines.push(format!("{winner} is read after {asked} and sets it again"));
        }
        step
    }

    /// Marks a step `NotYet` or `Stale` if it lacks the value of the user's snippet.
    pub(super) fn compared(
        &self,
        mut step: TraceStep,
        found: &[String],
        named: &OptionNames,
    ) -> TraceStep {
        let Some(snippet) = &self.snippet else { return step };
        let entries = parse(&snippet.text).0;
        let Some(wanted) = named.entries(&entries).last().copied() else { return step };
        if step.mark == Mark::Ok && !found.contains(&wanted.value) {
            step.mark = if found.is_empty() { Mark::NotYet } else { Mark::Stale };
            step.lines.push(format!("nothing there has what {} says", snippet.path));
        }
        step
    }
}
