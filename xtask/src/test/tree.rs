//! The tree that tests run from: at one path, whatever the checkout's, so that cargo finds what it has
//! compiled before.
//!
//! Cargo tells by path and time whether a file has changed, so a fresh clone would be compiled anew. The
//! tree gets the content of the checkout, and only what differs is written.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::{paths, sh};

/// Runs this command from the tree and says whether it succeeded; `None` where it is there already, or
/// where the sources are no clone.
pub(super) fn in_cache() -> Result<Option<bool>> {
    let (checkout, tree) = (paths::repo(), Tree::in_cache());
    if checkout == tree.root {
        return Ok(None);
    }
    let Ok(git_dir) =
        sh::run(git().arg("-C").arg(&checkout).args(["rev-parse", "--absolute-git-dir"]))
    else {
        println!("{} is no clone: the tests are compiled where they are", checkout.display());
        return Ok(None);
    };
    let _lock = sh::lock("tree")?;
    tree.follow(&checkout, Path::new(git_dir.trim()))?;
    let mut cargo = Command::new("cargo");
    // The folder stays the one in which the command was given: paths in its arguments are meant so.
    cargo.args(["run", "--quiet", "--package", "xtask", "--manifest-path"]);
    cargo.arg(tree.root.join("Cargo.toml")).arg("--").args(std::env::args_os().skip(1));
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| paths::cache().join("target"));
    cargo.env("CARGO_TARGET_DIR", std::path::absolute(target)?);
    // Whatever is compiled is compiled once: notes for the next time would only cost time.
    cargo.env("CARGO_INCREMENTAL", "0");
    let status = cargo.status().context("start cargo in the tree")?;
    Ok(Some(status.success()))
}

/// A folder with the content of a checkout, and git's index of it.
struct Tree {
    root: PathBuf,
    index: PathBuf,
}

impl Tree {
    fn in_cache() -> Self {
        let cache = paths::cache();
        Self { root: cache.join("tree"), index: cache.join("tree.index") }
    }

    /// Makes its files those of the checkout, with what is not committed there and not ignored; what is the
    /// same keeps its time.
    fn follow(&self, checkout: &Path, git_dir: &Path) -> Result<()> {
        fs::create_dir_all(&self.root)?;
        let content = self.content(checkout, git_dir)?;
        let here = || {
            let mut git = git();
            git.env("GIT_DIR", git_dir).env("GIT_WORK_TREE", &self.root);
            git.env("GIT_INDEX_FILE", &self.index).current_dir(&self.root);
            git
        };
        sh::run(here().args(["read-tree", "--reset", "-u", &content]))?;
        // What somebody has changed here by hand.
        sh::run(here().args(["checkout-index", "--all", "--force", "--index", "--quiet"]))?;
        fs::write(self.root.join(".git"), format!("gitdir: {}\n", git_dir.display()))?;
        link(&checkout.join("target"), &self.root.join("target"))
    }

    /// What the checkout holds, as git's name of it; the checkout's own index stays as it is.
    fn content(&self, checkout: &Path, git_dir: &Path) -> Result<String> {
        let index = self.index.with_extension("checkout");
        match fs::copy(git_dir.join("index"), &index) {
            // Nothing was ever added.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let _ = fs::remove_file(&index);
            }
            copied => drop(copied.context("copy the checkout's index")?),
        }
        let in_checkout = || {
            let mut git = git();
            git.env("GIT_INDEX_FILE", &index).arg("-C").arg(checkout);
            git
        };
        sh::run(in_checkout().args(["add", "--all"]))?;
        Ok(sh::run(in_checkout().arg("write-tree"))?.trim().to_owned())
    }
}

/// git, also where the checkout belongs to another user than the one who tests it.
fn git() -> Command {
    let mut git = Command::new("git");
    git.args(["-c", "safe.directory=*"]);
    git
}

/// Reports go where the user looks for them.
fn link(target: &Path, link: &Path) -> Result<()> {
    fs::create_dir_all(target)?;
    if fs::read_link(link).is_ok_and(|it| it == target) {
        return Ok(());
    }
    match fs::remove_file(link) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        Ok(()) | Err(_) => {}
    }
    std::os::unix::fs::symlink(target, link).with_context(|| format!("link {}", link.display()))
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    struct Scene {
        folder: PathBuf,
        checkout: PathBuf,
        tree: Tree,
    }

    impl Scene {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("tree-{name}-{}", std::process::id()));
            let checkout = folder.join("checkout");
            fs::create_dir_all(&checkout).unwrap();
            sh::run(git().args(["init", "--quiet"]).arg(&checkout)).unwrap();
            fs::write(checkout.join(".gitignore"), "/target\n").unwrap();
            let tree = Tree { root: folder.join("tree"), index: folder.join("tree.index") };
            Self { folder, checkout, tree }
        }

        fn write(&self, file: &str, text: &str) {
            fs::write(self.checkout.join(file), text).unwrap();
        }

        fn follow(&self) {
            self.tree.follow(&self.checkout, &self.checkout.join(".git")).unwrap();
        }

        fn read(&self, file: &str) -> Option<String> {
            fs::read_to_string(self.tree.root.join(file)).ok()
        }

        fn time(&self, file: &str) -> SystemTime {
            fs::metadata(self.tree.root.join(file)).unwrap().modified().unwrap()
        }
    }

    impl Drop for Scene {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }

    #[test]
    fn what_differs_is_written_and_all_else_keeps_its_time() {
        let scene = Scene::new("times");
        scene.write("a", "1");
        scene.write("b", "1");
        scene.follow();
        let before = (scene.time("a"), scene.time("b"));
        // The same content at another time, as in a fresh clone.
        scene.write("a", "1");
        scene.write("b", "2");
        scene.follow();
        assert_eq!(scene.read("b").as_deref(), Some("2"));
        assert_eq!(scene.time("a"), before.0);
        assert_ne!(scene.time("b"), before.1);
    }

    #[test]
    fn what_is_deleted_goes_and_what_was_changed_in_the_tree_is_put_right() {
        let scene = Scene::new("deleted");
        scene.write("a", "1");
        scene.write("b", "1");
        scene.follow();
        fs::remove_file(scene.checkout.join("a")).unwrap();
        fs::write(scene.tree.root.join("b"), "by hand").unwrap();
        scene.follow();
        assert_eq!((scene.read("a"), scene.read("b").as_deref()), (None, Some("1")));
    }

    #[test]
    fn the_checkouts_own_index_and_what_git_ignores_stay_as_they_are() {
        let scene = Scene::new("ignored");
        scene.write("a", "1");
        fs::create_dir_all(scene.checkout.join("target")).unwrap();
        scene.write("target/report", "x");
        scene.follow();
        assert!(!scene.checkout.join(".git/index").exists());
        let of_target = fs::read_link(scene.tree.root.join("target")).unwrap();
        assert_eq!(of_target, scene.checkout.join("target"));
        assert_eq!(scene.read("target/report").as_deref(), Some("x"));
    }
}
