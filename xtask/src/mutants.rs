//! `cargo xtask mutants`: applies each mutant in the tables of the docs, one at a time in a copy,
//! and checks whether the tests of its row catch it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::test::outcome::{self, Outcome};
use crate::test::spec::{self, Page, part_of, table::Row};
use crate::{paths, sh};

/// See whether the tests catch the mutants that the docs name.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these rows, as `FILE:ROW`, for example `spec-002:7`; all without any.
    rows: Vec<String>,
    /// Only mutants that are marked as still to be seen.
    #[arg(long)]
    unseen: bool,
}

/// Runs the mutants; fails unless each is caught.
pub(crate) fn main(args: &Args) -> Result<()> {
    let tree = paths::target().join("mutants");
    let mut survivors = Vec::new();
    for (name, row) in chosen(&spec::pages()?, args) {
        copy(&tree)?;
        let verdict = match sh::step(&name, || try_out(&tree, &row)) {
            Ok(verdict) => verdict,
            Err(error) => format!("not tried: {error:#}"),
        };
        println!("{name}: {verdict}");
        if !verdict.starts_with("caught") {
            survivors.push(name);
        }
    }
    ensure!(survivors.is_empty(), "not caught: {}", survivors.join(", "));
    Ok(())
}

/// Returns the requested rows, sorted by the file that they change, which reduces recompilation.
fn chosen(pages: &[Page], args: &Args) -> Vec<(String, Row)> {
    let mut chosen = Vec::new();
    for page in pages {
        let stem = Path::new(page.file).file_stem().unwrap_or_default().to_string_lossy();
        for row in &page.rows {
            let name = format!("{stem}:{}", row.number);
            let is_named = args.rows.is_empty() || args.rows.contains(&name);
            let is_new = row.mutant.as_ref().is_some_and(|it| !(args.unseen && it.is_seen));
            if is_named && is_new {
                chosen.push((name, row.clone()));
            }
        }
    }
    chosen.sort_by_cached_key(|it| it.1.mutant.as_ref().map(|it| it.place.file.clone()));
    chosen
}

/// Updates the copy from the working tree; unchanged files keep their time, so that only changes
/// are compiled.
fn copy(tree: &Path) -> Result<()> {
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let wanted = sh::run(git.current_dir(paths::repo()))?;
    for name in wanted.lines() {
        let (from, to) = (paths::repo().join(name), tree.join(name));
        let Ok(content) = fs::read(&from) else { continue };
        if fs::read(&to).is_ok_and(|it| it == content) {
            continue;
        }
        fs::create_dir_all(to.parent().context("no folder")?)?;
        fs::write(&to, content).with_context(|| to.display().to_string())?;
    }
    Ok(())
}

/// Applies a row's mutant and returns the verdict.
fn try_out(tree: &Path, row: &Row) -> Result<String> {
    let mutant = row.mutant.as_ref().context("no mutant")?;
    let file = tree.join(&mutant.place.file);
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    ensure!(text.matches(&mutant.place.text).count() == 1, "it has no place in the code");
    fs::write(&file, text.replace(&mutant.place.text, &mutant.by))?;
    let failed = caught_by(tree, row, &mutant.place.file)?;
    if failed.is_empty() {
        return Ok("NOT caught".to_owned());
    }
    Ok(format!("caught by {}", failed.into_iter().collect::<Vec<_>>().join(", ")))
}

/// Returns the tests of a row that fail, crate by crate with the changed one first, until some do.
fn caught_by(tree: &Path, row: &Row, changed: &str) -> Result<BTreeSet<String>> {
    let mut of_crates: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let units = row.tests.iter().filter(|it| part_of(it) == "unit");
    for (name, test) in units.filter_map(|it| it.split_once(' ')) {
        of_crates.entry(name).or_default().insert(test);
    }
    let mut crates: Vec<(&str, BTreeSet<&str>)> = of_crates.into_iter().collect();
    crates.sort_by_key(|it| !changed.contains(&format!("/{}/", it.0)));
    for (name, tests) in crates {
        let failed = failures(tree, name, &tests)?;
        if !failed.is_empty() {
            return Ok(failed);
        }
    }
    Ok(BTreeSet::new())
}

/// Returns those of a crate's tests that fail.
fn failures(tree: &Path, name: &str, named: &BTreeSet<&str>) -> Result<BTreeSet<String>> {
    // Programs are left out, because their code is in the libraries.
    let mut tests = cargo(tree, &["test", "--lib", "--package", name, "--", "--exact"]);
    let output = tests.args(named).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let outcomes: Vec<(String, Outcome)> = said.lines().filter_map(outcome::of_line).collect();
    if outcomes.is_empty() {
        bail!("nothing ran:\n{}", sh::tail(&String::from_utf8_lossy(&output.stderr), 30));
    }
    let failed = outcomes.into_iter().filter(|it| it.1 == Outcome::Failed);
    Ok(failed.map(|it| it.0).collect())
}

fn cargo(tree: &Path, arguments: &[&str]) -> Command {
    let target: PathBuf = paths::compiled().join("mutants-build");
    let mut cargo = sh::cargo();
    // A mutant needs no debug information.
    cargo.env("CARGO_TARGET_DIR", target).env("CARGO_PROFILE_DEV_DEBUG", "none");
    cargo.args(arguments).current_dir(tree);
    cargo
}
