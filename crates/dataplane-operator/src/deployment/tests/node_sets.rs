//! Several node sets in one deployment, and services that are for all of them.

use super::*;

fn two(spec: Value) -> World {
    let sets = vec![
        node_set("a", &["a0", "a1"], &["first", "everywhere", "second"]),
        node_set("b", &["b0"], &["everywhere", "third", "third"]),
    ];
    World::with(sets, spec)
}

#[test]
fn node_sets_go_on_beside_each_other() {
    let mut world = two(json!({}));
    let writes = world.settle();
    assert_eq!(writes[..3], ["hold", "status", "nodes a0,a1,b0"]);
    assert_eq!(runs(&writes), ["run first on a0,a1", "run third on b0"]);
    let sets = &world.status().node_sets;
    assert_eq!(sets["a"].services, ["first", "everywhere", "second"]);
    // A service for all begins with the first node set, and duplicates are removed.
    assert_eq!(sets["b"].services, ["third", "everywhere"]);
    assert_eq!((&sets["a"].joined, &sets["b"].joined), (&vec![], &vec!["everywhere".into()]));
    world.run_out(|_, _| "Ok");
    assert_eq!(world.status().node_set_hashes.len(), 2);
    once(&world);
}

#[test]
fn a_service_for_all_node_sets_has_one_run_on_all_hosts() {
    let mut world = two(json!({}));
    world.settle();
    assert!(world.finish().settle().contains(&"run everywhere on a0,a1,b0".to_owned()));
    let run = world.run("everywhere");
    let hosts: Vec<&str> = run.spec.hosts.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(hosts, ["a0", "a1", "b0"]);
    assert_eq!(run.spec.extra_vars["edpm_override_hosts"], "all");
    assert_eq!(run.spec.cmd_line, None);
    assert!(run.name_any().starts_with("everywhere-edpm-"), "{}", run.name_any());
    let paths: Vec<&str> = run
        .spec
        .extra_mounts
        .iter()
        .flat_map(|it| &it.mounts)
        .map(|it| it.mount_path.as_str())
        .collect();
    for path in ["/runner/inventory/inventory-0", "/runner/inventory/inventory-1"] {
        assert!(paths.contains(&path), "{paths:?}");
    }
    for key in ["ssh_key_a", "ssh_key_b"] {
        assert!(paths.iter().any(|it| it.ends_with(key)), "{paths:?}");
    }
}

#[test]
fn a_service_for_all_node_sets_leaves_out_hosts_that_are_terminating() {
    let mut world = two(json!({}));
    let mut leaving = set_nodes::node(NAMESPACE, "a", "a9", "192.0.2.9");
    leaving.spec.leaving = Some(true);
    world.seen.nodes.get_mut("a").unwrap().insert("a9".into(), Arc::new(leaving));
    world.settle();
    assert!(world.finish().settle().contains(&"run everywhere on a0,a1,b0".to_owned()));
    let run = world.run("everywhere");
    assert_eq!(run.spec.hosts.len(), 3);
    assert_eq!(run.spec.extra_vars["edpm_override_hosts"], "all:!a9");
    world.succeeds();
}

#[test]
fn a_service_for_all_waits_until_each_host_has_come_to_it_or_has_failed_for_good() {
    let mut world = two(json!({ "backoffLimit": 1 }));
    let fails = |service: &str, host: &str| match (service, host) {
        ("first", "a1") => "Failed",
        _ => "Ok",
    };
    world.settle();
    world.finish_with(fails);
    let is_made = |it: &Vec<String>| it.iter().any(|it| it.starts_with("run everywhere"));
    assert!(!is_made(&world.settle()), "a1 is tried again");
    assert!(!is_made(&world.sleep(60).settle()));
    assert!(world.finish_with(fails).settle().contains(&"run everywhere on a0,b0".to_owned()));
    world.run_out(fails);
    assert_eq!(world.condition("Ready"), is("False", "BackoffLimitExceeded"));
    // The other node set is done.
    assert_eq!(world.status().node_set_hashes.keys().collect::<Vec<_>>(), ["b"]);
    assert_eq!(world.of_set("b", "NodeSetDeploymentReady"), "True Ready");
}

#[test]
fn what_fails_on_hosts_of_another_node_set_counts_there_and_is_tried_again_for_them() {
    let fails = |service: &str, host: &str| match (service, host) {
        ("everywhere", "b0") => "Failed",
        _ => "Ok",
    };
    let mut world = two(json!({ "backoffLimit": 1 }));
    world.settle();
    world.finish().settle();
    world.finish_with(fails).settle();
    // The others continue, and this one is retried; the play targets all of them each time.
    assert_eq!(world.run("second").spec.hosts.len(), 2);
    assert_eq!(world.condition("Ready"), is("False", "TaskFailed"));
    let failure = world.status().failures[0].clone();
    assert_eq!((failure.node_set, failure.host), ("b".into(), "b0".into()));
    world.finish_with(fails).settle();
    assert!(world.sleep(60).settle().contains(&"run everywhere on b0".to_owned()));
    assert_eq!(world.seen.runs.last().unwrap().spec.hosts.len(), 3);
    let mut healed = world.clone();
    healed.succeeds();
    world.run_out(fails);
    assert_eq!(world.condition("Ready"), is("False", "BackoffLimitExceeded"));
    assert_eq!(world.of_set("a", "NodeSetDeploymentReady"), "True Ready");
    assert_eq!(world.of_set("b", "ServiceEverywhereDeploymentReady"), "False BackoffLimitExceeded");
}

