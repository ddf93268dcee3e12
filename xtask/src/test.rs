//! `cargo xtask test`: every check of the project, whole or in parts, with one count at the end.

mod count;

use std::process::Command;

use anyhow::Result;
use clap::ValueEnum;

use crate::{chart, cluster::Choice, demo, paths, sh};
use count::{Count, counted};

/// Run the project's tests.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these parts; all of them without any.
    #[arg(value_enum)]
    parts: Vec<Part>,
    #[command(flatten)]
    cluster: Choice,
}

/// A part of the tests that can be run alone.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Part {
    /// rustfmt.
    Format,
    /// clippy, warnings being errors; and the pure crate compiled alone.
    Lint,
    /// Licences, sources and duplicates of the dependencies.
    Deny,
    /// Unit tests, and the tests that generated files and crate edges are as they should be.
    Unit,
    /// Our reader of oslo.config's format and our judgement of options, against oslo.config itself.
    Oslo,
    /// The main job and everything else on the lab.
    E2e,
    /// The chart: lint and rendering, with the lab's Helm.
    Chart,
    /// The collection and the callback plugin, by real runs of Ansible.
    Ansible,
}

/// Runs all parts, whatever fails; whether nothing did. The count is the last line.
pub(crate) fn main(args: &Args) -> bool {
    let parts = if args.parts.is_empty() { Part::value_variants() } else { &args.parts };
    let mut total = Count::default();
    for part in parts {
        let name = format!("{part:?}").to_lowercase();
        println!("\n== {name}");
        let count = part.run(&args.cluster).unwrap_or_else(|error| {
            println!("{error:#}");
            Count { passed: 0, failed: 1 }
        });
        println!("== {name}: {count}");
        total += count;
    }
    println!("\n{total}");
    total.failed == 0
}

impl Part {
    fn run(self, cluster: &Choice) -> Result<Count> {
        match self {
            Self::Format => check(cargo(&["fmt", "--all", "--check"])),
            Self::Lint => lint(),
            Self::Deny => deny(),
            Self::Unit => counted(cargo(&[
                "test",
                "--workspace",
                "--exclude",
                "e2e",
                "--no-fail-fast",
                "--quiet",
            ])),
            Self::Oslo => oslo(),
            Self::Chart => chart(),
            Self::Ansible => ansible(),
            Self::E2e => e2e(cluster),
        }
    }
}

fn cargo(arguments: &[&str]) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.args(arguments).current_dir(paths::repo()).env("RUST_BACKTRACE", "0");
    cargo
}

/// One check that holds or does not.
fn check(mut command: Command) -> Result<Count> {
    sh::run(&mut command)?;
    Ok(Count::one())
}

fn lint() -> Result<Count> {
    let all = ["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
    let mut count = check(cargo(&all))?;
    // Alone, so that another crate's features cannot hide what it lacks.
    count += check(cargo(&["check", "--package", "common", "--quiet"]))?;
    Ok(count)
}

/// The database of advisories is a git repository, which is not a package source: it is left out.
fn deny() -> Result<Count> {
    let root = paths::cache().join("tools");
    let program = root.join("bin/cargo-deny");
    if !program.exists() {
        sh::step("build cargo-deny", || {
            let mut install =
                cargo(&["install", "cargo-deny@0.20.2", "--locked", "--quiet", "--root"]);
            install.arg(&root).env_remove("CARGO_TARGET_DIR");
            sh::run(&mut install).map(drop)
        })?;
    }
    let mut deny = Command::new(program);
    deny.args(["check", "bans", "licenses", "sources"]).current_dir(paths::repo());
    check(deny)
}

fn chart() -> Result<Count> {
    Ok(Count { passed: chart::checks()?, failed: 0 })
}

fn ansible() -> Result<Count> {
    let mut tests = Command::new(paths::repo().join("ansible/tests/run"));
    tests.current_dir(paths::repo());
    counted(tests)
}

fn oslo() -> Result<Count> {
    // The whole workspace, so that no dependency is compiled anew with other features.
    sh::run(&mut cargo(&["build", "--workspace", "--example", "oslo_answers", "--quiet"]))?;
    let mut tests = Command::new(paths::repo().join("crates/nova-operator/tests/oslo/run"));
    tests.arg(paths::compiled().join("debug/examples/oslo_answers"));
    counted(tests)
}

/// The demo brings the lab, the hosts and the operators; the tests then do their worst to it.
fn e2e(cluster: &Choice) -> Result<Count> {
    demo::show(cluster)?;
    let mut count = Count::one();
    demo::verify(cluster)?;
    count += Count::one();
    let env = cluster.env()?;
    let mut tests =
        cargo(&["test", "--package", "e2e", "--no-fail-fast", "--", "--test-threads=4"]);
    if env.is_lab() {
        let others = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(env.bin.clone()).chain(std::env::split_paths(&others));
        tests.env("PATH", std::env::join_paths(folders)?);
    }
    tests.env("KUBECONFIG", &env.kubeconfig);
    count += counted(tests)?;
    Ok(count)
}
