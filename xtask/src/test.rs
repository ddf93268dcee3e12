//! `cargo xtask test`: every check of the project, whole or in parts, with one count at the end.

mod count;
mod e2e;
mod journey;
pub(crate) mod outcome;
mod programs;
mod report;
mod restarts;
pub(crate) mod spec;

use std::path::PathBuf;
use std::process::Command;
use std::thread::ScopedJoinHandle;
use std::time::Instant;

use anyhow::Result;
use clap::ValueEnum;

use crate::{chart, cluster::Choice, packages, paths, sh};
use count::{Count, Found, Shown, counted};
use outcome::Outcome;
use report::Report;
use restarts::Seed;

/// Run the project's tests.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these parts; all of them without any.
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// The text of the specification, with which the quotes of docs/spec-002.md are compared.
    #[arg(long, value_name = "FILE")]
    specification: Option<PathBuf>,
    /// Restart an operator every 20 to 60 seconds during the end-to-end tests, at random, or as the
    /// seed of an earlier run says.
    #[arg(long, value_name = "SEED", num_args = 0..=1, default_missing_value = "now")]
    restarts: Option<Seed>,
    #[command(flatten)]
    cluster: Choice,
}

/// A part of the tests that can be run alone.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Part {
    /// rustfmt.
    Format,
    /// clippy, warnings being errors; and the pure crates compiled alone.
    Lint,
    /// Licences, sources and duplicates of the dependencies.
    Deny,
    /// Unit tests, and the tests that generated files and crate edges are as they should be.
    Unit,
    /// Our reader of oslo.config's format and our judgement of options, against oslo.config itself.
    Oslo,
    /// Drives that we make, as cloud-init, Ironic's library and readers of ISO images read them.
    Cloudinit,
    /// Machines of a real Ironic with fake hardware, on their way into service and back.
    Ironic,
    /// The main job and everything else on the lab.
    E2e,
    /// The chart: lint and rendering, with the lab's Helm.
    Chart,
    /// The collection and the callback plugin, by real runs of Ansible.
    Ansible,
    /// The tables of what is proven by which test, against the report of the tests that ran last.
    Spec,
}

/// Runs all parts, whatever fails; whether nothing did. The count is the last line.
///
/// What became of each test is written down as it goes, in place of the last report.
pub(crate) fn main(args: &Args) -> bool {
    let parts = if args.parts.is_empty() { Part::value_variants() } else { &args.parts };
    let mut report = Report::default();
    let mut total = Count::default();
    let mut bad = Vec::new();
    // The tables are judged by what ran before them.
    let (last, first): (Vec<Part>, Vec<Part>) = parts.iter().partition(|it| **it == Part::Spec);
    std::thread::scope(|scope| {
        let mut lab =
            first.contains(&Part::E2e).then(|| scope.spawn(|| e2e::prepare(&args.cluster)));
        for part in first.into_iter().chain(last.into_iter().take(1)) {
            if part == Part::E2e
                && let Some(Ok(Err(error))) = lab.take().map(ScopedJoinHandle::join)
            {
                println!("{error:#}");
            }
            let (count, why) = part.told(args, &mut report);
            total += count;
            bad.extend(why);
        }
    });
    if !bad.is_empty() {
        println!("\n== what failed\n{}", bad.join("\n"));
    }
    println!("\n{total}");
    total.failed == 0
}

impl Part {
    /// Runs it and tells what it came to, and what failed: its tests, or why it could not go on.
    fn told(self, args: &Args, report: &mut Report) -> (Count, Vec<String>) {
        let name = format!("{self:?}").to_lowercase();
        println!("\n== {name}");
        let began = Instant::now();
        let mut bad = Vec::new();
        let mut found = self.run(args).unwrap_or_else(|error| {
            println!("{error:#}");
            bad.push(format!("{name}: {error:#}"));
            Found::one(&name, Outcome::Failed)
        });
        if bad.is_empty() {
            bad.extend(found.failed().map(|it| format!("{name}: {it}")));
        }
        // Not every failure has a name: a runner may die before it tells one.
        if bad.len() < found.count.failed {
            bad.push(format!("{name}: {}", found.count));
        }
        println!("== {name}: {} ({} s)", found.count, began.elapsed().as_secs());
        if self != Self::Spec {
            report.parts.insert(name, found.tests);
            if let Err(error) = report.write() {
                println!("{error:#}");
                found.count.failed += 1;
            }
        }
        (found.count, bad)
    }

