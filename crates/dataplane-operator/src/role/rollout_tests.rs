//! Tests of rollouts over many hosts, evaluated step by step against an in-memory cluster.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use operator_core::object_key::Key;
use serde_json::json;

use super::{NAMESPACE, World, is, is_open, node, runs};
use crate::role::deleted_runs::SeenRuns;

impl World {
    /// `count` hosts under a role without rollout limits.
    pub(super) fn of(count: usize) -> Self {
        let mut world = Self::new();
        world.strategy().max_unavailable = None;
        world.seen.nodes =
            (0..count).map(|it| node(&format!("n{it:03}"), &format!("192.0.2.{it}"))).collect();
        world
    }

    /// Ends all runs with the same outcome on each of their hosts, until no host has an open run.
    fn run_out(&mut self, result: &str) {
        for _ in 0..100 {
            self.settle();
            if self.open_runs() == 0 {
                return;
            }
            let names: Vec<String> =
                self.seen.nodes.iter().map(|it| it.metadata.name.clone().unwrap()).collect();
            let all: Vec<(&str, &str)> = names.iter().map(|it| (it.as_str(), result)).collect();
            self.finish(&all);
        }
        panic!("no end");
    }

    fn set_own_deploy(&mut self, idx: usize, deploy: bool) {
        self.node(idx).spec.deploy_strategy.get_or_insert_default().deploy = Some(deploy);
    }

