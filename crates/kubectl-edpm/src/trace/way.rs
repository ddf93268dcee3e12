//! The way up to the files that a run is to bring, the file of it that decides, and its service.

use api::ansibleee::AnsibleEe;
use nova_config::oslo::Entry;

use super::stop::Stop;
use crate::host::Progress;
use crate::options::File;

/// A road up to the files that a run is to bring.
pub(super) struct Way {
    /// The service whose runs bring them.
    pub(super) service: String,
    /// The steps so far.
    pub(super) stops: Vec<Stop>,
    /// The files that nova-compute is to read, in its order; nothing where they cannot be read.
    pub(super) files: Option<Vec<File>>,
    /// Whether the present files are those of the last deployment, or of the one that goes on.
    pub(super) is_deployed: bool,
}

/// A way, the file of it that decides, and how its service stands.
pub(super) struct Came<'a> {
    pub(super) way: &'a Way,
    pub(super) winner: Option<(&'a File, &'a Entry)>,
    pub(super) progress: Option<Progress<'a>>,
}

impl<'a> Came<'a> {
    pub(super) fn file(&self) -> Option<&'a File> {
        self.winner.map(|it| it.0)
    }

    pub(super) fn run(&self) -> Option<&'a AnsibleEe> {
        self.progress.as_ref().and_then(|it| it.run)
    }
}
