//! Rollouts over many hosts, decided step by step against a world in memory.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{World, is, node};

impl World {
    /// `count` hosts that are deployed, under a role with these limits.
    fn rollout(count: usize, max: IntOrString, pause: bool) -> Self {
        let mut world = Self::new();
        world.seen.nodes =
            (0..count).map(|it| node(&format!("n{it:03}"), &format!("192.0.2.{it}"))).collect();
        world.deploy();
        let role = Arc::make_mut(world.seen.role.as_mut().unwrap());
        let strategy = role.spec.deploy_strategy.as_mut().unwrap();
        strategy.max_unavailable = Some(max);
        strategy.pause_on_failure = Some(pause);
        world
    }

    fn not_ready(&self) -> BTreeSet<usize> {
        let is_ready = |it: &usize| self.condition(*it, "Ready").0 == "True";
        (0..self.seen.nodes.len()).filter(|it| !is_ready(it)).collect()
    }

    fn up_to_date(&self) -> usize {
        let nodes = 0..self.seen.nodes.len();
        nodes.filter(|it| self.condition(*it, "UpToDate").0 == "True").count()
    }
}

#[test]
fn a_rollout_over_a_hundred_hosts_disturbs_at_most_its_share_at_once() {
    let mut world = World::rollout(100, IntOrString::String("10%".into()), false);
    world.set_var("hello");
    let mut rounds = 0;
    loop {
        world.settle();
        assert!(world.not_ready().len() <= 10, "{:?}", world.not_ready());
        if world.up_to_date() == 100 {
            break;
        }
        world.finish(&[]);
        rounds += 1;
    }
    // Ten shares of two services each.
    assert_eq!(rounds, 20);
}

#[test]
fn a_host_that_waits_for_its_turn_stays_ready_and_says_so() {
    let mut world = World::rollout(3, IntOrString::Int(1), false);
    world.set_var("hello");
    world.settle();
    assert_eq!(world.condition(2, "Ready"), is("True", "Ready"));
    assert_eq!(world.condition(2, "UpToDate"), is("False", "InputsChanged"));
    let message = world.role_message();
    assert!(message.contains("2 wait for their turn (maxUnavailable 1)"), "{message}");
}

#[test]
fn hosts_that_are_not_ready_anyway_do_not_count() {
    let mut world = World::rollout(2, IntOrString::Int(1), false);
    world.seen.nodes.extend(["n900", "n901"].map(|it| node(it, it)));
    let writes = world.settle();
    assert!(writes.contains(&"run install-os on n900,n901".to_owned()), "{writes:?}");
}

#[test]
fn a_rollout_stops_at_a_failure_and_goes_on_once_it_is_mended() {
    let mut world = World::rollout(5, IntOrString::Int(2), true);
    world.set_var("bad");
    world.settle();
    world.finish(&[("n000", "Failed")]);
    world.settle();
    // The other host of the share is brought to its end; no further one is begun with.
    world.finish(&[]);
    let writes = world.settle();
    assert!(!writes.iter().any(|it| it.starts_with("run")), "{writes:?}");
    assert_eq!(world.not_ready(), BTreeSet::from([0]));
    assert_eq!(world.up_to_date(), 1);
    let message = world.role_message();
    assert!(message.contains("paused (pauseOnFailure): 3 wait"), "{message}");
    world.set_var("good");
    world.deploy();
    assert_eq!(world.up_to_date(), 5);
}

#[test]
fn a_restart_in_the_middle_begins_with_no_host_too_many() {
    let mut world = World::rollout(6, IntOrString::Int(2), false);
    world.set_var("hello");
    world.pass();
    // Attempts are recorded, and the process ended before it could make their runs.
    world.seen.runs.retain(|it| it.status.is_some());
    world.writes.clear();
    let writes = world.settle();
    let runs: Vec<&String> = writes.iter().filter(|it| it.starts_with("run")).collect();
    assert_eq!(runs, ["run install-os on n000,n001"]);
}
