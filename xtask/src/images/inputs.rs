//! The inputs of an image: its files, and the tag computed from them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::{Tree, sources};
use crate::sh;

/// Increased when the build changes so that equal inputs give another image.
const REVISION: &str = "1";

/// An input of an image besides its own directory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extra {
    /// A Debian root file system of the packages listed in `packages`.
    RootFs,
    /// The Python packages that `requirements.lock` pins, mounted at `/wheels` while building.
    Wheels,
    /// A directory of the repository, at `to` in the build context.
    Folder { from: &'static str, to: &'static str },
    /// The operators' programs, and their libraries.
    Operators,
}

/// The files of a build context, by their path in it.
pub(super) struct Context {
    files: BTreeMap<String, PathBuf>,
    content: Vec<u8>,
}

/// Returns the directory of an image's own files.
pub(super) fn folder(tree: &Tree, name: &str) -> PathBuf {
    tree.root.join("lab/images").join(name)
}

/// Collects an image's files; programs are compiled here, because their content is an input.
pub(super) fn collect(tree: &Tree, name: &str, extra: &[Extra]) -> Result<Context> {
    let mut context = Context { files: BTreeMap::new(), content: Vec::new() };
    context.add(&folder(tree, name), "")?;
    for it in extra {
        match it {
            Extra::Folder { from, to } => context.add(&tree.root.join(from), to)?,
            Extra::Operators => context.add(&sources::operators(tree)?, tree.programs.place())?,
            // Both are determined by files of the image's own directory.
            Extra::RootFs | Extra::Wheels => {}
        }
    }
    context.content = context.describe()?;
    Ok(context)
}

impl Context {
    fn add(&mut self, path: &Path, name: &str) -> Result<()> {
        let about = path.symlink_metadata().with_context(|| format!("{}", path.display()))?;
        if about.is_file() {
            self.files.insert(name.to_owned(), path.to_path_buf());
            return Ok(());
        }
        if !about.is_dir() {
            bail!("{} is neither a file nor a folder", path.display());
        }
        for entry in fs::read_dir(path).with_context(|| format!("read {}", path.display()))? {
            let entry = entry?;
            let child = entry.file_name().to_string_lossy().into_owned();
            if child == "__pycache__" {
                continue;
            }
            let inside = if name.is_empty() { child } else { format!("{name}/{child}") };
            self.add(&entry.path(), &inside)?;
        }
        Ok(())
    }

    /// Returns one line per file: its path, whether it is executable, and its hash.
    fn describe(&self) -> Result<Vec<u8>> {
        let mut lines = String::new();
        for (name, path) in &self.files {
            let content = fs::read(path).with_context(|| format!("read {}", path.display()))?;
            lines += &format!("{} {} {name}\n", mode(path)?, sh::sha256(&content));
        }
        Ok(lines.into_bytes())
    }

    /// Returns the tag, twelve hex digits of a hash of these files and `parent`.
    pub(super) fn tag(&self, parent: &str) -> String {
        let mut input = format!("{REVISION}\n{parent}\n").into_bytes();
        input.extend(&self.content);
        sh::sha256(&input)[..12].to_owned()
    }

    /// Copies the files into an empty directory, with modes that do not depend on the user's umask.
    pub(super) fn stage(&self, into: &Path) -> Result<()> {
        for (name, path) in &self.files {
            let target = into.join(name);
            if let Some(folder) = target.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::copy(path, &target).with_context(|| format!("copy {}", path.display()))?;
            fs::set_permissions(&target, fs::Permissions::from_mode(mode(path)?))?;
        }
        Ok(())
    }
}

/// Returns 0755 for files that are executable for their owner, else 0644, as git does.
fn mode(path: &Path) -> Result<u32> {
    let executable = path.metadata()?.permissions().mode() & 0o100 != 0;
    Ok(if executable { 0o755 } else { 0o644 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(content: &str) -> Context {
        Context { files: BTreeMap::new(), content: content.as_bytes().to_vec() }
    }

    #[test]
    fn a_tag_follows_the_files_and_the_parent() {
        let tag = context("a").tag("parent");
        assert_eq!(tag.len(), 12);
        assert_eq!(tag, context("a").tag("parent"));
        assert_ne!(tag, context("b").tag("parent"));
        assert_ne!(tag, context("a").tag("other"));
    }

    #[test]
    fn byte_code_is_no_input() {
        let extra = [Extra::Folder { from: "ansible", to: "ansible" }];
        let seen = collect(&Tree::present(), "kolla", &extra).unwrap();
        assert!(seen.files.contains_key("Containerfile"));
        assert!(!seen.files.keys().any(|it| it.contains("__pycache__")));
    }
}
