//! Roles with more hosts than one inventory object holds.

use std::collections::BTreeSet;

use operator_core::plan::{REST_OF_WRITES, WRITES_PER_PASS};

use super::*;

const FIRST: &str = "dataplanerole-compute";
const SECOND: &str = "dataplaneroles.1-compute";

impl World {
    /// `count` hosts, nothing deployed.
    fn with_hosts(count: usize) -> Self {
        let mut world = Self::new();
        world.seen.nodes = (0..count).map(numbered).collect();
        world
    }

    fn role_inventories(&self) -> Vec<&str> {
        let all = self.seen.inventories.keys().map(String::as_str);
        all.filter(|it| it.starts_with("dataplanerole")).collect()
    }
}

fn numbered(idx: usize) -> Arc<Node> {
    node(&format!("n{idx:03}"), &format!("192.0.2.{idx}"))
}

fn hosts(run: &AnsibleEe) -> BTreeSet<String> {
    run.spec.hosts.iter().map(|it| it.name.clone()).collect()
}

#[test]
fn each_run_mounts_the_inventory_that_has_its_hosts() {
    let mut world = World::with_hosts(101);
    world.deploy();
    assert_eq!(world.role_inventories(), [FIRST, SECOND]);
    for run in &world.seen.runs {
        let spec = serde_json::to_string(&run.spec).unwrap();
        for (part, name) in [FIRST, SECOND].into_iter().enumerate() {
            let is_mounted = spec.contains(name);
            let are_in = hosts(run).iter().all(|it| (it == "n100") == (part == 1));
            assert_eq!(is_mounted, are_in, "{} and {name}", run.name_any());
        }
        let inventory = if spec.contains(FIRST) { FIRST } else { SECOND };
        let text = world.config_maps[inventory]["data"]["inventory"].as_str().unwrap();
        assert!(hosts(run).iter().all(|it| text.contains(it)), "{}", run.name_any());
    }
    assert!((0..101).all(|it| world.condition(it, "Ready") == is("True", "Ready")));
}

#[test]
fn a_role_that_grows_changes_no_other_host_and_leaves_no_object_behind() {
    let mut world = World::with_hosts(100);
    world.deploy();
    assert_eq!(world.role_inventories(), [FIRST]);
    world.seen.nodes.push(numbered(100));
    let writes = world.settle();
    let is_of_others =
        |it: &&String| !it.contains("n100") && !it.contains(SECOND) && !it.contains("Role");
    assert_eq!(writes.iter().filter(is_of_others).collect::<Vec<_>>(), [""; 0]);
    assert!(writes.contains(&"run install-os on n100".to_owned()), "{writes:?}");
    world.deploy();
    world.settle();
    assert_eq!(world.role_inventories(), [FIRST, SECOND]);
    world.seen.nodes.truncate(50);
    world.settle();
    assert_eq!(world.role_inventories(), [FIRST]);
}

#[test]
fn a_role_that_shrinks_has_few_objects_and_runs_nothing() {
    let mut world = World::with_hosts(250);
    world.deploy();
    let last = "dataplaneroles.2-compute";
    assert_eq!(world.role_inventories(), [FIRST, SECOND, last]);
    world.seen.nodes = world.seen.nodes.split_off(95);
    world.seen.nodes.drain(10..100);
    assert_eq!(world.seen.nodes.len(), 65);
    let writes = world.settle();
    assert!(!writes.iter().any(|it| it.starts_with("run")), "{writes:?}");
    assert_eq!(world.role_inventories(), [FIRST, SECOND]);
    let text = world.config_maps[FIRST]["data"]["inventory"].as_str().unwrap();
    assert!(text.contains("n095") && text.contains("n249"), "{text}");
}

#[test]
fn a_run_that_has_not_ended_keeps_the_object_that_it_mounts() {
    let mut world = World::with_hosts(101);
    world.deploy();
    world.set_var("hello").settle();
    world.seen.nodes.pop();
    world.settle();
    assert_eq!(world.role_inventories(), [FIRST, SECOND]);
    world.deploy();
    world.settle();
    assert_eq!(world.role_inventories(), [FIRST]);
}

#[test]
fn a_pass_over_many_hosts_writes_some_of_them_and_the_role_and_runs_begin_once_all_are_written() {
    let mut world = World::with_hosts(300).held();
    let is_of_role = |it: &Step| it.target.kind.kind == "OpenStackDataPlaneRole";
    let mut n_passes = 0;
    while world.seen.runs.is_empty() {
        let plan = world.pass();
        let runs = plan.steps.iter().filter(|it| matches!(it.write, Write::Create { .. })).count();
        let is_whole = plan.requeue_after != Some(REST_OF_WRITES);
        let others: Vec<&Step> = plan.steps.iter().filter(|it| !is_of_role(it)).collect();
        assert!(others.len() - runs <= WRITES_PER_PASS);
        assert_eq!(runs > 0, is_whole);
        n_passes += 1;
        assert!(n_passes > 1 || plan.steps.iter().any(is_of_role), "the first pass says nothing");
    }
    // Inventories and statuses of 300 nodes.
    assert!(n_passes >= 3);
}

#[test]
fn a_refused_write_is_told_on_all_of_many_hosts() {
    let mut world = World::with_hosts(300);
    world.refused_pass(|it| it.target.kind.kind == "ConfigMap");
    let statuses = world.writes.iter().filter(|it| it.starts_with("status DataPlaneNode"));
    assert_eq!(statuses.count(), 300);
}
