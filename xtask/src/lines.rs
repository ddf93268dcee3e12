//! `cargo xtask lines`: counts the lines of the crates without their tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::paths;
use crate::sources::{files, without_tests};

/// The simulated cluster, which is not part of the product.
const SIMULATED: &str = "simulated-cluster";
/// The crate that only tests use.
const TESTKIT: &str = "testkit";

/// Prints the lines of each crate, and the total of the product.
pub(crate) fn main() -> Result<()> {
    let crates = count(&files("crates", ".rs")?)?;
    for (name, lines) in &crates {
        println!("{lines:>6} {name}");
    }
    let is_product = |name: &str| ![SIMULATED, TESTKIT].contains(&name);
    let all: usize = crates.iter().filter(|it| is_product(it.0)).map(|it| it.1).sum();
    println!("{all:>6} in all, without {SIMULATED} and {TESTKIT}");
    Ok(())
}

/// Returns crate → lines.
fn count(files: &[PathBuf]) -> Result<BTreeMap<String, usize>> {
    let mut crates = BTreeMap::new();
    for file in files {
        let Some((name, inside)) = place(file) else { continue };
        // Test modules have `test` in their paths.
        if inside.contains("test") {
            continue;
        }
        let text = fs::read_to_string(file).with_context(|| format!("{}", file.display()))?;
        *crates.entry(name).or_default() += without_tests(&text).lines().count();
    }
    Ok(crates)
}

/// Returns the crate of a file and its path in the crate's `src`; `None` for examples and the like.
fn place(file: &Path) -> Option<(String, String)> {
    let path = file.strip_prefix(paths::repo().join("crates")).ok()?.to_str()?;
    let (name, inside) = path.split_once("/src/")?;
    Some((name.to_owned(), inside.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_examples_do_not_count() {
        let file = |path: &str| paths::repo().join("crates").join(path);
        assert_eq!(place(&file("a/examples/x.rs")), None);
        let found = place(&file("a/src/b/tests/c.rs")).unwrap();
        assert_eq!(found, ("a".to_owned(), "b/tests/c.rs".to_owned()));
        let own = file("testkit/src/lib.rs");
        let lines = fs::read_to_string(&own).unwrap().lines().count();
        assert_eq!(count(&[own]).unwrap(), BTreeMap::from([("testkit".to_owned(), lines)]));
        let tests = paths::repo().join("crates/operator-core/src/keyed_tests.rs");
        assert!(tests.exists());
        assert_eq!(count(&[tests]).unwrap(), BTreeMap::new());
    }
}
