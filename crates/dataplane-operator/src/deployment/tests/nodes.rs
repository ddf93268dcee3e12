//! Deployments to hosts whose nodes are not made yet, cannot be made, or go.

use super::*;
use crate::node_set::nodes::acceptance::NODES_ACCEPTED;

impl World {
    /// A deployment of `n0` and `n1`, of which `n1` has no node.
    fn with_one_node() -> Self {
        let mut world = Self::new();
        world.lose_nodes(&["n1"]);
        world
    }

    fn lose_nodes(&mut self, hosts: &[&'static str]) {
        self.without_nodes = hosts.to_vec();
        self.seen.nodes.get_mut("compute").unwrap().retain(|it, _| !hosts.contains(&it.as_str()));
    }

    /// The node set says that nodes cannot be made.
    fn refuse_nodes(&mut self) {
        let refused = json!({
            "type": NODES_ACCEPTED, "status": "False", "severity": "Warning", "reason": "Forbidden",
            "message": "exceeded quota: q", "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let refused = serde_json::from_value(refused).unwrap();
        self.edit("compute", |it| it.status.as_mut().unwrap().conditions.push(refused));
    }
}

#[test]
fn a_deployment_begins_when_each_of_its_hosts_has_its_node() {
    let mut world = World::with_one_node();
    assert_eq!(world.settle(), ["status"]);
    assert_eq!(world.condition("SetupReady"), is("False", "NodesNotReady"));
    let message = world.message("SetupReady");
    let words = "1 hosts of OpenStackDataPlaneNodeSet compute have no OpenStackDataPlaneNode yet";
    assert!(message.contains(words) && message.contains(": n1."), "{message}");
    world.without_nodes.clear();
    assert!(world.settle().contains(&"run first on n0,n1".to_owned()));
}

#[test]
fn a_host_whose_node_cannot_be_made_or_goes_takes_no_part_and_the_others_do() {
    let mut refused = World::with_one_node();
    refused.refuse_nodes();
    let mut leaving = World::new();
    leaving.with_node("compute", "n1", |it| it.spec.leaving = Some(true));
    let mut deleted = World::new();
    let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(deleted.now);
    deleted.with_node("compute", "n1", |it| it.metadata.deletion_timestamp = Some(now));
    for mut world in [refused, leaving, deleted] {
        let writes = world.run_out(|_, _| "Ok");
        assert!(writes.contains(&"run first on n0".to_owned()), "{writes:?}");
        assert_eq!(world.condition("Ready"), is("True", "Ready"));
    }
    // Nothing would be run, and that would be a success.
    let mut world = World::new();
    world.refuse_nodes();
    world.lose_nodes(&["n0", "n1"]);
    world.settle();
    assert_eq!(world.condition("SetupReady"), is("False", "NodesNotReady"));
    assert!(!world.is_over());
}

#[test]
fn a_host_whose_node_goes_meanwhile_is_left_out_and_one_that_has_lost_it_waits() {
    let mut world = World::new();
    world.settle();
    world.finish();
    let mut going = world.clone();
    going.with_node("compute", "n1", |it| it.spec.leaving = Some(true));
    assert!(going.settle().contains(&"run second on n0".to_owned()));
    going.run_out(|_, _| "Ok");
    assert_eq!(going.status().progress["compute"].hosts.keys().collect::<Vec<_>>(), ["n0"]);
    world.lose_nodes(&["n1"]);
    assert!(world.settle().contains(&"run second on n0".to_owned()));
    assert_eq!(world.condition("InputReady"), is("False", "NodesNotReady"));
    world.finish();
    world.settle();
    assert!(!world.is_over());
    world.without_nodes.clear();
    assert!(world.settle().contains(&"run second on n1".to_owned()));
    world.run_out(|_, _| "Ok");
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
}
