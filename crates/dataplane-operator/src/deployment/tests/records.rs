//! What a deployment records on the nodes of its hosts, and what it takes from there.

use super::*;

#[test]
fn each_failure_and_each_retry_is_recorded_and_counted() {
    let mut world = World::deployed(1, &["first", "second"], json!({ "backoffLimit": 1 }));
    world.settle();
    world.finish_with(|_, _| "Failed").settle();
    let record = world.record("n000", "first").unwrap();
    assert_eq!((record.state, record.attempt), (RunState::Failed, 1));
    assert_eq!((record.failures, record.reason.as_deref()), (1, Some("TaskFailed")));
    assert!(record.message.is_some());
    let attempt = |world: &World| {
        let deployment = world.node("n000").deployment.as_ref().unwrap();
        (deployment.state, deployment.attempt)
    };
    assert_eq!(attempt(&world), (HostState::Deploying, 2), "it is tried again");
    world.sleep(16).settle();
    assert_eq!(attempt(&world), (HostState::Deploying, 3));
    assert_eq!(world.record("n000", "first").unwrap().attempt, 2);
    world.run_out(|_, _| "Failed");
    assert_eq!(attempt(&world), (HostState::Failed, 3));
    // The next one counts its own attempts from the first, and the host's go on.
    let mut next = world.next("next").at_rest();
    assert_eq!(attempt(&next), (HostState::Deploying, 4));
    assert_eq!(next.record("n000", "first").unwrap().attempt, 1);
    next.succeeds();
}

#[test]
fn a_deployment_after_one_that_failed_or_was_broken_off_is_a_correction() {
    for (state, failures) in [
        (HostState::Failed, 1),
        (HostState::Deploying, 1),
        (HostState::Undeployed, 0),
        (HostState::Deployed, 0),
    ] {
        let mut world = World::deployed(1, &["first", "second"], json!({}));
        world.was(state, &["n000"]).settle();
        let recorded = ["first", "second"].map(|it| world.record("n000", it).unwrap().failures);
        assert_eq!(recorded, [failures; 2], "{state:?}");
        assert_eq!(world.status().failures.len(), 0);
        world.succeeds();
        assert_eq!(world.record("n000", "second").unwrap().failures, 0);
    }
}

#[test]
fn the_first_key_of_a_host_is_recorded_with_its_end() {
    let mut world = World::deployed(1, &["first"], json!({}));
    // Nobody else knows its key.
    world.seen.sources.values_mut().for_each(|it| it.texts.clear());
    world.settle();
    assert_eq!(world.node("n000").host_key, None);
    let before = world.node_writes;
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIWOnjFtgHBGBoLBE0E8K1SBXAJAwqFXKF1sTvZlPo8+";
    world.finish();
    let run = Arc::make_mut(world.seen.runs.last_mut().unwrap());
    run.metadata.creation_timestamp = Some(Time(world.now));
    let keys = json!([{ "name": "n000", "key": key }]);
    run.status.as_mut().unwrap().host_keys = serde_json::from_value(keys).unwrap();
    world.settle();
    assert_eq!(world.node("n000").host_key.as_deref(), Some(key));
    assert_eq!((world.host_state("n000"), world.node_writes - before), (HostState::Deployed, 1));
}

#[test]
fn services_that_the_deployment_does_not_have_stay_recorded() {
    let spec = json!({ "servicesOverride": ["second"] });
    let mut world = World::deployed(1, &["first", "second"], spec);
    let first = world.record("n000", "first").cloned();
    world.succeeds();
    assert_eq!(world.record("n000", "first").cloned(), first);
    let names: Vec<&str> = world.node("n000").services.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["first", "second"]);
}

#[test]
fn only_a_deployment_of_every_task_and_service_brings_a_host_to_the_node_sets_inputs() {
    let deployed = |world: &World| {
        let node = world.node("n000");
        (node.deployed, node.deployed_config_hash.clone())
    };
    let first = |spec: &Value| {
        let set = node_set("compute", &["n000"], &["first"]);
        let mut world = World::with(vec![set], spec.clone());
        world.succeeds();
        world
    };
    let some = |hash: &str| Some(hash.to_owned());
    assert_eq!(deployed(&first(&json!({}))), (Some(true), some("hash-of-")));
    let other_services = first(&json!({ "servicesOverride": ["second"] }));
    assert_eq!(deployed(&other_services), (Some(true), None));
    for tags in ["ansibleTags", "ansibleSkipTags"] {
        let spec = json!({ tags: "some", "backoffLimit": 0 });
        let new = first(&spec);
        assert_eq!(deployed(&new), (None, None), "{tags}");
        assert_eq!(new.node("n000").deployed_address, None);
        assert_eq!(new.record("n000", "first").unwrap().deployed_hash, None);
        let mut world = World::deployed(1, &["first"], spec);
        let mut failed = world.clone();
        world.succeeds();
        assert_eq!(deployed(&world), (Some(true), some("01234567")), "it stays in service");
        let before = world.record("n000", "first").unwrap().deployed_hash.as_deref();
        assert_eq!(before, Some("h"));
        let deployment = world.node("n000").deployment.as_ref().unwrap();
        assert!(deployment.partial && deployment.state == HostState::Deployed);
        failed.run_out(|_, _| "Failed");
        assert_eq!(deployed(&failed), (None, some("01234567")));
    }
}

#[test]
fn a_deployment_that_is_deleted_leaves_hosts_failed_or_as_they_were() {
    let spec = json!({ "maxUnavailable": 2 });
    let mut world = World::deployed(3, &["first", "second"], spec).at_rest();
    world.finish_with(|_, host| if host == "n000" { "Failed" } else { "Ok" });
    assert_eq!(runs(&world.settle()), ["run second on n001"]);
    world.terminate().settle();
    assert!(!world.is_gone);
    world.finish().settle();
    assert!(world.is_gone);
    let states = ["n000", "n001", "n002"].map(|it| world.host_state(it));
    assert_eq!(states, [HostState::Failed, HostState::Deployed, HostState::Deployed]);
    let uid = |host: &str| world.node(host).deployment.as_ref().unwrap().uid.clone();
    assert_eq!(["n001", "n002"].map(uid), ["edpm", "before"]);
}

#[test]
fn whatever_becomes_of_its_records_nothing_runs_again_once_every_service_has_run() {
    let mut world = World::with(
        vec![node_set("compute", &["n0", "n1"], &["first", "second"])],
        json!({ "maxUnavailable": "100%" }),
    );
    world.gate("first", "example.org/Up");
    for _ in 0..2 {
        world.settle();
        world.finish();
    }
    world.settle();
    assert!(world.seen.deployment.has_run() && !world.is_over());
    let mut forgotten = world.clone();
    forgotten.seen.runs.clear();
    forgotten.with_node("compute", "n0", |it| {
        let status = it.status.as_mut().unwrap();
        (status.deployment, status.services) = (None, Vec::new());
    });
    assert_eq!(forgotten.settle().iter().filter(|it| *it != "status").count(), 0);
    // A younger one has begun with both hosts.
    world.sleep(600);
    let younger = world.next("younger").at_rest();
    assert_eq!(younger.carried.len(), 2);
    world.seen.nodes = younger.seen.nodes.clone();
    assert_eq!(world.settle(), ["status", "release"]);
}
