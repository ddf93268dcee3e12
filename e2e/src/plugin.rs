//! Runs `kubectl edpm` as a user does: kubectl finds the plugin in PATH.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use tokio::process::{Child, Command};

use crate::cluster;

/// The namespace of the demo.
pub const DEMO: &str = "openstack";

/// The output and exit code of a command.
#[derive(Debug)]
pub struct Answer {
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
    /// The exit code.
    pub code: Option<i32>,
}

/// Runs `kubectl edpm` in the demo's namespace, whatever its exit code.
pub async fn edpm(arguments: &[&str]) -> Result<Answer> {
    edpm_in(DEMO, arguments).await
}

/// Runs `kubectl edpm` in another namespace, whatever its exit code.
pub async fn edpm_in(namespace: &str, arguments: &[&str]) -> Result<Answer> {
    let output = command(namespace, arguments)?.output().await.context("cannot start kubectl")?;
    Ok(Answer {
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
        code: output.status.code(),
    })
}

/// Returns the output of `kubectl edpm`, which must succeed.
pub async fn output_in(namespace: &str, arguments: &[&str]) -> Result<String> {
    let answer = edpm_in(namespace, arguments).await?;
    ensure!(answer.code == Some(0), "{arguments:?}: {answer:?}");
    Ok(answer.out)
}

/// Asserts that a text has all of these words.
pub fn assert_says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word} is not in: {text}");
    }
}

/// Starts `kubectl edpm` in a namespace with its output in a pipe.
pub fn started_in(namespace: &str, arguments: &[&str]) -> Result<Child> {
    let mut command = command(namespace, arguments)?;
    command.stdout(Stdio::piped()).spawn().context("cannot start kubectl")
}

fn command(namespace: &str, arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new("kubectl");
    cluster::prepare(&mut command);
    let path = path(&command)?;
    command.args(["edpm", "-n", namespace]).args(arguments).env("PATH", path);
    command.kill_on_drop(true).stdin(Stdio::null());
    Ok(command)
}

/// Returns the command's PATH with the directory of the plugin first.
fn path(command: &Command) -> Result<OsString> {
    let folder = folder()?;
    let is_built = folder.join("kubectl-edpm").is_file();
    ensure!(is_built, "{} has no plugin: cargo build -p kubectl-edpm", folder.display());
    let mut given = command.as_std().get_envs().filter(|(name, _)| *name == "PATH");
    let given = given.next().and_then(|(_, path)| path.map(OsString::from));
    let others = given.or_else(|| std::env::var_os("PATH")).unwrap_or_default();
    Ok(std::env::join_paths(std::iter::once(folder).chain(std::env::split_paths(&others)))?)
}

/// Returns cargo's directory for programs, the parent of the tests' directory `deps`.
fn folder() -> Result<PathBuf> {
    let test = std::env::current_exe()?;
    let folder = test.parent().and_then(|it| it.parent());
    Ok(folder.context("a test is in a folder of a folder")?.to_owned())
}
