//! Deployments that share hosts of a node set: the younger one waits for the older one.

use super::*;

/// Two deployments of the first fifty hosts that may all be unavailable at once.
fn two(specs: [Value; 2]) -> [World; 2] {
    let all = |mut spec: Value| {
        spec["maxUnavailable"] = json!("100%");
        spec
    };
    two_of_one(&["first", "second"], specs.map(all))
}

/// Whether the second of two deployments waits for the first one.
fn waits(worlds: &mut [World; 2]) -> bool {
    let n_runs = runs(&settle_beside(worlds, 1)).len();
    let waits = worlds[1].condition("SetupReady") == is("False", "DeploymentUnderWay");
    assert_eq!(waits, n_runs == 0, "{}", worlds[1].message("Ready"));
    waits
}

/// Ends every run of a deployment until all of its services have run.
fn run_out_beside(worlds: &mut [World; 2], idx: usize) {
    for _ in 0..10 {
        settle_beside(worlds, idx);
        worlds[idx].finish();
    }
    assert!(worlds[idx].seen.deployment.has_run());
}

/// Takes a service away, so that the deployment cannot begin.
fn lacks_a_service(world: &mut World) {
    world.seen.services.remove("second");
}

#[test]
fn a_deployment_waits_until_the_older_one_has_run_or_is_deleted_and_names_both_ways_on() {
    let mut worlds = two([json!({}), json!({})]);
    settle_beside(&mut worlds, 0);
    assert!(waits(&mut worlds));
    let (one, set) = ("OpenStackDataPlaneDeployment one", "OpenStackDataPlaneNodeSet compute");
    worlds[1].says("SetupReady", &[one, set, "Delete it to go on without"]);
    assert_eq!(worlds[1].status().node_sets.len(), 0, "it has not begun");
    let mut deleted = worlds.clone();
    deleted[0].terminate();
    settle_beside(&mut deleted, 0);
    assert!(waits(&mut deleted), "its runs are at work");
    deleted[0].finish();
    settle_beside(&mut deleted, 0);
    assert!(deleted[0].is_gone && !waits(&mut deleted));
    run_out_beside(&mut worlds, 0);
    assert!(!waits(&mut worlds));
    run_out_beside(&mut worlds, 1);
    assert_eq!(worlds[1].condition("Ready"), is("True", "Ready"));
}

#[test]
fn one_that_only_awaits_gates_is_waited_for_no_more() {
    let mut worlds = two([json!({}), json!({})]);
    worlds[0].gate("first", "example.org/Up");
    // The operator of the gate had its time to hold hosts.
    worlds[0].sleep(600);
    run_out_beside(&mut worlds, 0);
    assert_eq!(worlds[0].condition("Ready"), is("Unknown", "GateAwaited"));
    assert!(!waits(&mut worlds));
    // Now every host is the other one's, which answers for its gates.
    settle_beside(&mut worlds, 0);
    assert!(worlds[0].is_over());
}

#[test]
fn an_older_one_that_has_not_begun_is_waited_for_unless_a_fault_of_its_own_holds_it() {
    let mut worlds = two([json!({}), json!({})]);
    assert!(waits(&mut worlds), "of the older one nothing is recorded yet");
    let mut going = worlds.clone();
    going[0].terminate();
    assert!(!waits(&mut going), "it will not begin");
    lacks_a_service(&mut worlds[0]);
    settle_beside(&mut worlds, 0);
    assert_eq!(worlds[0].condition("InputReady"), is("False", "ServiceNotFound"));
    assert!(!waits(&mut worlds));
    // The younger one has begun: now the older one waits for it, whatever its own fault is.
    settle_beside(&mut worlds, 0);
    assert_eq!(worlds[0].condition("SetupReady"), is("False", "DeploymentUnderWay"));
    run_out_beside(&mut worlds, 1);
    let service = service("second", &json!({ "playbook": "a.b.second" }));
    worlds[0].seen.services.extend([service]);
    assert_eq!(runs(&settle_beside(&mut worlds, 0)).len(), 1);
}

#[test]
fn to_wait_for_a_third_one_is_no_fault_of_its_own() {
    let mut worlds = two([json!({}), json!({})]);
    let mut third = worlds[0].seen.deployment.as_ref().clone();
    third.metadata.name = Some("third".into());
    third.metadata.uid = Some("third".into());
    third.metadata.creation_timestamp = None;
    worlds[0].seen.others = vec![Arc::new(third)];
    worlds[0].settle();
    assert_eq!(worlds[0].condition("SetupReady"), is("False", "DeploymentUnderWay"));
    assert!(waits(&mut worlds), "they begin in order");
}

#[test]
fn two_that_wait_for_the_same_begin_in_order_once_it_is_there() {
    let mut worlds = two([json!({}), json!({})]);
    let inventories = worlds[0].seen.inventories.clone();
    for idx in [0, 1] {
        worlds[idx].seen.inventories.clear();
        settle_beside(&mut worlds, idx);
        assert_eq!(worlds[idx].condition("SetupReady"), is("False", "NodeSetNotReady"));
    }
    for world in &mut worlds {
        world.seen.inventories.clone_from(&inventories);
    }
    worlds[1].seen.others = vec![Arc::clone(&worlds[0].seen.deployment)];
    worlds[1].pass();
    assert_eq!(worlds[1].condition("SetupReady"), is("False", "DeploymentUnderWay"));
    assert_eq!(runs(&settle_beside(&mut worlds, 0)).len(), 1);
    assert!(waits(&mut worlds));
}

