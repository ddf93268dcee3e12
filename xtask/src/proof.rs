//! `cargo xtask proof`: runs scenarios that take too long for the tests, and records when each last
//! passed.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};

use crate::cluster::Choice;
use crate::demo::{self, scene::BARE_METAL};
use crate::{paths, sh, test};

/// The record, a file that is committed.
const RECORD: &str = "docs/proof.json";

/// Run the scenarios that are too long for each run of the tests, and write when each was seen.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these scenarios; all of them without any.
    #[arg(value_parser = PossibleValuesParser::new(names()))]
    scenarios: Vec<String>,
    #[command(flatten)]
    cluster: Choice,
}

/// One scenario.
struct Scenario {
    name: &'static str,
    /// What it proves, in one sentence.
    shows: &'static str,
    run: fn(&Choice) -> Result<()>,
}

const SCENARIOS: [Scenario; 3] = [
    Scenario {
        name: "bare-metal",
        shows: "Two empty machines become hosts by a real Ironic, and get nova-compute (`cargo xtask demo --baremetal`).",
        run: bare_metal,
    },
    Scenario {
        name: "guests",
        shows: "Guests of nova boot on three hosts, reach each other, and move over TLS and ssh; a drain, a rollout, a removal, restarts, new containers and a node set lose none (`cargo xtask demo --guests`).",
        run: test::prove_guests,
    },
    Scenario {
        name: "refuted",
        shows: "The demo's verification fails when options were emptied, a service record was deleted, or a container is lost.",
        run: |cluster| test::prove(cluster, "refuted"),
    },
];

fn bare_metal(cluster: &Choice) -> Result<()> {
    demo::show(cluster, &BARE_METAL)?;
    demo::verify(cluster, &BARE_METAL)
}

fn names() -> Vec<&'static str> {
    SCENARIOS.iter().map(|it| it.name).collect()
}

/// Runs the scenarios one after the other, and records the result of each before the next one
/// begins.
///
/// # Errors
///
/// The working tree differs from its commit, so that the record could not name what was tested; or
/// a scenario failed.
pub(crate) fn main(args: &Args) -> Result<()> {
    let commit = commit()?;
    let file = paths::repo().join(RECORD);
    let mut failed = Vec::new();
    let is_asked = |it: &&Scenario| {
        args.scenarios.is_empty() || args.scenarios.iter().any(|name| name == it.name)
    };
    for scenario in SCENARIOS.iter().filter(is_asked) {
        println!("\n== {}: {}", scenario.name, scenario.shows);
        let began = Instant::now();
        let outcome = (scenario.run)(&args.cluster);
        let entry = json!({
            "shows": scenario.shows,
            "date": sh::run(Command::new("date").args(["-u", "+%F"]))?.trim(),
            "commit": commit,
            "result": if outcome.is_ok() { "holds" } else { "failed" },
            "seconds": began.elapsed().as_secs(),
        });
        let text = with(&fs::read_to_string(&file)?, scenario.name, entry)?;
        fs::write(&file, text).with_context(|| format!("write {RECORD}"))?;
        if let Err(error) = outcome {
            println!("{error:#}");
            failed.push(scenario.name);
        }
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    println!("\nAll scenarios hold; {RECORD} says so and is to be committed.");
    Ok(())
}

/// Returns the tested commit; only the record itself may differ from it.
fn commit() -> Result<String> {
    let git = |arguments: &[&str]| {
        sh::run(Command::new("git").arg("-C").arg(paths::repo()).args(arguments))
    };
    let changed = git(&["status", "--porcelain", "--", ":/", &format!(":!/{RECORD}")])?;
    if !changed.trim().is_empty() {
        bail!("the working tree differs from its commit, commit first:\n{changed}");
    }
    Ok(git(&["rev-parse", "HEAD"])?.trim().to_owned())
}

/// Returns the record with another entry.
fn with(record: &str, name: &str, entry: Value) -> Result<String> {
    let mut entries: BTreeMap<String, Value> =
        serde_json::from_str(record).with_context(|| format!("read {RECORD}"))?;
    entries.insert(name.to_owned(), entry);
    Ok(format!("{:#}\n", json!(entries)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_replaces_the_one_of_its_scenario_alone() {
        let record = with("{\"a\": 1, \"b\": 2}", "b", json!({ "result": "holds" })).unwrap();
        let found: Value = serde_json::from_str(&record).unwrap();
        assert_eq!(found, json!({ "a": 1, "b": { "result": "holds" } }));
        assert!(record.ends_with("}\n"));
        assert!(with("no record", "b", json!({})).is_err());
    }

    #[test]
    fn the_record_tells_of_scenarios_that_exist_and_of_commits_of_this_repository() {
        let text = fs::read_to_string(paths::repo().join(RECORD)).unwrap();
        let entries: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
        for (name, entry) in entries {
            let scenario = SCENARIOS.iter().find(|it| it.name == name);
            let scenario = scenario.unwrap_or_else(|| panic!("{RECORD}: no scenario {name}"));
            assert_eq!(entry["shows"], scenario.shows, "{name}");
            assert_eq!(entry["commit"].as_str().map(str::len), Some(40), "{name}");
            assert!(["holds", "failed"].contains(&entry["result"].as_str().unwrap()), "{name}");
        }
    }
}
