//! The test programs of the workspace: built by cargo, and run one by one, so that each test has the
//! name of its crate.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{features, sim};
use crate::sh;

/// A program of tests.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Program {
    /// What its tests' names start with: the crate, and the file of tests where it is one.
    pub(crate) prefix: String,
    executable: PathBuf,
    folder: PathBuf,
}

impl Program {
    /// Whether it needs a cluster.
    pub(crate) fn is_end_to_end(&self) -> bool {
        self.prefix.starts_with("e2e ")
    }

    /// Whether it is the control logic against a simulated cluster.
    pub(crate) fn is_simulated(&self) -> bool {
        sim::is_simulated(&self.prefix)
    }

    /// The command that runs it as cargo would.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }

    /// The same, telling how long each test took.
    ///
    /// The option is not stable, and this variable makes the test harness take it all the same; it says
    /// nothing to the compiler, which is done by now.
    pub(crate) fn timed(&self) -> Command {
        let mut command = self.command();
        command.env("RUSTC_BOOTSTRAP", "1").args(["-Zunstable-options", "--report-time"]);
        command
    }

    /// The names of its tests, without the prefix.
    pub(crate) fn tests(&self) -> Result<Vec<String>> {
        let list = sh::run(self.command().args(["--list", "--format", "terse"]))?;
        let name = |line: &str| line.strip_suffix(": test").map(str::to_owned);
        Ok(list.lines().filter_map(name).collect())
    }

    /// Reads a line of cargo's messages; `None` where it tells of anything else.
    fn of_message(line: &str) -> Option<Self> {
        let message: Value = serde_json::from_str(line).ok()?;
        if message["profile"]["test"] != true {
            return None;
        }
        let executable = PathBuf::from(message["executable"].as_str()?);
        let folder = PathBuf::from(message["manifest_path"].as_str()?).parent()?.to_path_buf();
        let package = package(message["package_id"].as_str()?)?;
        let target = &message["target"];
        let is_file_of_tests = target["kind"][0] == "test";
        let prefix = match target["name"].as_str()? {
            name if is_file_of_tests => format!("{package} {name}::"),
            _ => format!("{package} "),
        };
        Some(Self { prefix, executable, folder })
    }
}

/// The name in `path+file:///a/crates/operator-core#0.1.0`, or in `path+file:///a/crates/c#common@0.1.0`.
fn package(id: &str) -> Option<&str> {
    let (path, version) = id.rsplit_once('#')?;
    match version.split_once('@') {
        Some((name, _)) => Some(name),
        None => path.rsplit('/').next(),
    }
}

/// All programs of tests of the workspace, with the examples and programs that some of them start;
/// built once, by one command.
///
/// Cargo chooses the features of dependencies by the packages that a command names: a second command
/// that names others compiles the same dependencies again, for minutes.
pub(crate) fn all() -> Result<&'static [Program]> {
    static BUILT: OnceLock<Vec<Program>> = OnceLock::new();
    match BUILT.get() {
        Some(built) => Ok(built),
        None => build().map(|built| BUILT.get_or_init(|| built).as_slice()),
    }
}

fn build() -> Result<Vec<Program>> {
    let messages = features::compile(&["build", "--workspace", "--all-targets"], &[])
        .context("the tests do not compile")?;
    let mut programs: Vec<Program> = messages.lines().filter_map(Program::of_message).collect();
    // Cargo tells of them as they are linked; the same order each time makes runs comparable.
    programs.sort_by(|a, b| a.prefix.cmp(&b.prefix));
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: &str, kind: &str, name: &str, is_test: bool) -> String {
        serde_json::json!({
            "reason": "compiler-artifact",
            "package_id": id,
            "manifest_path": "/a/e2e/Cargo.toml",
            "target": { "kind": [kind], "name": name },
            "profile": { "test": is_test },
            "executable": "/a/target/debug/deps/x-1",
        })
        .to_string()
    }

    fn prefix(id: &str, kind: &str, name: &str) -> Option<String> {
        Program::of_message(&message(id, kind, name, true)).map(|it| it.prefix)
    }

    #[test]
    fn a_test_has_the_name_of_its_crate_and_of_its_file_of_tests() {
        let of_crate = prefix("path+file:///a/crates/nova-operator#0.1.0", "lib", "nova_operator");
        assert_eq!(of_crate.as_deref(), Some("nova-operator "));
        let of_file = prefix("path+file:///a/tests-of-all#e2e@0.1.0", "test", "main_job");
        assert_eq!(of_file.as_deref(), Some("e2e main_job::"));
    }

    #[test]
    fn other_messages_are_no_programs() {
        let library = message("path+file:///a/e2e#0.1.0", "lib", "e2e", false);
        for line in [library.as_str(), r#"{"reason":"build-finished"}"#, "warning: x"] {
            assert_eq!(Program::of_message(line), None, "{line}");
        }
    }
}
