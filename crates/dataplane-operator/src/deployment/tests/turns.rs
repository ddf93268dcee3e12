//! Rollouts over hosts in service: how many are unavailable at once, and when a rollout stops.

use super::*;

impl World {
    fn open_hosts(&self) -> usize {
        let open = self.seen.runs.iter().filter(|it| is_open(it));
        open.map(|it| it.spec.hosts.len()).sum()
    }
}

/// Returns the words that name the run of a service on these hosts.
fn run(service: &str, hosts: &[String]) -> String {
    format!("run {service} on {}", hosts.join(","))
}

#[test]
fn a_bad_change_on_fifty_hosts_stops_by_itself_at_a_fifth_of_them() {
    let mut world = World::deployed(50, &["first", "second"], json!({ "backoffLimit": 1 }));
    let writes = world.run_out(|_, _| "Failed");
    let expected = run("first", &names(10));
    assert_eq!(runs(&writes), [&expected, &expected], "each host twice, and no other one");
    assert_eq!(world.condition("Ready"), is("False", "BackoffLimitExceeded"));
    let words = [
        "10 of 50 hosts have failed for good",
        "40 of 50 hosts were left as they are",
        "held by hosts that fail: n000, n001, n002 and 7 more",
        "maxUnavailable (20%)",
        "another OpenStackDataPlaneDeployment goes to them first",
        "ansibleLimit that leaves them out",
    ];
    world.says("Ready", &words);
    assert_eq!(world.seen.deployment.finalizers(), [""; 0], "it is over");
    assert_eq!(world.sleep(9999).settle(), [""; 0]);

    // A correction goes first to the hosts that failed.
    let mut world = world.next("correction");
    assert_eq!(runs(&world.settle()), [expected]);
    world.succeeds();
}

#[test]
fn a_wave_goes_through_all_services_before_the_next_one_begins() {
    let mut world = World::deployed(50, &["first", "second"], json!({}));
    let mut made = Vec::new();
    while !world.is_over() {
        let writes = world.settle();
        made.extend(runs(&writes).into_iter().map(|it| it.split(',').next().unwrap().to_owned()));
        assert!(world.open_hosts() <= 10, "{}", world.open_hosts());
        if !world.is_over() {
            let message = world.message("DeploymentReady");
            let is_last = made.iter().any(|it| it.ends_with("n040"));
            assert_eq!(message.contains("wait for their turn"), !is_last, "{message}");
        }
        world.finish();
    }
    let wave = |first: usize| ["first", "second"].map(|it| format!("run {it} on n{first:03}"));
    assert_eq!(made, [0, 10, 20, 30, 40].map(wave).concat());
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
    once(&world);
}

#[test]
fn whoever_waits_for_hosts_at_work_is_told_which_ones_fail_and_both_ways_out() {
    let mut world = World::deployed(6, &["first", "second"], json!({ "maxUnavailable": 2 }));
    world.settle();
    world.finish_with(|_, host| if host == "n000" { "Failed" } else { "Ok" }).settle();
    let cause = "4 of 6 hosts wait for their turn, as maxUnavailable (2) has it; hosts that fail hold \
                 places: n000. Correct their causes";
    world.says("DeploymentReady", &[cause]);
}

#[test]
fn hosts_that_wait_at_a_service_for_all_node_sets_give_their_places_back() {
    let services = ["first", "everywhere", "second"];
    let names = names(4);
    let sets =
        vec![node_set("compute", &strs(&names), &services), node_set("other", &["x0"], &["third"])];
    let mut world = World::with(sets, json!({}));
    world.was(HostState::Deployed, &strs(&names));
    let writes = world.run_out(|_, _| "Ok");
    let expected = [
        "run first on n000",
        "run third on x0",
        "run first on n001",
        "run first on n002",
        "run first on n003",
        "run everywhere on n000,n001,n002,n003,x0",
        "run second on n000",
        "run second on n001",
        "run second on n002",
        "run second on n003",
    ];
    assert_eq!(runs(&writes), expected);
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
    once(&world);
}

#[test]
fn one_that_stops_before_a_service_for_all_is_over_too() {
    let services = ["first", "everywhere", "second"];
    let spec = json!({ "backoffLimit": 0, "maxUnavailable": 2 });
    let mut world = World::deployed(6, &services, spec);
    let fails = |_: &str, host: &str| if host == "n000" { "Ok" } else { "Failed" };
    assert_eq!(runs(&world.run_out(fails)), ["run first on n000,n001", "run first on n002"]);
    assert_eq!(world.condition("Ready"), is("False", "BackoffLimitExceeded"));
    let words = [
        "3 of 6 hosts were left as they are",
        "1 of 6 hosts are half changed (they lack everywhere",
    ];
    world.says("Ready", &words);
}

#[test]
fn hosts_that_are_down_hold_their_places_while_they_are_tried_again() {
    let mut world = World::deployed(10, &["first"], json!({ "backoffLimit": 1 })).at_rest();
    world.finish_with(|_, _| "Unreachable").settle();
    assert_eq!(world.condition("Ready"), is("False", "HostUnreachable"));
    world.says("Ready", &["held by hosts that fail: n000, n001."]);
    assert_eq!(runs(&world.sleep(16).settle()), ["run first on n000,n001"]);
    world.succeeds();
}

