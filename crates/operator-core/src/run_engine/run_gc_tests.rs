//! Tests of the garbage collection of runs.

use std::collections::BTreeMap;

use api::ansibleee::AnsibleEe;

use super::*;
use crate::run_engine::test_runs::{attempt, ended, record, run};

fn recorded(state: RunState, number: i64) -> Vec<ServiceRun> {
    vec![record(state, "A", number)]
}

fn failed(name: &str, host: &str, number: i64, minute: u8) -> AnsibleEe {
    let status = ended("Failed", host, "KeyRefused", minute);
    run(name, &[(host, attempt("A", number))], &status)
}

fn deleted(objects: &[AnsibleEe], recorded: &[(&str, &[ServiceRun])]) -> Vec<String> {
    let runs: Vec<Run<'_>> = objects.iter().filter_map(Run::of).collect();
    let recorded: BTreeMap<&str, &[ServiceRun]> = recorded.iter().copied().collect();
    superseded(&runs, &recorded).into_iter().map(|it| it.target.name).collect()
}

#[test]
fn of_a_hosts_failures_only_the_last_is_left() {
    let objects = [failed("old", "n0", 1, 1), failed("new", "n0", 2, 2)];
    assert_eq!(deleted(&objects, &[("n0", &recorded(RunState::Failed, 2))]), ["old"]);
}

#[test]
fn the_present_failure_of_each_host_is_left() {
    let objects = [failed("of-n0", "n0", 1, 1), failed("of-n1", "n1", 1, 2)];
    let (of_n0, of_n1) = (recorded(RunState::Failed, 1), recorded(RunState::Failed, 1));
    assert_eq!(deleted(&objects, &[("n0", &of_n0), ("n1", &of_n1)]), Vec::<String>::new());
    // Once it is retried, the older run has no further use.
    let of_n0 = recorded(RunState::Pending, 2);
    assert_eq!(deleted(&objects, &[("n0", &of_n0), ("n1", &of_n1)]), ["of-n0"]);
}

#[test]
fn a_run_whose_result_is_not_recorded_is_left() {
    let objects = [failed("old", "n0", 1, 1), failed("new", "n1", 1, 2)];
    let recorded = recorded(RunState::Running, 1);
    assert_eq!(deleted(&objects, &[("n0", &recorded)]), Vec::<String>::new());
}

#[test]
fn a_run_of_hosts_that_are_gone_is_not() {
    let objects = [failed("old", "n0", 1, 1), failed("new", "n1", 1, 2)];
    assert_eq!(deleted(&objects, &[]), ["old"]);
}
