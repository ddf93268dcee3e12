//! `cargo xtask sim`: a simulated cluster for manual use, which does not disturb anything else; the
//! bench measures in one of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use clap::Subcommand;

use crate::lab::process::Process;
use crate::{lab, paths, sh};

/// The timeout for its start on a busy machine; it takes 8 s on an idle one.
const UP_WITHIN: Duration = Duration::from_mins(15);
/// The program that runs it.
pub(crate) const PROGRAM: &str = "simulated-cluster";
/// The time that its processes have to end.
const GRACE: Duration = Duration::from_secs(10);

/// What to do with the simulated cluster.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Start it anew: a real API server, the operators as processes, and hosts that all answer.
    Up,
    /// End it; nothing of it is left.
    Down,
}

/// A simulated cluster that runs in the background.
pub(crate) struct Cluster {
    /// Its process, whose children are the operators.
    pub(crate) process: Process,
    /// The administrator's kubeconfig.
    pub(crate) kubeconfig: PathBuf,
    /// The directory of kubectl.
    pub(crate) bin: PathBuf,
}

/// Runs one of the commands.
pub(crate) fn main(args: &Args) -> Result<()> {
    match args.action {
        Action::Up => up(),
        Action::Down => stop(&folder()),
    }
}

fn folder() -> PathBuf {
    paths::target().join("sim")
}

fn up() -> Result<()> {
    let Cluster { kubeconfig, bin, .. } = start(&compile()?, &folder(), |_| {})?;
    println!(
        "\nTalk to it:\n  export KUBECONFIG={} PATH={}:$PATH\nStop it:\n  cargo xtask sim down",
        kubeconfig.display(),
        bin.display()
    );
    Ok(())
}

/// Compiles the program that runs a simulated cluster, and beside it the operators that it starts.
pub(crate) fn compile() -> Result<PathBuf> {
    sh::step("build the operators and the simulated cluster", || {
        let mut build = sh::cargo();
        // The whole workspace, as in the tests; other packages would have other features.
        build.args(["build", "--workspace", "--all-targets", "--quiet"]);
        sh::run(build.current_dir(paths::repo())).map(drop)
    })?;
    Ok(std::path::absolute(paths::compiled().join("debug").join(PROGRAM))?)
}

/// Starts a simulated cluster in place of the one that has this directory; its operators are those
/// beside the program.
pub(crate) fn start(
    program: &Path,
    folder: &Path,
    configure: impl FnOnce(&mut Command),
) -> Result<Cluster> {
    let bin = lab::simulation_programs()?;
    stop(folder)?;
    fs::create_dir_all(folder)?;
    let (kubeconfig, log) = (folder.join("kubeconfig"), folder.join("log"));
    let mut command = Command::new(program);
    command.arg("--kubeconfig").arg(&kubeconfig).env("EDPM_SIM_BIN", &bin);
    configure(&mut command);
    sh::step("start the simulated cluster", || {
        let process = Process::start(&command, "sim", &folder.join("process.json"), &log)?;
        sh::wait_for("the simulated cluster", UP_WITHIN, || {
            if kubeconfig.is_file() {
                return Ok(Ok(()));
            }
            if process.is_alive() {
                bail!("{} is not written yet", kubeconfig.display());
            }
            let said = fs::read_to_string(&log).unwrap_or_default();
            Ok(Err(anyhow!("it has ended:\n{}", sh::tail(&said, 20))))
        })??;
        Ok(Cluster { process, kubeconfig: kubeconfig.clone(), bin })
    })
}

/// Ends the simulated cluster that has this directory, and removes the directory.
pub(crate) fn stop(folder: &Path) -> Result<()> {
    if let Some(process) = Process::find(&folder.join("process.json")) {
        sh::step("stop the simulated cluster", || process.stop(GRACE))?;
    }
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}
