//! The cleanup of a host, and how often it is attempted.

use api::conditions::Severity;
use api::dataplane::{RunState, ServiceRun};
use nova_config::annotations::SKIP_CLEANUP;
use operator_core::rejected_write::RejectedWrite;

use super::cases::own_run;
use super::nova::said;
use super::*;
use crate::reasons;

#[test]
fn the_clean_up_is_a_play_of_our_own_over_the_one_host_in_bounded_time() {
    let mut world = World::new();
    world.delete_node(false).settle();
    let [run] = &world.runs[..] else { panic!("{:?}", world.runs) };
    let spec = &run.spec;
    assert!(spec.playbook_contents.as_ref().unwrap().contains("systemctl disable --now"));
    assert_eq!((spec.hosts.len(), spec.hosts[0].address.as_str()), (1, "192.0.2.7:22"));
    assert_eq!((spec.active_deadline_seconds, spec.backoff_limit), (Some(600), 0));
    let text = serde_json::to_string(spec).unwrap();
    assert!(
        text.contains("dataplanenode-n0") && text.contains("/runner/env/ssh_key/key"),
        "{text}"
    );
    assert!(!text.contains("config-data"), "no file of nova's is needed");
}

#[test]
fn a_dead_host_keeps_its_node_for_three_attempts_and_no_longer() {
    let mut world = World::new();
    world.delete_node(false);
    let began = world.now;
    let mut n_attempts = 0;
    while world.node.is_some() {
        let writes = world.settle();
        n_attempts += n_cleanups(&writes);
        if world.runs.iter().any(|it| it.status.is_none()) {
            world.end("Unreachable").settle();
            if world.node.is_some() {
                assert_eq!(world.told_by_node().0, "HostUnreachable");
                world.mentions("HostCleaned", &[SKIP_CLEANUP]);
            }
        }
        world.wait(1);
        assert!(n_attempts <= 3);
    }
    assert_eq!(n_attempts, 3);
    assert!(world.now.duration_since(began) <= SignedDuration::from_mins(5));
    assert_eq!(world.leftovers(), [("n0.example.org".to_owned(), false)]);
    assert!(world.compute.is_none() && world.runs.is_empty());
    assert!(world.events.contains(&"compute HostNotCleaned".to_owned()), "{:?}", world.events);
}

#[test]
fn what_does_not_heal_by_itself_is_not_tried_again() {
    for result in ["Failed", "NotReached"] {
        let mut world = World::new();
        world.delete_node(false).settle();
        assert_eq!(n_cleanups(&world.end(result).settle()), 0);
        assert!(world.node.is_none() && world.compute.is_none());
        assert_eq!(world.leftovers(), [("n0.example.org".to_owned(), false)]);
    }
}

#[test]
fn a_compute_that_never_touched_its_host_goes_at_once_and_leaves_nothing() {
    let mut world = World::new();
    world.compute.as_mut().unwrap().status = None;
    let writes = world.delete_node(false).settle();
    assert_eq!(writes[0], "delete compute");
    assert!(!writes.contains(&"create run".to_owned()), "{writes:?}");
    assert!(world.node.is_none() && world.leftovers().is_empty());
}

/// The compute while the service before nova-compute fails on its host.
fn before_nova(world: &mut World) {
    let status = json!({
        "hostName": "n0.example.org",
        "services": [
            {
                "name": "libvirt", "state": "Failed", "hash": "h", "attempt": 2, "failures": 2,
                "since": "2026-01-01T00:00:00Z", "reason": "TaskFailed",
            },
            {
                "name": "nova", "state": "Pending", "hash": "h", "attempt": 1,
                "since": "2026-01-01T00:00:00Z",
            },
        ],
    });
    world.compute.as_mut().unwrap().status = Some(serde_json::from_value(status).unwrap());
}

#[test]
fn a_host_on_which_nova_compute_was_never_started_leaves_nothing_in_nova() {
    let mut world = World::new();
    before_nova(&mut world);
    let writes = world.delete_node(false).settle();
    assert_eq!(n_cleanups(&writes), 0, "{writes:?}");
    assert!(world.node.is_none() && world.compute.is_none());
    assert_eq!((world.leftovers(), world.events.clone()), (vec![], vec![]));
}

