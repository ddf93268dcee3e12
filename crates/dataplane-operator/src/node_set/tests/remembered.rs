//! What nodes remember while something else of them is not observed yet, or changes.

use super::nodes::other;
use super::*;

/// Two hosts at which a deployment is.
fn at_work() -> World {
    let mut world = World::set_up();
    world.deploy("d", &json!({}), &[("n0", 0, "Running"), ("n1", 0, "Running")]).settle();
    world
}

#[test]
fn the_end_of_a_deployment_counts_once_that_of_its_hosts_is_observed() {
    let mut world = at_work();
    let before = world.seen.nodes.own["n1"].clone();
    world.end("d", true, ["c1", "s1"]);
    let after = world.seen.nodes.own.insert("n1".into(), before).unwrap();
    for step in world.plan().all() {
        world.take(step);
    }
    assert_eq!(world.states(), [HostState::Deployed, HostState::Deploying]);
    assert_eq!(world.condition("DeploymentReady"), is("False", "Deploying"));
    let status = world.seen.set.status.clone().unwrap();
    assert_eq!((status.settled_deployments, status.deployed_config_hash), (Vec::new(), None));
    world.seen.nodes.own.insert("n1".into(), after);
    assert_eq!(world.settled("Ready"), is("True", "Ready"));
    let status = world.seen.set.status.clone().unwrap();
    assert_eq!(status.deployed_config_hash, status.config_hash);
    assert_eq!(status.deployed_inputs, status.inputs);
}

#[test]
fn a_deployment_that_has_succeeded_counts_though_the_next_one_has_begun_already() {
    let mut world = at_work();
    world.end("d", true, ["c1", "s1"]);
    world.deploy("e", &json!({ "servicesOverride": ["web"] }), &[("n0", 0, "Running")]).settle();
    assert_eq!(world.states(), [HostState::Deploying, HostState::Deployed]);
    let status = world.seen.set.status.clone().unwrap();
    assert_eq!(status.deployed_config_hash, status.config_hash);
    assert_eq!(status.settled_deployments, ["d"]);
}

#[test]
fn a_node_set_whose_hosts_have_all_succeeded_is_deployed_though_others_have_failed() {
    let mut world = at_work();
    world.deploy("d", &json!({}), &[("n0", 2, "Succeeded"), ("n1", 2, "Succeeded")]);
    world.end("d", false, ["c1", "s1"]);
    let hash = world.hash();
    let status = Arc::make_mut(&mut world.seen.deployments[0]).status.as_mut().unwrap();
    status.node_set_hashes.insert(SET.into(), hash);
    assert_eq!(world.settled("Ready"), is("True", "Ready"));
    assert_eq!(world.condition("UpToDate"), is("True", "UpToDate"));
}

#[test]
fn a_host_that_was_to_leave_is_handed_over_as_one_that_is_to_be_deployed_again() {
    let mut world = at_work();
    world.end("d", true, ["c1", "s1"]).settle();
    world.with_node("n1", |it| it.spec.leaving = Some(true));
    world.take_out();
    world.others = vec![other("192.0.2.11")];
    world.pass();
    let node = world.seen.nodes.get("n1").unwrap();
    assert_eq!((node.node_set(), world.node("n1").deployed), (Some(SET), None));
    assert!(world.node("n1").deployed_config_hash.is_some(), "it stays in service");
    world.settle();
    assert!(world.seen.nodes.get("n1").is_none(), "the other node set has it");
}

#[test]
fn a_host_without_an_entry_keeps_its_key_and_address_while_a_deployment_goes_on() {
    let mut world = at_work();
    world.with_node("n1", |it| it.status.as_mut().unwrap().host_key = Some(KEY.into())).settle();
    world.take_out().settle();
    let node = world.node("n1");
    assert_eq!(node.observed_node_set.as_ref().unwrap().key, None, "it is described");
    assert_eq!(node.address.as_deref(), Some("192.0.2.11:22"));
    assert_eq!(node.host_key.as_deref(), Some(KEY));
}
