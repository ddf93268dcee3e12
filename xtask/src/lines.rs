//! `cargo xtask lines`: counts the lines of the crates, and apart from them those of their tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::paths;
use crate::sources::{files, parts};

/// The crates that only tests use.
const FOR_TESTS: [&str; 2] = ["simulated-cluster", "testkit"];
/// The package that consists of tests.
const END_TO_END: &str = "e2e";

/// Count the lines of each crate, and those of its tests.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Count no blank lines and no lines of comments.
    #[arg(long)]
    code: bool,
}

/// The lines of a crate.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Lines {
    /// Those that are compiled for users.
    product: usize,
    /// Those of its tests.
    tests: usize,
}

/// Prints the lines of each crate and their sums.
pub(crate) fn main(args: &Args) -> Result<()> {
    let sources = [files("crates", ".rs")?, files(END_TO_END, ".rs")?].concat();
    let crates = count(&sources, if args.code { is_code } else { |_| true })?;
    println!("product   tests");
    for (name, lines) in &crates {
        println!("{:>7} {:>7} {name}", lines.product, lines.tests);
    }
    let sum = sum(&crates);
    println!(
        "{:>7} {:>7} in all, without the code of {}",
        sum.product,
        sum.tests,
        FOR_TESTS.join(" and ")
    );
    Ok(())
}

/// Returns the sum of all crates, without the code of those that only tests use.
fn sum(crates: &BTreeMap<String, Lines>) -> Lines {
    crates.iter().fold(Lines::default(), |sum, (name, it)| Lines {
        product: sum.product + if FOR_TESTS.contains(&name.as_str()) { 0 } else { it.product },
        tests: sum.tests + it.tests,
    })
}

/// Whether a line is neither blank nor a comment; lines within texts count by the same rule.
fn is_code(line: &str) -> bool {
    let words = line.trim_start();
    !words.is_empty() && !words.starts_with("//")
}

/// Returns crate → its lines that count.
fn count(files: &[PathBuf], counts: fn(&str) -> bool) -> Result<BTreeMap<String, Lines>> {
    let mut crates: BTreeMap<String, Lines> = BTreeMap::new();
    for file in files {
        let Some((name, inside)) = place(file) else { continue };
        let text = fs::read_to_string(file).with_context(|| format!("{}", file.display()))?;
        let found = of_text(&text, name == END_TO_END || is_of_tests(&inside), counts);
        let lines = crates.entry(name).or_default();
        lines.product += found.product;
        lines.tests += found.tests;
    }
    Ok(crates)
}

/// Returns the lines of a file that count.
fn of_text(text: &str, is_of_tests: bool, counts: fn(&str) -> bool) -> Lines {
    let parts = parts(text);
    let n = |lines: &[&str]| lines.iter().filter(|it| counts(it)).count();
    let (product, tests) = (n(&parts.code), n(&parts.tests));
    if is_of_tests {
        Lines { product: 0, tests: product + tests }
    } else {
        Lines { product, tests }
    }
}

/// Returns the crate of a file, and its path in there.
fn place(file: &Path) -> Option<(String, String)> {
    let path = file.strip_prefix(paths::repo()).ok()?.to_str()?;
    let (name, inside) = path.strip_prefix("crates/").unwrap_or(path).split_once('/')?;
    Some((name.to_owned(), inside.to_owned()))
}

/// Whether a whole file of a crate is for tests: modules of tests have `test` in their paths, and
/// suites run the examples.
fn is_of_tests(inside: &str) -> bool {
    match inside.strip_prefix("src/") {
        Some(module) => module.contains("test") || module == "fuzzing.rs",
        None => inside != "build.rs",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_code_are_counted_apart_from_those_of_tests_and_without_comments() {
        let text = "//! A module.\n\nuse a::b;\n\n/// Does it.\nfn c() {\n    // Why.\n    b(); // how\n}\n\n\
                    #[cfg(test)]\nmod tests {\n    // About d.\n    #[test]\n    fn d() {}\n}\n";
        let of = |is_of_tests, counts| of_text(text, is_of_tests, counts);
        assert_eq!(of(false, is_code), Lines { product: 4, tests: 5 });
        assert_eq!(of(false, |_| true), Lines { product: 10, tests: 6 });
        assert_eq!(of(true, is_code), Lines { product: 0, tests: 9 });
    }

    #[test]
    fn the_sum_has_all_tests_and_only_the_code_that_users_get() {
        let crates =
            ["api", "testkit", "e2e"].map(|it| (it.to_owned(), Lines { product: 2, tests: 3 }));
        assert_eq!(sum(&BTreeMap::from(crates)), Lines { product: 4, tests: 9 });
    }

    #[test]
    fn files_of_tests_are_known_by_their_paths() {
        let file = |path: &str| paths::repo().join(path);
        let found = place(&file("crates/a/src/b/tests/c.rs")).unwrap();
        assert_eq!(found, ("a".to_owned(), "src/b/tests/c.rs".to_owned()));
        assert_eq!(place(&file("e2e/src/lib.rs")).unwrap().0, END_TO_END);
        let of_tests = [
            "src/b/tests/c.rs",
            "src/keyed_tests.rs",
            "src/fuzzing.rs",
            "tests/a.rs",
            "examples/x.rs",
        ];
        assert!(of_tests.into_iter().all(is_of_tests));
        assert!(!["src/lib.rs", "src/b/c.rs", "build.rs"].into_iter().any(is_of_tests));
    }

    #[test]
    fn every_module_that_is_declared_for_tests_is_a_file_of_tests() {
        let mut n_checked = 0;
        for file in files("crates", ".rs").unwrap() {
            let (_, inside) = place(&file).unwrap();
            if is_of_tests(&inside) {
                continue;
            }
            let text = fs::read_to_string(&file).unwrap();
            for line in parts(&text).tests.iter().filter(|it| !it.starts_with(' ')) {
                let Some((_, name)) = line.split_once("mod ") else { continue };
                let Some(name) = name.strip_suffix(';') else { continue };
                n_checked += 1;
                assert!(is_of_tests(&format!("src/{name}.rs")), "{}: {name}", file.display());
            }
        }
        assert!(n_checked > 50, "only {n_checked} modules were looked at");
    }
}
