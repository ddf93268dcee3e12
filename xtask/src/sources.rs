//! The source files of the project, and which of their lines are tests.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::{paths, sh};

/// Returns every file below a directory with this ending that git tracks or does not ignore.
pub(crate) fn files(folder: &str, ending: &str) -> Result<Vec<PathBuf>> {
    let mut git = Command::new("git");
    // The checkout may belong to another user than the one who runs this.
    git.args([
        "-c",
        "safe.directory=*",
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        folder,
    ]);
    git.current_dir(paths::repo());
    let list = sh::run(&mut git)?;
    let files = list.lines().filter(|it| it.ends_with(ending)).map(|it| paths::repo().join(it));
    Ok(files.filter(|it| it.exists()).collect())
}

/// The lines of a source file.
#[derive(Debug, Default, Eq, PartialEq)]
pub(crate) struct Parts<'a> {
    /// Those that are compiled for users.
    pub(crate) code: Vec<&'a str>,
    /// Those of items that are compiled for tests alone.
    pub(crate) tests: Vec<&'a str>,
}

/// What [`parts`] is reading.
enum Reading<'a> {
    Code,
    /// An item for tests, whose first line has this indentation.
    Item(&'a str),
    /// A module of tests in the same file: clippy lets nothing follow it.
    Rest,
}

/// Divides the lines of a file as rustfmt writes it.
pub(crate) fn parts(text: &str) -> Parts<'_> {
    let mut parts = Parts::default();
    let mut reading = Reading::Code;
    for line in text.lines() {
        let words = line.trim_start();
        let indent = &line[..line.len() - words.len()];
        if matches!(reading, Reading::Code) {
            if !is_for_tests(words) {
                parts.code.push(line);
                continue;
            }
            reading = Reading::Item(indent);
        } else if let Reading::Item(of_item) = reading
            && of_item == indent
            && !words.starts_with(['#', '/'])
        {
            if indent.is_empty() && words.ends_with('{') && words.contains("mod ") {
                reading = Reading::Rest;
            } else if words.ends_with([';', '}', ',']) {
                reading = Reading::Code;
            }
        }
        parts.tests.push(line);
    }
    parts
}

/// Whether a line is an attribute by which an item is compiled for tests alone.
fn is_for_tests(line: &str) -> bool {
    let mut words = line.split(|it: char| !it.is_alphanumeric() && it != '_');
    line.starts_with("#[cfg(") && !line.contains("not(") && words.any(|it| it == "test")
}

/// Returns a file's text without the items that are compiled for tests alone.
#[cfg(test)]
pub(crate) fn without_tests(text: &str) -> String {
    parts(text).code.into_iter().flat_map(|it| [it, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compiled_for_tests_alone_is_divided_from_the_code() {
        // Lines of tests are marked.
        let marked = "mod a;
t#[cfg(test)]
t#[path = \"x_tests.rs\"]
tmod x;
t#[cfg(any(test, fuzzing))]
tpub mod fuzzing;
mod b;

#[cfg(not(test))]
fn c() {}

impl D {
t    #[cfg(test)]
t    /// For tests;
t    fn e(
t        self,
t    ) -> Self {
t        self
t    }

    fn f(&self) {}
}

t#[cfg(test)]
tpub(crate) mod tests {
t    const JSON: &str = \"{
t}\";
t
t    fn g() {}
t}
";
        let line = |it: &'static str| it.strip_prefix('t').unwrap_or(it);
        let text: String = marked.lines().flat_map(|it| [line(it), "\n"]).collect();
        let (tests, code): (Vec<&str>, Vec<&str>) =
            marked.lines().partition(|it| it.starts_with('t'));
        let tests = tests.into_iter().map(line).collect();
        assert_eq!(parts(&text), Parts { code, tests });
        assert!(without_tests(&text).ends_with("    fn f(&self) {}\n}\n\n"));
    }

    /// `cargo test --doc` costs a minute and a half of the compiler's time where there are none, too.
    #[test]
    fn doc_comments_have_no_examples_because_nothing_runs_them() {
        let has_example = |line: &str| {
            let comment = line.trim_start();
            let text = comment.strip_prefix("///").or_else(|| comment.strip_prefix("//!"));
            text.is_some_and(|it| it.trim_start().starts_with("```"))
        };
        assert!(has_example("    /// ```"));
        for file in ["crates", "e2e", "xtask"].iter().flat_map(|it| files(it, ".rs").unwrap()) {
            let text = std::fs::read_to_string(&file).unwrap();
            let found = text.lines().position(has_example);
            assert_eq!(found, None, "{}", file.display());
        }
    }
}
