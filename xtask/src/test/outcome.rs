//! The outcome of each test by its name, parsed from the output of test runners.

use std::collections::BTreeMap;

/// The outcome of a test.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    /// It passed.
    Passed,
    /// It failed.
    Failed,
    /// It did not run.
    Skipped,
}

/// Test name → outcome.
pub(crate) type Tests = BTreeMap<String, Outcome>;

impl Outcome {
    const ALL: [Self; 3] = [Self::Passed, Self::Failed, Self::Skipped];

    /// Returns the outcome of a check.
    pub(crate) fn of(holds: bool) -> Self {
        if holds { Self::Passed } else { Self::Failed }
    }

    /// Returns the word for the report.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }

    /// Parses the word in the report.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }
}

/// Parses a line about a test: `test a::b ... ok` of Rust, `test_b (a.A.test_b) ... ok` of Python.
pub(crate) fn of_line(line: &str) -> Option<(String, Outcome)> {
    let (name, end) = line.trim().split_once(" ... ")?;
    let outcome = match end.split([' ', ',']).next()? {
        "ok" => Outcome::Passed,
        "FAILED" | "FAIL" | "ERROR" => Outcome::Failed,
        "ignored" | "skipped" => Outcome::Skipped,
        _ => return None,
    };
    let name = match (name.strip_prefix("test "), name.split_once(" (")) {
        (Some(name), _) => name.strip_suffix(" - should panic").unwrap_or(name),
        // The line of a failed Python subtest contains the test's name too.
        (None, Some((_, id))) => id.split_once(')')?.0,
        (None, None) => return None,
    };
    Some((name.to_owned(), outcome))
}

/// Parses the duration of a test in a line of Rust's harness: `test a ... ok <1.234s>`.
pub(crate) fn seconds_of(line: &str) -> Option<f64> {
    line.trim().rsplit_once(" <")?.1.strip_suffix("s>")?.parse().ok()
}

/// Whether the line is from a runner that runs tests one after the other, as Python's does.
pub(crate) fn is_one_by_one(line: &str) -> bool {
    !line.trim_start().starts_with("test ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_outcomes_are_read_from_what_runners_print() {
        let of = |line| of_line(line).map(|(name, outcome)| (name, outcome.as_str()));
        let is = |name: &str, outcome| Some((name.to_owned(), outcome));
        assert_eq!(
            of("test group::tests::it_holds ... ok"),
            is("group::tests::it_holds", "passed")
        );
        assert_eq!(of("test a::b ... FAILED"), is("a::b", "failed"));
        assert_eq!(of("test a::b ... ignored, needs Helm"), is("a::b", "skipped"));
        assert_eq!(of("test a::b - should panic ... ok"), is("a::b", "passed"));
        assert_eq!(of("test_b (test_a.A.test_b) ... ok"), is("test_a.A.test_b", "passed"));
        assert_eq!(of("test_b (test_a.A.test_b) ... FAIL"), is("test_a.A.test_b", "failed"));
        assert_eq!(of("test_b (t.A.test_b) ... skipped 'no'"), is("t.A.test_b", "skipped"));
        assert_eq!(of("  test_b (t.A.test_b) (i=1) ... FAIL"), is("t.A.test_b", "failed"));
        for line in ["running 3 tests", "test a has been running for over 60 seconds", "x ... ok"] {
            assert_eq!(of(line), None, "{line}");
        }
    }

    #[test]
    fn the_time_of_a_test_is_read_where_it_is_told() {
        assert_eq!(seconds_of("test a::b ... ok <1.250s>"), Some(1.25));
        assert_eq!(seconds_of("test a::b ... ok"), None);
        assert_eq!(of_line("test a::b ... ok <1.250s>"), Some(("a::b".into(), Outcome::Passed)));
    }

    #[test]
    fn an_outcome_is_known_by_its_word() {
        for outcome in Outcome::ALL {
            assert_eq!(Outcome::parse(outcome.as_str()), Some(outcome));
        }
        assert_eq!(Outcome::parse("ok"), None);
    }
}
