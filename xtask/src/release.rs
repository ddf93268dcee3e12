//! The previous release: its sources, from the repository's history, and its programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use crate::images::sources::{Profile, compile, emptied};
use crate::images::{Programs, Tree};
use crate::{paths, sh};

/// The commit of the previous release, from which upgrades are tested.
///
/// The first commit after each release sets it to the released commit.
const BEFORE: &str = "9b1772ccd1a92ae26f98760b747e416acacc1e86";

/// Whether the previous release is available: built already, or in the history.
///
/// # Errors
///
/// A full history that lacks the commit is a mistake, and not a reason to skip a test.
pub(crate) fn can_be_had() -> Result<bool> {
    if folder().join("operators").is_dir() || sh::succeeds(&mut is_there()) {
        return Ok(true);
    }
    let mut shallow = git();
    shallow.args(["rev-parse", "--is-shallow-repository"]);
    // Without git, or outside a clone, there is no history either.
    let is_whole = sh::run(&mut shallow).is_ok_and(|it| it.trim() == "false");
    ensure!(!is_whole, "the history has no commit {BEFORE}, which is to be the release before");
    println!(
        "no upgrade is tested: this is no clone with the commit {BEFORE}, the release before (git \
         fetch --unshallow brings it)"
    );
    Ok(false)
}

/// Returns the sources and programs of the previous release, kept in the cache.
pub(crate) fn before() -> Result<Tree> {
    let _lock = sh::lock("release")?;
    let folder = folder();
    let (root, programs) = (folder.join("source"), folder.join("operators"));
    if !root.is_dir() {
        sh::step("take the release before from the history", || unpack(&folder, &root))?;
    }
    if !programs.is_dir() {
        sh::step("compile the operators of the release before", || build(&root, &programs))?;
    }
    Ok(Tree { root, programs: Programs::Made(programs) })
}

fn folder() -> PathBuf {
    paths::cache().join("releases").join(&BEFORE[..12])
}

fn is_there() -> Command {
    let mut is_there = git();
    is_there.args(["cat-file", "-e", &format!("{BEFORE}^{{commit}}")]);
    is_there
}

fn unpack(folder: &Path, root: &Path) -> Result<()> {
    let fresh = emptied(&root.with_extension("new"))?;
    let archive = folder.join("source.tar");
    sh::run(git().args(["archive", "--format=tar", "--output"]).arg(&archive).arg(BEFORE))?;
    sh::run(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&fresh))?;
    fs::remove_file(&archive)?;
    Ok(fs::rename(&fresh, root)?)
}

fn git() -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(paths::repo());
    git
}

fn build(root: &Path, programs: &Path) -> Result<()> {
    let target = emptied(&std::path::absolute(paths::compiled())?.join("release-before"))?;
    let fresh = emptied(&programs.with_extension("new"))?;
    compile(root, Profile::Dev, &target, &fresh)?;
    fs::remove_dir_all(&target)?;
    Ok(fs::rename(&fresh, programs)?)
}
