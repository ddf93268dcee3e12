//! The first part of a trace, up to the files that a run copies.

use api::ansibleee::AnsibleEe;
use nova_config::oslo::Entry;

use super::trace_step::TraceStep;
use crate::config_files::File;
use crate::host::Progress;

/// The steps up to the files that a run copies.
pub(super) struct FileSteps {
    /// The service whose runs copy the files.
    pub(super) service: String,
    /// The steps so far.
    pub(super) steps: Vec<TraceStep>,
    /// The files that nova-compute is to read, in its order; `None` when they cannot be read.
    pub(super) files: Option<Vec<File>>,
    /// Whether the current files are those of the last deployment, or of the one in progress.
    pub(super) is_deployed: bool,
}

/// The steps, the file and entry that take effect, and the progress of the service.
pub(super) struct EffectiveEntry<'a> {
    pub(super) file_steps: &'a FileSteps,
    pub(super) winner: Option<(&'a File, &'a Entry)>,
    pub(super) progress: Option<Progress<'a>>,
}

impl<'a> EffectiveEntry<'a> {
    pub(super) fn file(&self) -> Option<&'a File> {
        self.winner.map(|it| it.0)
    }

    pub(super) fn run(&self) -> Option<&'a AnsibleEe> {
        self.progress.as_ref().and_then(|it| it.run)
    }
}