#[test]
fn a_host_takes_its_result_of_a_service_for_all_when_it_comes_to_it() {
    let sets = vec![
        node_set("a", &["a0"], &["everywhere", "second"]),
        node_set("b", &["b0"], &["first", "third"]),
    ];
    let mut world = World::with(sets, json!({}));
    let writes = world.settle();
    assert!(writes.contains(&"run everywhere on a0,b0".to_owned()), "{writes:?}");
    assert!(writes.contains(&"run first on b0".to_owned()), "b0 waits for nobody: {writes:?}");
    let end_of = |world: &mut World, ends: &str| {
        let others: Vec<_> = world.seen.runs.clone();
        world.finish();
        for (run, before) in world.seen.runs.iter_mut().zip(others) {
            if run.labels()["openstackdataplaneservice"] != ends {
                *run = before;
            }
        }
        world.settle()
    };
    assert_eq!(runs(&end_of(&mut world, "everywhere")), ["run second on a0"]);
    assert_eq!(world.of_set("b", "ServiceEverywhereDeploymentReady"), "");
    assert_eq!(end_of(&mut world, "second"), ["nodes a0", "status"]);
    assert_eq!(runs(&end_of(&mut world, "first")), ["run third on b0"]);
    assert_eq!(end_of(&mut world, "third"), ["nodes b0", "status", "release"]);
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
    assert_eq!(world.done("b0"), 3);
    once(&world);
}

#[test]
fn a_service_for_all_runs_although_the_first_that_lists_it_has_no_hosts_within_the_limit() {
    let mut world = two(json!({ "ansibleLimit": "b0" }));
    world.succeeds();
    let ran: BTreeSet<(String, String, i64)> =
        ["everywhere", "third"].map(|it| (it.to_owned(), "b0".to_owned(), 1)).into();
    assert_eq!(once(&world), ran);
    assert_eq!(world.status().node_sets["b"].services, ["everywhere", "third"]);
    // Nor is it left out when only a node set without hosts lists it.
    let sets =
        vec![node_set("a", &[], &["first", "everywhere"]), node_set("b", &["b0"], &["third"])];
    let mut world = World::with(sets, json!({}));
    world.run_out(|_, _| "Ok");
    assert_eq!(once(&world), ran);
}

#[test]
fn hosts_that_the_limit_leaves_out_are_none_of_its_business() {
    let mut world = two(json!({ "ansibleLimit": "a0" }));
    world.run_out(|_, _| "Ok");
    let sets = &world.status().node_sets;
    assert_eq!((&sets["a"].hosts, &sets["b"].hosts), (&vec!["a0".to_owned()], &vec![]));
    assert_eq!(world.node("a1").deployment, None);
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
}

#[test]
fn a_deployment_without_hosts_says_that_nothing_is_run_and_begins_when_there_are_some() {
    let mut world = World::with(vec![node_set("compute", &[], &["first"])], json!({}));
    assert_eq!(world.settle(), ["status"]);
    assert_eq!(world.condition("Ready"), is("False", "NoHosts"));
    let message = world.message("Ready");
    assert!(message.starts_with("Nothing is run: no hosts") && message.contains("compute"));
    assert_eq!(world.status().deployed, None);
    world.seen.node_sets.insert("compute".into(), node_set("compute", &["n0"], &["first"]));
    world.succeeds();
    assert_eq!(world.status().deployed, Some(true));
}

#[test]
fn of_a_node_set_without_hosts_beside_others_is_told_that_nothing_was_run() {
    let sets = vec![node_set("a", &[], &["first"]), node_set("b", &["b0"], &["first"])];
    let mut world = World::with(sets, json!({}));
    world.run_out(|_, _| "Ok");
    assert_eq!(world.of_set("a", "NodeSetDeploymentReady"), "True Ready");
    let of = |set: &str| world.set_message(set, "NodeSetDeploymentReady");
    assert!(of("a").starts_with("Nothing was run"), "{}", of("a"));
    assert!(of("b").starts_with("Every service succeeded"), "{}", of("b"));
}

#[test]
fn a_limit_that_leaves_out_all_hosts_is_told() {
    let mut world = two(json!({ "ansibleLimit": "nobody" }));
    assert_eq!(world.settle(), ["status"]);
    assert_eq!(world.condition("InputReady"), is("False", "LimitMatchesNoHost"));
    world.says("Ready", &["nobody"]);
}

