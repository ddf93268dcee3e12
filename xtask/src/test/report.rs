//! What the last tests came to, as a file: each part that ran, and each of its tests by name.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{fs, io};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::outcome::{Outcome, Tests};
use crate::paths;

/// The parts that ran, with their tests.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Report {
    /// Part → its tests.
    pub(crate) parts: BTreeMap<String, Tests>,
}

impl Report {
    fn path() -> PathBuf {
        paths::target().join("test-report.json")
    }

    /// The last report; `None` where no test has run yet.
    pub(crate) fn read() -> Result<Option<Self>> {
        let path = Self::path();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        };
        Self::parse(&text).with_context(|| path.display().to_string()).map(Some)
    }

    /// Writes it in place of the last one.
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
        format!("{:#}\n", json!({ "parts": parts }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let tests = Tests::from([
            ("common a::b".to_owned(), Outcome::Passed),
            ("common a::c".to_owned(), Outcome::Skipped),
        ]);
        let parts =
            BTreeMap::from([("unit".to_owned(), tests), ("chart".to_owned(), Tests::new())]);
        let report = Report { parts };
        assert_eq!(Report::parse(&report.text()).unwrap(), report);
        assert!(Report::parse(r#"{"parts": {"unit": {"a": "perhaps"}}}"#).is_err());
    }
}
