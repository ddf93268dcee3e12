//! Resource usage of the operators' processes on this machine.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// The operators, by name.
pub(super) const OPERATORS: [&str; 3] =
    ["ansibleee-operator", "dataplane-operator", "nova-operator"];
/// The unit of processor time in `/proc`, the same on every current Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// The usage of one process.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Usage {
    /// The name of the program.
    pub(crate) name: String,
    /// The process, which a restart replaces.
    pub(super) pid: u32,
    /// Its resident memory.
    pub(crate) rss_mib: f64,
    /// Its peak resident memory since its start.
    pub(super) peak_mib: f64,
    /// Its processor time since its start.
    pub(super) cpu_seconds: f64,
}

impl Usage {
    /// Returns the same with the processor time since an earlier reading of the same process.
    pub(super) fn since(&self, earlier: &[Self]) -> Self {
        let before = earlier.iter().find(|it| (&it.name, it.pid) == (&self.name, self.pid));
        let cpu_seconds = self.cpu_seconds - before.map_or(0.0, |it| it.cpu_seconds);
        Self { cpu_seconds, ..self.clone() }
    }

    /// Returns the figures as JSON.
    pub(crate) fn as_json(&self) -> Value {
        json!({
            "rssMiB": self.rss_mib,
            "peakMiB": self.peak_mib,
            "cpuSeconds": self.cpu_seconds,
        })
    }
}

/// Where operators are looked for.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Among {
    /// All processes of this machine.
    All,
    /// The children of this process.
    ChildrenOf(u32),
}

/// Returns the operators among these processes; each must run exactly once.
pub(super) fn operators(among: Among) -> Result<Vec<Usage>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let folder = entry?.path();
        let command = fs::read_to_string(folder.join("cmdline")).unwrap_or_default();
        let program = command.split('\0').next().unwrap_or_default();
        let name = program.rsplit('/').next().unwrap_or_default();
        if OPERATORS.contains(&name) && (among == Among::All || among == parent_of(&folder)) {
            found.push(usage(name, &folder)?);
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    let names: Vec<&str> = found.iter().map(|it| it.name.as_str()).collect();
    if names != OPERATORS {
        bail!("the operators do not run once each on this machine: {names:?}");
    }
    Ok(found)
}

/// Returns the children among which the process with that directory is.
fn parent_of(folder: &Path) -> Among {
    let stat = fs::read_to_string(folder.join("stat")).unwrap_or_default();
    Among::ChildrenOf(fields(&stat).get(1).and_then(|it| it.parse().ok()).unwrap_or_default())
}

/// Returns the fields of `/proc/PID/stat` after the program's name, which may contain spaces.
fn fields(stat: &str) -> Vec<&str> {
    stat.rsplit(") ").next().unwrap_or_default().split(' ').collect()
}

fn usage(name: &str, folder: &Path) -> Result<Usage> {
    let status = fs::read_to_string(folder.join("status"))?;
    let mib = |field: &str| -> Result<f64> {
        let line = status.lines().find(|it| it.starts_with(field));
        let kib = line.and_then(|it| it.split_whitespace().nth(1)).context("no such field")?;
        Ok(kib.parse::<f64>()? / 1024.0)
    };
    let stat = fs::read_to_string(folder.join("stat"))?;
    // User and system time are fields 14 and 15.
    let fields = fields(&stat);
    let ticks = |idx: usize| fields.get(idx).and_then(|it| it.parse::<f64>().ok()).unwrap_or(0.0);
    let pid =
        folder.file_name().and_then(|it| it.to_str()).context("a process without a number")?;
    Ok(Usage {
        name: name.to_owned(),
        pid: pid.parse()?,
        rss_mib: mib("VmRSS:")?,
        peak_mib: mib("VmHWM:")?,
        cpu_seconds: (ticks(11) + ticks(12)) / TICKS_PER_SECOND,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_read_behind_the_programs_name() {
        assert_eq!(fields("7 (a) b (c) S 4711 7")[1], "4711");
        let own = Path::new("/proc").join(std::process::id().to_string());
        assert!(parent_of(&own) == Among::ChildrenOf(std::os::unix::process::parent_id()));
    }

    #[test]
    fn processor_time_is_that_since_the_earlier_reading_of_the_same_process() {
        let of = |name: &str, cpu_seconds| Usage {
            name: name.to_owned(),
            pid: 7,
            rss_mib: 1.0,
            peak_mib: 2.0,
            cpu_seconds,
        };
        let earlier = [of("a", 1.0), of("b", 2.0)];
        assert_eq!(of("b", 5.0).since(&earlier), of("b", 3.0));
        assert_eq!(of("c", 5.0).since(&earlier), of("c", 5.0));
        let restarted = Usage { pid: 8, ..of("b", 5.0) };
        assert_eq!(restarted.since(&earlier), restarted);
    }
}
