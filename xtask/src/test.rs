//! `cargo xtask test`: runs every check of the project, whole or in parts, and prints one count at
//! the end.

mod count;
mod e2e;
mod features;
mod journey;
pub(crate) mod outcome;
mod programs;
mod report;
mod shares;
mod sim;
pub(crate) mod spec;
mod tree;

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::Instant;

use anyhow::{Result, anyhow, bail};
use clap::ValueEnum;
use count::{Count, Found, Shown, counted};
pub(crate) use e2e::{prove, prove_guests};
use outcome::Outcome;
use programs::Program;
use report::Report;

use crate::{bench, chart, cluster::Choice, packages, paths, sh};

/// Run the project's tests.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these parts; all of them without any.
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// The text of the specification, with which the quotes of docs/spec-002.md are compared.
    #[arg(long, value_name = "FILE")]
    specification: Option<PathBuf>,
    /// Only what needs neither the lab nor other programs: format, lint, unit, chart and sim.
    #[arg(long, conflicts_with = "parts")]
    quick: bool,
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
    /// All test programs and operators, compiled with one set of features per package.
    Compile,
    /// Control logic against a simulated cluster: a real API server with the operators as processes.
    Sim,
    /// Many hosts on simulated clusters: requests against a baseline, and how processor time grows.
    Bench,
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

/// The results so far; parts that run in parallel add to it.
#[derive(Default)]
struct Sum {
    report: Report,
    total: Count,
    bad: Vec<String>,
}

/// The prepared lab for the end-to-end tests.
type Lab = OnceLock<Result<e2e::Prepared>>;

/// Runs all parts, even after failures, and returns whether all succeeded. The count is the last
/// line.
///
/// The outcome of each test is written to the report as it becomes known, replacing the last
/// report.
pub(crate) fn main(args: &Args) -> bool {
    // What the environment makes impossible is reported before the first part runs.
    let cluster = if args.parts().contains(&Part::E2e) { args.cluster.env().err() } else { None };
    match cluster.map_or_else(tree::in_cache, Err) {
        Ok(Some(is_good)) => return is_good,
        Ok(None) => {}
        Err(error) => {
            println!("{error:#}\n\n0 passed, 1 failed");
            return false;
        }
    }
    let began = Instant::now();
    let sum = Mutex::new(Sum::default());
    // The prepared lab: set before its tests begin.
    let lab = OnceLock::new();
    let is_asked = |it: &Part| args.parts().contains(it);
    let run = |parts: &[Part]| {
        parts.iter().filter(|it| is_asked(it)).for_each(|it| it.run_and_record((args, &lab), &sum));
    };
    std::thread::scope(|scope| {
        let preparing = is_asked(&Part::E2e).then(|| scope.spawn(|| e2e::prepare(&args.cluster)));
        run(&[Part::Format, Part::Lint, Part::Deny, Part::Compile, Part::Chart]);
        // The preparation of the lab would slow down the operators, whose response time is tested.
        if let Some(preparing) = preparing {
            let began = Instant::now();
            lab.get_or_init(|| joined(preparing));
            note_seconds(&sum, "lab awaited", began);
        }
        let run = &run;
        let beside = |name: &str, parts: &'static [Part]| {
            let thread = std::thread::Builder::new().name(name.to_owned());
            let is_begun = thread.spawn_scoped(scope, move || run(parts)).is_ok();
            assert!(is_begun, "the thread {name} did not start");
        };
        // The simulated clusters leave a fifth of the processors idle, which suits what is short,
        // and the unit tests with their low priority: these may go on beside the lab.
        beside("unit", &[Part::Unit]);
        beside("short", &[Part::Oslo, Part::Cloudinit]);
        run(&[Part::Sim, Part::Bench]);
        // Ansible computes while the lab waits for nova.
        beside("ansible", &[Part::Ansible]);
        // It waits for an Ironic most of its time.
        beside("ironic", &[Part::Ironic]);
        run(&[Part::E2e]);
    });
    // The tables are checked against the tests that ran before.
    run(&[Part::Spec]);
    note_seconds(&sum, "all", began);
    let Sum { report, total, bad } = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("\n{}", report.times());
    if !bad.is_empty() {
        println!("== what failed\n{}", bad.join("\n"));
    }
    println!("\n{total}");
    total.failed == 0
}