#[test]
fn of_two_that_have_begun_the_younger_makes_no_run_before_the_older_has_run() {
    let mut worlds = two([json!({}), json!({})]);
    for world in &mut worlds {
        assert!(world.pass().steps.len() == 2 && world.status().node_sets.len() == 1);
    }
    assert_eq!(runs(&settle_beside(&mut worlds, 1)), [""; 0]);
    assert_eq!(worlds[1].node_writes, 0);
    run_out_beside(&mut worlds, 0);
    assert_eq!(runs(&settle_beside(&mut worlds, 1)).len(), 1);
}

#[test]
fn deployments_without_a_common_host_do_not_wait_for_each_other() {
    let limits = |one: &str, other: &str| {
        two([json!({ "ansibleLimit": one }), json!({ "ansibleLimit": other })])
    };
    let mut apart = limits("n000", "n001");
    assert!(!waits(&mut apart));
    assert_eq!(runs(&settle_beside(&mut apart, 0)), ["run first on n000"]);
    let mut common = limits("n000,n001", "n001,n002");
    assert!(waits(&mut common));
}

#[test]
fn two_that_began_in_the_same_moment_never_have_two_runs_on_a_host() {
    for is_older_first in [true, false] {
        let mut worlds = two([json!({}), json!({})]);
        let order = if is_older_first { [0, 1] } else { [1, 0] };
        // Neither sees the other one yet.
        for world in &mut worlds {
            world.pass();
        }
        let plans = worlds.each_ref().map(World::plan);
        worlds[order[0]].take(&plans[order[0]].steps);
        worlds[order[1]].seen.nodes = worlds[order[0]].seen.nodes.clone();
        assert!(!worlds[order[1]].take(&plans[order[1]].steps), "the nodes are the other one's");
        for _ in 0..40 {
            for idx in order {
                settle_beside(&mut worlds, idx);
                let open = |it: &World| -> Vec<String> {
                    let open = it.seen.runs.iter().filter(|it| is_open(it));
                    open.flat_map(|it| &it.spec.hosts).map(|it| it.name.clone()).collect()
                };
                let [one, other] = worlds.each_ref().map(open);
                assert!(one.iter().all(|it| !other.contains(it)), "{one:?} {other:?}");
            }
            worlds[order[0]].finish();
            worlds[order[1]].finish();
        }
        for world in &worlds {
            assert_eq!(world.condition("Ready"), is("True", "Ready"));
            once(world);
        }
    }
}

#[test]
fn of_two_at_once_the_older_takes_over_a_host_on_which_the_younger_has_failed() {
    let spec = json!({ "ansibleLimit": "n000,n001", "maxUnavailable": 1, "backoffLimit": 0 });
    let mut worlds = two_of_one(&["first", "second"], [spec.clone(), spec]);
    // The younger one is at its first host before it can see that the older one begins.
    assert_eq!(runs(&worlds[1].settle()), ["run first on n000"]);
    worlds[0].pass();
    worlds[0].seen.nodes = worlds[1].seen.nodes.clone();
    assert_eq!(runs(&settle_beside(&mut worlds, 0)), [""; 0], "the other one is at work there");
    worlds[1].finish_with(|_, _| "Failed");
    assert_eq!(runs(&settle_beside(&mut worlds, 1)), [""; 0], "the older one goes first");
    assert_eq!(runs(&settle_beside(&mut worlds, 0)), ["run first on n000"]);
    let n_writes = worlds[1].node_writes;
    settle_beside(&mut worlds, 1);
    assert_eq!(worlds[1].node_writes, n_writes, "the host is the older one's");
    run_out_beside(&mut worlds, 0);
    assert_eq!(worlds[0].condition("Ready"), is("True", "Ready"));
    settle_beside(&mut worlds, 1);
    assert!(worlds[1].is_over());
}

#[test]
fn of_two_at_once_the_younger_writes_nothing_to_a_host_that_the_older_has_begun_with_since() {
    let spec = json!({ "ansibleLimit": "n000,n001", "maxUnavailable": 1 });
    let mut worlds = two_of_one(&["first"], [spec.clone(), spec]);
    assert_eq!(runs(&worlds[1].settle()), ["run first on n000"]);
    worlds[0].pass();
    worlds[1].finish();
    settle_beside(&mut worlds, 1);
    assert_eq!(worlds[1].host_state("n000"), HostState::Deployed);
    assert_eq!(runs(&settle_beside(&mut worlds, 0)), ["run first on n000"]);
    let n_writes = worlds[1].node_writes;
    settle_beside(&mut worlds, 1);
    assert_eq!(worlds[1].node_writes, n_writes);
    for idx in [0, 1] {
        run_out_beside(&mut worlds, idx);
        assert_eq!(worlds[idx].condition("Ready"), is("True", "Ready"));
    }
    let last = |host: &str| worlds[1].node(host).deployment.as_ref().unwrap().uid.clone();
    assert_eq!(["n000", "n001"].map(last), ["one", "other"], "each says what ran there last");
}