#[test]
fn a_limit_that_names_no_host_is_told_and_no_host_is_deployed_that_it_was_to_exclude() {
    for (limit, name) in [("a0,a7", "a7"), ("all:!a7", "a7")] {
        let mut world = two(json!({ "ansibleLimit": limit }));
        assert_eq!(world.settle(), ["status"], "{limit}");
        assert_eq!(world.condition("InputReady"), is("False", "LimitMatchesNoHost"));
        let words = format!("names {name}, which no host of its node sets is called: delete it");
        world.says("Ready", &[&words]);
    }
    let mut world = two(json!({ "ansibleLimit": "a:b:!a0" }));
    world.succeeds();
}

#[test]
fn a_deployment_whose_status_no_object_holds_is_refused_with_the_way_out() {
    let services: Vec<String> = (0..64).map(|it| format!("s{it}")).collect();
    let of = |n_sets: usize| {
        let set = |idx: usize| {
            let names: Vec<String> =
                (0..500).map(|it| format!("compute-{idx:02}-{it:03}")).collect();
            node_set(&format!("s{idx:02}"), &strs(&names), &strs(&services))
        };
        let mut world = World::with((0..n_sets).map(set).collect(), json!({}));
        let playbook = |it: &String| service(it, &json!({ "playbook": format!("a.b.{it}") }));
        world.seen.services.extend(services.iter().map(playbook));
        let plan = world.plan();
        world.take(&plan.steps[..plan.steps.len().min(2)]);
        world
    };
    let world = of(3);
    assert_eq!(world.writes, ["hold", "status"]);
    assert_eq!(world.condition("InputReady"), is("True", "Ready"));
    // Its runs come to the list of its hosts.
    let size = serde_json::to_string(world.status()).unwrap().len();
    assert!(size < 100_000, "{size} bytes");
    let world = of(4);
    assert_eq!(world.writes, ["status"]);
    assert_eq!(world.condition("InputReady"), is("False", "TooManyHosts"));
    world.says("Ready", &["2000 hosts", "several deployments"]);
}

#[test]
fn an_edit_of_a_node_set_changes_nothing_that_has_begun() {
    let mut world = World::new().at_rest();
    world.edit("compute", |it| {
        it.metadata.generation = Some(2);
        it.spec.services = vec!["third".into()];
        let node = it.spec.nodes["n0"].clone();
        it.spec.nodes.insert("n2".into(), node);
        it.status.as_mut().unwrap().config_hash = Some("another".into());
    });
    assert_eq!(world.settle(), [""; 0]);
    world.run_out(|_, _| "Ok");
    assert_eq!(world.status().node_set_hashes["compute"], "hash-of-compute");
    let expected: BTreeSet<(String, String, i64)> = ["first", "second"]
        .into_iter()
        .flat_map(|service| ["n0", "n1"].map(|host| (service.to_owned(), host.to_owned(), 1)))
        .collect();
    assert_eq!(once(&world), expected);
}

#[test]
fn a_host_that_moves_is_reached_until_the_end_where_the_inventory_has_it() {
    let mut world = World::new().at_rest();
    let before = world.run("first").spec.hosts.clone();
    world.edit("compute", |it| {
        let node = it.spec.nodes.get_mut("n0").unwrap();
        node.ansible.as_mut().unwrap().ansible_host = Some("192.0.2.251".into());
    });
    world.finish().settle();
    assert_eq!(world.run("second").spec.hosts, before);
}

#[test]
fn a_host_that_is_taken_out_of_its_node_set_holds_nobody() {
    let mut world = World::new().at_rest();
    world.edit("compute", |it| {
        it.spec.nodes.remove("n1");
    });
    world.run_out(|_, host| if host == "n1" { "Failed" } else { "Ok" });
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
    assert_eq!((world.done("n0"), world.done("n1")), (2, 0));
}

#[test]
fn a_node_set_that_takes_the_name_of_another_one_is_told_and_not_touched() {
    let mut world = World::new().at_rest();
    world.finish();
    world.edit("compute", |it| it.metadata.uid = Some("another".into()));
    assert_eq!(world.settle(), ["status"]);
    assert_eq!(world.condition("Ready"), is("False", "NodeSetReplaced"));
    world.says("Ready", &["create one for the new node set"]);
    assert_eq!(world.seen.runs.len(), 1, "the second service does not begin");
    world.edit("compute", |it| it.metadata.uid = Some("compute".into()));
    world.succeeds();
}

#[test]
fn a_node_set_that_goes_when_its_hosts_are_done_holds_nothing() {
    let sets =
        vec![node_set("x", &["x0"], &["first"]), node_set("y", &["y0"], &["first", "second"])];
    let mut world = World::with(sets, json!({})).at_rest();
    world.finish().settle();
    world.seen.node_sets.remove("x");
    world.succeeds();
}