    /// `count` hosts that are deployed, under a role with these limits.
    fn rollout(count: usize, max: IntOrString, pause: bool) -> Self {
        let mut world = Self::of(count);
        world.deploy();
        let strategy = world.strategy();
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
    // Ten waves of two services each.
    assert_eq!(rounds, 20);
}

#[test]
fn a_host_that_waits_for_its_turn_stays_ready_and_says_so() {
    let mut world = World::rollout(3, IntOrString::Int(1), false);
    world.set_var("hello").settle();
    assert_eq!(world.condition(2, "Ready"), is("True", "Ready"));
    assert_eq!(world.condition(2, "UpToDate"), is("False", "InputsChanged"));
    world.role_says(&["2 wait for their turn (maxUnavailable 1)"]);
}

#[test]
fn a_bad_change_on_fifty_hosts_stops_by_itself_at_a_fifth_of_them() {
    let mut world = World::of(50);
    world.deploy();
    world.set_var("bad");
    world.run_out("Failed");
    assert_eq!(world.not_ready(), (0..10).collect());
    assert_eq!(world.condition(10, "UpToDate"), is("False", "InputsChanged"));
    for message in [world.message(10, "UpToDate"), world.role_message()] {
        for words in [
            "held by hosts that fail: n000, n001, n002 and 7 more",
            "raise deployStrategy.maxUnavailable of the role",
            "deployStrategy.deploy: false on their nodes",
        ] {
            assert!(message.contains(words), "{message}");
        }
    }
    world.role_says(&["40 wait for their turn (maxUnavailable 20%)"]);
    assert_eq!(world.settle(), [""; 0]);
    let writes = world.set_var("good").settle();
    let failed: Vec<String> = (0..10).map(|it| format!("n{it:03}")).collect();
    assert_eq!(runs(&writes), [format!("run install-os on {}", failed.join(","))]);
    world.run_out("Ok");
    assert_eq!((world.not_ready().len(), world.up_to_date()), (0, 50));
}

#[test]
fn a_corrected_change_goes_to_the_hosts_that_failed_before_any_other() {
    let mut world = World::rollout(6, IntOrString::Int(3), false);
    world.set_var("bad").settle();
    // The budget admits two hosts again, which would begin.
    world.finish(&[("n001", "Failed")]).settle();
    world.finish(&[]);
    world.set_var("good");
    world.pass();
    // The attempt is recorded, and the process ended before it could create the run.
    world.seen.runs.retain(|it| !is_open(it));
    world.writes.clear();
    assert_eq!(runs(&world.settle()), ["run install-os on n001"]);
    assert_eq!(world.not_ready(), BTreeSet::from([1]));
    world.says(0, "UpToDate", &["waits for its turn"]);
    let writes = world.finish(&[("n001", "Failed")]).settle();
    assert_eq!(runs(&writes), ["run install-os on n000,n002"], "the places that are left");
    world.set_var("better");
    world.run_out("Ok");
    assert_eq!(world.up_to_date(), 6);
}

#[test]
fn hosts_that_are_down_hold_their_places_until_they_answer() {
    let mut world = World::rollout(10, IntOrString::String("20%".into()), false);
    world.set_var("second").settle();
    world.finish(&[("n000", "Unreachable"), ("n001", "Unreachable")]).settle();
    assert_eq!((world.open_runs(), world.not_ready()), (0, BTreeSet::from([0, 1])));
    world.says(5, "UpToDate", &["held by hosts that fail: n000, n001."]);
    // Each host may always be retried, and the reports about the others do not change meanwhile.
    world.now = world.now.saturating_add(jiff::SignedDuration::from_secs(16)).unwrap();
    let writes = world.settle();
    assert_eq!(runs(&writes), ["run install-os on n000,n001"]);
    let told: Vec<&String> = writes.iter().filter(|it| it.starts_with("status")).collect();
    assert!(told.iter().all(|it| it.contains("n000") || it.contains("n001")), "{writes:?}");
    world.run_out("Ok");
    assert_eq!(world.up_to_date(), 10);
}

#[test]
fn a_first_deployment_of_two_hundred_hosts_waits_for_nobody_and_costs_no_further_run() {
    let first_deployment = |max: Option<&str>| {
        let mut world = World::of(200);
        let strategy = world.strategy();
        strategy.max_unavailable = max.map(|it| IntOrString::String(it.into()));
        let mut made = Vec::new();
        // A failed host does not use up the budget of those that are still to come.
        for failing in [vec![("n007", "Failed")], vec![]] {
            made.extend(runs(&world.settle()).into_iter().map(str::to_owned));
            world.finish(&failing);
        }
        world.settle();
        assert_eq!(world.not_ready(), BTreeSet::from([7]));
        made
    };
    let made = first_deployment(None);
    assert_eq!(made, first_deployment(Some("100%")));
    assert_eq!(made.len(), 8, "two services for each fifty hosts: {made:?}");
}

#[test]
fn a_host_whose_own_deploy_is_false_counts_for_nothing() {
    let mut world = World::rollout(10, IntOrString::String("20%".into()), false);
    world.set_var("bad");
    world.run_out("Failed");
    assert_eq!(world.not_ready(), BTreeSet::from([0, 1]));
    // It no longer counts: a fifth of nine hosts is one, and the other failed host is that one.
    world.set_own_deploy(0, false);
    assert_eq!(world.settle().iter().filter(|it| it.starts_with("run")).count(), 0);
    world.says(5, "UpToDate", &["held by hosts that fail: n001."]);
    world.set_own_deploy(1, false);
    assert_eq!(runs(&world.settle()), ["run install-os on n002"]);
}

#[test]
fn a_rollout_stops_at_a_failure_and_goes_on_once_it_is_mended() {
    let mut world = World::rollout(5, IntOrString::Int(2), true);
    world.set_var("bad").settle();
    world.finish(&[("n000", "Failed")]).settle();
    // The other host of the wave is completed; no further host begins.
    assert_eq!(runs(&world.finish(&[]).settle()), [""; 0]);
    assert_eq!(world.not_ready(), BTreeSet::from([0]));
    assert_eq!(world.up_to_date(), 1);
    world.role_says(&["paused (pauseOnFailure): 3 wait"]);
    world.set_var("good");
    world.deploy();
    assert_eq!(world.up_to_date(), 5);
}

#[test]
fn a_restart_in_the_middle_begins_with_no_host_too_many() {
    let mut world = World::rollout(6, IntOrString::Int(2), false);
    world.set_var("hello");
    world.pass();
    // Attempts are recorded, and the process ended before it could create their runs.
    world.seen.runs.retain(|it| !is_open(it));
    world.writes.clear();
    assert_eq!(runs(&world.settle()), ["run install-os on n000,n001"]);
}

#[test]
fn a_redeployed_host_is_another_instance_to_others_from_its_turn_on() {
    let mut world = World::rollout(2, IntOrString::Int(1), false);
    world.role().annotations_mut().insert("dataplane.openstack.org/redeploy".into(), "1".into());
    let instance = |world: &World, idx: usize| {
        world.seen.nodes[idx].status.as_ref().unwrap().host_instance.clone()
    };
    world.settle();
    assert!(instance(&world, 0).is_some());
    assert_eq!(instance(&world, 1), None, "nobody may deploy on top of it yet");
    assert_eq!(world.condition(1, "UpToDate"), is("False", "InputsChanged"));
    for _ in 0..4 {
        world.finish(&[]).settle();
    }
    assert_eq!(instance(&world, 1), instance(&world, 0));
    assert_eq!(world.up_to_date(), 2);
}

impl World {
    /// Five deployed hosts, each in a run of its own, whose runs wait from now on.
    fn queueing(pause: bool) -> Self {
        let mut world = Self::rollout(5, IntOrString::String("100%".into()), pause);
        world.strategy().batch_size = Some(1);
        world.settle();
        world.is_queueing = true;
        world
    }

