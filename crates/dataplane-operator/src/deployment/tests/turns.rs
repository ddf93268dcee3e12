//! Rollouts over hosts in service: how many are unavailable at once, and when a rollout stops.

use std::collections::BTreeSet;

use api::dataplane::{HostState, NodeSetHost};

use super::*;
use crate::deployment::concurrent_deployments::{self, ConcurrentDeployment};
use crate::deployment::finalizer;
use crate::deployment::observed::{Begun, OwnProgress};
use crate::node_set::deployment_history::{Present, merge};

fn names(count: usize) -> Vec<String> {
    (0..count).map(|it| format!("n{it:03}")).collect()
}

/// A node set of this many hosts on which a deployment has succeeded.
pub(super) fn deployed(count: usize, services: &[&str]) -> Arc<NodeSet> {
    let names = names(count);
    let hosts: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut set = node_set("compute", &hosts, services);
    let host = |name: String| NodeSetHost {
        name,
        state: HostState::Deployed,
        hash: Some("01234567".into()),
        address: None,
    };
    Arc::make_mut(&mut set).status.as_mut().unwrap().hosts = names.into_iter().map(host).collect();
    set
}

/// The same, where the last deployment failed on some hosts.
pub(super) fn failed_on(failed: &[&str], mut set: Arc<NodeSet>) -> Arc<NodeSet> {
    let hosts = &mut Arc::make_mut(&mut set).status.as_mut().unwrap().hosts;
    for host in hosts.iter_mut().filter(|it| failed.contains(&it.name.as_str())) {
        host.state = HostState::Failed;
    }
    set
}

pub(super) fn runs(writes: &[String]) -> Vec<&str> {
    writes.iter().map(String::as_str).filter(|it| it.starts_with("run ")).collect()
}

impl World {
    fn open_hosts(&self) -> usize {
        let open = self.seen.runs.iter().filter(|it| is_open(it));
        open.map(|it| it.spec.hosts.len()).sum()
    }
}

#[test]
fn a_bad_change_on_fifty_hosts_stops_by_itself_at_a_fifth_of_them() {
    let set = deployed(50, &["first", "second"]);
    let mut world = World::with(vec![set], json!({ "backoffLimit": 1 }));
    let writes = world.run_out(|_, _| "Failed");
    let failed = names(10);
    let expected = format!("run first on {}", failed.join(","));
    assert_eq!(runs(&writes), [&expected, &expected], "each host twice, and no other one");
    assert_eq!(world.condition("Ready"), is("False", "BackoffLimitExceeded"));
    let message = world.message("Ready");
    for words in [
        "10 of 50 hosts have failed for good",
        "40 of 50 hosts were left as they are",
        "held by hosts that fail: n000, n001, n002 and 7 more",
        "maxUnavailable (20%)",
        "another OpenStackDataPlaneDeployment goes to them first",
        "ansibleLimit that leaves them out",
    ] {
        assert!(message.contains(words), "{words}: {message}");
    }
    assert_eq!(world.seen.deployment.finalizers(), [""; 0], "it is over");
    world.sleep(9999);
    assert_eq!(world.settle(), [""; 0]);

    // A correction goes first to the hosts that failed.
    let failed: Vec<&str> = failed.iter().map(String::as_str).collect();
    let set = failed_on(&failed, deployed(50, &["first", "second"]));
    let mut world = World::with(vec![set], json!({}));
    let writes = world.settle();
    assert_eq!(runs(&writes), [expected]);
    world.run_out(|_, _| "Ok");
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
    once(&world);
}

#[test]
fn a_wave_goes_through_all_services_before_the_next_one_begins() {
    let set = deployed(50, &["first", "second"]);
    let mut world = World::with(vec![set], json!({}));
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
        world.sleep(11);
    }
    let wave = |first: usize| ["first", "second"].map(|it| format!("run {it} on n{first:03}"));
    assert_eq!(made, [0, 10, 20, 30, 40].map(wave).concat());
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
    once(&world);
}

