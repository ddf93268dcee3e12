//! The report of the last tests as a file: each part that ran, and each of its tests by name.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{fs, io};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::outcome::{Outcome, Tests};
use super::shares;
use crate::paths;

/// The number of slowest tests to print.
const SLOWEST: usize = 10;

/// The parts that ran, with their tests.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Report {
    /// Part → its tests.
    pub(crate) parts: BTreeMap<String, Tests>,
    /// Part → its duration in seconds.
    pub(crate) seconds: BTreeMap<String, u64>,
    /// Test → its duration in seconds, if known.
    pub(crate) seconds_of_tests: BTreeMap<String, f64>,
}

impl Report {
    fn path() -> PathBuf {
        paths::target().join("test-report.json")
    }

    /// Reads the last report; `None` when no test has run yet.
    pub(crate) fn read() -> Result<Option<Self>> {
        let path = Self::path();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        };
        Self::parse(&text).with_context(|| path.display().to_string()).map(Some)
    }

    /// Writes it, replacing the last one.
    pub(crate) fn write(&self) -> Result<()> {
        fs::create_dir_all(paths::target())?;
        let path = Self::path();
        fs::write(&path, self.text()).with_context(|| path.display().to_string())
    }

    fn parse(text: &str) -> Result<Self> {
        let value: Value = serde_json::from_str(text)?;
        let mut report = Self::default();
        for (part, found) in value["parts"].as_object().context("no parts")? {
            let mut tests = Tests::new();
            for (name, word) in found.as_object().context("no tests")? {
                let outcome = word.as_str().and_then(Outcome::parse);
                tests.insert(name.clone(), outcome.with_context(|| format!("{name}: {word}"))?);
            }
            report.parts.insert(part.clone(), tests);
        }
        Ok(report)
    }

    fn text(&self) -> String {
        let words = |tests: &Tests| -> BTreeMap<String, &str> {
            tests.iter().map(|(name, outcome)| (name.clone(), outcome.as_str())).collect()
        };
        let parts: BTreeMap<&String, _> =
            self.parts.iter().map(|(part, tests)| (part, words(tests))).collect();
        let slowest: Vec<Value> = self
            .slowest()
            .into_iter()
            .map(|(name, seconds)| json!({ "test": name, "seconds": seconds }))
            .collect();
        let value = json!({
            "parts": parts,
            "seconds": self.seconds,
            "secondsOfTests": self.seconds_of_tests,
            "slowest": slowest,
        });
        format!("{value:#}\n")
    }

    /// Returns the tests that took longest, the slowest first.
    fn slowest(&self) -> Vec<(&str, f64)> {
        let mut all: Vec<(&str, f64)> =
            self.seconds_of_tests.iter().map(|(name, seconds)| (name.as_str(), *seconds)).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all.truncate(SLOWEST);
        all
    }

    /// Returns the minutes per part, the slowest tests, and the parts that exceeded their share.
    pub(crate) fn times(&self) -> String {
        let mut text = String::from("== times\n");
        for (part, seconds) in &self.seconds {
            let share = shares::share(part).map(|it| format!(" (its share: {it} s)"));
            let share = share.unwrap_or_default();
            text.push_str(&format!("{part}: {} min {} s{share}\n", seconds / 60, seconds % 60));
        }
        for (name, seconds) in self.slowest() {
            text.push_str(&format!("{seconds:.0} s: {name}\n"));
        }
        for (part, seconds) in &self.seconds {
            if let Some(share) = shares::share(part).filter(|it| seconds * 2 > it * 3) {
                text.push_str(&format!(
                    "{part} took {seconds} s, more than 1.5 times its share of {share} s\n"
                ));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_tests_and_parts_beyond_their_share_are_told() {
        let seconds = |it: u64| (format!("a b::t{it}"), f64::from(u32::try_from(it).unwrap()));
        let share = shares::share("unit").unwrap();
        let report = Report {
            seconds: BTreeMap::from([("unit".to_owned(), share * 2), ("deny".to_owned(), 0)]),
            seconds_of_tests: (0..20).map(seconds).collect(),
            ..Report::default()
        };
        let times = report.times();
        assert!(times.contains("19 s: a b::t19\n18 s: a b::t18\n"), "{times}");
        assert!(!times.contains("b::t9\n"), "{times}");
        assert!(times.contains("unit took") && !times.contains("deny took"), "{times}");
    }

    #[test]
    fn what_is_written_is_read_again() {
        let tests = Tests::from([
            ("common a::b".to_owned(), Outcome::Passed),
            ("common a::c".to_owned(), Outcome::Skipped),
        ]);
        let parts =
            BTreeMap::from([("unit".to_owned(), tests), ("chart".to_owned(), Tests::new())]);
        let report = Report { parts, ..Report::default() };
        assert_eq!(Report::parse(&report.text()).unwrap(), report);
        assert!(Report::parse(r#"{"parts": {"unit": {"a": "perhaps"}}}"#).is_err());
    }
}
