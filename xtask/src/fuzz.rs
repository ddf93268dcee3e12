//! `cargo xtask fuzz`: fuzzes the parsers of external input for some minutes each. It is not part
//! of the tests, which run the same functions on the committed inputs.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::{paths, sh};

/// The maximum length of inputs in bytes: most messages have 4 KiB at most, and longer input has
/// its own limits and tests.
const LONGEST: usize = 8192;

/// Give random inputs to the parsers of what comes from outside.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these targets; all without any. They are the names of the files in `fuzz/fuzz_targets`.
    targets: Vec<String>,
    /// How long each target runs.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    minutes: u64,
}

/// Runs the targets one after the other; stops at the first crash, whose input is in
/// `fuzz/artifacts`.
pub(crate) fn main(args: &Args) -> Result<()> {
    let known = targets()?;
    for asked in &args.targets {
        ensure!(
            known.contains(asked),
            "no target is called {asked}; there are {}",
            known.join(", ")
        );
    }
    check_tools()?;
    let chosen = if args.targets.is_empty() { &known } else { &args.targets };
    for target in chosen {
        run(target, args.minutes)?;
    }
    Ok(())
}

fn folder() -> PathBuf {
    paths::repo().join("fuzz")
}

/// Returns the names of the targets.
fn targets() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder().join("fuzz_targets"))? {
        let path = entry?.path();
        names.extend(path.file_stem().map(|it| it.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

/// Checks for the nightly compiler and cargo-fuzz, which nothing else here needs.
fn check_tools() -> Result<()> {
    sh::run(sh::cargo().args(["+nightly", "--version"]))
        .context("install it with: rustup toolchain install nightly --profile minimal")?;
    sh::run(sh::cargo().args(["+nightly", "fuzz", "--version"]))
        .context("install it with: cargo +nightly install cargo-fuzz --locked")?;
    Ok(())
}

fn run(target: &str, minutes: u64) -> Result<()> {
    // Inputs found while it runs are not part of the repository.
    let found = folder().join("target/corpus").join(target);
    fs::create_dir_all(&found)?;
    let mut fuzz = sh::cargo();
    // Safe Rust needs no sanitizer, which would take most of the memory.
    fuzz.args(["+nightly", "fuzz", "run", "--sanitizer", "none", target]);
    fuzz.arg(&found).arg(folder().join("corpus").join(target)).arg("--");
    fuzz.arg(format!("-max_total_time={}", minutes * 60)).arg(format!("-max_len={LONGEST}"));
    fuzz.args(["-rss_limit_mb=1024", "-timeout=10", "-print_final_stats=1"]);
    let status = fuzz.current_dir(paths::repo()).status().context("run cargo fuzz")?;
    ensure!(
        status.success(),
        "target {target} ended with {status}; its input is in fuzz/artifacts"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::files;

    /// The limit for all committed inputs together, in bytes.
    const LIMIT: u64 = 200_000;

    #[test]
    fn each_fuzz_target_is_built_has_inputs_and_is_given_them_by_the_tests() {
        let manifest = fs::read_to_string(folder().join("Cargo.toml")).unwrap();
        let bodies = files("crates", "src/fuzzing.rs").unwrap();
        let bodies: String = bodies.iter().map(|it| fs::read_to_string(it).unwrap()).collect();
        let names = targets().unwrap();
        for name in &names {
            assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} is not built");
            assert!(bodies.contains(&format!("(\"{name}\", ")), "no test knows {name}");
        }
        assert_eq!(manifest.matches("[[bin]]").count(), names.len());
        assert!(names.len() > 10, "{names:?}");
        let inputs = files("fuzz/corpus", "").unwrap();
        let n_bytes: u64 = inputs.iter().map(|it| fs::metadata(it).unwrap().len()).sum();
        assert!((1..=LIMIT).contains(&n_bytes), "the inputs have {n_bytes} bytes");
    }
}