/// Updates what two deployments of one node set observe of each other.
pub(super) fn look_at_each_other(worlds: &mut [World; 2]) {
    let others = worlds.each_ref().map(|it| ConcurrentDeployment {
        deployment: Arc::clone(&it.seen.deployment),
        runs: it.seen.runs.clone(),
    });
    let is_for_all = |it: &str| it == "everywhere";
    for (world, other) in worlds.iter_mut().zip(others.iter().rev()) {
        let sets = world.seen.node_sets.iter();
        let open: Vec<ConcurrentDeployment> = Some(other.clone())
            .into_iter()
            .filter(|it| finalizer::is_open(&it.deployment))
            .collect();
        let of = |set| {
            concurrent_deployments::begun_hosts(&open, &world.seen.deployment, set, is_for_all)
        };
        world.seen.others = sets.map(|(name, set)| (name.clone(), of(set))).collect();
    }
}

#[test]
fn two_deployments_of_one_node_set_share_its_places() {
    let mut worlds = two_of_one(&["first", "second"], [json!({}), json!({})]);
    let (mut most, mut waited) = (0, false);
    for tick in 0..60 {
        for idx in 0..2 {
            look_at_each_other(&mut worlds);
            worlds[idx].settle();
        }
        let open = |it: &World| -> BTreeSet<String> {
            let open = it.seen.runs.iter().filter(|it| is_open(it));
            open.flat_map(|it| &it.spec.hosts).map(|it| it.name.clone()).collect()
        };
        let out: BTreeSet<String> = worlds.iter().flat_map(open).collect();
        most = most.max(out.len());
        assert!(out.len() <= 10, "{out:?} are out of service, and 10 may be");
        let is_told = |it: &World| it.message("DeploymentReady").contains("wait for their turn");
        assert!(worlds.iter().any(|it| it.open_hosts() > 0 || it.is_over()), "both wait");
        waited |= worlds.iter().any(|it| it.open_hosts() == 0 && !it.is_over() && is_told(it));
        // The other one's runs take three times as long.
        for (idx, world) in worlds.iter_mut().enumerate() {
            if idx == 0 || tick % 3 == 0 {
                world.finish();
            }
            world.sleep(11);
        }
    }
    assert_eq!((most, waited), (10, true));
    for world in &worlds {
        assert_eq!(world.condition("Ready"), is("True", "Ready"));
    }
}

/// Two deployments of one node set of fifty hosts.
pub(super) fn two_of_one(services: &[&str], specs: [Value; 2]) -> [World; 2] {
    let mut worlds = specs.map(|it| World::with(vec![deployed(50, services)], it));
    for (name, world) in ["one", "other"].into_iter().zip(&mut worlds) {
        world.deployment().metadata.uid = Some(name.into());
        world.deployment().metadata.name = Some(name.into());
    }
    worlds
}

#[test]
fn a_deployment_that_is_stopped_does_not_follow_another_one() {
    for spec in [json!({}), json!({ "pauseOnFailure": true })] {
        let mut worlds = two_of_one(&["first", "second"], [spec, json!({})]);
        worlds[0].settle();
        worlds[0].finish_with(|_, _| "Failed");
        worlds[0].settle();
        let status = worlds[1].seen.node_sets.values_mut().next().unwrap();
        let failed = names(10);
        *status =
            failed_on(&failed.iter().map(String::as_str).collect::<Vec<_>>(), Arc::clone(status));
        for _ in 0..20 {
            for idx in [1, 0] {
                look_at_each_other(&mut worlds);
                worlds[idx].settle();
            }
            worlds[1].finish();
            worlds[0].finish_with(|_, _| "Failed");
            for world in &mut worlds {
                world.sleep(11);
            }
        }
        assert_eq!(worlds[1].condition("Ready"), is("True", "Ready"));
        let tried: BTreeSet<String> =
            worlds[0].carried.iter().map(|(_, host, _)| host.clone()).collect();
        assert_eq!(tried.into_iter().collect::<Vec<_>>(), failed);
    }
}

