//! Compiles the kubectl plugin while the demo waits for its hosts.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::{paths, sh};

/// A compilation in progress.
pub(super) struct Plugin(Child);

impl Plugin {
    /// Starts it, with the features of the tests' and images' builds.
    pub(super) fn begin() -> Result<Self> {
        let mut cargo = Command::new("nice");
        sh::forget_package(&mut cargo);
        // The deployment of the hosts has priority.
        cargo.args(["-n", "19", "cargo", "build", "--quiet", "--locked", "--workspace", "--bins"]);
        let target = std::path::absolute(paths::compiled())?;
        cargo.current_dir(paths::repo()).env("CARGO_TARGET_DIR", target);
        let child = cargo.stdin(Stdio::null()).spawn().context("cannot start cargo")?;
        Ok(Self(child))
    }

    /// Waits for its end, and returns the directory with the plugin.
    pub(super) fn folder(mut self) -> Result<PathBuf> {
        let status = sh::step("compile the plugin kubectl-edpm", || Ok(self.0.wait()?))?;
        let folder = std::path::absolute(paths::compiled())?.join("debug");
        let is_there = folder.join("kubectl-edpm").is_file();
        ensure!(status.success() && is_there, "cargo built no kubectl-edpm: {status}");
        Ok(folder)
    }
}

impl Drop for Plugin {
    /// Ends the compiler when the demo fails.
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}
