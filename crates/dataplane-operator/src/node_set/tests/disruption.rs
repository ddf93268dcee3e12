//! The hosts of which a node set says that a deployment waits to disturb them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;

impl World {
    /// Returns for each host the deployment that waits to disturb it.
    fn targets(&self) -> Vec<Option<&str>> {
        let nodes = self.seen.nodes.own.values();
        nodes.map(|it| Some(it.disruption_target()?.deployment.as_str())).collect()
    }

    /// Returns the deployment that is at the first host, or was last, and how far it is.
    fn at_first(&self) -> (&str, HostState) {
        let status = self.seen.nodes.own["n0"].status.as_ref().unwrap();
        let deployment = status.deployment.as_ref().unwrap();
        (&deployment.uid, deployment.state)
    }
}

/// A node set that was deployed, and whose next deployment waits at the first host.
fn waiting() -> World {
    let mut world = World::new();
    world.settle();
    world.deployed("d");
    world.settle();
    world.deploy("e", &json!({}), &[("n0", 0, "Awaiting"), ("n1", 0, "Untouched")]);
    world.settle();
    world
}

#[test]
fn a_node_set_that_is_deleted_takes_no_place_from_a_deployment_that_waits() {
    let mut world = waiting();
    world.finalize(&["n0", "n1"]);
    Arc::make_mut(&mut world.seen.set).metadata.deletion_timestamp = Some(Time(world.now));
    world.settle();
    assert_eq!(world.condition("SetupReady"), is("False", "DeletionWaits"));
    assert_eq!(world.targets(), [Some("e"), None]);
}

#[test]
fn a_host_that_waits_is_published_with_the_deployment_until_that_begins_there() {
    let mut world = waiting();
    assert_eq!(world.targets(), [Some("e"), None]);
    assert_eq!(world.states(), [HostState::Deployed; 2]);
    world.deploy("e", &json!({}), &[("n0", 0, "Running"), ("n1", 0, "Untouched")]);
    world.settle();
    assert_eq!(world.targets(), [None, None]);
    assert_eq!(world.states(), [HostState::Deploying, HostState::Deployed]);
    // It may also wait in the middle: behind a service for all node sets.
    world.deploy("e", &json!({}), &[("n0", 1, "Awaiting"), ("n1", 0, "Untouched")]);
    world.settle();
    assert_eq!(world.targets(), [Some("e"), None]);
    assert_eq!(world.states(), [HostState::Deploying, HostState::Deployed]);
}

#[test]
fn a_deployment_of_some_tasks_is_at_the_host_until_it_is_done_although_the_state_does_not_show_it()
{
    let mut world = waiting();
    let spec = json!({ "ansibleTags": "a" });
    world.deploy("e", &spec, &[("n0", 0, "Awaiting"), ("n1", 0, "Running")]);
    world.settle();
    assert_eq!(world.targets(), [Some("e"), None]);
    assert_eq!(world.at_first(), ("d", HostState::Deployed));
    world.deploy("e", &spec, &[("n0", 1, "Running"), ("n1", 0, "Running")]);
    world.settle();
    assert_eq!(world.targets(), [None, None]);
    assert_eq!(world.at_first(), ("e", HostState::Deploying));
    assert_eq!(world.states(), [HostState::Deployed; 2]);
    world.deploy("e", &spec, &[("n0", 2, "Succeeded"), ("n1", 0, "Running")]);
    world.settle();
    assert_eq!(world.at_first(), ("e", HostState::Deployed));
}

#[test]
fn a_deployment_that_has_ended_or_goes_waits_for_no_host() {
    let mut world = waiting();
    world.end("e", false, ["c0", "s0"]);
    world.settle();
    assert_eq!(world.targets(), [None, None]);
    assert_eq!(world.states(), [HostState::Deployed; 2], "it was not begun with");
    let mut world = waiting();
    let deployment = world.seen.deployments.last_mut().unwrap();
    Arc::make_mut(deployment).metadata.deletion_timestamp = Some(Time(world.now));
    world.settle();
    assert_eq!(world.targets(), [None, None]);
    let mut world = waiting();
    world.seen.deployments.pop();
    world.settle();
    assert_eq!(world.targets(), [None, None]);
}

#[test]
fn a_host_in_the_middle_that_still_waits_at_the_end_is_half_changed_and_has_not_failed() {
    let mut world = waiting();
    world.deploy("e", &json!({}), &[("n0", 1, "Awaiting"), ("n1", 0, "Failed")]);
    world.end("e", false, ["c0", "s0"]);
    world.settle();
    assert_eq!(world.states(), [HostState::Undeployed, HostState::Failed]);
}

#[test]
fn of_two_deployments_the_older_one_comes_first() {
    let mut world = waiting();
    world.deploy("f", &json!({}), &[("n0", 0, "Awaiting"), ("n1", 0, "Awaiting")]);
    world.settle();
    assert_eq!(world.targets(), [Some("e"), Some("f")]);
    world.deploy("e", &json!({}), &[("n0", 0, "Running"), ("n1", 0, "Untouched")]);
    world.settle();
    assert_eq!(world.targets(), [Some("f"), Some("f")]);
}

#[test]
fn a_host_still_waits_for_a_deployment_that_cannot_be_read() {
    let mut world = waiting();
    world.seen.deployments.pop();
    world.seen.unreadable_deployments = vec![UnreadableDeployment {
        name: "e".into(),
        uid: "e".into(),
        why: "spec.ansibleExtraVars.a: is nested deeper than 64 levels".into(),
        has_ended: false,
    }];
    world.settle();
    assert_eq!(world.targets(), [Some("e"), None]);
}

#[test]
fn a_target_that_is_given_again_has_another_number_and_what_others_say_stays() {
    let mut world = waiting();
    let number = |world: &World| world.seen.nodes.own["n0"].disruption_target().unwrap().number;
    assert_eq!(number(&world), 1);
    world.holder("n0", json!({ "name": "example.org", "holds": true }));
    assert_eq!(world.settle(), [""; 0]);
    assert_eq!(world.node_writes, [""; 0], "what others say is theirs");
    world.deploy("e", &json!({}), &[("n0", 0, "Untouched"), ("n1", 0, "Untouched")]);
    world.settle();
    assert_eq!(world.targets(), [None, None]);
    world.deploy("e", &json!({}), &[("n0", 0, "Awaiting"), ("n1", 0, "Untouched")]);
    world.settle();
    assert_eq!(number(&world), 2);
    assert!(world.seen.nodes.own["n0"].disruption_holders()[0].holds);
}