#[test]
fn hosts_that_fail_and_are_tried_again_hold_places_in_another_deployment_too() {
    let limits = ["n000,n001,n002,n003,n004,n005,n006,n007,n008,n009", "*"];
    let specs = limits.map(|it| json!({ "ansibleLimit": it, "maxUnavailable": 10 }));
    let mut worlds = two_of_one(&["first"], specs);
    worlds[0].settle();
    worlds[0].finish_with(|_, _| "Failed");
    worlds[0].settle();
    look_at_each_other(&mut worlds);
    assert_eq!(worlds[1].seen.others["compute"].len(), 10, "none of them has a run");
    assert_eq!(runs(&worlds[1].settle()), [""; 0]);
    let message = worlds[1].message("DeploymentReady");
    assert!(message.contains("50 of 50 hosts wait for their turn"), "{message}");
    let cause = "maxUnavailable (10) has it; hosts of OpenStackDataPlaneDeployment one count too.";
    assert!(message.contains(cause), "{message}");
    assert!(!worlds[1].is_over());
}

#[test]
fn deployments_that_rest_at_a_service_for_all_hold_no_places() {
    let services = ["first", "everywhere", "second"];
    let mut worlds = two_of_one(&services, [json!({}), json!({})]);
    for tick in 0..120 {
        for idx in 0..2 {
            look_at_each_other(&mut worlds);
            worlds[idx].settle();
        }
        for (idx, world) in worlds.iter_mut().enumerate() {
            if idx == 0 || tick % 3 == 0 {
                world.finish();
            }
            world.sleep(11);
        }
    }
    for world in &worlds {
        assert_eq!(world.condition("Ready"), is("True", "Ready"));
    }
}

/// Reports the first hosts of a node set as being deployed by another deployment.
fn set_deploying(world: &mut World, count: usize) {
    world.edit("compute", |set| {
        let hosts = &mut set.status.as_mut().unwrap().hosts;
        hosts[..count].iter_mut().for_each(|it| it.state = HostState::Deploying);
    });
}

/// The hosts of all unfinished runs.
fn out_of_service(worlds: &[World; 2]) -> BTreeSet<String> {
    let open = worlds.iter().flat_map(|it| &it.seen.runs).filter(|it| is_open(it));
    open.flat_map(|it| &it.spec.hosts).map(|it| it.name.clone()).collect()
}

#[test]
fn a_deployment_that_begins_beside_another_ones_wave_and_it_do_not_wait_for_each_other() {
    for do_begin_together in [false, true] {
        let mut worlds = two_of_one(&["first", "everywhere", "second"], [json!({}), json!({})]);
        worlds[0].settle();
        if do_begin_together {
            worlds[1].settle();
        }
        set_deploying(&mut worlds[1], 10);
        for _ in 0..200 {
            for idx in 0..2 {
                look_at_each_other(&mut worlds);
                worlds[idx].settle();
                worlds[idx].finish();
                worlds[idx].sleep(11);
            }
        }
        for world in &worlds {
            assert_eq!(world.condition("Ready"), is("True", "Ready"));
        }
    }
}

#[test]
fn a_deployment_that_begins_at_another_ones_third_wave_adds_no_hosts_to_those_out_of_service() {
    let mut worlds = two_of_one(&["first", "everywhere"], [json!({}), json!({})]);
    for _ in 0..2 {
        worlds[0].settle();
        worlds[0].finish();
    }
    worlds[0].settle();
    assert_eq!(worlds[0].open_hosts(), 10);
    // Hosts that wait are reported as being deployed, too.
    set_deploying(&mut worlds[1], 30);
    look_at_each_other(&mut worlds);
    worlds[1].settle();
    assert_eq!(out_of_service(&worlds).len(), 10);
}