#[test]
fn a_change_is_tried_where_the_one_before_failed_before_any_other_host() {
    // One that was deleted as it was at work there counts as failed.
    for state in [HostState::Failed, HostState::Deploying] {
        let mut world = World::deployed(6, &["first", "second"], json!({ "maxUnavailable": 3 }));
        world.was(state, &["n004"]);
        for service in ["first", "second"] {
            assert_eq!(runs(&world.settle()), [format!("run {service} on n004")]);
            if service == "first" {
                // Other hosts do not wait for one that has failed again.
                let mut other = world.clone();
                let writes = other.finish_with(|_, _| "Failed").settle();
                assert_eq!(runs(&writes), ["run first on n000,n001"], "the places that are left");
            }
            world.finish();
        }
        assert_eq!(runs(&world.settle()), ["run first on n000,n001,n002"]);
    }
}

#[test]
fn a_failure_pauses_what_has_not_begun_where_that_is_asked_for() {
    let spec = json!({ "maxUnavailable": "50%", "pauseOnFailure": true, "backoffLimit": 1 });
    let mut world = World::deployed(6, &["first", "second"], spec).at_rest();
    world.finish_with(|_, host| if host == "n001" { "Failed" } else { "Ok" });
    // What has begun is completed.
    assert_eq!(runs(&world.settle()), ["run second on n000,n002"]);
    assert_eq!(runs(&world.finish().settle()), [""; 0]);
    world.says("Ready", &["3 of 6 hosts wait: pauseOnFailure is set", "hosts fail: n001"]);
    let mut healed = world.clone();
    healed.succeeds();
    world.run_out(|_, host| if host == "n001" { "Failed" } else { "Ok" });
    assert_eq!(world.condition("Ready"), is("False", "BackoffLimitExceeded"));
    assert_eq!(world.record("n005", "second"), None, "it was not begun with");
    assert_eq!(world.host_state("n005"), HostState::Deployed);
}

#[test]
fn a_restart_in_the_middle_begins_with_no_host_too_many() {
    let mut world = World::deployed(10, &["first", "second"], json!({}));
    world.pass();
    world.pass();
    assert_eq!(world.open_hosts(), 2);
    // Attempts are recorded, and the process ended before it could create their runs.
    world.seen.runs.clear();
    world.carried.clear();
    world.writes.clear();
    assert_eq!(runs(&world.settle()), ["run first on n000,n001"]);
    world.run_out(|_, _| "Ok");
    once(&world);
}

#[test]
fn a_first_deployment_waits_for_nobody_and_costs_no_further_run() {
    let first = |spec: Value| {
        let set = node_set("compute", &strs(&names(200)), &["first", "second"]);
        let mut world = World::with(vec![set], spec);
        let fails = |_: &str, host: &str| if host == "n007" { "Failed" } else { "Ok" };
        let mut made = Vec::new();
        for _ in 0..2 {
            made.extend(runs(&world.settle()).into_iter().map(str::to_owned));
            world.finish_with(fails);
        }
        made
    };
    let made = first(json!({}));
    assert_eq!(made.len(), 8, "four of fifty hosts for each service");
    assert_eq!(made, first(json!({ "maxUnavailable": "100%" })));
}

#[test]
fn a_bad_change_after_a_service_for_all_stops_at_a_fifth_of_the_hosts_time_after_time() {
    let bad = |world: &mut World| {
        let writes = world.run_out(|service, _| if service == "second" { "Failed" } else { "Ok" });
        let second = runs(&writes).into_iter().filter_map(|it| it.strip_prefix("run second on "));
        second.flat_map(|it| it.split(',').map(str::to_owned)).collect::<BTreeSet<String>>()
    };
    let failed: BTreeSet<String> = names(10).into_iter().collect();
    let services = ["first", "everywhere", "second"];
    let mut world = World::deployed(50, &services, json!({ "backoffLimit": 0 }));
    assert_eq!(bad(&mut world), failed);
    assert_eq!(world.condition("Ready"), is("False", "BackoffLimitExceeded"));
    let message = world.message("Ready");
    assert!(message.contains("40 of 50 hosts are half changed (they lack second"), "{message}");
    assert!(!message.contains("left as they are"), "{message}");
    let state = |state| names(50).iter().filter(|it| world.host_state(it) == state).count();
    assert_eq!((state(HostState::Failed), state(HostState::Undeployed)), (10, 40));
    let mut next = world.next("next");
    assert_eq!(bad(&mut next), failed, "it goes to those that failed, and to no other");
}

#[test]
fn of_many_hosts_that_failed_no_more_are_tried_at_once_than_may_be_out_of_service() {
    let mut world = World::deployed(50, &["first", "second"], json!({}));
    world.was(HostState::Failed, &strs(&names(50)));
    while !world.is_over() {
        world.settle();
        assert!(world.open_hosts() <= 10, "{}", world.open_hosts());
        world.finish();
    }
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
    once(&world);
}

#[test]
fn hosts_that_were_never_in_service_make_no_share_larger() {
    let set = node_set("compute", &strs(&names(50)), &["first"]);
    let mut world = World::with(vec![set], json!({ "backoffLimit": 0 }));
    world.was(HostState::Deployed, &strs(&names(10)));
    let writes = world.run_out(|_, _| "Failed");
    let mut expected = vec!["n000".to_owned(), "n001".to_owned()];
    expected.extend((10..50).map(|it| format!("n{it:03}")));
    assert_eq!(runs(&writes), [run("first", &expected)]);
    world.says("Ready", &["8 of 50 hosts were left as they are"]);
}

#[test]
fn a_deployment_whose_hosts_have_all_gone_claims_no_success() {
    let mut world = World::deployed(2, &["first"], json!({ "backoffLimit": 1 })).at_rest();
    world.finish_with(|_, _| "Failed").settle();
    world.edit("compute", |it| it.spec.nodes.clear()).settle();
    for type_ in ["Ready", "DeploymentReady"] {
        world.says(type_, &["No host takes part"]);
    }
}
