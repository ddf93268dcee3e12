//! The runs of a parent by the hosts whose attempts they carry.

use std::collections::BTreeMap;

use crate::run_engine::run::Run;

/// The runs of each host.
#[derive(Debug, Default)]
pub struct RunsByHost<'a>(BTreeMap<&'a str, Vec<&'a Run<'a>>>);

impl<'a> RunsByHost<'a> {
    /// Sorts runs by their hosts.
    pub fn of(runs: impl IntoIterator<Item = &'a Run<'a>>) -> Self {
        let mut by_host = Self::default();
        for run in runs {
            for host in run.attempts.keys() {
                by_host.0.entry(host).or_default().push(run);
            }
        }
        by_host
    }

    /// Returns the runs that carry an attempt of a host, in the order in which they were given.
    pub fn of_host(&self, host: &str) -> &[&'a Run<'a>] {
        self.0.get(host).map(Vec::as_slice).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::run_engine::test_runs::{attempt, run};

    #[test]
    fn a_host_has_the_runs_that_carry_its_attempts_in_their_order_and_no_others() {
        let at = |host: &'static str, number| (host, attempt("h", number));
        let objects = [
            run("r2", &[at("n0", 1), at("n1", 1)], &json!({})),
            run("r1", &[at("n1", 2)], &json!({})),
            run("r3", &[at("n2", 1)], &json!({})),
        ];
        let runs: Vec<Run<'_>> = objects.iter().filter_map(Run::of).collect();
        let by_host = RunsByHost::of(&runs);
        let names = |host: &str| by_host.of_host(host).iter().map(|it| it.name()).collect();
        let found: [Vec<String>; 4] = ["n0", "n1", "n2", "n3"].map(names);
        assert_eq!(found, [vec!["r2"], vec!["r2", "r1"], vec!["r3"], vec![]]);
    }
}