#[test]
fn a_host_on_which_another_deployment_failed_meanwhile_is_tried_before_further_ones_begin() {
    let mut world = World::with(vec![deployed(6, &["first"])], json!({ "maxUnavailable": 2 }));
    assert_eq!(runs(&world.settle()), ["run first on n000,n001"]);
    let set = failed_on(&["n004"], Arc::clone(&world.seen.node_sets["compute"]));
    world.seen.node_sets.insert("compute".into(), set);
    world.finish();
    assert_eq!(runs(&world.settle()), ["run first on n004"]);
    world.finish();
    assert_eq!(runs(&world.settle()), ["run first on n002,n003"]);
    world.run_out(|_, _| "Ok");
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
}

#[test]
fn whoever_waits_for_hosts_at_work_is_told_which_ones_fail_and_both_ways_out() {
    let mut world =
        World::with(vec![deployed(6, &["first", "second"])], json!({ "maxUnavailable": 2 }));
    world.settle();
    world.finish_with(|_, host| if host == "n000" { "Failed" } else { "Ok" });
    world.settle();
    let message = world.message("DeploymentReady");
    let cause = "4 of 6 hosts wait for their turn, as maxUnavailable (2) has it; hosts that fail hold \
                 places: n000. Correct their causes";
    assert!(message.contains(cause), "{message}");
}

/// Sets the progress of another deployment on a host.
fn elsewhere(world: &mut World, host: &str, doing: OwnProgress) {
    let begun = Begun { deployment: "another".into(), doing, is_older: true };
    world.seen.others.entry("compute".into()).or_default().insert(host.into(), begun);
}

#[test]
fn a_deployment_waits_for_another_ones_run_on_a_host_that_it_will_try_again() {
    for spec in [json!({}), json!({ "pauseOnFailure": true })] {
        let mut world = World::with(vec![deployed(5, &["first"])], spec);
        world.settle();
        world.finish_with(|_, _| "Failed");
        world.settle();
        world.sleep(16);
        elsewhere(&mut world, "n000", OwnProgress::InRun);
        assert_eq!(runs(&world.settle()), [""; 0]);
        assert!(!world.is_over(), "{}", world.message("DeploymentReady"));
        world.seen.others.clear();
        world.run_out(|_, _| "Ok");
        assert_eq!(world.condition("Ready"), is("True", "Ready"));
    }
}

#[test]
fn hosts_that_another_deployment_has_given_up_are_tried_first_and_end_nothing() {
    let mut world = World::with(vec![deployed(5, &["first"])], json!({}));
    elsewhere(&mut world, "n003", OwnProgress::GivenUp);
    assert_eq!(runs(&world.settle()), ["run first on n003"]);
    world.run_out(|_, _| "Ok");
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
    // A host that this deployment has otherwise finished waits for the other deployment's end.
    let mut world = World::with(vec![deployed(2, &["first", "everywhere"])], json!({}));
    world.settle();
    world.finish();
    elsewhere(&mut world, "n000", OwnProgress::GivenUp);
    world.settle();
    assert!(!world.is_over(), "{}", world.message("DeploymentReady"));
}

#[test]
fn of_two_deployments_that_rest_because_of_each_others_failures_the_older_one_ends() {
    let spec = || json!({ "maxUnavailable": 2, "backoffLimit": 0 });
    let mut worlds = two_of_one(&["first", "everywhere", "second"], [spec(), spec()]);
    let fails = ["n000", "n001"];
    for _ in 0..200 {
        for idx in 0..2 {
            look_at_each_other(&mut worlds);
            worlds[idx].settle();
            worlds[idx].finish_with(|_, host| if host == fails[idx] { "Failed" } else { "Ok" });
            worlds[idx].sleep(11);
        }
    }
    for world in &worlds {
        assert!(world.is_over(), "{}", world.message("DeploymentReady"));
    }
}

