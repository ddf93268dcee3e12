//! How many tests passed and failed, read from what test runners print.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::ops::AddAssign;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

/// Tests that passed and failed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Count {
    /// How many passed.
    pub(crate) passed: usize,
    /// How many failed.
    pub(crate) failed: usize,
}

impl Count {
    /// One that passed.
    pub(crate) fn one() -> Self {
        Self { passed: 1, failed: 0 }
    }

    /// What a line says: `test result: ok. 3 passed; 1 failed; …` or `3 passed, 1 failed`.
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

/// Runs a test runner, shows what it prints and adds up what it counts.
///
/// A runner that fails without a failed test, or counts no test, is one failure.
pub(crate) fn counted(mut command: Command) -> Result<Count> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let stdout = child.stdout.take().context("no stdout")?;
    let mut count = Count::default();
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        match Count::of_line(&line) {
            Some(found) => count += found,
            None if line.trim().is_empty() => {}
            None => println!("{line}"),
        }
    }
    let is_good = child.wait()?.success();
    if (!is_good && count.failed == 0) || count == Count::default() {
        count.failed += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(passed: usize, failed: usize) -> Count {
        Count { passed, failed }
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
        assert_eq!(counted(Command::new("true")).unwrap(), count(0, 1));
        let mut runner = Command::new("sh");
        runner.args(["-c", "echo 2 passed, 0 failed; exit 1"]);
        assert_eq!(counted(runner).unwrap(), count(2, 1));
    }
}
