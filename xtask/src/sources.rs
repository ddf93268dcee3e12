//! The source files of the project, and their text without tests.

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

/// Returns a file's text up to the tests at its end.
pub(crate) fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod ").next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

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