    fn run(self, args: &Args) -> Result<Found> {
        match self {
            Self::Format => check("rustfmt", cargo(&["fmt", "--all", "--check"])),
            Self::Lint => lint(),
            Self::Deny => deny(),
            Self::Unit => unit(),
            Self::Oslo => oslo(),
            Self::Cloudinit => cloudinit(),
            Self::Ironic => ironic(),
            Self::Chart => Ok(chart()),
            Self::Ansible => ansible(),
            Self::E2e => e2e::run(&args.cluster, args.restarts),
            Self::Spec => spec::check(args.specification.as_deref()),
        }
    }
}

fn cargo(arguments: &[&str]) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.args(arguments).current_dir(paths::repo()).env("RUST_BACKTRACE", "0");
    cargo
}

/// One check that holds or does not.
fn check(name: &str, mut command: Command) -> Result<Found> {
    sh::run(&mut command)?;
    Ok(Found::one(name, Outcome::Passed))
}

fn lint() -> Result<Found> {
    let all = ["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
    let mut found = check("clippy", cargo(&all))?;
    // Alone, so that another crate's features cannot hide what it lacks.
    for package in paths::PURE {
        let alone = cargo(&["check", "--package", package, "--quiet"]);
        found += check(&format!("the pure crate {package} compiles alone"), alone)?;
    }
    Ok(found)
}

/// The database of advisories is a git repository, which is not a package source: it is left out.
fn deny() -> Result<Found> {
    let root = paths::cache().join("tools");
    let program = root.join("bin/cargo-deny");
    if !program.exists() {
        sh::step("build cargo-deny", || {
            let mut install = cargo(&[
                "install",
                "cargo-deny@0.20.2",
                "--locked",
                "--quiet",
                "--debug",
                "--root",
            ]);
            // It reads a few hundred files: to optimize it takes longer than it ever runs.
            install
                .env("CARGO_PROFILE_DEV_DEBUG", "false")
                .arg(&root)
                .env_remove("CARGO_TARGET_DIR");
            sh::run(&mut install).map(drop)
        })?;
    }
    let mut deny = Command::new(program);
    deny.args(["check", "bans", "licenses", "sources"]).current_dir(paths::repo());
    check("cargo-deny", deny)
}

fn unit() -> Result<Found> {
    let mut found = Found::default();
    for program in programs::all()?.iter().filter(|it| !it.is_end_to_end()) {
        found += counted(program.command(), &program.prefix, Shown::Bad)?;
    }
    let examples = cargo(&["test", "--workspace", "--doc", "--quiet"]);
    found += counted(examples, "", Shown::Bad)?;
    Ok(found)
}

fn chart() -> Found {
    let mut found = Found::default();
    for (name, holds) in chart::checks() {
        found.add(format!("chart {name}"), Outcome::of(holds));
    }
    found
}

fn ansible() -> Result<Found> {
    let _lock = packages::lock()?;
    let mut tests = Command::new(paths::repo().join("ansible/tests/run"));
    tests.current_dir(paths::repo());
    counted(tests, "ansible ", Shown::Bad)
}

fn oslo() -> Result<Found> {
    compared("oslo", "oslo_answers", "crates/nova-operator/tests/oslo/run")
}

fn cloudinit() -> Result<Found> {
    compared("cloudinit", "config_drives", "crates/config-drive/tests/cloudinit/run")
}

fn ironic() -> Result<Found> {
    compared("ironic", "ironic_answers", "crates/ironic-client/tests/ironic/run")
}

/// Tests in Python that compare what an example of ours answers with what other programs do.
fn compared(part: &str, example: &str, tests: &str) -> Result<Found> {
    programs::all()?;
    // The lab is made meanwhile, and both fetch packages.
    let _lock = packages::lock()?;
    let mut tests = Command::new(paths::repo().join(tests));
    tests.arg(paths::compiled().join("debug/examples").join(example));
    counted(tests, &format!("{part} "), Shown::Bad)
}
