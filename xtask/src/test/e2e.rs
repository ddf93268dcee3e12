//! The end-to-end tests: an upgrade from the previous release, the demo, and all others afterwards.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use super::count::{Found, Shown, counted};
use super::outcome::Outcome;
use super::programs::{self, Program};
use super::{joined, journey};
use crate::cluster::Choice;
use crate::demo::scene::{self, MAIN};
use crate::{bare_metal, demo, images, lab, machines, release, upgrade};

/// The test that upgrades the previous release to this one.
const UPGRADE: &str = "e2e upgrade::";

/// The tests of hosts that start as machines of an Ironic, which only the lab has.
const BARE_METAL: &str = "e2e baremetal::";

/// The program whose tests change the demo's two hosts for minutes.
const MAIN_JOB: &str = "e2e main_job::";

/// The program whose tests only `cargo xtask proof` runs.
const PROOF: &str = "e2e proof::";

/// The program whose tests need the demo's guests; only `cargo xtask proof` runs them.
const GUESTS: &str = "e2e guests::";

/// Its tests that take a host away, after which the others cannot run.
const REMOVAL: &str = "e2e guests::removal::";

/// The number of parallel tests of a program: they wait for hosts, and for each other.
const TEST_THREADS: &str = "--test-threads=8";

/// The programs that run in parallel to the main job: their tests have hosts and namespaces of
/// their own, do not disturb the operators, and expect no response within seconds.
const MEANWHILE: [&str; 3] = ["e2e baremetal::", "e2e removal::", "e2e runs_by_hand::"];

/// The prepared environment of the tests.
pub(super) struct Prepared {
    env: lab::Env,
    /// The file with the chart's values for the operators of this tree; `None` when the previous
    /// release is not available, so that nothing was installed.
    values: Option<PathBuf>,
}

/// Starts the lab, runs the main job with the previous release, and builds all images. This takes
/// minutes of compiling on a new machine and of waiting on each; other checks leave a core for it.
pub(super) fn prepare(cluster: &Choice) -> Result<Prepared> {
    let env = cluster.up()?;
    let can_upgrade = release::can_be_had()?;
    if can_upgrade {
        upgrade::prepare(&env)?;
    }
    let images = images::for_cluster(&env)?;
    if env.is_lab() {
        images::for_bare_metal()?;
        // Other parts hold the lock for packages for minutes later.
        machines::tools()?;
    }
    let values = if can_upgrade { Some(demo::values(&images)?) } else { None };
    Ok(Prepared { env, values })
}

/// Upgrades the previous release, which has done the main job. The demo then finds everything
/// deployed, and the disruptive tests follow.
pub(super) fn run(cluster: &Choice, Prepared { env, values }: &Prepared) -> Result<Found> {
    let is_of_run = |it: &&Program| it.is_end_to_end() && ![PROOF, GUESTS].contains(&&*it.prefix);
    let programs = programs::all()?.iter().filter(is_of_run);
    let mut tests = Tests { env, values: values.as_deref(), programs: named(programs)? };
    let mut found = if values.is_some() {
        tests.run(|it| it.starts_with(UPGRADE))?
    } else {
        let mut left_out = Found::default();
        for it in tests.names().iter().filter(|it| it.starts_with(UPGRADE)) {
            left_out += Found::one(it, Outcome::Skipped);
        }
        left_out
    };
    found += tests.provide_machines()?;
    found += demo(cluster)?;
    let (tested, shown) = std::thread::scope(|scope| {
        // On a host of its own; it waits for nova as long as the others do.
        let shown = scope.spawn(|| journey::run(cluster));
        (tests.run(|it| !it.starts_with(UPGRADE)), joined(shown))
    });
    found += tested?;
    found += shown?;
    Ok(found)
}

/// Shows the demo, and runs those tests on it that are too long for each run and are in a file of
/// this name.
pub(crate) fn prove(cluster: &Choice, file: &str) -> Result<()> {
    demo::show(cluster, &MAIN)?;
    let env = cluster.up()?;
    let programs = programs::all()?.iter().filter(|it| it.prefix == PROOF);
    let tests = Tests { env: &env, values: None, programs: named(programs)? };
    let found = tests.run(|it| it.starts_with(&format!("{PROOF}{file}::")))?;
    ensure!(found.count.passed > 0 && found.count.failed == 0, "{}", found.count);
    Ok(())
}

/// Shows the demo with guests, verifies it, and runs the tests that need its guests.
pub(crate) fn prove_guests(cluster: &Choice) -> Result<()> {
    demo::show(cluster, &scene::GUESTS)?;
    demo::verify(cluster, &scene::GUESTS)?;
    let env = cluster.up()?;
    let values = demo::values(&images::for_cluster(&env)?)?;
    let programs = programs::all()?.iter().filter(|it| it.prefix == GUESTS);
    let tests = Tests { env: &env, values: Some(&values), programs: named(programs)? };
    let mut found = tests.run(|it| !it.starts_with(REMOVAL))?;
    found += tests.run(|it| it.starts_with(REMOVAL))?;
    ensure!(found.count.passed > 0 && found.count.failed == 0, "{}", found.count);
    Ok(())
}

