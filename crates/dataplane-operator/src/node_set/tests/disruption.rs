//! The deployment that waits to disturb a host, as the host's node names it.

use super::*;

impl World {
    /// Returns for each host the deployment that waits to disturb it.
    fn targets(&self) -> Vec<Option<&str>> {
        let nodes = self.seen.nodes.all();
        nodes.map(|(_, it)| Some(it.disruption_target()?.deployment.as_str())).collect()
    }
}

/// A node set that was deployed, and whose next deployment waits at the first host.
fn waiting() -> World {
    let mut world = deployed();
    world.deploy("e", &json!({}), &[("n0", 0, "Awaiting"), ("n1", 0, "Untouched")]).settle();
    assert_eq!(world.targets(), [Some("e"), None]);
    assert_eq!(world.states(), [HostState::Deployed; 2]);
    world
}

#[test]
fn a_node_set_that_is_deleted_takes_no_place_from_a_deployment_that_waits() {
    let mut world = waiting();
    world.finalize(&["n0", "n1"]);
    world.go();
    assert_eq!(world.settled("SetupReady"), is("False", "DeletionWaits"));
    assert_eq!(world.targets(), [Some("e"), None]);
}

#[test]
fn a_deployment_that_is_gone_waits_for_no_host_and_none_waits_for_one_that_leaves() {
    let mut world = waiting();
    world.seen.deployments.pop();
    world.settle();
    assert_eq!(world.targets(), [None, None]);
    assert_eq!(world.states(), [HostState::Deployed; 2], "it had not begun");
    let mut world = waiting();
    world.finalize(&["n0", "n1"]).delete_node("n0").settle();
    assert_eq!(world.targets(), [None, None]);
}

#[test]
fn a_host_still_waits_for_a_deployment_that_cannot_be_read() {
    let mut world = waiting();
    world.garble("e", false);
    world.settle();
    assert_eq!(world.targets(), [Some("e"), None]);
}