#[test]
fn a_correction_tries_hosts_with_which_another_deployment_only_waits() {
    let specs = [json!({}), json!({ "servicesOverride": ["third"] })];
    let mut worlds = two_of_one(&["first", "second"], specs);
    worlds[0].settle();
    worlds[0].finish();
    worlds[0].seen.services.remove("second");
    worlds[0].settle();
    set_deploying(&mut worlds[1], 10);
    look_at_each_other(&mut worlds);
    assert_eq!(worlds[1].seen.others["compute"]["n000"].doing, OwnProgress::GoingOn);
    assert_eq!(runs(&worlds[1].settle()), [format!("run third on {}", names(10).join(","))]);
}

#[test]
fn a_first_deployment_elsewhere_takes_no_place_of_a_host_that_is_tried_again() {
    let mut set = deployed(20, &["first"]);
    Arc::make_mut(&mut set).status.as_mut().unwrap().hosts.truncate(10);
    let mut world = World::with(vec![failed_on(&["n000"], set)], json!({ "maxUnavailable": 1 }));
    (10..20).for_each(|it| elsewhere(&mut world, &format!("n{it:03}"), OwnProgress::InRun));
    let writes = world.settle();
    assert!(runs(&writes)[0].starts_with("run first on n000"), "{writes:?}");
}

#[test]
fn a_failure_of_a_deployment_that_has_ended_counts_until_its_node_set_tells_it() {
    let mut worlds = two_of_one(&["first"], [json!({ "backoffLimit": 0 }), json!({})]);
    worlds[0].is_unheard = true;
    worlds[0].run_out(|_, _| "Failed");
    assert!(worlds[0].seen.deployment.has_ended());
    look_at_each_other(&mut worlds);
    let others = &worlds[1].seen.others["compute"];
    assert_eq!(others.len(), 10);
    assert!(others.values().all(|it| it.doing == OwnProgress::GivenUp));
}

#[test]
fn two_deployments_whose_hosts_have_failed_for_good_both_end() {
    let third = json!({ "servicesOverride": ["third"], "maxUnavailable": 10, "backoffLimit": 0 });
    let specs = [third, json!({ "maxUnavailable": 20, "backoffLimit": 0 })];
    let mut worlds = two_of_one(&["first", "everywhere", "second"], specs);
    worlds[0].settle();
    set_deploying(&mut worlds[1], 10);
    for tick in 0..20 {
        for (idx, world) in worlds.iter_mut().enumerate() {
            let is_late = tick < 3;
            if idx == 0 && !is_late {
                world.finish_with(|_, _| "Failed");
            } else if idx == 1 {
                world.finish_with(|_, host| if host < "n010" { "Ok" } else { "Failed" });
            }
            world.sleep(11);
        }
        for idx in 0..2 {
            look_at_each_other(&mut worlds);
            worlds[idx].settle();
        }
    }
    for world in &worlds {
        assert!(world.is_over(), "{}", world.message("DeploymentReady"));
    }
}

#[test]
fn hosts_that_wait_at_a_service_for_all_node_sets_give_their_places_back() {
    let services = ["first", "everywhere", "second"];
    let mut other = node_set("other", &["x0"], &["third"]);
    Arc::make_mut(&mut other).status.as_mut().unwrap().hosts =
        deployed(1, &[]).status.as_ref().unwrap().hosts.clone();
    let mut world = World::with(vec![deployed(4, &services), other], json!({}));
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
    let mut world = World::with(vec![deployed(6, &services)], spec);
    let fails = |_: &str, host: &str| if host == "n000" { "Ok" } else { "Failed" };
    let writes = world.run_out(fails);
    assert_eq!(runs(&writes), ["run first on n000,n001", "run first on n002"]);
    assert_eq!(world.condition("Ready"), is("False", "BackoffLimitExceeded"));
    let message = world.message("Ready");
    assert!(message.contains("3 of 6 hosts were left as they are"), "{message}");
    assert!(message.contains("1 of 6 hosts are half changed (they lack everywhere"), "{message}");
}

