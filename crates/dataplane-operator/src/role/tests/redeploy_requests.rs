//! Redeploys that the operator of a service requests by a condition on a node.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::*;

const REQUEST: &str = "agents.example.org/RedeployRequested";

impl World {
    /// Sets another operator's condition on a node.
    fn report(&mut self, idx: usize, type_: &str, status: &str, message: &str) {
        self.withdraw(idx, type_);
        let condition = stated(type_, status, "Why", message);
        self.node(idx).status.as_mut().unwrap().conditions.push(condition);
    }

    /// Removes another operator's condition from a node.
    fn withdraw(&mut self, idx: usize, type_: &str) {
        let status = self.node(idx).status.as_mut().unwrap();
        status.conditions.retain(|it| it.type_ != type_);
    }

    fn instance(&self, idx: usize) -> Option<String> {
        self.seen.nodes[idx].status.as_ref()?.host_instance.clone()
    }
}

#[test]
fn a_request_runs_every_service_once_more_for_each_value_and_its_end_runs_nothing() {
    let mut world = World::deployed();
    for value in ["audit-1", "audit-2"] {
        world.report(0, REQUEST, "True", value);
        assert_eq!(runs(&world.settle()), ["run install-os on n0"], "{value}");
        assert_eq!(world.condition(0, "Ready").0, "False");
        assert_eq!(runs(&world.finish(&[]).settle()), ["run run-os on n0"], "{value}");
        world.deploy();
        assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
        assert_eq!(world.settle(), [""; 0], "it is there and served");
        world.withdraw(0, REQUEST);
        assert_eq!(world.settle(), [""; 0]);
    }
    assert_eq!(world.instance(1), None);
}

#[test]
fn nothing_else_that_another_operator_reports_runs_a_service() {
    let mut world = World::deployed();
    for status in ["False", "Unknown"] {
        world.report(0, REQUEST, status, "audit-1");
        assert_eq!(world.settle(), [""; 0], "{status}");
    }
    world.withdraw(0, REQUEST);
    world.report(0, "agents.example.org/Agent", "True", "audit-1");
    assert_eq!(world.settle(), [""; 0]);
}

#[test]
fn a_request_deploys_nothing_where_deploy_is_false() {
    let mut world = World::deployed();
    world.set_deploy(false).settle();
    world.report(0, REQUEST, "True", "audit-1");
    assert_eq!(runs(&world.settle()), [""; 0]);
    assert_eq!(world.condition(0, "UpToDate"), is("False", "InputsChanged"));
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
}

#[test]
fn requests_of_many_hosts_are_served_as_max_unavailable_allows() {
    let mut world = World::deployed();
    world.strategy().max_unavailable = Some(IntOrString::Int(1));
    world.settle();
    for idx in 0..2 {
        world.report(idx, REQUEST, "True", "audit-1");
    }
    assert_eq!(runs(&world.settle()), ["run install-os on n0"]);
    assert!(world.instance(0).is_some());
    assert_eq!(world.instance(1), None, "nothing may be deployed on top of it yet");
    world.withdraw(1, REQUEST);
    world.deploy();
    assert_eq!(world.instance(1), None, "what was withdrawn before its turn is not served");
    assert_eq!(world.condition(1, "UpToDate").0, "True");
}
