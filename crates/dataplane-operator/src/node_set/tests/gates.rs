//! Readiness gates of the services of a node set.

use jiff::SignedDuration;

use super::*;

const TYPE: &str = "example.org/Up";

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

    /// Adds a deployment of everything that began later and has succeeded.
    fn deployed_later(&mut self, name: &str) {
        self.now += SignedDuration::from_secs(10);
        self.deployed(name);
    }

    /// The operator of the gate says on each node what holds since the last deployment: these hosts are
    /// not up.
    fn reported(&mut self, not_up: &[&str]) -> &mut Self {
        for name in ["n0", "n1"] {
            let status = self.seen.nodes.own[name].status.as_ref().unwrap();
            let Some(last) = status.deployment.clone() else { continue };
            let seen = json!({ "deployment": last.uid, "attempt": last.attempt });
            self.holder(name, json!({ "name": "example.org", "seen": seen }));
            let is_up = if not_up.contains(&name) { "False" } else { "True" };
            self.with_node(name, |it| {
                let conditions = &mut it.status.as_mut().unwrap().conditions;
                conditions.retain(|it| it.type_ != TYPE);
                conditions.push(stated(TYPE, is_up, "Down", "It is down."));
            });
        }
        self
    }
}

#[test]
fn without_gates_there_is_no_condition_and_what_others_say_is_ignored() {
    let mut world = deployed();
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
    assert!(!world.has("ReadinessGatesReady"));
    assert_eq!(world.reported(&["n0"]).settle(), [""; 0]);
}

#[test]
fn gates_change_no_digest_of_a_node_set() {
    let mut world = World::set_up();
    assert_eq!(gated().hash(), world.hash());
    world.deployed("d").settle();
    let web = world.seen.services.get_mut("web").unwrap();
    let gates = json!([{ "conditionType": TYPE }]);
    Arc::make_mut(web).spec.readiness_gates = serde_json::from_value(gates).unwrap();
    assert_eq!(world.settled("UpToDate"), is("True", "UpToDate"));
}

#[test]
fn a_node_set_is_ready_when_the_condition_is_true_on_each_node() {
    let mut world = gated();
    assert!(!world.has("ReadinessGatesReady"), "nothing is deployed");
    world.deployed("d").settle();
    world.reported(&["n1"]).settle();
    world.holds([("DeploymentReady", "True", "Deployed"), ("Ready", "False", "HostsNotReady")]);
    world.says("Ready", &["1 of 2 hosts", TYPE, "service web", "n1: Down: It is down."]);
    assert_eq!(world.reported(&[]).settle(), ["status NodeSet compute"]);
    world.holds([("ReadinessGatesReady", "True", "HostsReady"), ("Ready", "True", "Ready")]);
    world.reported(&["n0"]).settle();
    assert_eq!(world.condition("Ready"), is("False", "HostsNotReady"));
}

#[test]
fn a_host_that_was_removed_is_not_awaited() {
    let mut world = gated();
    world.deployed("d").settle();
    world.reported(&["n1"]).settle();
    assert_eq!(world.condition("Ready"), is("False", "HostsNotReady"));
    world.take_out().settle();
    world.holds([("ReadinessGatesReady", "True", "HostsReady"), ("Ready", "True", "Ready")]);
}

#[test]
fn what_is_said_from_before_the_last_deployment_does_not_count() {
    let mut world = gated();
    world.deployed("d").settle();
    world.reported(&[]).settle();
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
    world.deployed_later("e");
    world.pass();
    assert_eq!(world.condition("Ready"), is("Unknown", "GateAwaited"), "not even for one pass");
    world.settle();
    let text = "what OpenStackDataPlaneNode n0, n1 says is from before the last deployment";
    world.says("Ready", &[text]);
    world.reported(&[]).settle();
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
    world.seen.deployments.clear();
    assert_eq!(world.settled("Ready"), is("True", "Ready"));
}

#[test]
fn a_gate_that_no_operator_reports_is_named_after_five_minutes() {
    let mut world = gated();
    world.deployed("d").settle();
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
    world.reported(&[]).settle();
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
    // The five minutes begin anew with the next deployment.
    world.deployed_later("e");
    assert_eq!(world.settled("Ready"), is("Unknown", "GateAwaited"));
}

/// A deployment that has come so far on n1, has succeeded on n0 and awaits gates.
fn awaiting(n1: (&str, usize, &str)) -> World {
    let mut world = gated();
    world.deploy("d", &json!({}), &[("n0", 2, "Succeeded"), n1]);
    let deployment = Arc::make_mut(&mut world.seen.deployments[0]);
    let status = deployment.status.as_mut().unwrap();
    status.conditions = vec![stated("ReadinessGatesReady", "Unknown", "GateAwaited", "")];
    status.node_set_hashes.insert(SET.into(), "h".into());
    world.settle();
    world
}

#[test]
fn a_host_that_comes_back_while_its_deployment_only_awaits_gates_has_failed() {
    let world = awaiting(("n1", 1, "Running"));
    assert_eq!(world.states(), [HostState::Deployed, HostState::Failed]);
    assert_eq!(world.condition("DeploymentReady"), is("False", "DeploymentGone"));
}

#[test]
fn a_deployment_that_only_awaits_gates_keeps_no_inventory_from_changing() {
    let mut world = awaiting(("n1", 2, "Succeeded"));
    let status = world.seen.set.status.clone().unwrap();
    assert_eq!(status.settled_deployments, ["d"]);
    world.holds([("DeploymentReady", "True", "Deployed"), ("Ready", "Unknown", "GateAwaited")]);
    world.edit("/nodeTemplate/ansible", json!({ "ansibleVars": { "a": 1 } }));
    let expected = ["apply Secret dataplanenodeset-compute", "status NodeSet compute"];
    assert_eq!(world.settle(), expected);
}
