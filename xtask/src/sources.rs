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
