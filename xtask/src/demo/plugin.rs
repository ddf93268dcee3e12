//! The kubectl plugin, which is compiled while the demo waits for its hosts.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::{paths, sh};

/// A compilation that goes on.
pub(super) struct Plugin(Child);

impl Plugin {
    /// Begins it, with the features of what the tests and the operators' images compile.
    pub(super) fn begin() -> Result<Self> {
        let mut cargo = Command::new("nice");
        // What the hosts deploy meanwhile comes first.
        cargo.args(["-n", "19", "cargo", "build", "--quiet", "--locked", "--workspace", "--bins"]);
        let target = std::path::absolute(paths::compiled())?;
        cargo.current_dir(paths::repo()).env("CARGO_TARGET_DIR", target);
        let child = cargo.stdin(Stdio::null()).spawn().context("cannot start cargo")?;
        Ok(Self(child))
    }

    /// Waits for its end; the folder with the plugin.
    pub(super) fn folder(mut self) -> Result<PathBuf> {
        let status = sh::step("compile the plugin kubectl-edpm", || Ok(self.0.wait()?))?;
        let folder = std::path::absolute(paths::compiled())?.join("debug");
        let is_there = folder.join("kubectl-edpm").is_file();
        ensure!(status.success() && is_there, "cargo built no kubectl-edpm: {status}");
        Ok(folder)
    }
}

impl Drop for Plugin {
    /// A demo that fails leaves no compiler behind.
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}