    /// Ends the open run of a host.
    fn end(&mut self, host: &str, result: &str) {
        let open = self.seen.runs.iter_mut().filter(|it| is_open(it));
        let mut of_host = open.filter(|it| it.spec.hosts.iter().any(|it| it.name == host));
        let run = Arc::make_mut(of_host.next().unwrap());
        let word = if result == "Ok" { "Succeeded" } else { "Failed" };
        let status = json!({ "JobStatus": word, "hosts": [{ "name": host, "result": result }] });
        run.status = Some(serde_json::from_value(status).unwrap());
    }

    fn open_runs(&self) -> usize {
        self.seen.runs.iter().filter(|it| is_open(it)).count()
    }
}

#[test]
fn a_failure_that_pauses_a_rollout_withdraws_the_runs_that_wait() {
    let mut world = World::queueing(true);
    world.set_var("bad").settle();
    assert_eq!(world.open_runs(), 5);
    world.end("n000", "Failed");
    let writes = world.settle();
    assert_eq!(writes.iter().filter(|it| *it == "delete AnsibleEE").count(), 4, "{writes:?}");
    assert_eq!(world.open_runs(), 0);
    // Nothing has happened on the others.
    assert_eq!(world.not_ready(), BTreeSet::from([0]));
    world.role_says(&["paused (pauseOnFailure): 4 wait"]);
    world.is_queueing = false;
    world.set_var("good");
    world.deploy();
    assert_eq!(world.up_to_date(), 5);
}

#[test]
fn a_run_that_has_begun_is_brought_to_its_end_by_a_paused_rollout() {
    let mut world = World::queueing(true);
    world.set_var("bad").settle();
    let run = world.seen.runs.iter_mut().find(|it| it.spec.hosts[0].name == "n001").unwrap();
    let admitted = json!({ "admission": { "term": "t", "time": "2026-01-01T00:00:00Z" } });
    Arc::make_mut(run).status = Some(serde_json::from_value(admitted).unwrap());
    world.end("n000", "Failed");
    world.settle();
    assert_eq!(world.open_runs(), 1);
    assert_eq!(world.not_ready(), BTreeSet::from([0, 1]));
}

#[test]
fn deployment_that_is_switched_off_withdraws_the_runs_that_wait_and_leaves_hosts_ready() {
    let mut world = World::queueing(false);
    world.set_var("hello").settle();
    world.set_deploy(false).settle();
    assert_eq!((world.open_runs(), world.not_ready().len(), world.up_to_date()), (0, 0, 0));
    world.is_queueing = false;
    world.set_deploy(true);
    world.deploy();
    assert_eq!(world.up_to_date(), 5);
}

#[test]
fn inputs_that_go_back_while_their_runs_wait_leave_the_hosts_as_they_are() {
    let mut world = World::queueing(false);
    let before = world.seen.runs.len();
    world.set_var("hello").settle();
    assert_eq!(world.open_runs(), 5);
    world.template().ansible_vars.remove("greeting");
    assert_eq!(runs(&world.settle()), [""; 0]);
    assert_eq!((world.seen.runs.len(), world.up_to_date()), (before, 5));
    assert_eq!(world.not_ready(), BTreeSet::new());
}

#[test]
fn another_service_in_place_of_the_one_that_failed_goes_first_to_where_it_failed() {
    let mut world = World::of(50);
    world.deploy();
    world.set_var("bad");
    let failing: Vec<String> = (40..50).map(|it| format!("n{it:03}")).collect();
    let fails: Vec<(&str, &str)> = failing.iter().map(|it| (it.as_str(), "Failed")).collect();
    for _ in 0..100 {
        world.settle();
        let mut open = world.seen.runs.iter().filter(|it| is_open(it)).peekable();
        if open.peek().is_none() {
            break;
        }
        let service = |it: &AnsibleEe| it.labels()["edpm.openstack.org/service"].clone();
        let is_last = open.any(|it| service(it) == "run-os");
        let fails = if is_last { fails.as_slice() } else { &[] };
        world.finish(fails);
    }
    assert_eq!(world.not_ready(), (40..50).collect());
    world.set_deploy(false);
    let mut other = (*world.seen.services["run-os"]).clone();
    other.metadata.name = Some("run-os-2".into());
    world.seen.services.insert("run-os-2".into(), Arc::new(other));
    world.role().spec.services = serde_json::from_value(json!(["install-os", "run-os-2"])).unwrap();
    world.settle();
    assert_eq!(world.not_ready(), (40..50).collect(), "nothing has been mended yet");
    let writes = world.set_deploy(true).settle();
    assert_eq!(runs(&writes), [format!("run run-os-2 on {}", failing.join(","))]);
    assert_eq!(runs(&world.finish(&fails).settle()), [""; 0], "it has failed again");
    assert_eq!(world.not_ready(), (40..50).collect());
    world.set_var("good");
    world.run_out("Ok");
    assert_eq!((world.not_ready().len(), world.up_to_date()), (0, 50));
    let services = &world.seen.nodes[45].status.as_ref().unwrap().services;
    assert!(services.iter().all(|it| it.name != "run-os"), "{services:?}");
}

#[test]
fn an_edit_of_a_node_that_waits_for_hosts_that_fail_is_not_ready() {
    for pauses in [false, true] {
        let mut world = World::rollout(3, IntOrString::Int(1), pauses);
        world.set_var("bad");
        world.run_out("Failed");
        assert_eq!(world.not_ready(), BTreeSet::from([0]));
        world.node(2).metadata.generation = Some(2);
        world.settle();
        let reason = if pauses { "Paused" } else { "WaitingForTurn" };
        assert_eq!(world.condition(2, "Ready"), is("False", reason));
        assert_eq!(world.condition(1, "Ready"), is("True", "Ready"), "its role has changed alone");
        world.set_var("good");
        world.run_out("Ok");
        assert_eq!(world.up_to_date(), 3);
    }
}

#[test]
fn new_hosts_that_have_begun_go_on_where_another_one_pauses_the_rollout() {
    for is_edited in [false, true] {
        let mut world = World::of(3);
        world.strategy().pause_on_failure = Some(true);
        world.settle();
        world.finish(&[("n000", "Failed")]);
        if is_edited {
            // The later service gets a new attempt, and the first one's success is recorded with it.
            let service = world.seen.services.get_mut("run-os").unwrap();
            Arc::make_mut(service).spec.playbook = Some("a.b.c".into());
        }
        assert_eq!(runs(&world.settle()), ["run run-os on n001,n002"], "edited: {is_edited}");
    }
}

/// The key of the group.
fn key() -> Key {
    Key::new(NAMESPACE, "role/compute")
}

impl World {
    /// Deletes all runs between two passes of a process that has seen these.
    fn lose_runs(&mut self, seen: &SeenRuns) {
        let nodes = std::mem::take(&mut self.seen.nodes);
        let nodes = seen.with_deleted(&key(), nodes, &self.seen.runs);
        self.seen.runs.clear();
        self.seen.nodes = seen.with_deleted(&key(), nodes, &[]);
    }
}

#[test]
fn a_run_that_is_deleted_after_it_has_begun_is_lost_also_where_the_host_was_new() {
    let seen = SeenRuns::default();
    let mut world = World::of(2);
    world.settle();
    world.lose_runs(&seen);
    assert_eq!(runs(&world.settle()), [""; 0]);
    for host in 0..2 {
        assert_eq!(world.condition(host, "Ready"), is("False", "ResultUnknown"));
        world.says(host, "Ready", &["the run was deleted before it had reported one"]);
    }
    let nodes = world.seen.nodes.clone();
    assert_eq!(seen.with_deleted(&key(), nodes.clone(), &[]), nodes, "it is recorded now");
}

#[test]
fn all_runs_of_a_new_host_that_are_deleted_in_a_later_service_repeat_none_of_them() {
    let seen = SeenRuns::default();
    let mut world = World::of(2);
    world.settle();
    assert_eq!(runs(&world.finish(&[]).settle()), ["run run-os on n000,n001"]);
    world.lose_runs(&seen);
    assert_eq!(runs(&world.settle()), [""; 0]);
    assert_eq!(world.condition(1, "Ready"), is("False", "ResultUnknown"));
}

#[test]
fn a_redeployment_is_two_writes_of_the_node_of_each_host() {
    let mut world = World::deployed();
    world.set_var("hello");
    let mut writes = world.settle();
    while world.open_runs() > 0 {
        writes.extend(world.finish(&[]).settle());
    }
    for name in ["n0", "n1"] {
        let of_node = writes.iter().filter(|it| **it == format!("status DataPlaneNode {name}"));
        assert_eq!(of_node.count(), 2, "{writes:?}");
    }
    assert_eq!(world.up_to_date(), 2);
}

#[test]
fn the_run_of_a_host_in_service_that_is_deleted_after_it_has_begun_is_lost() {
    let seen = SeenRuns::default();
    let mut world = World::deployed();
    world.set_var("hello").settle();
    world.lose_runs(&seen);
    assert_eq!(runs(&world.settle()), [""; 0]);
    assert_eq!(world.condition(0, "Ready"), is("False", "ResultUnknown"));
}

#[test]
fn inputs_that_go_back_after_a_run_has_begun_are_deployed_again() {
    for is_second_queued in [false, true] {
        let mut world = World::deployed();
        world.set_var("hello").settle();
        world.is_queueing = is_second_queued;
        assert_eq!(runs(&world.finish(&[]).settle()), ["run run-os on n0,n1"]);
        world.is_queueing = false;
        world.template().ansible_vars.remove("greeting");
        let mut made: Vec<String> = Vec::new();
        for _ in 0..3 {
            made.extend(runs(&world.settle()).into_iter().map(str::to_owned));
            world.finish(&[]);
        }
        world.settle();
        assert_eq!(made, ["run install-os on n0,n1", "run run-os on n0,n1"]);
        assert_eq!((world.up_to_date(), world.not_ready().len()), (2, 0));
    }
}

#[test]
fn hosts_between_two_services_keep_their_places_when_the_inputs_change() {
    let mut world = World::rollout(4, IntOrString::Int(2), false);
    world.set_var("b").settle();
    assert_eq!(world.not_ready(), BTreeSet::from([0, 1]));
    world.finish(&[]);
    world.set_var("c");
    assert_eq!(runs(&world.settle()), ["run install-os on n000,n001"]);
    assert_eq!(world.not_ready(), BTreeSet::from([0, 1]));
    world.run_out("Ok");
    assert_eq!(world.up_to_date(), 4);
}

#[test]
fn a_run_that_is_deleted_before_it_has_begun_is_made_again() {
    let mut world = World::of(2);
    world.is_queueing = true;
    let made = world.settle();
    world.lose_runs(&SeenRuns::default());
    assert_eq!(runs(&world.settle()), runs(&made));
}

#[test]
fn a_failure_pauses_a_rollout_in_the_pass_that_sees_it_first() {
    let mut world = World::queueing(true);
    world.strategy().max_unavailable = Some(IntOrString::Int(2));
    world.set_var("bad").settle();
    assert_eq!(world.open_runs(), 2);
    // Its run was rejected, so it never began.
    world.end("n000", "Failed");
    assert_eq!(runs(&world.settle()), [""; 0]);
    assert_eq!(world.not_ready(), BTreeSet::from([0]));
}
