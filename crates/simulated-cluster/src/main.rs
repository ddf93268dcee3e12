//! A simulated cluster for interactive use: `cargo xtask sim up` starts it and `cargo xtask sim
//! down` ends it.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Parser;
use simulated_cluster::{Options, Simulation};
use tokio::signal::unix::{SignalKind, signal};

/// Runs a simulated cluster until it is stopped; every host answers, and every play ends well.
#[derive(Debug, Parser)]
struct Args {
    /// Where the administrator's kubeconfig is written once each operator leads.
    #[arg(long, value_name = "FILE")]
    kubeconfig: PathBuf,
    /// A value of the chart, as Helm's `--set` takes it; may be given more than once.
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let Args { kubeconfig, set } = Args::parse();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let simulation = Simulation::start(&Options { values: set, ..Options::default() }).await?;
    simulation.player.answer_everywhere();
    // Renamed into place, so that a process waiting for the file never sees a partial one.
    let fresh = kubeconfig.with_extension("new");
    std::fs::copy(&simulation.kubeconfig, &fresh)
        .and_then(|_| std::fs::rename(&fresh, &kubeconfig))
        .with_context(|| format!("write {}", kubeconfig.display()))?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
