//! Checks the tables in the docs that map requirements to tests, against the report of the tests
//! that ran.

pub(crate) mod table;
#[cfg(test)]
mod tests;
mod upstream;
mod written;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use table::{Place, Row};
use written::Sources;

use super::count::Found;
use super::outcome::{Outcome, Tests};
use super::report::Report;
use super::sim;
use crate::paths;

/// The number of rows that may cite one test: a test cited everywhere proves nothing specific.
const ROWS_OF_A_TEST: usize = 3;
/// The rules whose rows name a mutant that their tests catch.
const WITH_MUTANTS: [&str; 5] = ["D1", "D4", "D6", "D7", "D11"];

/// A page with a table.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    /// The file, from the root of the repository.
    pub(crate) file: &'static str,
    /// The minimum number of its rows.
    pub(crate) n_rows: usize,
    /// Whether its rows quote the specification.
    pub(crate) is_quoting: bool,
    /// Its rows.
    pub(crate) rows: Vec<Row>,
}

/// Reads the pages of the docs.
pub(crate) fn pages() -> Result<Vec<Page>> {
    let page = |file, n_rows, is_quoting| -> Result<Page> {
        let text = fs::read_to_string(paths::repo().join(file)).context(file)?;
        Ok(Page { file, n_rows, is_quoting, rows: table::rows(&text).context(file)? })
    };
    Ok(vec![page("docs/spec-002.md", 40, true)?, page("docs/upstream-mistakes.md", 39, false)?])
}

/// Checks the pages against the last report, and prints what could not be checked.
pub(crate) fn check(specification: Option<&Path>) -> Result<Found> {
    let report = Report::read()?.context("no test has run yet: cargo xtask test")?;
    let pages = pages()?;
    let mut faults = faults(&pages, &in_repo);
    faults.extend(pages.iter().filter_map(incomplete));
    let sources = Sources::read()?;
    faults.extend(unwritten(&pages, &sources));
    let compared = upstream::read()?;
    faults.extend(upstream::faults(&compared, &upstream::defined()?, |it| sources.have(it)));
    if let Some(path) = specification {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        faults.extend(misquotes(&pages, &text));
    }
    for fault in &faults {
        println!("{fault}");
    }
    let compared: Vec<Row> = compared.iter().map(upstream::Row::judged).collect();
    let mut found = Found::one("the tables", Outcome::of(faults.is_empty()));
    let mut waiting: BTreeSet<&str> = BTreeSet::new();
    let tables = pages.iter().map(|it| (it.file, &it.rows));
    for (file, rows) in tables.chain([(upstream::FILE, &compared)]) {
        for row in rows {
            let (faults, others) = judge(row, &report);
            for fault in &faults {
                println!("{file}, row {}: {fault}", row.number);
            }
            let outcome = match (faults.is_empty(), others.is_empty()) {
                (false, _) => Outcome::Failed,
                (true, true) => Outcome::Passed,
                (true, false) => Outcome::Skipped,
            };
            found.add(format!("{file} {}", row.number), outcome);
            waiting.extend(others);
        }
    }
    print_notes(&pages, &found, &waiting);
    Ok(found)
}

fn print_notes(pages: &[Page], found: &Found, waiting: &BTreeSet<&str>) {
    let n_waiting = found.tests.values().filter(|it| **it == Outcome::Skipped).count();
    if n_waiting > 0 {
        let parts: Vec<&str> = waiting.iter().copied().collect();
        println!(
            "{n_waiting} rows are not judged: these parts did not run last time: {}",
            parts.join(", ")
        );
    }
    let mutants = pages.iter().flat_map(|it| &it.rows).filter_map(|it| it.mutant.as_ref());
    let n_unseen = mutants.filter(|it| !it.is_seen).count();
    if n_unseen > 0 {
        println!("{n_unseen} mutants are still to be seen: cargo xtask mutants");
    }
}

/// Returns the errors of a row according to the report, and the parts that have not run but are
/// needed.
fn judge<'a>(row: &'a Row, report: &Report) -> (Vec<String>, BTreeSet<&'a str>) {
    let (mut faults, mut waiting) = (Vec::new(), BTreeSet::new());
    for test in &row.tests {
        let part = part_of(test);
        let Some(tests) = report.parts.get(part) else {
            waiting.insert(part);
            continue;
        };
        match tests.get(test) {
            Some(Outcome::Passed) => {}
            Some(Outcome::Failed) => faults.push(format!("{test} failed")),
            Some(Outcome::Skipped) => faults.push(format!("{test} was skipped")),
            None => faults.push(absent(test, part, tests)),
        }
    }
    (faults, waiting)
}

/// Returns the error for a missing test; it names a test with the same function in another module.
fn absent(test: &str, part: &str, tests: &Tests) -> String {
    let sentence = |it: &str| it.rsplit("::").next().map(str::to_owned);
    let moved = tests.keys().find(|it| it.contains("::") && sentence(it) == sentence(test));
    match moved {
        Some(name) => format!("{test} is no test of part {part}, but {name} is"),
        None => format!("{test} is no test of part {part}"),
    }
}