#[test]
fn a_host_on_which_nova_compute_may_have_been_started_is_cleaned() {
    type Change = fn(&mut World);
    let changes: [Change; 3] = [
        |it| {
            let run = own_run(it, "nova-n0", true);
            it.runs.push(run);
        },
        // While a service sequence is in progress, only its first run is recorded.
        |it| record(it, 0).state = RunState::Running,
        |it| record(it, 1).attempt = 2,
    ];
    for change in changes {
        let mut world = World::new();
        before_nova(&mut world);
        change(&mut world);
        assert_eq!(n_cleanups(&world.delete_node(false).settle()), 1);
        world.end("Ok").settle();
        assert_eq!(world.leftovers(), [("n0.example.org".to_owned(), true)]);
    }
}

fn record(world: &mut World, at: usize) -> &mut ServiceRun {
    &mut world.compute.as_mut().unwrap().status.as_mut().unwrap().services[at]
}

#[test]
fn of_a_nova_compute_that_was_never_seen_to_register_no_records_are_claimed() {
    for is_seen in [false, true] {
        let mut world = World::new();
        let status = world.compute.as_mut().unwrap().status.as_mut().unwrap();
        if is_seen {
            status.deployed_inputs.insert("x".into(), "d".into());
        }
        world.delete("compute", "n0");
        world.settle();
        world.end("Ok");
        let plan = recorded(removal::decide(&world.ending().unwrap(), None, world.now));
        world.take_all(&plan.steps);
        let told = said(&world, "HostCleaned").1;
        assert_eq!(told.contains("Nova keeps its records of the host"), is_seen, "{told}");
        assert_eq!(told.contains("was never seen to register in cell"), !is_seen, "{told}");
    }
}

#[test]
fn the_host_is_left_as_it_is_where_the_human_says_so_on_node_or_compute() {
    for on_node in [true, false] {
        let mut world = World::new();
        world.delete_node(false).settle();
        world.end("Unreachable").settle();
        let skip = (SKIP_CLEANUP.to_owned(), "true".to_owned());
        if on_node {
            world.node.as_mut().unwrap().annotations_mut().extend([skip]);
        } else {
            world.compute.as_mut().unwrap().annotations_mut().extend([skip]);
        }
        world.settle();
        assert!(world.node.is_none() && world.compute.is_none() && world.runs.is_empty());
        assert_eq!(world.leftovers(), [("n0.example.org".to_owned(), false)]);
        assert!(world.events.contains(&"compute CleanupSkipped".to_owned()), "{:?}", world.events);
    }
}

#[test]
fn a_host_that_nobody_can_reach_any_more_is_told_and_keeps_nothing() {
    type Change = fn(&mut World);
    let cases: [(&str, Change); 3] = [
        ("Secret key", |it| it.ssh = None),
        ("is now at 192.0.2.9:22", |it| {
            it.node.as_mut().unwrap().status.as_mut().unwrap().address =
                Some("192.0.2.9:22".into());
        }),
        ("inventory of OpenStackDataPlaneNode n0 is gone", |it| it.node = None),
    ];
    for (words, change) in cases {
        let mut world = World::new();
        world.delete("compute", "n0");
        change(&mut world);
        // Only one controller runs, so that the compute can still be read.
        let plan = recorded(removal::decide(&world.ending().unwrap(), None, world.now));
        world.take_all(&plan.steps);
        world.says("HostCleaned", "HostNotCleaned", &[words]);
        assert_eq!(n_cleanups(&world.settle()), 0);
        assert_eq!(world.leftovers(), [("n0.example.org".to_owned(), false)]);
    }
}

#[test]
fn a_node_that_was_held_a_moment_before_its_deletion_is_cleaned_once_its_inventory_is_there() {
    let mut world = World::new();
    world.lacks_inventory = true;
    let writes = world.delete_node(false).settle();
    assert_eq!(n_cleanups(&writes), 0);
    let words = ["of OpenStackDataPlaneNode n0", "is not written yet", "skip-cleanup=true"];
    world.says("HostCleaned", "InventoryNotWritten", &words);
    world.lacks_inventory = false;
    assert_eq!(n_cleanups(&world.settle()), 1);
}

#[test]
fn a_compute_that_names_no_inventory_waits_for_none() {
    let mut world = World::new();
    world.lacks_inventory = true;
    world.compute.as_mut().unwrap().spec.inventory_config_map_name = None;
    world.delete("compute", "n0");
    let plan = recorded(removal::decide(&world.ending().unwrap(), None, world.now));
    world.take_all(&plan.steps);
    world.says(
        "HostCleaned",
        "HostNotCleaned",
        &["inventory of OpenStackDataPlaneNode n0 is gone"],
    );
}

