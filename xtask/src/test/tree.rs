//! The tree that tests run from: at one path, whatever the checkout's, so that cargo reuses what it
//! has compiled.
//!
//! Cargo detects changes by path and time, so a fresh clone would be compiled anew. The tree gets
//! the content of the checkout, and only differences are written.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::{paths, sh};

/// Environment variables of the caller, for example a git hook, that refer to another repository.
const OF_CALLER: [&str; 4] = ["GIT_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_WORK_TREE"];

/// Runs this command from the tree and returns whether it succeeded; `None` when it runs there
/// already, or when the sources are no clone.
pub(super) fn in_cache() -> Result<Option<bool>> {
    let (checkout, tree) = (paths::repo(), Tree { root: paths::cache().join("tree") });
    if is_same(&checkout, &tree.root) {
        return Ok(None);
    }
    let Some(clone) = Clone::at(&checkout)? else {
        println!("{} is no clone: the tests are compiled where they are", checkout.display());
        return Ok(None);
    };
    let _lock = sh::lock("tree")?;
    tree.follow(&clone)?;
    let mut cargo = sh::cargo();
    // The working directory stays that of the caller, because paths in the arguments are relative
    // to it.
    cargo.args(["run", "--quiet", "--package", "xtask", "--manifest-path"]);
    cargo.arg(tree.root.join("Cargo.toml")).arg("--").args(std::env::args_os().skip(1));
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| paths::cache().join("target"));
    cargo.env("CARGO_TARGET_DIR", std::path::absolute(target)?);
    for variable in OF_CALLER {
        cargo.env_remove(variable);
    }
    let status = cargo.status().context("start cargo in the tree")?;
    Ok(Some(status.success()))
}

/// Whether two paths lead to the same existing directory.
fn is_same(one: &Path, other: &Path) -> bool {
    one.canonicalize().is_ok_and(|it| other.canonicalize().is_ok_and(|other| it == other))
}

/// A checkout with its history.
struct Clone {
    checkout: PathBuf,
}

impl Clone {
    /// Returns the clone at a path; `None` without git, or without a repository of the checkout's
    /// own.
    fn at(checkout: &Path) -> Result<Option<Self>> {
        let clone = Self { checkout: checkout.to_path_buf() };
        let Ok(top) = sh::run(clone.git().args(["rev-parse", "--show-toplevel"])) else {
            return Ok(None);
        };
        // Sources unpacked inside another repository belong to that one.
        let top = Path::new(top.trim_end()).canonicalize()?;
        Ok((top == checkout.canonicalize()?).then_some(clone))
    }

    fn git(&self) -> Command {
        let mut git = git();
        git.arg("-C").arg(&self.checkout);
        git
    }

    /// Returns the path of a file in the git directory.
    fn place(&self, name: &str) -> Result<PathBuf> {
        let mut git = self.git();
        let path = sh::run(git.args(["rev-parse", "--path-format=absolute", "--git-path", name]))?;
        Ok(PathBuf::from(path.trim_end()))
    }

    /// Returns the commit that is checked out, if any.
    fn head(&self) -> Option<String> {
        sh::run(self.git().args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])).ok()
    }
}

/// A directory with the content of a checkout and a repository of its own that borrows the history,
/// so that nothing here changes the checkout's repository.
struct Tree {
    root: PathBuf,
}

impl Tree {
    /// Updates its files from the checkout, including those that are neither committed nor ignored;
    /// unchanged files keep their time.
    fn follow(&self, clone: &Clone) -> Result<()> {
        self.borrow_history(clone)?;
        let content = self.content(clone)?;
        // Stage the present content first, so that a difference in time alone does not count.
        sh::run(self.git().args(["add", "--all"]))?;
        sh::run(self.git().args(["read-tree", "--reset", "-u", &content]))?;
        sh::run(self.git().args(["clean", "-ffdqx", "--exclude=/target"]))?;
        link(&clone.checkout.join("target"), &self.root.join("target"))
    }

    fn git(&self) -> Command {
        let mut git = git();
        git.arg("-C").arg(&self.root);
        git
    }

    fn repository(&self) -> PathBuf {
        self.root.join(".git")
    }

    /// Creates the repository: the index stays, and objects are borrowed from the checkout.
    fn borrow_history(&self, clone: &Clone) -> Result<()> {
        fs::create_dir_all(&self.root)?;
        let repository = self.repository();
        if repository.is_file() {
            fs::remove_file(&repository)?;
        }
        sh::run(self.git().args(["init", "--quiet"]))?;
        // Uncommitted objects of an earlier checkout.
        let objects = repository.join("objects");
        fs::remove_dir_all(&objects)?;
        fs::create_dir_all(objects.join("info"))?;
        let borrowed = format!("{}\n", clone.place("objects")?.display());
        fs::write(objects.join("info/alternates"), borrowed)?;
        copied(&clone.place("shallow")?, &repository.join("shallow"))?;
        let head = clone.head().unwrap_or_else(|| "ref: refs/heads/none\n".to_owned());
        Ok(fs::write(repository.join("HEAD"), head)?)
    }

