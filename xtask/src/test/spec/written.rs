//! Checks whether a test that a table names exists in the sources, before it has run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context, Result};

use super::part_of;
use crate::paths;

/// The texts of the files with tests.
pub(super) struct Sources {
    /// Crate → its whole text.
    crates: BTreeMap<String, String>,
    /// File or directory of end-to-end or Python tests, without its ending → its text.
    files: BTreeMap<String, String>,
}

impl Sources {
    /// Reads the files of the repository.
    pub(super) fn read() -> Result<Self> {
        let mut sources = Self { crates: BTreeMap::new(), files: BTreeMap::new() };
        let root = paths::repo();
        let mut crates: Vec<PathBuf> = children(&root.join("crates"))?;
        crates.push(root.join("xtask"));
        for folder in crates {
            let mut all = String::new();
            for part in ["src", "tests"].map(|it| folder.join(it)).iter().filter(|it| it.is_dir()) {
                gather(part, &mut all)?;
            }
            sources.crates.insert(stem(&folder), all);
        }
        for folder in ["e2e/tests", "ansible/tests", "crates/nova-config/tests/oslo"] {
            for file in children(&root.join(folder))? {
                // A file that is not text has no tests.
                let mut text = fs::read_to_string(&file).unwrap_or_default();
                if file.is_dir() {
                    gather(&file, &mut text)?;
                }
                sources.files.insert(stem(&file), text);
            }
        }
        Ok(sources)
    }

    /// Whether the test exists. Tests that are not functions are not in the sources and are checked
    /// when they run.
    pub(super) fn have(&self, test: &str) -> bool {
        let Some((first, name)) = test.split_once(' ') else { return false };
        match part_of(test) {
            "chart" => true,
            "ansible" | "oslo" => {
                let words: Vec<&str> = name.split('.').collect();
                let [file, class, method] = words[..] else { return false };
                self.files.get(file).is_some_and(|it| {
                    it.contains(&format!("class {class}("))
                        && it.contains(&format!("def {method}("))
                })
            }
            "e2e" => match name.split_once("::") {
                Some((file, test)) => is_in(self.files.get(file), last(test)),
                None => name.starts_with("demo"),
            },
            _ => is_in(self.crates.get(first), last(name)),
        }
    }
}

/// Returns the function name of a test.
fn last(test: &str) -> &str {
    test.rsplit("::").next().unwrap_or(test)
}

fn is_in(text: Option<&String>, function: &str) -> bool {
    text.is_some_and(|it| it.contains(&format!("fn {function}(")))
}

fn children(folder: &Path) -> Result<Vec<PathBuf>> {
    let paths: io::Result<Vec<PathBuf>> =
        fs::read_dir(folder).and_then(|it| it.map(|it| it.map(|it| it.path())).collect());
    paths.with_context(|| folder.display().to_string())
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn gather(folder: &Path, all: &mut String) -> Result<()> {
    for path in children(folder)? {
        if path.is_dir() {
            gather(&path, all)?;
        } else if path.extension().is_some_and(|it| it == "rs") {
            all.push_str(&fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_is_nowhere_written_is_noticed() {
        let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let sources = Sources {
            crates: BTreeMap::from([file("common", "fn it_holds() {}")]),
            files: BTreeMap::from([
                file("main_job", "async fn it_runs() {}"),
                file("test_a", "class A(Test):\n    def test_b(self):"),
            ]),
        };
        for (test, expected) in [
            ("common a::tests::it_holds", true),
            ("common a::tests::it_holds_not", false),
            ("shell a::tests::it_holds", false),
            ("e2e main_job::it_runs", true),
            ("e2e main_job::part::it_runs", true),
            ("e2e other::it_runs", false),
            ("e2e demo --verify", true),
            ("ansible test_a.A.test_b", true),
            ("ansible test_a.B.test_b", false),
            ("oslo test_a.A.test_c", false),
            ("chart it renders", true),
        ] {
            assert_eq!(sources.have(test), expected, "{test}");
        }
    }
}
