//! The test programs of the workspace: built by cargo and run one by one, so that each test has the
//! name of its crate.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{features, sim};
use crate::sh;

/// A test program.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Program {
    /// The prefix of its tests' names: the crate, and the file for integration tests.
    pub(crate) prefix: String,
    executable: PathBuf,
    folder: PathBuf,
}

impl Program {
    /// Whether it needs a cluster.
    pub(crate) fn is_end_to_end(&self) -> bool {
        self.prefix.starts_with("e2e ")
    }

    /// Whether it tests the control logic against a simulated cluster.
    pub(crate) fn is_simulated(&self) -> bool {
        sim::is_simulated(&self.prefix)
    }

    /// Returns the command that runs it as cargo would.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }

    /// Returns the same command with the duration of each test.
    ///
    /// The option is unstable; this variable makes the test harness accept it. It does not affect
    /// the compiler, which has finished by now.
    pub(crate) fn timed(&self) -> Command {
        let mut command = self.command();
        command.env("RUSTC_BOOTSTRAP", "1").args(["-Zunstable-options", "--report-time"]);
        command
    }

    /// Returns the names of its tests, without the prefix.
    pub(crate) fn tests(&self) -> Result<Vec<String>> {
        let list = sh::run(self.command().args(["--list", "--format", "terse"]))?;
        let name = |line: &str| line.strip_suffix(": test").map(str::to_owned);
        Ok(list.lines().filter_map(name).collect())
    }

    /// Parses a line of cargo's messages; `None` for other messages.
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

/// Returns the package name in `path+file:///a/crates/operator-core#0.1.0`, or in
/// `path+file:///a/crates/c#common@0.1.0`.
fn package(id: &str) -> Option<&str> {
    let (path, version) = id.rsplit_once('#')?;
    match version.split_once('@') {
        Some((name, _)) => Some(name),
        None => path.rsplit('/').next(),
    }
}

/// Returns all test programs of the workspace; builds them once by one command, with the examples
/// and programs that some of them start.
///
/// Cargo chooses the features of dependencies by the packages that a command names: a second
/// command with others compiles the same dependencies again, for minutes.
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
    // Cargo reports them as they are linked; a fixed order makes runs comparable.
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
