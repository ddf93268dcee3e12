//! `cargo xtask plans`: checks whether the operators make the same plans in each test as before a
//! refactoring.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use crate::{paths, sh};

/// The environment variable that testkit reads: the directory in which tests record their plans.
const FOLDER: &str = "EDPM_PLANS";
/// The maximum number of differences to print.
const NAMED: usize = 20;

/// See whether the operators decide in each test what they decided before a rebuild.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write what they decide now as what is expected; twice, for random tests are left out.
    #[arg(long)]
    write: bool,
}

/// Test → number of its plans, and a digest of them all.
type Plans = BTreeMap<String, (usize, String)>;

/// Compares the recorded plans with the expected ones, or writes these.
pub(crate) fn main(args: &Args) -> Result<()> {
    let found = collect()?;
    if args.write {
        let again = collect()?;
        let same: Plans = found.into_iter().filter(|it| again.get(&it.0) == Some(&it.1)).collect();
        println!("{} tests make the same plans in each run", same.len());
        return fs::write(expected(), written(&same)).context("the expected plans");
    }
    let expected = read(&fs::read_to_string(expected()).context("the expected plans")?)?;
    let differences = differences(&expected, &found);
    for it in differences.iter().take(NAMED) {
        println!("{it}");
    }
    ensure!(differences.is_empty(), "the plans of {} tests differ", differences.len());
    println!("the plans of {} tests are as they were", expected.len());
    Ok(())
}

fn expected() -> PathBuf {
    paths::repo().join("crates/testkit/plans.tsv")
}

/// Runs the unit tests, and reads the recorded plans.
fn collect() -> Result<Plans> {
    let folder = paths::target().join("plans");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let mut cargo = sh::cargo();
    cargo.args(["test", "--workspace", "--lib", "--quiet"]).current_dir(paths::repo());
    cargo.env(FOLDER, &folder);
    sh::run(&mut cargo)?;
    of_folder(&folder)
}

fn of_folder(folder: &Path) -> Result<Plans> {
    let mut plans = Plans::new();
    for entry in fs::read_dir(folder).context("no test recorded a plan")? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let text = fs::read_to_string(entry.path())?;
        let mut lines: Vec<&str> = text.lines().collect();
        // Two crates may have a test of that name, and they run in parallel.
        lines.sort_unstable();
        let mut digest = format!("{:x}", Sha256::digest(lines.join("\n")));
        digest.truncate(16);
        plans.insert(name, (lines.len(), digest));
    }
    Ok(plans)
}

fn written(plans: &Plans) -> String {
    let line = |(name, (count, digest)): (&String, &(usize, String))| {
        [name, "\t", &count.to_string(), "\t", digest, "\n"].concat()
    };
    plans.iter().map(line).collect()
}

fn read(text: &str) -> Result<Plans> {
    let line = |line: &str| {
        let mut words = line.split('\t');
        let name = words.next()?.to_owned();
        Some((name, (words.next()?.parse().ok()?, words.next()?.to_owned())))
    };
    text.lines().map(|it| line(it).with_context(|| format!("not a line of plans: {it}"))).collect()
}

fn differences(expected: &Plans, found: &Plans) -> Vec<String> {
    let difference = |(name, plans): (&String, &(usize, String))| match found.get(name) {
        Some(now) if now == plans => None,
        Some(now) => {
            Some(format!("{name}: {} plans were expected, {} others came", plans.0, now.0))
        }
        None => Some(format!("{name}: it was not run")),
    };
    expected.iter().filter_map(difference).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_every_difference_is_named() {
        let plans = |of: &[(&str, usize, &str)]| -> Plans {
            of.iter().map(|it| (it.0.to_owned(), (it.1, it.2.to_owned()))).collect()
        };
        let expected = plans(&[("a", 1, "x"), ("b", 2, "y"), ("c", 1, "z")]);
        assert_eq!(read(&written(&expected)).unwrap(), expected);
        assert!(read("a\t1\n").is_err());
        let found = plans(&[("a", 1, "x"), ("b", 2, "other"), ("new", 1, "w")]);
        let differences = differences(&expected, &found);
        assert_eq!(differences, ["b: 2 plans were expected, 2 others came", "c: it was not run"]);
    }
}
