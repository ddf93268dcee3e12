//! Readiness gates that a deployment awaits before it ends.

use api::dataplane::{DisruptionHolder, NodeDeployment};

use super::*;

const TYPE: &str = "example.org/Up";

/// A deployment whose first service lists a gate.
fn gated(deployment: Value) -> World {
    let set = node_set("compute", &["n0", "n1"], &["first", "second"]);
    let mut world = World::with(vec![set], deployment);
    world.gate("first", TYPE);
    world
}

impl World {
    /// Gives a service a readiness gate.
    pub(super) fn gate(&mut self, service: &str, type_: &str) {
        let service = self.seen.services.get_mut(service).unwrap();
        let gates = json!([{ "conditionType": type_ }]);
        Arc::make_mut(service).spec.readiness_gates = serde_json::from_value(gates).unwrap();
    }

    /// The operator has looked at each host after what was deployed last, and these are not up.
    fn reported(&mut self, not_ready: &[&str]) -> &mut Self {
        for host in ["n0", "n1"] {
            let is_up = if not_ready.contains(&host) { "False" } else { "True" };
            self.with_node("compute", host, |node| {
                let status = node.status.as_mut().unwrap();
                status.conditions = vec![stated(TYPE, is_up, "Down", "It is down.")];
                let seen = status.deployment.as_ref().and_then(NodeDeployment::succeeded);
                let name = "example.org".to_owned();
                let holder = DisruptionHolder { name, seen, ..DisruptionHolder::default() };
                set_nodes::hold(node, holder);
            });
        }
        self
    }

    /// Lets every service succeed on every host.
    fn run_all(&mut self) {
        for _ in 0..2 {
            self.settle();
            self.finish();
        }
        self.settle();
    }
}

#[test]
fn the_next_service_does_not_wait_for_a_gate_and_the_end_does() {
    let mut world = gated(json!({}));
    world.run_all();
    assert_eq!(world.run("second").spec.hosts.len(), 2);
    assert!(!world.is_over());
    assert_eq!(world.condition("DeploymentReady"), is("True", "Ready"));
    assert_eq!(world.condition("Ready"), is("Unknown", "GateAwaited"));
    assert!(world.seen.deployment.has_run());
    assert_eq!(world.reported(&["n1"]).settle(), ["status"]);
    assert_eq!(world.condition("Ready"), is("False", "HostsNotReady"));
    world.says("Ready", &["n1: Down: It is down."]);
    assert_eq!(world.reported(&[]).settle(), ["status", "release"]);
    assert!(world.is_over());
    assert_eq!(world.condition("ReadinessGatesReady"), is("True", "HostsReady"));
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
    // What becomes of the hosts later is not the deployment's.
    assert_eq!(world.reported(&["n0"]).settle(), [""; 0]);
    once(&world);
}

#[test]
fn a_gate_that_no_operator_reports_keeps_the_deployment_open_and_is_named() {
    let mut world = gated(json!({}));
    world.run_all();
    let plan = world.pass();
    assert!((300..301).contains(&plan.requeue_after.unwrap().as_secs()));
    assert_eq!(world.sleep(299).settle(), [""; 0]);
    assert_eq!(world.sleep(1).settle(), ["status"]);
    assert_eq!(world.condition("Ready"), is("False", "GateNotReported"));
    world.says("Ready", &["service first is not reported by any operator"]);
    assert!(!world.is_over());
}

#[test]
fn a_deployment_awaits_gates_of_services_that_the_node_set_lists_alone() {
    let mut world = gated(json!({ "servicesOverride": ["first"] }));
    world.edit("compute", |it| it.spec.services = vec!["second".into()]);
    world.run_all();
    assert!(world.is_over());
    assert!(find(&world.status().conditions, "ReadinessGatesReady").is_none());
}

#[test]
fn only_hosts_that_take_part_and_still_exist_are_awaited() {
    let reported = |deployment: Value| {
        let mut world = gated(deployment);
        world.run_all();
        world.reported(&["n1"]).settle();
        world
    };
    assert!(reported(json!({ "ansibleLimit": "n0" })).is_over());
    let mut world = reported(json!({}));
    assert!(!world.is_over());
    let mut younger = world.clone();
    world.edit("compute", |it| drop(it.spec.nodes.remove("n1"))).settle();
    assert!(world.is_over());
    // A younger deployment that has begun with a host answers for it itself.
    younger.with_node("compute", "n1", |it| set_nodes::begin(it, "younger"));
    younger.settle();
    assert!(younger.is_over());
}

#[test]
fn a_deployment_that_failed_or_is_to_be_deleted_awaits_no_gate() {
    let mut world = gated(json!({ "backoffLimit": 0 }));
    world.run_out(|_, host| if host == "n1" { "Failed" } else { "Ok" });
    assert_eq!(world.condition("Ready"), is("False", "BackoffLimitExceeded"));
    let mut world = gated(json!({}));
    world.run_all();
    world.terminate().settle();
    assert!(world.is_over() && world.is_gone);
}

#[test]
fn gates_change_no_hash_of_a_run() {
    let hash = |mut world: World| {
        world.settle();
        world.run("first").spec.input_hash.clone()
    };
    assert!(hash(gated(json!({}))).is_some());
    assert_eq!(hash(gated(json!({}))), hash(World::new()));
}

#[test]
fn what_an_operator_said_before_the_deployment_is_not_counted() {
    let mut world = gated(json!({ "maxUnavailable": "100%" }));
    world.was(HostState::Deployed, &["n0", "n1"]);
    world.reported(&[]);
    world.run_all();
    assert_eq!(world.condition("Ready"), is("Unknown", "GateAwaited"));
    let text = "what OpenStackDataPlaneNode n0, n1 says is from before the last deployment";
    world.says("Ready", &[text]);
    world.reported(&[]).settle();
    assert!(world.is_over());
}

#[test]
fn a_host_that_was_away_when_the_last_service_ended_is_not_awaited_once_it_is_back() {
    let mut world = gated(json!({}));
    world.settle();
    world.finish().settle();
    let entry = world.seen.node_sets["compute"].spec.nodes["n1"].clone();
    world.edit("compute", |it| drop(it.spec.nodes.remove("n1")));
    world.finish().settle();
    assert!(world.seen.deployment.has_run());
    world.edit("compute", |it| drop(it.spec.nodes.insert("n1".into(), entry))).settle();
    world.says("DeploymentReady", &["on 1 hosts"]);
    world.reported(&[]).settle();
    assert_eq!((world.is_over(), world.host_state("n1")), (true, HostState::Deploying));
}
