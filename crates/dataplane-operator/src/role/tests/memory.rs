//! What is remembered of hosts never makes another plan, and a host that stays is not evaluated again.

use super::*;
use crate::role::common;
use crate::role::inventory_shards::{self, node_inventory_name};
use crate::role::memory::GroupMemory;

/// The memory of a world, with what its controller would have been told of changes.
pub(super) struct Remembering {
    memory: Arc<GroupMemory>,
    last: Option<Observed>,
}

impl Default for Remembering {
    fn default() -> Self {
        Self { memory: Arc::new(GroupMemory::until(Timestamp::MAX)), last: None }
    }
}

impl Clone for Remembering {
    /// Another world has a memory of its own.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Remembering {
    /// Evaluates a world with what is remembered of it.
    pub(super) fn plan(&mut self, seen: &Observed, now: Timestamp) -> Plan {
        self.memory.forget(self.changed(seen));
        self.last = Some(seen.clone());
        for _ in 0..2 {
            let seen = self.recalled(seen);
            let plan = decide::decide(&seen, None, now);
            if !(plan.steps.is_empty() && plan.requeue_after.is_some_and(|it| it.is_zero())) {
                return plan;
            }
        }
        panic!("what is outdated was not forgotten");
    }

    /// Returns what a pass observes.
    fn recalled(&self, seen: &Observed) -> Observed {
        if !common::may_remember(seen.role.as_deref(), &seen.nodes) {
            return seen.clone();
        }
        let shards = inventory_shards::of_hosts(&seen.group, &seen.nodes);
        let recall = || self.memory.recall(&seen.nodes, &shards, &seen.runs);
        let recalled = Observed { recalled: recall(), ..seen.clone() };
        let mut seen = if self.memory.fits(common::of(&recalled)) {
            recalled
        } else {
            Observed { recalled: recall(), ..recalled }
        };
        // Of a known host nothing else is read.
        let known: Vec<String> =
            seen.recalled.hosts().map(|it| node_inventory_name(&it.name)).collect();
        seen.inventories.retain(|name, _| !known.contains(name));
        seen.inventory_secrets.retain(|name, _| !known.contains(name));
        seen
    }

    /// Returns the hosts about which something else has changed than nodes and runs.
    fn changed(&self, seen: &Observed) -> Vec<String> {
        let names = seen.nodes.iter().map(|it| it.name_any());
        let Some(last) = &self.last else { return Vec::new() };
        let are_same = last.claims == seen.claims
            && last.others.len() == seen.others.len()
            && last.others.iter().zip(&seen.others).all(|(a, b)| Arc::ptr_eq(a, b));
        let is_changed = |name: &String| {
            let inventory = node_inventory_name(name);
            last.inventories.get(&inventory) != seen.inventories.get(&inventory)
                || last.inventory_secrets.get(&inventory) != seen.inventory_secrets.get(&inventory)
        };
        names.filter(|it| !are_same || is_changed(it)).collect()
    }
}

impl World {
    /// Returns the hosts that the next pass would evaluate.
    fn evaluated(&self) -> Vec<String> {
        let seen = self.memory.recalled(&self.seen);
        seen.recalled.unknown(&seen.nodes).map(|it| it.1.name_any()).collect()
    }
}

#[test]
fn a_host_that_stays_is_not_evaluated_again() {
    let mut world = World::deployed();
    assert_eq!(world.evaluated(), [""; 0]);
    world.node(1).annotations_mut().insert("dataplane.openstack.org/redeploy".into(), "1".into());
    assert_eq!(world.evaluated(), ["n1"]);
    assert!(world.settle().contains(&"run install-os on n1".to_owned()));
    assert_eq!(world.evaluated(), [""; 0], "a run that goes on is known");
    world.finish(&[]);
    assert_eq!(world.evaluated(), ["n1"], "its run has ended");
    world.deploy();
    world.role().status = None;
    assert_eq!(world.evaluated(), [""; 0], "no host depends on the sums");
    world.role().metadata.generation = Some(2);
    assert_eq!(world.evaluated(), ["n0", "n1"], "they have the role in common");
}

#[test]
fn a_known_host_that_waits_begins_when_its_turn_comes() {
    let mut world = World::deployed();
    world.strategy().max_unavailable = Some(serde_json::from_value(json!(1)).unwrap());
    world.set_var("b").settle();
    assert_eq!(world.condition(1, "Ready").0, "True", "it waits");
    assert_eq!(world.evaluated(), [""; 0]);
    world.deploy();
    assert_eq!(world.condition(0, "UpToDate"), is("True", "UpToDate"));
    assert_eq!(world.condition(1, "UpToDate"), is("True", "UpToDate"));
}

#[test]
fn an_inventory_that_somebody_edits_is_written_again() {
    let mut world = World::new().held();
    world.deploy();
    world.seen.inventories.remove("dataplanenode-n1");
    assert_eq!(world.settle(), ["apply ConfigMap dataplanenode-n1"]);
    world.seen.inventories.remove("dataplanerole-compute");
    assert_eq!(world.settle(), ["apply ConfigMap dataplanerole-compute"]);
}

#[test]
fn what_one_pass_has_no_writes_for_is_written_by_the_next_ones_and_runs_begin_after_it() {
    let mut world = World::of(600);
    let mut evaluated = Vec::new();
    let mut passes = 0;
    while !world.seen.runs.iter().any(|it| is_open(it)) {
        let seen = world.memory.recalled(&world.seen);
        evaluated.push(seen.recalled.unknown(&seen.nodes).count());
        let plan = world.memory.plan(&world.seen, world.now);
        assert!(plan.steps.len() <= 252, "{} writes", plan.steps.len());
        world.take(&plan.steps);
        passes += 1;
        assert!(passes < 30, "no end");
    }
    assert_eq!(evaluated[0], 600);
    let later = &evaluated[1..evaluated.len() - 1];
    assert!(later.iter().all(|it| *it <= 500), "{evaluated:?}");
    let n_hosts: usize = world.seen.runs.iter().map(|it| it.spec.hosts.len()).sum();
    assert_eq!(n_hosts, 600, "every host has its run");
    let mut writes = world.writes.clone();
    writes.retain(|it| it.starts_with("status DataPlaneNode"));
    writes.sort();
    writes.dedup();
    assert_eq!(writes.len(), 600);
    // From here on, what is remembered makes no other plan.
    world.deploy();
    assert_eq!(world.evaluated(), [""; 0]);
}

#[test]
fn a_rollout_among_many_hosts_keeps_them_in_few_runs() {
    let mut world = World::of(300);
    world.deploy();
    world.strategy().max_unavailable = Some(serde_json::from_value(json!(60)).unwrap());
    world.set_var("b");
    let mut n_runs = 0;
    for _ in 0..40 {
        n_runs += runs(&world.settle()).iter().filter(|it| it.contains("install-os")).count();
        world.finish(&[]);
    }
    assert_eq!(world.role_message(), "300/300 nodes are ready.");
    assert!(n_runs < 15, "{n_runs} runs of a service for 300 hosts");
}