/// Returns the part that reports a test: its first word, or the part of its crate.
pub(crate) fn part_of(test: &str) -> &str {
    if sim::is_simulated(test) {
        return "sim";
    }
    match test.split(' ').next() {
        Some(part @ ("ansible" | "chart" | "cloudinit" | "e2e" | "ironic" | "oslo")) => part,
        _ => "unit",
    }
}

/// Lists the rows that a page lacks.
fn incomplete(page: &Page) -> Option<String> {
    let there: BTreeSet<usize> = page.rows.iter().map(|it| it.number).collect();
    let missing: Vec<String> =
        (1..=page.n_rows).filter(|it| !there.contains(it)).map(|it| it.to_string()).collect();
    (!missing.is_empty()).then(|| format!("{} lacks rows: {}", page.file, missing.join(", ")))
}

/// Lists the tests that exist nowhere in the sources, whatever parts ran.
fn unwritten(pages: &[Page], sources: &Sources) -> Vec<String> {
    let mut faults = Vec::new();
    for page in pages {
        for row in &page.rows {
            for test in row.tests.iter().filter(|it| !sources.have(it)) {
                faults.push(format!("{}, row {}: no test {test}", page.file, row.number));
            }
        }
    }
    faults
}

/// Returns the errors of the rows that need no report; `holds` checks whether a text is at its
/// place.
fn faults(pages: &[Page], holds: &impl Fn(&Place) -> Result<(), String>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut rows_of: BTreeMap<&str, usize> = BTreeMap::new();
    for page in pages {
        let mut last = 0;
        for row in &page.rows {
            let mut found = faults_of(page, row, holds);
            if row.number <= last {
                found.push(format!("it stands behind row {last}"));
            }
            last = row.number;
            let named: BTreeSet<&str> = row.tests.iter().map(String::as_str).collect();
            for test in named {
                *rows_of.entry(test).or_default() += 1;
            }
            let located = |it| format!("{}, row {}: {it}", page.file, row.number);
            faults.extend(found.into_iter().map(located));
        }
    }
    for (test, n_rows) in rows_of.into_iter().filter(|it| it.1 > ROWS_OF_A_TEST) {
        faults.push(format!("{test} stands in {n_rows} rows, more than {ROWS_OF_A_TEST}"));
    }
    faults
}

fn faults_of(page: &Page, row: &Row, holds: &impl Fn(&Place) -> Result<(), String>) -> Vec<String> {
    let mut faults = Vec::new();
    if row.tests.is_empty() && row.types.is_empty() {
        faults.push("nothing proves it".to_owned());
    }
    if page.is_quoting && quotes(&row.said).is_empty() {
        faults.push("it quotes nothing".to_owned());
    }
    match (&row.rule, &row.mutant) {
        (Some(rule), _) if !WITH_MUTANTS.contains(&rule.as_str()) => {
            faults.push(format!("{rule} is no rule with mutants"));
        }
        (Some(rule), None) => faults.push(format!("it is of {rule} and names no mutant")),
        (Some(_), Some(mutant)) if !row.tests.iter().any(|it| part_of(it) == "unit") => {
            faults.push(format!("no unit test can meet the mutant in {}", mutant.place.file));
        }
        (Some(_) | None, _) => {}
    }
    let mutated = row.mutant.iter().map(|it| &it.place);
    faults.extend(row.types.iter().chain(mutated).filter_map(|it| holds(it).err()));
    faults
}

/// Checks that a text occurs exactly once in its file of the repository.
fn in_repo(place: &Place) -> Result<(), String> {
    let text = fs::read_to_string(paths::repo().join(&place.file)).unwrap_or_default();
    match text.matches(&place.text).count() {
        1 => Ok(()),
        n => Err(format!("`{}` stands {n} times in {}, not once", place.text, place.file)),
    }
}

/// Lists the quotes that are not verbatim in the specification.
fn misquotes(pages: &[Page], specification: &str) -> Vec<String> {
    let specification = plain(specification);
    let mut faults = Vec::new();
    for page in pages.iter().filter(|it| it.is_quoting) {
        for row in &page.rows {
            let is_missing = |it: &String| !specification.contains(&plain(it));
            for quote in quotes(&row.said).into_iter().filter(is_missing) {
                faults.push(format!("{}, row {}: not a quote: {quote}", page.file, row.number));
            }
        }
    }
    faults
}

/// Returns the quoted parts of a text; an ellipsis splits a quote.
fn quotes(text: &str) -> Vec<String> {
    let quoted = text.split('"').skip(1).step_by(2);
    let parts = quoted.flat_map(|it| it.split('…')).map(str::trim);
    parts.filter(|it| !it.is_empty()).map(str::to_owned).collect()
}

/// Removes Markdown's marks and line breaks.
fn plain(text: &str) -> String {
    let text = text.replace(['`', '*'], "");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
