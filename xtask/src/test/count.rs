//! Counts tests and their outcomes in the output of test runners.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, BufReader};
use std::ops::AddAssign;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};

use super::outcome::{self, Outcome, Tests};

/// The number of tests that passed and failed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Count {
    /// Passed tests.
    pub(crate) passed: usize,
    /// Failed tests.
    pub(crate) failed: usize,
}

impl Count {
    /// Parses a result line: `test result: ok. 3 passed; 1 failed; …` or `3 passed, 1 failed`.
    fn of_line(line: &str) -> Option<Self> {
        let line = line.trim();
        let is_result = line.starts_with("test result:") || line.ends_with(" failed");
        let words: Vec<&str> = line.split_whitespace().collect();
        let before = |name: &str| {
            let idx = words.iter().position(|it| it.trim_end_matches([',', ';']) == name)?;
            words.get(idx.checked_sub(1)?)?.parse().ok()
        };
        let count = Self { passed: before("passed")?, failed: before("failed")? };
        is_result.then_some(count)
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// The result of a part of the tests.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Found {
    /// The number of tests that passed and failed.
    pub(crate) count: Count,
    /// The outcome of each.
    pub(crate) tests: Tests,
    /// Test → its duration in seconds, if known.
    pub(crate) seconds: BTreeMap<String, f64>,
}

impl Found {
    /// Returns the result of one test.
    pub(crate) fn one(name: &str, outcome: Outcome) -> Self {
        let mut found = Self::default();
        found.add(name.to_owned(), outcome);
        found
    }

    /// Adds the outcome of a test.
    pub(crate) fn add(&mut self, name: String, outcome: Outcome) {
        match outcome {
            Outcome::Passed => self.count.passed += 1,
            Outcome::Failed => self.count.failed += 1,
            Outcome::Skipped => {}
        }
        self.tests.insert(name, outcome);
    }

    /// Returns the names of the tests that failed.
    pub(crate) fn failed(&self) -> impl Iterator<Item = &str> {
        self.tests.iter().filter(|it| *it.1 == Outcome::Failed).map(|it| it.0.as_str())
    }
}

impl AddAssign for Found {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.tests.extend(other.tests);
        self.seconds.extend(other.seconds);
    }
}

/// Which lines about single tests are printed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Shown {
    /// All of them, for slow tests.
    All,
    /// Only those of tests that did not pass.
    Bad,
}

/// Runs a test runner, prints its output, and collects its counts and the names of its tests.
///
/// Each name is prefixed. A runner that fails without a failed test, prints no result, or does not
/// name each test that it counts, is one failure.
pub(crate) fn counted(mut command: Command, prefix: &str, shown: Shown) -> Result<Found> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let stdout = child.stdout.take().context("no stdout")?;
    let mut found = Found::default();
    let (mut count, mut last_end) = (None, None::<Instant>);
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        let test = outcome::of_line(&line);
        let is_good = test.as_ref().is_some_and(|it| it.1 == Outcome::Passed);
        if let Some(result) = Count::of_line(&line) {
            *count.get_or_insert_default() += result;
        } else if !is_noise(&line) && (shown == Shown::All || !is_good) {
            println!("{}{line}", label());
        }
        if let Some((name, outcome)) = test {
            let name = format!("{prefix}{name}");
            // The start of the first test is unknown, because its setup comes before.
            let since_last = last_end.replace(Instant::now()).map(|it| it.elapsed().as_secs_f64());
            let seconds = outcome::seconds_of(&line)
                .or_else(|| since_last.filter(|_| outcome::is_one_by_one(&line)));
            found.seconds.extend(seconds.map(|it| (name.clone(), it)));
            found.add(name, outcome);
        }
    }
    let n_named = found.count.passed;
    found.count = count.unwrap_or_default();
    let is_good = child.wait()?.success();
    if n_named != found.count.passed {
        println!("{prefix}: {} passed, but {n_named} of them were named", found.count.passed);
        found.count.failed += 1;
    } else if (!is_good && found.count.failed == 0) || count.is_none() {
        found.count.failed += 1;
    }
    Ok(found)
}

/// Returns the prefix of a parallel part's lines: the name of its thread.
pub(super) fn label() -> String {
    let name = std::thread::current().name().filter(|it| *it != "main").map(str::to_owned);
    name.map(|it| format!("{it}| ")).unwrap_or_default()
}

fn is_noise(line: &str) -> bool {
    let is_start =
        line.starts_with("running ") && (line.ends_with(" tests") || line.ends_with(" test"));
    line.trim().is_empty() || is_start
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(passed: usize, failed: usize) -> Count {
        Count { passed, failed }
    }

    fn printed(text: &str, code: i32) -> Found {
        let mut runner = Command::new("sh");
        runner.args(["-c", &format!("printf '{text}'; exit {code}")]);
        counted(runner, "x ", Shown::Bad).unwrap()
    }

    #[test]
    fn results_are_read_and_other_lines_are_not() {
        let rust = "test result: FAILED. 51 passed; 2 failed; 0 ignored; finished in 1.67s";
        assert_eq!(Count::of_line(rust), Some(count(51, 2)));
        assert_eq!(Count::of_line("12 passed, 0 failed"), Some(count(12, 0)));
        assert_eq!(Count::of_line("test a_thing_passed ... ok"), None);
        assert_eq!(Count::of_line("it passed, then it failed"), None);
    }

    #[test]
    fn a_runner_that_counts_nothing_has_failed() {
        let found = counted(Command::new("true"), "", Shown::Bad).unwrap();
        assert_eq!(found.count, count(0, 1));
        assert_eq!(printed("test a ... ok\n1 passed, 0 failed\n", 1).count, count(1, 1));
        assert_eq!(printed("test result: ok. 0 passed; 0 failed;\n", 0).count, count(0, 0));
    }

    #[test]
    fn each_test_is_named_and_counted() {
        let text = "test a ... ok\ntest b ... FAILED\ntest c ... ignored\n1 passed, 1 failed\n";
        let found = printed(text, 1);
        assert_eq!(found.count, count(1, 1));
        let outcomes = [Outcome::Passed, Outcome::Failed, Outcome::Skipped];
        let names = ["x a", "x b", "x c"].map(str::to_owned);
        assert_eq!(found.tests, names.into_iter().zip(outcomes).collect());
    }

    #[test]
    fn a_test_takes_the_time_that_is_told_or_since_the_one_before() {
        let text = "test a ... ok <1.5s>\ntest b ... ok\nb (x.b) ... ok\n3 passed, 0 failed\n";
        let found = printed(text, 0);
        assert_eq!(found.seconds.get("x a"), Some(&1.5));
        assert!(found.seconds["x x.b"] < 1.0 && !found.seconds.contains_key("x b"));
        let first = printed("b (x.b) ... ok\n1 passed, 0 failed\n", 0);
        assert!(first.seconds.is_empty());
    }

    #[test]
    fn a_test_that_is_counted_and_not_named_is_a_failure() {
        assert_eq!(printed("test a ... ok\n2 passed, 0 failed\n", 0).count, count(2, 1));
    }
}
