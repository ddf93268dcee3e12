//! The processes of a simulated cluster; none outlives the process that started it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Sender};

use anyhow::{Context as _, Result, anyhow, ensure};
use parking_lot::{Mutex, MutexGuard};

use crate::programs::BUILD;

/// Starts processes from one thread that lives as long as this process: the kernel kills a child
/// when its parent thread ends, and tests run in threads that end early.
#[derive(Clone, Debug)]
pub(crate) struct Processes {
    requests: Sender<Request>,
}

struct Request {
    command: Command,
    answer: Sender<std::io::Result<Child>>,
}

/// A running process.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    log: PathBuf,
    child: Mutex<Child>,
}

impl Processes {
    /// Starts the thread.
    pub(crate) fn new() -> Self {
        let (requests, received) = mpsc::channel::<Request>();
        std::thread::spawn(move || {
            for Request { mut command, answer } in received {
                // If this fails, the requester no longer waits for the answer.
                let _ = answer.send(command.spawn());
            }
            // Must live as long as this process: children outlive the senders.
            loop {
                std::thread::park();
            }
        });
        Self { requests }
    }

    /// Starts a program that is killed when this process ends; its output is appended to `log`.
    pub(crate) fn start(
        &self,
        name: &str,
        program: &Path,
        log: &Path,
        configure: impl FnOnce(&mut Command),
    ) -> Result<Process> {
        ensure!(program.is_file(), "{} is missing: {BUILD}", program.display());
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program);
        configure(&mut command);
        let output = File::options().create(true).append(true).open(log)?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let (answer, answered) = mpsc::channel();
        let request = Request { command, answer };
        self.requests
            .send(request)
            .map_err(|_| anyhow!("the thread that starts processes ended"))?;
        let child = answered.recv()?.with_context(|| format!("start {name}"))?;
        Ok(Process { name: name.to_owned(), log: log.to_owned(), child: Mutex::new(child) })
    }
}

impl Process {
    /// Returns the process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child().id()
    }

    /// Returns an error with the end of its log when it has exited.
    pub(crate) fn check(&self) -> Result<()> {
        let Some(status) = self.child().try_wait()? else { return Ok(()) };
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(15)..].join("\n");
        Err(anyhow!("{} ended with {status}:\n{tail}", self.name))
    }

    /// Kills it and waits until it has exited.
    pub(crate) fn kill(&self) -> Result<()> {
        let mut child = self.child();
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    /// Sends it a signal by name, for example `STOP`.
    pub(crate) fn signal(&self, signal: &str) -> Result<()> {
        let mut kill = Command::new("kill");
        let status = kill.arg(format!("-{signal}")).arg(self.pid().to_string()).status()?;
        ensure!(status.success(), "{} cannot be sent {signal}", self.name);
        Ok(())
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may already have exited.
        let _ = self.kill();
    }
}