/// Records the seconds of something that is not a part.
fn note_seconds(sum: &Mutex<Sum>, what: &str, began: Instant) {
    let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
    sum.report.seconds.insert(what.to_owned(), began.elapsed().as_secs());
    sum.write();
}

impl Sum {
    /// Writes the report if it has any part; a write error counts as a failure.
    fn write(&mut self) {
        if self.report.parts.is_empty() {
            return;
        }
        if let Err(error) = self.report.write() {
            println!("{error:#}");
            self.total.failed += 1;
        }
    }
}

impl Args {
    /// Returns the requested parts.
    fn parts(&self) -> &[Part] {
        if self.quick {
            return &Part::QUICK;
        }
        if self.parts.is_empty() { Part::value_variants() } else { &self.parts }
    }
}

impl Part {
    /// The parts that need no lab and no other programs.
    const QUICK: [Self; 6] =
        [Self::Format, Self::Lint, Self::Compile, Self::Unit, Self::Sim, Self::Chart];

    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Runs it and adds its result, and what failed: its tests, or the error that stopped it.
    fn run_and_record(self, given: (&Args, &Lab), sum: &Mutex<Sum>) {
        let name = self.name();
        let label = count::label();
        println!("\n{label}== {name}");
        let began = Instant::now();
        let mut bad = Vec::new();
        let found = self.run(given).unwrap_or_else(|error| {
            println!("{label}{error:#}");
            bad.push(format!("{name}: {error:#}"));
            Found::one(&name, Outcome::Failed)
        });
        if bad.is_empty() {
            bad.extend(found.failed().map(|it| format!("{name}: {it}")));
        }
        // Not every failure has a name: a runner may crash before it prints one.
        if bad.len() < found.count.failed {
            bad.push(format!("{name}: {}", found.count));
        }
        let seconds = began.elapsed().as_secs();
        println!("{label}== {name}: {} ({seconds} s)", found.count);
        let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
        sum.total += found.count;
        sum.bad.extend(bad);
        sum.report.seconds.insert(name.clone(), seconds);
        if self != Self::Spec {
            sum.report.parts.insert(name, found.tests);
            sum.report.seconds_of_tests.extend(found.seconds);
            sum.write();
        }
    }

    fn run(self, (args, lab): (&Args, &Lab)) -> Result<Found> {
        match self {
            Self::Format => check("rustfmt", cargo(&["fmt", "--all", "--check"])),
            Self::Lint => lint(),
            Self::Deny => deny(),
            Self::Compile => features::check(),
            Self::Unit => unit(),
            Self::Oslo => oslo(),
            Self::Cloudinit => cloudinit(),
            Self::Ironic => ironic(),
            Self::Sim => sim::run(),
            Self::Bench => bench(),
            Self::Chart => Ok(chart()),
            Self::Ansible => ansible(),
            Self::E2e => match lab.get() {
                Some(Ok(prepared)) => e2e::run(&args.cluster, prepared),
                Some(Err(error)) => bail!("the lab: {error:#}"),
                None => bail!("nobody has prepared the lab"),
            },
            Self::Spec => spec::check(args.specification.as_deref()),
        }
    }
}

fn cargo(arguments: &[&str]) -> Command {
    let mut cargo = sh::cargo();
    cargo.args(arguments).current_dir(paths::repo()).env("RUST_BACKTRACE", "0");
    cargo
}