#[test]
fn hosts_that_are_down_hold_their_places_while_they_are_tried_again() {
    let spec = json!({ "backoffLimit": 1 });
    let mut world = World::with(vec![deployed(10, &["first"])], spec);
    world.settle();
    world.finish_with(|_, _| "Unreachable");
    world.settle();
    assert_eq!(world.condition("Ready"), is("False", "HostUnreachable"));
    let message = world.message("Ready");
    assert!(message.contains("held by hosts that fail: n000, n001."), "{message}");
    world.sleep(16);
    assert_eq!(runs(&world.settle()), ["run first on n000,n001"]);
    world.run_out(|_, _| "Ok");
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
}

#[test]
fn a_change_is_tried_where_the_one_before_failed_before_any_other_host() {
    let set = failed_on(&["n004"], deployed(6, &["first", "second"]));
    let mut world = World::with(vec![set], json!({ "maxUnavailable": 3 }));
    for service in ["first", "second"] {
        assert_eq!(runs(&world.settle()), [format!("run {service} on n004")]);
        world.finish();
    }
    assert_eq!(runs(&world.settle()), ["run first on n000,n001,n002"]);
    // Other hosts do not wait for one that has failed again.
    let set = failed_on(&["n004"], deployed(6, &["first", "second"]));
    let mut world = World::with(vec![set], json!({ "maxUnavailable": 3 }));
    world.settle();
    world.finish_with(|_, _| "Failed");
    assert_eq!(runs(&world.settle()), ["run first on n000,n001"], "the places that are left");
}

#[test]
fn a_failure_pauses_what_has_not_begun_where_that_is_asked_for() {
    let spec = json!({ "maxUnavailable": "50%", "pauseOnFailure": true, "backoffLimit": 1 });
    let mut world = World::with(vec![deployed(6, &["first", "second"])], spec);
    world.settle();
    world.finish_with(|_, host| if host == "n001" { "Failed" } else { "Ok" });
    // What has begun is completed.
    assert_eq!(runs(&world.settle()), ["run second on n000,n002"]);
    world.finish();
    assert_eq!(runs(&world.settle()), [""; 0]);
    let message = world.message("Ready");
    assert!(message.contains("3 of 6 hosts wait: pauseOnFailure is set"), "{message}");
    assert!(message.contains("hosts fail: n001"), "{message}");
    let mut healed = world.clone();
    healed.run_out(|_, _| "Ok");
    assert_eq!(healed.condition("Ready"), is("True", "Ready"));
    once(&healed);
    world.run_out(|_, host| if host == "n001" { "Failed" } else { "Ok" });
    assert_eq!(world.condition("Ready"), is("False", "BackoffLimitExceeded"));
    let kept = &world.status().progress["compute"].hosts;
    assert_eq!((kept["n005"].done, kept["n005"].attempt), (0, 0), "it was not begun with");
}

