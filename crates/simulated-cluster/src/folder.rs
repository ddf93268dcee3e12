//! The folder of a simulated cluster, which is removed with the process that created it.

use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};

/// Script that waits for the end of its input, then removes the folder. Processes being killed may
/// still write for a moment, so it retries for ten seconds.
const CLEANER: &str = "cat > /dev/null; for n in $(seq 100); do rm -rf \"$0\" 2> /dev/null && exit; \
                       sleep 0.1; done";

/// A folder in the temporary directory.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Holds the other end of the cleaner's input: it closes when this process ends, for whatever
    /// reason.
    _cleaner: Child,
}

impl Folder {
    /// Creates an empty folder and starts the process that removes it.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("simulated-cluster-{name}"));
        if path.exists() {
            // Left by an earlier process with the same process id.
            std::fs::remove_dir_all(&path).with_context(|| format!("remove {}", path.display()))?;
        }
        // It will contain tokens.
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.with_context(|| format!("create {}", path.display()))?;
        let mut cleaner = Command::new("sh");
        // In its own process group, so that Ctrl-C does not end it before its work is done.
        cleaner.args(["-c", CLEANER]).arg(&path).process_group(0);
        cleaner.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let cleaner = cleaner.spawn().context("start the process that removes the folder")?;
        Ok(Self { path, _cleaner: cleaner })
    }

    /// Returns its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of a file or folder in it.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}
