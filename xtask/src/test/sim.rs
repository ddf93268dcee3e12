//! The part `sim`: control logic against simulated clusters.

use anyhow::Result;

use super::count::{Found, Shown, counted};
use super::programs;
use crate::lab;

/// What the names of these tests begin with: they are files of tests of one crate.
const PREFIXES: [&str; 2] = ["simulated-cluster sim::", "simulated-cluster disturbed::"];
/// How many tests run at once: they wait most of their time.
const AT_ONCE: &str = "--test-threads=8";

/// Whether a test, or all tests with a prefix, need a simulated cluster.
pub(crate) fn is_simulated(test: &str) -> bool {
    PREFIXES.iter().any(|it| test.starts_with(it))
}

/// Runs them, one program after the other; each starts the simulated clusters that it needs.
pub(super) fn run() -> Result<Found> {
    let bin = lab::simulation_programs()?;
    let mut found = Found::default();
    for program in programs::all()?.iter().filter(|it| it.is_simulated()) {
        let mut command = program.timed();
        command.env("EDPM_SIM_BIN", &bin).env("RUST_BACKTRACE", "0").arg(AT_ONCE);
        found += counted(command, &program.prefix, Shown::All)?;
    }
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
