//! Resource usage of the operators' processes on this machine.

use std::fs;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// The operators, by name.
pub(super) const OPERATORS: [&str; 3] =
    ["ansibleee-operator", "dataplane-operator", "nova-operator"];
/// The unit of processor time in `/proc`, the same on every current Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// The usage of one process.
pub(crate) struct Usage {
    /// The name of the program.
    pub(crate) name: String,
    /// Its resident memory.
    pub(crate) rss_mib: f64,
    /// Its peak resident memory.
    peak_mib: f64,
    /// Its processor time since its start.
    cpu_seconds: f64,
}

impl Usage {
    /// Returns the figures as JSON.
    pub(crate) fn as_json(&self) -> Value {
        json!({
            "rssMiB": self.rss_mib,
            "peakMiB": self.peak_mib,
            "cpuSeconds": self.cpu_seconds,
        })
    }
}

/// Returns the operators that run on this machine; each must run exactly once.
pub(crate) fn operators() -> Result<Vec<Usage>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let folder = entry?.path();
        let command = fs::read_to_string(folder.join("cmdline")).unwrap_or_default();
        let program = command.split('\0').next().unwrap_or_default();
        let name = program.rsplit('/').next().unwrap_or_default();
        if OPERATORS.contains(&name) {
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

fn usage(name: &str, folder: &std::path::Path) -> Result<Usage> {
    let status = fs::read_to_string(folder.join("status"))?;
    let mib = |field: &str| -> Result<f64> {
        let line = status.lines().find(|it| it.starts_with(field));
        let kib = line.and_then(|it| it.split_whitespace().nth(1)).context("no such field")?;
        Ok(kib.parse::<f64>()? / 1024.0)
    };
    let stat = fs::read_to_string(folder.join("stat"))?;
    // Fields after the program's name, which may contain spaces: user and system time are fields 14
    // and 15.
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let ticks = |idx: usize| fields.get(idx).and_then(|it| it.parse::<f64>().ok()).unwrap_or(0.0);
    Ok(Usage {
        name: name.to_owned(),
        rss_mib: mib("VmRSS:")?,
        peak_mib: mib("VmHWM:")?,
        cpu_seconds: (ticks(11) + ticks(12)) / TICKS_PER_SECOND,
    })
}
