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
    assert_eq!(writes, ["hold", "status", "run first on a0,a1", "run third on b0", "status"]);
    let progress = &world.status().progress;
    assert_eq!(progress["a"].services, ["first", "everywhere", "second"]);
    // What is for all runs with the first node set, and duplicates are left out.
    assert_eq!(progress["b"].services, ["third"]);
    world.run_out(|_, _| "Ok");
    assert_eq!(world.status().node_set_hashes.len(), 2);
    once(&world);
}

#[test]
fn a_service_for_all_node_sets_has_one_run_on_all_hosts() {
    let mut world = two(json!({}));
    world.settle();
    world.finish();
    assert!(world.settle().contains(&"run everywhere on a0,a1".to_owned()));
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
    world.sleep(60);
    assert!(!is_made(&world.settle()));
    world.finish_with(fails);
    assert!(world.settle().contains(&"run everywhere on a0".to_owned()));
    world.run_out(fails);
    assert_eq!(world.condition("Ready"), is("False", "BackoffLimitExceeded"));
    // The other node set is done.
    assert_eq!(world.status().node_set_hashes.keys().collect::<Vec<_>>(), ["b"]);
    assert_eq!(world.set_condition("b", "NodeSetDeploymentReady"), Some(is("True", "Ready")));
}

#[test]
fn hosts_that_the_limit_leaves_out_are_none_of_its_business() {
    let mut world = two(json!({ "ansibleLimit": "a0" }));
    world.run_out(|_, _| "Ok");
    let hosts = |set: &str| world.status().progress[set].hosts.keys().cloned().collect::<Vec<_>>();
    assert_eq!((hosts("a"), hosts("b")), (vec!["a0".to_owned()], vec![]));
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
}

#[test]
fn a_limit_that_leaves_out_all_hosts_is_told() {
    let mut world = two(json!({ "ansibleLimit": "nobody" }));
    assert_eq!(world.settle(), ["status"]);
    assert_eq!(world.condition("InputReady"), is("False", "LimitMatchesNoHost"));
    assert!(world.message("Ready").contains("nobody"));
}

#[test]
fn an_edit_of_a_node_set_changes_nothing_that_has_begun() {
    let mut world = World::new();
    world.settle();
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
fn a_host_that_is_taken_out_of_its_node_set_holds_nobody() {
    let mut world = World::new();
    world.settle();
    world.edit("compute", |it| {
        it.spec.nodes.remove("n1");
    });
    world.run_out(|_, host| if host == "n1" { "Failed" } else { "Ok" });
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
    assert_eq!(world.status().progress["compute"].hosts.keys().collect::<Vec<_>>(), ["n0"]);
}
