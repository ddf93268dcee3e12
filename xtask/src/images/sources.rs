//! The sources of the images' content: Debian, the Python index, and this project's crates.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Programs, Tree};
use crate::{packages, paths, sh};

/// The compilation target of the operators.
const TARGET: &str = "x86_64-unknown-linux-gnu";
const OPERATORS: &[&str] = &["dataplane-operator", "nova-operator", "ansibleee-operator"];

/// The programs that builds need, each with its Debian package.
const TOOLS: &[(&[&str], &str)] = &[
    (&["buildah", "--version"], "buildah"),
    (&["mmdebstrap", "--version"], "mmdebstrap"),
    (&["skopeo", "--version"], "skopeo"),
    (&["python3", "-m", "pip", "--version"], "python3-pip"),
];

/// Installs the missing programs for building images.
pub(super) fn tools() -> Result<()> {
    let missing: Vec<&str> = TOOLS
        .iter()
        .filter(|(words, _)| !sh::succeeds(Command::new(words[0]).args(&words[1..])))
        .map(|(_, package)| *package)
        .collect();
    packages::install(&missing)
}

/// Creates a Debian root file system of the packages that `folder/packages` lists.
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

/// Returns the directory of the wheels that a lock file pins, downloaded once per content.
///
/// # Guarantees
///
/// Only the pinned files: pip verifies the hash of each.
pub(super) fn wheels(lock: &Path) -> Result<PathBuf> {
    let content = fs::read(lock).with_context(|| format!("read {}", lock.display()))?;
    let folder = paths::cache().join("wheels").join(&sh::sha256(&content)[..12]);
    if folder.is_dir() {
        return Ok(folder);
    }
    let fresh = folder.with_extension("new");
    fs::create_dir_all(&fresh)?;
    // The images have Debian's Python, which may differ from the machine's.
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

/// Returns the directory of a file system with the operators' programs and their libraries.
pub(super) fn operators(tree: &Tree) -> Result<PathBuf> {
    let target = std::path::absolute(paths::compiled())?;
    match &tree.programs {
        Programs::Made(folder) => Ok(folder.clone()),
        Programs::AsTested => sh::step("compile the operators", || as_tested(tree, &target)),
        Programs::Optimized => sh::step("compile and optimize the operators", || {
            let folder = paths::target().join("operators/optimized");
            compile(&tree.root, Profile::Release, &target, &programs_in(&emptied(&folder)?))?;
            Ok(folder)
        }),
    }
}

/// Compiles the programs that the tests run, and copies this machine's libraries beside them.
fn as_tested(tree: &Tree, target: &Path) -> Result<PathBuf> {
    let mut cargo = sh::cargo();
    cargo.current_dir(&tree.root).env("CARGO_TARGET_DIR", target);
    // The whole workspace, so that features are those of the tests.
    sh::run(cargo.args(["build", "--quiet", "--locked", "--workspace", "--bins"]))?;
    let folder = emptied(&paths::target().join("operators/as-tested"))?;
    take(&target.join("debug"), &programs_in(&folder))?;
    for operator in OPERATORS {
        let program = programs_in(&folder).join(operator);
        for library in libraries(&sh::run(Command::new("ldd").arg(&program))?) {
            let copy = folder.join(library.trim_start_matches('/'));
            fs::create_dir_all(copy.parent().unwrap_or(&folder))?;
            fs::copy(library, &copy).with_context(|| format!("copy {library}"))?;
        }
    }
    Ok(folder)
}

/// Returns the files that `ldd` lists: the libraries with their full paths, and the loader.
fn libraries(ldd: &str) -> impl Iterator<Item = &str> {
    ldd.split_whitespace().filter(|it| it.starts_with('/'))
}

/// Returns the directory of programs in an image.
fn programs_in(file_system: &Path) -> PathBuf {
    file_system.join("usr/local/bin")
}

/// The build profile of statically linked operators.
#[derive(Clone, Copy)]
pub(crate) enum Profile {
    /// Fast to compile.
    Dev,
    /// As released.
    Release,
}

/// Compiles the operators of a source tree in `target`, statically linked, and copies the programs
/// into a directory.
pub(crate) fn compile(root: &Path, profile: Profile, target: &Path, folder: &Path) -> Result<()> {
    let mut cargo = sh::cargo();
    cargo.current_dir(root).env("CARGO_TARGET_DIR", target);
    cargo.env("RUSTFLAGS", "-C target-feature=+crt-static");
    let (name, compiled) = match profile {
        Profile::Dev => ("dev", "debug"),
        Profile::Release => ("release", "release"),
    };
    cargo.args(["build", "--quiet", "--locked", "--profile", name, "--target", TARGET]);
    for operator in OPERATORS {
        cargo.args(["--package", operator]);
    }
    sh::run(&mut cargo)?;
    take(&target.join(TARGET).join(compiled), folder)
}

/// Copies the operators' programs from one folder to another.
fn take(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for operator in OPERATORS {
        let program = from.join(operator);
        ensure!(program.is_file(), "cargo built no {}", program.display());
        fs::copy(&program, to.join(operator))?;
    }
    Ok(())
}

/// Returns an empty directory of that name.
pub(crate) fn emptied(folder: &Path) -> Result<PathBuf> {
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
    fn libraries_are_taken_with_what_loads_them() {
        let ldd = "\tlinux-vdso.so.1 (0x00007fb9)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 \
                   (0x00007fb9)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007fb9)\n";
        let found: Vec<&str> = libraries(ldd).collect();
        assert_eq!(found, ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"]);
        assert_eq!(libraries("\tstatically linked\n").count(), 0);
    }
}