    /// Returns the git tree ID of the checkout's content; the checkout's own index and objects are
    /// not changed.
    fn content(&self, clone: &Clone) -> Result<String> {
        let index = self.repository().join("index-of-checkout");
        copied(&clone.place("index")?, &index)?;
        let in_checkout = || {
            let mut git = clone.git();
            git.env("GIT_INDEX_FILE", &index);
            git.env("GIT_OBJECT_DIRECTORY", self.repository().join("objects"));
            git
        };
        sh::run(in_checkout().args(["add", "--all"]))?;
        Ok(sh::run(in_checkout().arg("write-tree"))?.trim().to_owned())
    }
}

/// Returns a git command that accepts a checkout of another user.
fn git() -> Command {
    let mut git = Command::new("git");
    git.args(["-c", "safe.directory=*"]);
    for variable in OF_CALLER {
        git.env_remove(variable);
    }
    git
}

/// Copies a file with its time, or removes the copy when there is no file.
///
/// git compares the content of files that changed at the time of the index, so that time must be
/// kept.
fn copied(from: &Path, to: &Path) -> Result<()> {
    let copy = || {
        fs::copy(from, to)?;
        fs::File::options().append(true).open(to)?.set_modified(from.metadata()?.modified()?)
    };
    let done = if from.is_file() { copy() } else { fs::remove_file(to) };
    match done {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("copy {}", from.display()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Links the checkout's `target` into the tree, so that reports are where the user looks for them.
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
    use std::os::unix::fs::PermissionsExt;
    use std::time::{Duration, SystemTime};

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
            fs::write(checkout.join(".gitignore"), "/target\n__pycache__/\n").unwrap();
            let tree = Tree { root: folder.join("tree") };
            Self { folder, checkout, tree }
        }

        fn git(&self, arguments: &[&str]) -> String {
            let author = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
            sh::run(git().arg("-C").arg(&self.checkout).args(author).args(arguments)).unwrap()
        }

        fn commit(&self) -> String {
            self.git(&["add", "--all"]);
            self.git(&["commit", "--quiet", "--message", "it"]);
            self.git(&["rev-parse", "HEAD"])
        }

        fn write(&self, file: &str, text: &str) {
            fs::write(self.checkout.join(file), text).unwrap();
        }

        fn follow(&self) {
            self.tree.follow(&Clone::at(&self.checkout).unwrap().unwrap()).unwrap();
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

    /// A Unix time long ago.
    const MOMENT: u64 = 1_000_000_000;

    fn touch(file: &Path, seconds: u64) {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        fs::File::options().append(true).open(file).unwrap().set_modified(time).unwrap();
    }

    #[test]
    fn what_differs_is_written_and_all_else_keeps_its_time() {
        let scene = Scene::new("times");
        scene.write("a", "1");
        scene.write("b", "1");
        scene.follow();
        let before = (scene.time("a"), scene.time("b"));
        // The same content at another time, as in a fresh clone.
        touch(&scene.checkout.join("a"), MOMENT);
        scene.write("b", "2");
        scene.follow();
        assert_eq!(scene.read("b").as_deref(), Some("2"));
        assert_eq!(scene.time("a"), before.0);
        assert_ne!(scene.time("b"), before.1);
    }

    #[test]
    fn what_is_committed_changed_and_new_is_there_with_its_mode() {
        let scene = Scene::new("modes");
        scene.write("committed", "1");
        scene.write("changed", "1");
        scene.commit();
        scene.write("changed", "2");
        scene.write("new", "3");
        scene.follow();
        let read = ["committed", "changed", "new"].map(|it| scene.read(it).unwrap());
        assert_eq!(read, ["1", "2", "3"]);
        let of = |root: &Path| fs::metadata(root.join("new")).unwrap().permissions().mode() & 0o100;
        assert_eq!(of(&scene.tree.root), 0);
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(scene.checkout.join("new"), executable).unwrap();
        scene.follow();
        assert_eq!(of(&scene.tree.root), 0o100);
    }

    #[test]
    fn a_change_in_the_moment_of_a_commit_is_seen() {
        let scene = Scene::new("moment");
        // The ctime of a file cannot be set.
        scene.git(&["config", "core.trustctime", "false"]);
        let changed = scene.checkout.join("changed");
        scene.write("changed", "1");
        touch(&changed, MOMENT);
        scene.commit();
        scene.write("changed", "2");
        touch(&changed, MOMENT);
        touch(&scene.checkout.join(".git/index"), MOMENT);
        scene.follow();
        assert_eq!(scene.read("changed").as_deref(), Some("2"));
    }

    #[test]
    fn what_is_deleted_goes_and_what_was_changed_in_the_tree_is_put_right() {
        let scene = Scene::new("deleted");
        for file in ["a", "b", "c"] {
            scene.write(file, "1");
        }
        scene.follow();
        fs::remove_file(scene.checkout.join("a")).unwrap();
        fs::write(scene.tree.root.join("b"), "by hand").unwrap();
        fs::remove_file(scene.tree.root.join("c")).unwrap();
        fs::create_dir_all(scene.tree.root.join("more/__pycache__")).unwrap();
        fs::write(scene.tree.root.join("more/d"), "by hand").unwrap();
        fs::write(scene.tree.root.join("more/__pycache__/e"), "").unwrap();
        scene.follow();
        assert_eq!((scene.read("a"), scene.read("b").as_deref()), (None, Some("1")));
        assert_eq!(scene.read("c").as_deref(), Some("1"));
        assert!(!scene.tree.root.join("more").exists());
    }

    #[test]
    fn a_file_that_was_only_touched_in_the_tree_is_not_written_again() {
        let scene = Scene::new("touched");
        scene.write("a", "1");
        scene.follow();
        touch(&scene.tree.root.join("a"), MOMENT);
        let before = scene.time("a");
        scene.follow();
        assert_eq!(scene.time("a"), before);
        // As when the cache was copied from another machine, or its index is lost.
        fs::remove_file(scene.tree.repository().join("index")).unwrap();
        scene.follow();
        assert_eq!(scene.time("a"), before);
    }

    #[test]
    fn another_clone_is_followed_when_the_first_one_is_gone() {
        let mut scene = Scene::new("clones");
        scene.write("same", "1");
        scene.write("other", "1");
        scene.commit();
        scene.write("other", "2");
        scene.follow();
        let before = scene.time("same");
        let first = scene.checkout.clone();
        scene.checkout = scene.folder.join("second");
        sh::run(git().args(["clone", "--quiet"]).arg(&first).arg(&scene.checkout)).unwrap();
        fs::remove_dir_all(&first).unwrap();
        scene.follow();
        assert_eq!((scene.time("same"), scene.read("other").as_deref()), (before, Some("1")));
        let in_tree = scene.tree.git().args(["ls-files"]).output().unwrap();
        assert_eq!(String::from_utf8(in_tree.stdout).unwrap(), ".gitignore\nother\nsame\n");
    }

    #[test]
    fn the_tree_knows_the_history_and_whether_it_is_whole() {
        let scene = Scene::new("history");
        scene.write("a", "1");
        let first = scene.commit();
        scene.write("a", "2");
        scene.commit();
        scene.follow();
        let is_shallow =
            || sh::run(scene.tree.git().args(["rev-parse", "--is-shallow-repository"])).unwrap();
        let is_there = || scene.tree.git().args(["cat-file", "-e", first.trim()]).status().unwrap();
        assert!(is_there().success());
        assert_eq!(is_shallow(), "false\n");
        fs::write(scene.checkout.join(".git/shallow"), scene.git(&["rev-parse", "HEAD"])).unwrap();
        scene.follow();
        assert_eq!(is_shallow(), "true\n");
    }

    #[test]
    fn the_checkouts_own_repository_and_what_git_ignores_stay_as_they_are() {
        let scene = Scene::new("ignored");
        scene.write("a", "1");
        fs::create_dir_all(scene.checkout.join("target")).unwrap();
        scene.write("target/report", "x");
        scene.follow();
        // git commands in the tree do not change the checkout either.
        sh::run(scene.tree.git().args(["add", "--all"])).unwrap();
        assert!(!scene.checkout.join(".git/index").exists());
        assert_eq!(scene.git(&["count-objects"]), "0 objects, 0 kilobytes\n");
        let of_target = fs::read_link(scene.tree.root.join("target")).unwrap();
        assert_eq!(of_target, scene.checkout.join("target"));
        scene.follow();
        assert_eq!(scene.read("target/report").as_deref(), Some("x"));
    }

    #[test]
    fn what_is_unpacked_inside_of_another_repository_is_no_clone() {
        let scene = Scene::new("inside");
        let inside = scene.checkout.join("inside");
        fs::create_dir_all(&inside).unwrap();
        assert!(Clone::at(&inside).unwrap().is_none());
        assert!(Clone::at(&scene.checkout).unwrap().is_some());
    }
}