/// Runs the demo, and verifies that its facts still hold when they are collected again.
fn demo(cluster: &Choice) -> Result<Found> {
    demo::show(cluster, &MAIN)?;
    let mut found = Found::one("e2e demo", Outcome::Passed);
    demo::verify(cluster, &MAIN)?;
    found += Found::one("e2e demo --verify", Outcome::Passed);
    Ok(found)
}

/// All test programs, and what they need to run.
struct Tests<'a> {
    env: &'a lab::Env,
    values: Option<&'a Path>,
    programs: Vec<(&'a Program, Vec<String>)>,
}

fn named<'a>(
    programs: impl Iterator<Item = &'a Program>,
) -> Result<Vec<(&'a Program, Vec<String>)>> {
    programs.map(|it| Ok((it, it.tests()?))).collect()
}

impl Tests<'_> {
    /// Returns the names of all tests, with the prefixes of their programs.
    fn names(&self) -> Vec<String> {
        let of = |(program, names): &(&Program, Vec<String>)| {
            names.iter().map(|it| format!("{}{it}", program.prefix)).collect::<Vec<_>>()
        };
        self.programs.iter().flat_map(of).collect()
    }

    /// Starts Ironic and the process that runs its machines; without the lab, skips the tests that
    /// need them.
    fn provide_machines(&mut self) -> Result<Found> {
        let mut left_out = Found::default();
        if self.env.is_lab() {
            bare_metal::up(self.env)?;
            return Ok(left_out);
        }
        let needs_ironic = |it: &str| it.starts_with(BARE_METAL);
        for (program, names) in &mut self.programs {
            names.retain(|name| {
                let name = format!("{}{name}", program.prefix);
                if needs_ironic(&name) {
                    left_out += Found::one(&name, Outcome::Skipped);
                }
                !needs_ironic(&name)
            });
        }
        Ok(left_out)
    }

    /// Runs the chosen tests.
    fn run(&self, is_chosen: impl Fn(&str) -> bool + Sync) -> Result<Found> {
        let is_meanwhile = |it: &str| MEANWHILE.contains(&it);
        let is_main_job = |it: &str| it == MAIN_JOB;
        let mut found = self.each(|it| !is_main_job(it) && !is_meanwhile(it), &is_chosen)?;
        let (main_job, meanwhile) = std::thread::scope(|scope| {
            let meanwhile = scope.spawn(|| self.each(is_meanwhile, &is_chosen));
            (self.each(is_main_job, &is_chosen), joined(meanwhile))
        });
        found += main_job?;
        found += meanwhile?;
        Ok(found)
    }

    /// Runs the chosen tests of some programs, one program after the other.
    fn each(
        &self,
        is_program: impl Fn(&str) -> bool,
        is_chosen: impl Fn(&str) -> bool,
    ) -> Result<Found> {
        let mut found = Found::default();
        for (program, names) in self.programs.iter().filter(|(it, _)| is_program(&it.prefix)) {
            let is_chosen = |it: &&String| is_chosen(&format!("{}{it}", program.prefix));
            let chosen: Vec<&String> = names.iter().filter(is_chosen).collect();
            if chosen.is_empty() {
                continue;
            }
            let mut command = program.timed();
            self.prepare(&mut command)?;
            command.arg("--exact").args(chosen);
            found += counted(command, &program.prefix, Shown::All)?;
        }
        Ok(found)
    }

    fn prepare(&self, command: &mut Command) -> Result<()> {
        command.arg(TEST_THREADS).env("KUBECONFIG", &self.env.kubeconfig);
        command.envs(self.values.map(|it| ("EDPM_UPGRADE_VALUES", it)));
        if self.env.is_lab() {
            let others = std::env::var_os("PATH").unwrap_or_default();
            let folders =
                std::iter::once(self.env.bin.clone()).chain(std::env::split_paths(&others));
            command.env("PATH", std::env::join_paths(folders)?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths;

    #[test]
    fn what_runs_beside_each_other_are_files_of_tests() {
        for prefix in MEANWHILE.into_iter().chain([MAIN_JOB, BARE_METAL, PROOF, GUESTS]) {
            let name = prefix.strip_prefix("e2e ").and_then(|it| it.strip_suffix("::")).unwrap();
            let tests = paths::repo().join("e2e/tests");
            let files = [format!("{name}.rs"), format!("{name}/main.rs")];
            assert!(files.iter().any(|it| tests.join(it).is_file()), "{name}");
        }
    }
}
