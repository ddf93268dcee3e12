//! Readiness gates of the services of a node set.

use api::dataplane::{HostNotReady, HostReadiness, HostReadinessSpec};
use jiff::SignedDuration;

use super::*;

const TYPE: &str = "example.org/Up";

/// A report about the node set, made after these deployments, with an entry for each of the hosts.
fn report(deployments: &[&str], not_ready: &[&str]) -> Arc<HostReadiness> {
    let entry = |host: &&str| ((*host).to_owned(), HostNotReady::new("Down", "It is down."));
    let spec = HostReadinessSpec {
        node_set: SET.into(),
        condition_type: TYPE.into(),
        observed_deployments: deployments.iter().map(|it| (*it).to_owned()).collect(),
        not_ready: not_ready.iter().map(entry).collect(),
        ..HostReadinessSpec::default()
    };
    Arc::new(HostReadiness::new("compute-web", spec))
}

/// A node set whose service `web` lists a gate.
fn gated() -> World {
    let mut world = World::new();
    let web = world.seen.services.get_mut("web").unwrap();
    let gates = json!([{ "conditionType": TYPE }]);
    Arc::make_mut(web).spec.readiness_gates = serde_json::from_value(gates).unwrap();
    world.settle();
    world
}

impl World {
    fn has(&self, type_: &str) -> bool {
        find(&self.seen.set.status.as_ref().unwrap().conditions, type_).is_some()
    }
}

#[test]
fn without_gates_there_is_no_condition_and_reports_are_ignored() {
    let mut world = World::new();
    world.settle();
    world.deployed("d");
    world.settle();
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
    assert!(!world.has("ReadinessGatesReady"));
    world.seen.readiness = vec![report(&[], &["n0"])];
    assert_eq!(world.settle(), [""; 0]);
}

#[test]
fn gates_change_no_digest_of_a_node_set() {
    let mut world = World::new();
    world.settle();
    assert_eq!(gated().hash(), world.hash());
    world.deployed("d");
    world.settle();
    let web = world.seen.services.get_mut("web").unwrap();
    let gates = json!([{ "conditionType": TYPE }]);
    Arc::make_mut(web).spec.readiness_gates = serde_json::from_value(gates).unwrap();
    world.settle();
    assert_eq!(world.condition("UpToDate"), is("True", "UpToDate"));
}

#[test]
fn a_node_set_is_ready_when_no_host_has_an_entry_any_more() {
    let mut world = gated();
    assert!(!world.has("ReadinessGatesReady"), "nothing is deployed");
    world.deployed("d");
    world.seen.readiness = vec![report(&["d"], &["n1", "of-another-time"])];
    world.settle();
    assert_eq!(world.condition("DeploymentReady"), is("True", "Deployed"));
    assert_eq!(world.condition("Ready"), is("False", "HostsNotReady"));
    let message = world.message("Ready");
    for words in ["1 of 2 hosts", TYPE, "service web", "n1: Down: It is down."] {
        assert!(message.contains(words), "{message}");
    }
    world.seen.readiness = vec![report(&["d"], &[])];
    assert_eq!(world.settle(), ["status NodeSet compute"]);
    assert_eq!(world.condition("ReadinessGatesReady"), is("True", "HostsReady"));
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
    world.seen.readiness = vec![report(&["d"], &["n0"])];
    world.settle();
    assert_eq!(world.condition("Ready"), is("False", "HostsNotReady"));
}

#[test]
fn a_host_that_was_removed_is_not_awaited() {
    let mut world = gated();
    world.deployed("d");
    world.seen.readiness = vec![report(&["d"], &["n1"])];
    world.settle();
    assert_eq!(world.condition("Ready"), is("False", "HostsNotReady"));
    world.edit("/nodes", json!({ "n0": { "ansible": { "ansibleHost": "192.0.2.10" } } }));
    world.settle();
    assert_eq!(world.condition("ReadinessGatesReady"), is("True", "HostsReady"));
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
}

#[test]
fn a_report_from_before_the_last_deployment_does_not_count() {
    let mut world = gated();
    world.deployed("d");
    world.seen.readiness = vec![report(&["d"], &[])];
    world.settle();
    world.deployed("e");
    world.settle();
    assert_eq!(world.condition("Ready"), is("Unknown", "GateAwaited"));
    assert!(world.message("Ready").contains("OpenStackDataPlaneHostReadiness compute-web"));
    world.seen.readiness = vec![report(&["d", "e"], &[])];
    world.settle();
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
    // Once deployments are deleted, the report says more than needed.
    world.seen.deployments.clear();
    world.settle();
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
}

#[test]
fn a_gate_that_no_operator_reports_is_named_after_five_minutes() {
    let mut world = gated();
    world.deployed("d");
    world.settle();
    assert_eq!(world.condition("Ready"), is("Unknown", "GateAwaited"));
    let pause = world.plan().requeue_after.unwrap();
    assert!((300..301).contains(&pause.as_secs()), "{pause:?}");
    world.now += SignedDuration::from_secs(299);
    assert_eq!(world.settle(), [""; 0]);
    world.now += SignedDuration::from_secs(1);
    assert_eq!(world.settle(), ["status NodeSet compute"]);
    assert_eq!(world.condition("Ready"), is("False", "GateNotReported"));
    let expected =
        format!("Condition type {TYPE} of service web is not reported by any operator: ");
    assert!(world.message("Ready").starts_with(&expected), "{}", world.message("Ready"));
    world.now += SignedDuration::from_secs(1);
    assert_eq!(world.settle(), [""; 0]);
    world.seen.readiness = vec![report(&["d"], &[])];
    world.settle();
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
    // The five minutes begin anew with the next deployment.
    world.deployed("e");
    world.settle();
    assert_eq!(world.condition("Ready"), is("Unknown", "GateAwaited"));
}

#[test]
fn a_deployment_that_only_awaits_gates_keeps_no_inventory_from_changing() {
    let mut world = gated();
    world.deploy("d", &json!({}), &[("n0", 2, "Succeeded"), ("n1", 2, "Succeeded")]);
    let deployment = Arc::make_mut(&mut world.seen.deployments[0]);
    let awaits = json!([{
        "type": "ReadinessGatesReady", "status": "Unknown", "reason": "GateAwaited",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]);
    let status = deployment.status.as_mut().unwrap();
    status.conditions = serde_json::from_value(awaits).unwrap();
    world.settle();
    let status = world.seen.set.status.clone().unwrap();
    assert_eq!(status.settled_deployments, ["d"]);
    assert_eq!(world.condition("DeploymentReady"), is("True", "Deployed"));
    assert_eq!(world.condition("Ready"), is("Unknown", "GateAwaited"));
    world.edit("/nodeTemplate/ansible", json!({ "ansibleVars": { "a": 1 } }));
    let expected = ["apply Secret dataplanenodeset-compute", "status NodeSet compute"];
    assert_eq!(world.settle(), expected);
}
