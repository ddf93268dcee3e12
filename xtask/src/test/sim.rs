//! The part `sim`: control logic against simulated clusters.

use anyhow::{Result, ensure};

use super::count::{Found, Shown, counted};
use super::programs;
use crate::lab;

/// The prefixes of these tests' names, which are test files of one crate, and the number of
/// parallel tests. They mostly wait, but those of the second file start a cluster each.
const PROGRAMS: [(&str, &str); 2] = [
    ("simulated-cluster sim::", "--test-threads=8"),
    ("simulated-cluster disturbed::", "--test-threads=6"),
];

/// Whether a test, or all tests with a prefix, need a simulated cluster.
pub(crate) fn is_simulated(test: &str) -> bool {
    at_once(test).is_some()
}

fn at_once(test: &str) -> Option<&'static str> {
    PROGRAMS.iter().find(|it| test.starts_with(it.0)).map(|it| it.1)
}

/// Runs them, one program after the other; each starts the simulated clusters that it needs.
pub(super) fn run() -> Result<Found> {
    let bin = lab::simulation_programs()?;
    let mut found = Found::default();
    let mut n_programs = 0;
    for program in programs::all()? {
        let Some(at_once) = at_once(&program.prefix) else { continue };
        n_programs += 1;
        let mut command = program.timed();
        command.env("EDPM_SIM_BIN", &bin).env("RUST_BACKTRACE", "0").arg(at_once);
        found += counted(command, &program.prefix, Shown::All)?;
    }
    ensure!(n_programs == PROGRAMS.len(), "of {PROGRAMS:?} {n_programs} are there");
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crates_unit_tests_need_no_simulated_cluster() {
        assert!(is_simulated("simulated-cluster sim::node_inputs::it_holds"));
        assert!(!is_simulated("simulated-cluster player::ledger::tests::it_holds"));
        assert!(!is_simulated("e2e sim::it_holds"));
    }
}
