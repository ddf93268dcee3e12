//! The release before this one: its sources, taken from the repository's history, and its programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::images::Tree;
use crate::images::sources::{TARGET, compile};
use crate::{paths, sh};

/// The commit of the release before: upgrades are tested from there.
///
/// It moves with each release, in the first commit after it, to the commit that was released.
const BEFORE: &str = "9b1772ccd1a92ae26f98760b747e416acacc1e86";

/// The crates of this repository; what is compiled of them says nothing about another commit.
const CRATES: [&str; 12] = [
    "ansibleee-operator",
    "common",
    "config-drive",
    "dataplane-operator",
    "e2e",
    "ironic",
    "ironic-client",
    "kubectl-edpm",
    "nova-operator",
    "shell",
    "simulated-cluster",
    "xtask",
];

/// Whether the release before can be had: it is made already, or the history reaches back to it.
///
/// # Errors
/// A whole history that lacks it is a mistake, and not a reason to leave a test out.
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

/// The sources and programs of the release before, kept in the cache once they are made.
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
    Ok(Tree { root, programs: Some(programs) })
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
    let compiled = std::path::absolute(paths::compiled())?;
    let target = emptied(&compiled.join("release-before"))?;
    for part in ["release".to_owned(), format!("{TARGET}/release")] {
        seed(&compiled.join(&part), &target.join(&part))?;
    }
    let fresh = emptied(&programs.with_extension("new"))?;
    compile(root, &target, &fresh)?;
    fs::remove_dir_all(&target)?;
    Ok(fs::rename(&fresh, programs)?)
}

/// Begins with the dependencies as they are compiled already, for most of them are the same: links,
/// which cost no disk, without anything of our own crates.
fn seed(from: &Path, to: &Path) -> Result<()> {
    if !from.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(to)?;
    for part in [".fingerprint", "build", "deps"] {
        let part = from.join(part);
        if part.is_dir() {
            sh::run(Command::new("cp").arg("-al").arg(&part).arg(to))?;
        }
    }
    for part in [".fingerprint", "build", "deps"] {
        let Ok(entries) = fs::read_dir(to.join(part)) else { continue };
        for entry in entries {
            let entry = entry?;
            if !is_ours(&entry.file_name().to_string_lossy()) {
                continue;
            }
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
    }
    Ok(())
}

/// Whether cargo keeps something of one of our crates under this name: `libcommon-1f….rlib`,
/// `nova_operator-1f….d`, `nova-operator-1f…`.
fn is_ours(file: &str) -> bool {
    let Some((name, _)) = file.rsplit_once('-') else { return false };
    let name = name.strip_prefix("lib").unwrap_or(name).replace('_', "-");
    CRATES.contains(&name.as_str())
}

/// An empty folder of that name.
fn emptied(folder: &Path) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    Ok(folder.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_compiled_of_our_own_crates_is_left_out() {
        let ours = ["libcommon-1f.rlib", "nova_operator-1f.d", "nova-operator-1f", "shell-1f"];
        assert_eq!(ours.map(is_ours), [true; 4]);
        let others = ["libkube_core-1f.rlib", "shell-words-1f", "libcommon_macros-1f.so", "x"];
        assert_eq!(others.map(is_ours), [false; 4]);
    }

    #[test]
    fn every_crate_of_the_workspace_is_known() {
        let manifests = fs::read_dir(paths::repo().join("crates")).unwrap();
        let found = manifests.map(|it| it.unwrap().file_name().into_string().unwrap());
        let mut found: Vec<String> = found.chain(["e2e".into(), "xtask".into()]).collect();
        found.sort();
        assert_eq!(found, CRATES);
    }
}