/// Runs a check that consists of one command.
fn check(name: &str, mut command: Command) -> Result<Found> {
    sh::run(&mut command)?;
    Ok(Found::one(name, Outcome::Passed))
}

fn lint() -> Result<Found> {
    let strictly = ["--", "-D", "warnings"];
    features::compile(&["clippy", "--workspace", "--all-targets"], &strictly)?;
    let mut found = Found::one("clippy", Outcome::Passed);
    // Each alone, so that another crate's features cannot hide missing ones.
    for package in paths::PURE {
        let alone = cargo(&["check", "--package", package, "--quiet"]);
        found += check(&format!("the pure crate {package} compiles alone"), alone)?;
    }
    Ok(found)
}

/// Runs cargo-deny without advisories: their database is a git repository, which is not a package
/// source.
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
            // It reads a few hundred files: optimising it takes longer than it ever runs.
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
    let is_unit = |it: &&Program| !it.is_end_to_end() && !it.is_simulated();
    let programs = Mutex::new(programs::all()?.iter().filter(is_unit));
    let next = || programs.lock().unwrap_or_else(PoisonError::into_inner).next();
    let each = || {
        let mut found = Found::default();
        while let Some(program) = next() {
            found += counted(nice(&program.timed()), &program.prefix, Shown::Bad)?;
        }
        anyhow::Ok(found)
    };
    // Most programs have one test that takes as long as all others: two programs at a time keep two
    // cores busy.
    std::thread::scope(|scope| {
        let beside = scope.spawn(each);
        let mut found = each()?;
        found += joined(beside)?;
        Ok(found)
    })
}

/// Lowers the priority of a command, so that waiting for hosts and responses comes first.
fn nice(command: &Command) -> Command {
    let mut nice = Command::new("nice");
    nice.args(["-n", "15"]).arg(command.get_program()).args(command.get_args());
    nice.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    nice.current_dir(command.get_current_dir().unwrap_or(&paths::repo()));
    nice
}

/// Returns the result of a thread; a panic is an error.
fn joined<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|_| Err(anyhow!("a thread of the tests has panicked")))
}

fn chart() -> Found {
    let mut found = Found::default();
    for (name, holds) in chart::checks() {
        found.add(format!("chart {name}"), Outcome::of(holds));
    }
    found
}

fn bench() -> Result<Found> {
    let mut found = Found::default();
    for (road, wrong) in bench::check::run(None)? {
        println!("bench: {road} ... {}", if wrong.is_empty() { "ok" } else { "FAILED" });
        for it in &wrong {
            println!("  {it}");
        }
        found.add(format!("bench {road}"), Outcome::of(wrong.is_empty()));
    }
    Ok(found)
}

fn ansible() -> Result<Found> {
    let _lock = packages::lock()?;
    let tests = Command::new(paths::repo().join("ansible/tests/run"));
    counted(nice(&tests), "ansible ", Shown::Bad)
}

fn oslo() -> Result<Found> {
    compared("oslo", "oslo_answers", "crates/nova-config/tests/oslo/run")
}

fn cloudinit() -> Result<Found> {
    // It downloads Debian packages, as Ansible's tests do.
    let _lock = packages::lock()?;
    compared("cloudinit", "config_drives", "crates/config-drive/tests/cloudinit/run")
}

fn ironic() -> Result<Found> {
    compared("ironic", "ironic_answers", "crates/ironic-client/tests/ironic/run")
}

/// Runs Python tests that compare the output of one of the project's examples with that of other
/// programs.
fn compared(part: &str, example: &str, tests: &str) -> Result<Found> {
    programs::all()?;
    let mut tests = Command::new(paths::repo().join(tests));
    tests.arg(paths::compiled().join("debug/examples").join(example));
    counted(tests, &format!("{part} "), Shown::Bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_a_share_of_the_time() {
        for part in Part::value_variants() {
            assert!(shares::share(&part.name()).is_some(), "{}", part.name());
        }
    }
}
