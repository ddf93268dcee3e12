//! A simulated cluster for interactive use and for the bench: `cargo xtask sim up` starts it and
//! `cargo xtask sim down` ends it.

mod control;

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Parser;
use simulated_cluster::{Audit, Options, Simulation};
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
    /// The policy of the API server's audit log.
    #[arg(long, value_name = "FILE", requires = "audit_log")]
    audit_policy: Option<PathBuf>,
    /// Where the API server writes its audit log.
    #[arg(long, value_name = "FILE", requires = "audit_policy")]
    audit_log: Option<PathBuf>,
    /// Let each run end as soon as its pod is bound; only where nova-compute starts, what it mounts is
    /// read.
    #[arg(long)]
    at_once: bool,
    /// A socket on which it takes orders, which is there before the kubeconfig.
    #[arg(long, value_name = "FILE")]
    control: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let Args { kubeconfig, set, audit_policy, audit_log, at_once, control } = Args::parse();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let audit = audit_policy.zip(audit_log).map(|(policy, log)| Audit { policy, log });
    let options = Options { values: set, audit, ..Options::default() };
    let simulation = Simulation::start(&options).await?;
    simulation.player.answer_everywhere();
    if at_once {
        simulation.player.end_at_once();
    }
    let control = control.as_deref().map(control::listen).transpose()?;
    // Renamed into place, so that a process waiting for the file never sees a partial one.
    let fresh = kubeconfig.with_extension("new");
    std::fs::copy(&simulation.kubeconfig, &fresh)
        .and_then(|_| std::fs::rename(&fresh, &kubeconfig))
        .with_context(|| format!("write {}", kubeconfig.display()))?;
    tokio::select! {
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
        ended = control::serve(&simulation, control.as_ref()) => ended,
    }
}
