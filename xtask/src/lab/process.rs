//! Background processes that outlive this program: started in their own session, and found again by
//! a record.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::sh;

/// A process that this program started, perhaps in an earlier run.
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// The kernel's start time, which distinguishes it from a later process with the same PID.
    started: u64,
    /// A digest of its command and inputs.
    pub(super) recipe: String,
}

impl Process {
    /// Returns the process in the record `file`, if it still runs.
    pub(crate) fn find(file: &Path) -> Option<Self> {
        let text = fs::read_to_string(file).ok()?;
        let value: Value = serde_json::from_str(&text).ok()?;
        let found = Self {
            pid: u32::try_from(value["pid"].as_u64()?).ok()?,
            started: value["started"].as_u64()?,
            recipe: value["recipe"].as_str()?.to_owned(),
        };
        found.is_alive().then_some(found)
    }

    /// Starts `command` in its own session; its output is appended to `log`.
    pub(crate) fn start(command: &Command, recipe: &str, file: &Path, log: &Path) -> Result<Self> {
        let output = fs::OpenOptions::new().create(true).append(true).open(log)?;
        let mut detached = Command::new("setsid");
        detached.arg(command.get_program()).args(command.get_args());
        for (key, value) in command.get_envs() {
            if let Some(value) = value {
                detached.env(key, value);
            }
        }
        let child = detached
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("start {}", command.get_program().display()))?;
        let pid = child.id();
        let (started, _) = stat(pid).with_context(|| format!("process {pid} is gone already"))?;
        let process = Self { pid, started, recipe: recipe.to_owned() };
        process.remember(file, recipe)?;
        Ok(process)
    }

    /// Writes its record.
    pub(super) fn remember(&self, file: &Path, recipe: &str) -> Result<()> {
        let record = json!({ "pid": self.pid, "started": self.started, "recipe": recipe });
        // Renamed when complete, because a process with a partial record could not be found again.
        let fresh = file.with_extension("new");
        fs::write(&fresh, record.to_string())?;
        fs::rename(&fresh, file).with_context(|| format!("write {}", file.display()))
    }

    /// Whether it runs: not ended, not a zombie, not another process with its PID.
    pub(crate) fn is_alive(&self) -> bool {
        stat(self.pid)
            .is_some_and(|(started, state)| started == self.started && !"ZX".contains(state))
    }

    /// Terminates it, and kills it after `grace`.
    pub(crate) fn stop(&self, grace: Duration) -> Result<()> {
        if self.is_alive() {
            signal("TERM", &[self.pid]);
        }
        let start = Instant::now();
        let mut forced = false;
        sh::wait_for(&format!("end of process {}", self.pid), grace * 2, || {
            if !self.is_alive() {
                return Ok(());
            }
            if !forced && start.elapsed() > grace {
                signal("KILL", &[self.pid]);
                forced = true;
            }
            bail!("it still runs")
        })
    }
}

/// Sends a signal to processes; those that have ended already are ignored.
pub(super) fn signal(name: &str, pids: &[u32]) {
    if !pids.is_empty() {
        sh::succeeds(
            Command::new("kill").arg(format!("-{name}")).args(pids.iter().map(u32::to_string)),
        );
    }
}

/// Returns start time and state of a process.
fn stat(pid: u32) -> Option<(u64, char)> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Parses `/proc/PID/stat`. The program's name is in parentheses and may itself contain spaces and
/// parentheses.
fn parse_stat(text: &str) -> Option<(u64, char)> {
    let (_, rest) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    Some((fields.get(19)?.parse().ok()?, fields.first()?.chars().next()?))
}

/// Returns the PIDs of all processes whose command line satisfies `wanted`.
pub(super) fn matching(wanted: impl Fn(&str) -> bool) -> Result<Vec<u32>> {
    let mut pids = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|it| it.parse().ok()) else { continue };
        let Ok(line) = fs::read(PathBuf::from("/proc").join(entry.file_name()).join("cmdline"))
        else {
            continue;
        };
        if wanted(&String::from_utf8_lossy(&line).replace('\0', " ")) {
            pids.push(pid);
        }
    }
    Ok(pids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stat_line_is_read_behind_the_last_parenthesis() {
        let line = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 5 6";
        assert_eq!(parse_stat(line), Some((4711, 'S')));
        assert_eq!(parse_stat("garbage"), None);
    }

    #[test]
    fn a_process_is_found_again_and_a_stale_file_is_not_believed() {
        let folder = std::env::temp_dir().join(format!("process-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (file, log) = (folder.join("it.json"), folder.join("it.log"));
        let mut command = Command::new("sleep");
        command.arg("60");
        Process::start(&command, "recipe", &file, &log).unwrap();
        let found = Process::find(&file).unwrap();
        assert_eq!(found.recipe, "recipe");
        // The same pid with another start time is another process.
        let stale = json!({ "pid": found.pid, "started": 1, "recipe": "recipe" });
        fs::write(&file, stale.to_string()).unwrap();
        assert!(Process::find(&file).is_none());
        found.stop(Duration::from_secs(5)).unwrap();
        assert!(!found.is_alive());
        fs::remove_dir_all(&folder).unwrap();
    }
}
