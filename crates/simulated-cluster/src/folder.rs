//! The folder of a simulated cluster, which goes with the process that made it.

use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};

/// Waits for the end of its input, then removes the folder: processes that are being killed may still
/// write for a moment, so it tries again for ten seconds.
const CLEANER: &str = "cat > /dev/null; for n in $(seq 100); do rm -rf \"$0\" 2> /dev/null && exit; \
                       sleep 0.1; done";

/// A folder below the temporary one.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Holds the other end of the cleaner's input: it closes when this process ends, however that is.
    _cleaner: Child,
}

impl Folder {
    /// Makes an empty folder and starts what removes it.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("simulated-cluster-{name}"));
        if path.exists() {
            // Of a process that had our number before.
            std::fs::remove_dir_all(&path).with_context(|| format!("remove {}", path.display()))?;
        }
        // It has tokens.
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.with_context(|| format!("create {}", path.display()))?;
        let mut cleaner = Command::new("sh");
        // What ends a whole group of processes, as Ctrl-C does, leaves it to its work.
        cleaner.args(["-c", CLEANER]).arg(&path).process_group(0);
        cleaner.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let cleaner = cleaner.spawn().context("start the process that removes the folder")?;
        Ok(Self { path, _cleaner: cleaner })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A file or folder in it.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}
