//! A real Kubernetes on this machine, from pinned Go modules, with nothing that leaves the machine.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};
use clap::Subcommand;

use crate::paths;

/// The address of the node, the API server and the registry on the lab's bridge.
pub(crate) const ADDRESS: &str = "192.168.120.1";
/// The registry as image names spell it.
pub(crate) const REGISTRY: &str = "192.168.120.1:5000";

/// What to do with the lab.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Start the lab, or whatever of it is not running.
    Up,
    /// Stop the lab and leave nothing of it on the machine.
    Down,
    /// Print each part with its health; fails if one is down.
    Status,
}

/// How to reach the running lab.
pub(crate) struct Env {
    /// The administrator's kubeconfig.
    pub(crate) kubeconfig: PathBuf,
    /// The folder of the lab's programs (kubectl, helm, ctr, …).
    pub(crate) bin: PathBuf,
    /// The registry as image names spell it.
    pub(crate) registry: &'static str,
    /// The API server's audit log; rotated ones lie beside it.
    pub(crate) audit_log: PathBuf,
    /// etcd's client endpoint.
    pub(crate) etcd: &'static str,
}

impl Env {
    /// One of the lab's programs, with its kubeconfig in the environment.
    pub(crate) fn tool(&self, name: &str) -> Command {
        let mut command = Command::new(self.bin.join(name));
        command.env("KUBECONFIG", &self.kubeconfig);
        command
    }

    /// `kubectl` as the lab's administrator.
    pub(crate) fn kubectl(&self) -> Command {
        self.tool("kubectl")
    }
}

/// Runs one of the lab's commands.
pub(crate) fn main(args: &Args) -> Result<()> {
    match args.action {
        Action::Up => up(),
        Action::Down => bail!("under construction"),
        Action::Status => bail!("under construction"),
    }
}

/// Starts the lab, or whatever of it is not running, and waits until it is ready.
pub(crate) fn up() -> Result<()> {
    bail!("under construction")
}

/// How to reach the lab, whether it runs or not.
pub(crate) fn env() -> Env {
    let state = paths::state();
    Env {
        kubeconfig: state.join("kubeconfig/admin"),
        bin: state.join("bin"),
        registry: REGISTRY,
        audit_log: state.join("audit/audit.log"),
        etcd: "http://127.0.0.1:2379",
    }
}
