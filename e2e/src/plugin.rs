//! `kubectl edpm`, as a human runs it: found by kubectl in PATH.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use tokio::process::{Child, Command};

/// What a command said, and how it ended.
#[derive(Debug)]
pub struct Answer {
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
    /// The exit code.
    pub code: Option<i32>,
}

/// Runs `kubectl edpm` in the demo's namespace to its end, whatever that is.
pub async fn edpm(arguments: &[&str]) -> Result<Answer> {
    let output = command(arguments)?.output().await.context("cannot start kubectl")?;
    Ok(Answer {
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
        code: output.status.code(),
    })
}

/// Starts `kubectl edpm` with its output in a pipe.
pub fn started(arguments: &[&str]) -> Result<Child> {
    command(arguments)?.stdout(Stdio::piped()).spawn().context("cannot start kubectl")
}

fn command(arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new("kubectl");
    command.args(["edpm", "-n", "openstack"]).args(arguments).env("PATH", path()?);
    command.kill_on_drop(true).stdin(Stdio::null());
    Ok(command)
}

/// PATH with the folder of the plugin before all others.
fn path() -> Result<OsString> {
    let folder = folder()?;
    let is_built = folder.join("kubectl-edpm").is_file();
    ensure!(is_built, "{} has no plugin: cargo build -p kubectl-edpm", folder.display());
    let others = std::env::var_os("PATH").unwrap_or_default();
    Ok(std::env::join_paths(std::iter::once(folder).chain(std::env::split_paths(&others)))?)
}

/// Where cargo puts programs: above the folder `deps` of the tests.
fn folder() -> Result<PathBuf> {
    let test = std::env::current_exe()?;
    let folder = test.parent().and_then(|it| it.parent());
    Ok(folder.context("a test is in a folder of a folder")?.to_owned())
}
