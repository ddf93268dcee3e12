//! Checks that each package is compiled with one set of features: a second set compiles it and all
//! its dependents again.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::count::Found;
use super::outcome::Outcome;
use super::{cargo, programs};

/// A compilation unit: a library, a build script or a program of a package, in a profile.
///
/// Units for host and target are the same to cargo unless their features differ.
type Unit = [String; 4];
/// The feature sets of each unit.
type Seen = BTreeMap<Unit, BTreeSet<String>>;

/// The units that the commands of this run have compiled, or found compiled.
static SEEN: Mutex<Seen> = Mutex::new(Seen::new());

/// Runs cargo to compile something, and records the features of each unit; `rest` follows its other
/// arguments. Returns cargo's messages; the compiler's diagnostics go to standard error.
///
/// The pure crates are compiled alone in order to have other features, and do not use this.
pub(super) fn compile(arguments: &[&str], rest: &[&str]) -> Result<String> {
    let mut command = cargo(arguments);
    command.args(["--quiet", "--message-format=json-render-diagnostics"]).args(rest);
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    let messages = String::from_utf8(output.stdout).context("what cargo said")?;
    note(&messages, &mut SEEN.lock().unwrap_or_else(PoisonError::into_inner));
    ensure!(output.status.success(), "cargo {} ended with {}", arguments.join(" "), output.status);
    Ok(messages)
}

/// Checks all units that this run has compiled, and the running program itself.
pub(super) fn check() -> Result<Found> {
    programs::all()?;
    // As the `cargo xtask` alias does; it is compiled already, unless its features differ.
    compile(&["build", "--package", "xtask"], &[])?;
    // As for the lab's images.
    compile(&["build", "--workspace", "--bins"], &[])?;
    let faults = faults(&SEEN.lock().unwrap_or_else(PoisonError::into_inner));
    for fault in &faults {
        println!("{fault}");
    }
    if !faults.is_empty() {
        println!(
            "features are made equal in Cargo.toml of xtask, and of simulated-cluster for programs"
        );
    }
    let outcome = Outcome::of(faults.is_empty());
    Ok(Found::one("each package is compiled with one set of features", outcome))
}

fn note(messages: &str, seen: &mut Seen) {
    for (unit, features) in messages.lines().filter_map(of_message) {
        seen.entry(unit).or_default().insert(features);
    }
}

/// Parses a line of cargo's messages; `None` for other messages.
fn of_message(line: &str) -> Option<(Unit, String)> {
    let message: Value = serde_json::from_str(line).ok()?;
    if message["reason"] != "compiler-artifact" {
        return None;
    }
    let mut profile = message["profile"].clone();
    // The project's libraries are compiled with and without their tests.
    profile.as_object_mut()?.remove("test");
    let target = &message["target"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let unit = [
        text(&message["package_id"])?,
        text(&target["kind"][0])?,
        text(&target["name"])?,
        profile.to_string(),
    ];
    Some((unit, message["features"].to_string()))
}

fn faults(seen: &Seen) -> Vec<String> {
    let twice = seen.iter().filter(|it| it.1.len() > 1);
    let finding = |([package, kind, name, _], sets): (&Unit, &BTreeSet<String>)| {
        let sets = sets.iter().map(String::as_str).collect::<Vec<_>>().join(" and ");
        format!("{package}, {kind} {name}, is compiled {sets}")
    };
    twice.map(finding).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn artifact(features: &[&str], opt_level: &str, is_test: bool) -> String {
        let profile = json!({ "opt_level": opt_level, "test": is_test });
        json!({
            "reason": "compiler-artifact", "package_id": "registry#a@1.0.0",
            "target": { "kind": ["lib"], "name": "a" }, "profile": profile, "features": features,
        })
        .to_string()
    }

    fn faults_of(messages: &[String]) -> Vec<String> {
        let mut seen = Seen::new();
        // The messages of several commands.
        for it in messages {
            note(it, &mut seen);
        }
        faults(&seen)
    }

    #[test]
    fn another_set_of_features_in_one_profile_is_told() {
        let found = faults_of(&[artifact(&["std"], "0", false), artifact(&[], "0", false)]);
        let expected = "registry#a@1.0.0, lib a, is compiled [\"std\"] and []";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn the_same_features_again_another_profile_and_tests_are_none() {
        let (plain, again) = (artifact(&["std"], "0", false), artifact(&["std"], "0", true));
        let (released, other) = (artifact(&[], "3", false), r#"{"reason":"build-finished"}"#);
        assert!(faults_of(&[plain, again, released, other.to_owned()]).is_empty());
    }
}
