//! The result of the demo, as text for the user and as JSON.

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use super::scene::Scene;

/// The facts, and the duration of each step.
#[derive(Default)]
pub(crate) struct Report {
    /// Step → seconds, in the order of the steps.
    steps: Vec<(String, f64)>,
    /// Host or guest → fact → value.
    pub(crate) facts: Value,
    /// What was seen once, and cannot be collected again: guest → fact → value; null without guests.
    pub(crate) seen: Value,
    /// The duration of the whole demo.
    pub(crate) seconds: f64,
}

impl Report {
    /// Runs a step and records its duration.
    pub(crate) fn time<T>(&mut self, name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let start = Instant::now();
        let result = work();
        self.steps.push((name.to_owned(), start.elapsed().as_secs_f64()));
        result
    }

    /// Writes the report as JSON.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let steps: Map<String, Value> =
            self.steps.iter().map(|(name, seconds)| (name.clone(), json!(seconds))).collect();
        let report = json!({
            "seconds": self.seconds, "steps": steps, "hosts": self.facts, "seen": self.seen,
        });
        let text = serde_json::to_string_pretty(&report)?;
        crate::sh::write_if_changed(path, &text).map(drop)
    }

    /// Removes the report of an earlier demo, if any.
    pub(crate) fn remove(path: &Path) -> Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("remove {}", path.display()))
            }
            _ => Ok(()),
        }
    }

    /// Reads the facts of an earlier demo; the error names `command`, which creates them.
    pub(crate) fn read(path: &Path, command: &str) -> Result<Self> {
        let text = fs::read_to_string(path)
            .with_context(|| format!("no report at {}: run {command} first", path.display()))?;
        let report: Value = serde_json::from_str(&text)?;
        Ok(Self { facts: report["hosts"].clone(), ..Self::default() })
    }

    /// Returns the facts as text, with commands for a closer look.
    pub(crate) fn summary(&self, scene: &Scene, plugin: &Path) -> String {
        let mut text = String::from("\n=== What runs now ===\n");
        let all = [&self.facts, &self.seen].into_iter().filter_map(Value::as_object).flatten();
        for (name, facts) in all {
            let _ = writeln!(text, "\n{name}");
            for (name, value) in facts.as_object().into_iter().flatten() {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let _ = writeln!(text, "  {name:<22} {value}");
            }
        }
        let steps: Vec<String> =
            self.steps.iter().map(|(name, seconds)| format!("{name} {seconds:.0} s")).collect();
        let _ = writeln!(text, "\n{:.0} s in all: {}", self.seconds, steps.join(", "));
        text + &look_further(scene, plugin)
    }
}

/// Returns commands for a closer look; `plugin` is the directory with the kubectl plugin.
fn look_further(Scene { role, hosts, command, .. }: &Scene, plugin: &Path) -> String {
    let host = hosts[0].host.name;
    let plugin = plugin.display();
    format!(
        "
Look further:
  export KUBECONFIG=$PWD/target/lab/kubeconfig PATH=$PWD/target/lab/bin:{plugin}:$PATH
  kubectl edpm -n openstack status
  kubectl edpm -n openstack explain {host}
  kubectl -n openstack describe openstackdataplanerole {role}
  kubectl -n openstack describe openstackdataplanenode {host}
  kubectl -n openstack describe novaexternalcompute {host}
  {command} --verify
Stop:
  cargo xtask lab down
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_looks_further_has_the_plugin_in_the_path() {
        let text = look_further(&crate::demo::scene::MAIN, Path::new("/t/debug"));
        assert!(text.contains("lab/bin:/t/debug:$PATH\n  kubectl edpm -n openstack status\n"));
    }

    #[test]
    fn a_removed_report_is_not_taken_for_a_new_one() {
        let path = std::env::temp_dir().join(format!("demo-report-{}.json", std::process::id()));
        Report { facts: json!({ "a": {} }), ..Report::default() }.write(&path).unwrap();
        assert_eq!(Report::read(&path, "it").unwrap().facts, json!({ "a": {} }));
        Report::remove(&path).unwrap();
        assert!(Report::read(&path, "it").is_err());
        Report::remove(&path).unwrap();
    }
}
