//! Where the content of images comes from: Debian, the Python index, and our own crates.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::Tree;
use crate::{packages, paths, sh};

/// What the operators are compiled for.
pub(crate) const TARGET: &str = "x86_64-unknown-linux-gnu";
const OPERATORS: &[&str] = &["dataplane-operator", "nova-operator", "ansibleee-operator"];

/// The programs that building needs, each with the Debian package that has it.
const TOOLS: &[(&[&str], &str)] = &[
    (&["buildah", "--version"], "buildah"),
    (&["mmdebstrap", "--version"], "mmdebstrap"),
    (&["skopeo", "--version"], "skopeo"),
    (&["python3", "-m", "pip", "--version"], "python3-pip"),
];

/// Installs what building images needs and this machine lacks.
pub(super) fn tools() -> Result<()> {
    let missing: Vec<&str> = TOOLS
        .iter()
        .filter(|(words, _)| !sh::succeeds(Command::new(words[0]).args(&words[1..])))
        .map(|(_, package)| *package)
        .collect();
    packages::install(&missing)
}

/// A Debian root file system of the packages that `folder/packages` lists.
pub(super) fn root_file_system(folder: &Path, tar: &Path) -> Result<()> {
    let list = fs::read_to_string(folder.join("packages"))?;
    let packages: Vec<&str> =
        list.lines().map(str::trim).filter(|it| !it.is_empty() && !it.starts_with('#')).collect();
    let mut strap = Command::new("mmdebstrap");
    strap
        .args(["--quiet", "--mode=root", "--variant=minbase"])
        .arg(format!("--aptopt={}", folder.join("apt.conf").display()))
        .arg(format!("--dpkgopt={}", folder.join("dpkg.cfg").display()))
        .arg(format!("--include={}", packages.join(",")))
        .arg("bookworm")
        .arg(tar);
    sh::run(&mut strap).map(drop)
}

/// The folder of the wheels that a lock file pins, downloaded once for each content of it.
///
/// # Guarantees
/// Nothing but the pinned files: pip compares each with its hash.
pub(super) fn wheels(lock: &Path) -> Result<PathBuf> {
    let content = fs::read(lock).with_context(|| format!("read {}", lock.display()))?;
    let folder = paths::cache().join("wheels").join(&sh::sha256(&content)[..12]);
    if folder.is_dir() {
        return Ok(folder);
    }
    let fresh = folder.with_extension("new");
    fs::create_dir_all(&fresh)?;
    // The images' Python is Debian's, whatever the machine has.
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"])
        .args(["--only-binary", ":all:", "--implementation", "cp", "--python-version", "3.11"])
        .arg("--dest")
        .arg(&fresh)
        .arg("--requirement")
        .arg(lock);
    sh::run(&mut pip)?;
    fs::rename(&fresh, &folder)?;
    Ok(folder)
}

/// The folder of the operators' programs.
pub(super) fn operators(tree: &Tree) -> Result<PathBuf> {
    if let Some(programs) = &tree.programs {
        return Ok(programs.clone());
    }
    let folder = paths::target().join("operators");
    sh::step("compile the operators", || {
        compile(&tree.root, &std::path::absolute(paths::compiled())?, &folder)
    })?;
    Ok(folder)
}

/// Compiles the operators of a source tree in `target`, so that they need no library, and copies the
/// programs into a folder.
pub(crate) fn compile(root: &Path, target: &Path, folder: &Path) -> Result<()> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root).env("CARGO_TARGET_DIR", target);
    cargo.env("RUSTFLAGS", "-C target-feature=+crt-static");
    cargo.args(["build", "--quiet", "--locked", "--release", "--target", TARGET]);
    for operator in OPERATORS {
        cargo.args(["--package", operator]);
    }
    sh::run(&mut cargo)?;
    fs::create_dir_all(folder)?;
    for operator in OPERATORS {
        let program = target.join(TARGET).join("release").join(operator);
        if !program.is_file() {
            bail!("cargo built no {}", program.display());
        }
        fs::copy(&program, folder.join(operator))?;
    }
    Ok(())
}