#[test]
fn a_run_that_is_under_way_is_not_waited_for() {
    let mut world = World::new();
    for (name, is_finished) in [("nova-done", true), ("nova-open", false)] {
        let run = own_run(&world, name, is_finished);
        world.runs.push(run);
    }
    let writes = world.delete_node(false).settle();
    assert!(writes.contains(&"delete run".to_owned()), "{writes:?}");
    let names: Vec<String> = world.runs.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names.contains(&"nova-done".to_owned()) && !names.contains(&"nova-open".to_owned()));
}

#[test]
fn a_clean_up_that_waits_for_another_run_says_for_which() {
    let mut world = World::new();
    world.delete_node(false).settle();
    let status = json!({ "waitingFor": "run-os-compute (host n0)" });
    world.runs[0].status = Some(serde_json::from_value(status).unwrap());
    world.settle();
    assert_eq!(
        (said(&world, "Ready").0, world.told_by_node().0),
        ("Queued".into(), "Queued".into())
    );
    world.mentions("HostCleaned", &["run-os-compute"]);
}

#[test]
fn a_clean_up_that_cannot_go_on_says_why_and_how_to_go_on_without_it() {
    let cases = [
        ("RunnerLost", Severity::Error, "Worker w does not answer"),
        ("Unschedulable", Severity::Warning, "Pod p cannot be scheduled"),
        ("JobRefused", Severity::Warning, "exceeded quota: q"),
        ("PodRefused", Severity::Warning, "must specify requests.cpu"),
        ("InvalidSpec", Severity::Error, "spec.env: A is listed twice"),
    ];
    for (word, severity, words) in cases {
        let mut world = World::new();
        world.delete_node(false).settle();
        let ready = conditions::fault("Ready", severity, word, words);
        let status = json!({ "JobStatus": "Running", "conditions": [ready] });
        world.runs[0].status = Some(serde_json::from_value(status).unwrap());
        world.settle();
        world.says("HostCleaned", word, &[words, SKIP_CLEANUP]);
        world.node_says(word, &[words, SKIP_CLEANUP]);
        assert_eq!(world.wait(60).settle(), Vec::<String>::new(), "told once, and not given up");
        world.runs[0].status = None;
        world.settle();
        assert_eq!(said(&world, "HostCleaned").0, "CleaningHost");
        world.end("Ok").settle();
        assert_eq!(world.leftovers(), [("n0.example.org".to_owned(), true)]);
    }
}

#[test]
fn a_clean_up_that_is_refused_is_told_and_heals() {
    let mut world = World::new();
    world.delete("compute", "n0");
    let seen = world.ending().unwrap();
    let plan = recorded(removal::decide(&seen, None, world.now));
    let at = plan.steps.iter().position(|it| matches!(it.write, Write::Create { .. })).unwrap();
    let refusal = RejectedWrite::of(&plan.steps[at], &reasons::FORBIDDEN, "exceeded quota: q");
    let telling = removal::decide(&seen, Some(&refusal), world.now).only_statuses();
    world.take_all(&telling.steps);
    assert_eq!(said(&world, "Ready").0, "Forbidden");
    world.mentions("HostCleaned", &["exceeded quota: q"]);
    assert_eq!(n_cleanups(&world.settle()), 1);
    assert_eq!(said(&world, "HostCleaned").0, "CleaningHost");
    world.end("Ok").settle();
    assert_eq!(world.leftovers(), [("n0.example.org".to_owned(), true)]);
}

#[test]
fn a_host_that_belongs_to_another_object_is_not_cleaned_and_holds_nothing() {
    let mut world = World::new();
    let writes = world.delete_node(false).settle();
    assert_eq!(n_cleanups(&writes), 1, "{writes:?}");
    world.fail_as_not_owned("the host belongs to OpenStackDataPlaneNode n1 (UID u-1)");
    let writes = world.settle();
    assert_eq!(n_cleanups(&writes), 0, "{writes:?}");
    assert!(world.events.contains(&"compute HostNotCleaned".to_owned()), "{:?}", world.events);
    assert!(world.node.is_none(), "{writes:?}");
}