#[test]
fn a_restart_in_the_middle_begins_with_no_host_too_many() {
    let mut world = World::with(vec![deployed(10, &["first", "second"])], json!({}));
    world.pass();
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
        let names = names(200);
        let hosts: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut world = World::with(vec![node_set("compute", &hosts, &["first", "second"])], spec);
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
fn all_hosts_are_deployed_at_once_where_all_may_be_unavailable() {
    let spec = json!({ "maxUnavailable": "100%" });
    let mut world = World::with(vec![deployed(50, &["first"])], spec);
    let writes = world.settle();
    assert_eq!((runs(&writes).len(), world.open_hosts()), (1, 50));
}

/// The same node set, as it is after the end of a deployment on it.
fn after(world: &World, set: &Arc<NodeSet>) -> Arc<NodeSet> {
    let mut set = Arc::clone(set);
    let progress = &world.status().progress["compute"];
    let all = [Arc::clone(&world.seen.deployment)];
    let present = Present {
        hosts: progress.hosts.keys().map(String::as_str).collect(),
        digest: progress.config_hash.as_str().into(),
        versions: BTreeSet::new(),
        replaced: BTreeMap::new(),
        handed_over: BTreeMap::new(),
        targets: BTreeMap::new(),
    };
    let outcome = merge(&set, &all, &[], &present);
    Arc::make_mut(&mut set).status.as_mut().unwrap().hosts = outcome.hosts;
    set
}

#[test]
fn a_bad_change_after_a_service_for_all_stops_at_a_fifth_of_the_hosts_time_after_time() {
    let set = deployed(50, &["first", "everywhere", "second"]);
    let bad = |set: &Arc<NodeSet>| {
        let mut world = World::with(vec![Arc::clone(set)], json!({ "backoffLimit": 0 }));
        let writes = world.run_out(|service, _| if service == "second" { "Failed" } else { "Ok" });
        let second = runs(&writes).into_iter().filter_map(|it| it.strip_prefix("run second on "));
        let reached: BTreeSet<String> =
            second.flat_map(|it| it.split(',').map(str::to_owned)).collect();
        (world, reached)
    };
    let failed: BTreeSet<String> = names(10).into_iter().collect();
    let (world, reached) = bad(&set);
    assert_eq!(reached, failed);
    assert_eq!(world.condition("Ready"), is("False", "BackoffLimitExceeded"));
    let message = world.message("Ready");
    assert!(message.contains("40 of 50 hosts are half changed (they lack second"), "{message}");
    assert!(!message.contains("left as they are"), "{message}");
    let set = after(&world, &set);
    let hosts = &set.status.as_ref().unwrap().hosts;
    let state = |state| hosts.iter().filter(|it| it.state == state).count();
    assert_eq!((state(HostState::Failed), state(HostState::Undeployed)), (10, 40));
    let (_, reached) = bad(&set);
    assert_eq!(reached, failed, "the next one goes to those that failed, and to no other");
}

#[test]
fn of_many_hosts_that_failed_no_more_are_tried_at_once_than_may_be_out_of_service() {
    let all = names(50);
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let set = failed_on(&all, deployed(50, &["first", "second"]));
    let mut world = World::with(vec![set], json!({}));
    while !world.is_over() {
        world.settle();
        assert!(world.open_hosts() <= 10, "{}", world.open_hosts());
        world.finish();
        world.sleep(11);
    }
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
    once(&world);
}

#[test]
fn hosts_that_were_never_in_service_make_no_share_larger() {
    let mut set = deployed(50, &["first"]);
    Arc::make_mut(&mut set).status.as_mut().unwrap().hosts.truncate(10);
    let mut world = World::with(vec![set], json!({ "backoffLimit": 0 }));
    let writes = world.run_out(|_, _| "Failed");
    let mut expected = vec!["n000".to_owned(), "n001".to_owned()];
    expected.extend((10..50).map(|it| format!("n{it:03}")));
    assert_eq!(runs(&writes), [format!("run first on {}", expected.join(","))]);
    let message = world.message("Ready");
    assert!(message.contains("8 of 50 hosts were left as they are"), "{message}");
}

#[test]
fn hosts_that_another_deployment_is_at_hold_places() {
    let mut set = deployed(50, &["first"]);
    let hosts = &mut Arc::make_mut(&mut set).status.as_mut().unwrap().hosts;
    hosts[30..40].iter_mut().for_each(|it| it.state = HostState::Deploying);
    let mut world = World::with(vec![set], json!({}));
    let expected: Vec<String> = (30..40).map(|it| format!("n{it:03}")).collect();
    assert_eq!(runs(&world.settle()), [format!("run first on {}", expected.join(","))]);
}

#[test]
fn a_deployment_whose_hosts_have_all_gone_claims_no_success() {
    let mut world = World::with(vec![deployed(2, &["first"])], json!({ "backoffLimit": 1 }));
    world.settle();
    world.finish_with(|_, _| "Failed");
    world.settle();
    let set = world.seen.node_sets.get_mut("compute").unwrap();
    Arc::make_mut(set).spec.nodes.clear();
    world.settle();
    for type_ in ["Ready", "DeploymentReady"] {
        let message = world.message(type_);
        assert!(message.contains("No host takes part"), "{message}");
    }
}
