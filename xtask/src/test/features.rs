//! Whether each package is compiled with one set of features: another set is another compilation, of it and
//! of all that depends on it.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::count::Found;
use super::outcome::Outcome;
use super::{cargo, programs};

/// What can be compiled: a library, a build script or a program of a package, in a profile.
///
/// The host's and the target's are the same to cargo unless their features differ.
type Unit = [String; 4];
/// The sets of features of each.
type Seen = BTreeMap<Unit, BTreeSet<String>>;

/// What the commands of this run have compiled, or found compiled.
static SEEN: Mutex<Seen> = Mutex::new(Seen::new());

/// Runs cargo to compile something, and notes what it compiles with which features; `rest` stands behind its
/// other arguments. Returns cargo's messages; what the compiler says goes to the human.
///
/// The pure crates are compiled alone in order to have other features: they do not come here.
pub(super) fn compile(arguments: &[&str], rest: &[&str]) -> Result<String> {
    let mut command = cargo(arguments);
    command.args(["--quiet", "--message-format=json-render-diagnostics"]).args(rest);
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    let messages = String::from_utf8(output.stdout).context("what cargo said")?;
    note(&messages, &mut SEEN.lock().unwrap_or_else(PoisonError::into_inner));
    ensure!(output.status.success(), "cargo {} ended with {}", arguments.join(" "), output.status);
    Ok(messages)
}

/// The check of all that this run has compiled, with the program that it began with.
pub(super) fn check() -> Result<Found> {
    programs::all()?;
    // As the command's alias does; it is compiled already, unless its features are others.
    compile(&["build", "--package", "xtask"], &[])?;
    // As the lab's images do.
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

/// Reads a line of cargo's messages; `None` where it tells of anything else.
fn of_message(line: &str) -> Option<(Unit, String)> {
    let message: Value = serde_json::from_str(line).ok()?;
    if message["reason"] != "compiler-artifact" {
        return None;
    }
    let mut profile = message["profile"].clone();
    // Our own libraries are compiled with and without their tests.
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
    let told = |([package, kind, name, _], sets): (&Unit, &BTreeSet<String>)| {
        let sets = sets.iter().map(String::as_str).collect::<Vec<_>>().join(" and ");
        format!("{package}, {kind} {name}, is compiled {sets}")
    };
    twice.map(told).collect()
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
        // Of several commands.
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
