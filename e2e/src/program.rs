//! Runs programs and captures their output.

use anyhow::{Context as _, Result, bail};
use tokio::process::Command;

use crate::cluster;

/// Runs a program and returns its standard output; the error contains all its output.
pub async fn run(program: &str, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(program);
    cluster::prepare(&mut command);
    let output = command
        .args(arguments)
        .kill_on_drop(true)
        .output()
        .await
        .with_context(|| format!("cannot start {program}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!("{program} {} ended with {}: {text}{error}", arguments.join(" "), output.status);
    }
    Ok(text)
}
