//! Readiness gates that a deployment awaits before it ends.

use api::dataplane::{DisruptionHolder, SeenDeployment};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;

const TYPE: &str = "example.org/Up";

/// A deployment whose first service lists a gate.
fn gated(deployment: Value) -> World {
    let set = node_set("compute", &["n0", "n1"], &["first", "second"]);
    let mut world = World::with(vec![set], deployment);
    let first = world.seen.services.get_mut("first").unwrap();
    let gates = json!([{ "conditionType": TYPE }]);
    Arc::make_mut(first).spec.readiness_gates = serde_json::from_value(gates).unwrap();
    world
}

impl World {
    /// The node of each host says that the deployment of this UID succeeded there, and that these hosts
    /// are not up since.
    fn reported_after(&mut self, deployment: &str, not_ready: &[&str]) {
        for (host, node) in self.seen.nodes.get_mut("compute").unwrap() {
            let node = Arc::make_mut(node);
            set_nodes::begin(node, deployment);
            set_nodes::succeed(node, &["first"]);
            let status = node.status.as_mut().unwrap();
            let attempt = status.deployment.as_ref().unwrap().attempt;
            let is_up = !not_ready.contains(&host.as_str());
            let condition = json!([{
                "type": TYPE, "status": if is_up { "True" } else { "False" }, "reason": "Down",
                "message": "It is down.", "lastTransitionTime": "2026-01-01T00:00:00Z",
            }]);
            status.conditions = serde_json::from_value(condition).unwrap();
            let seen = SeenDeployment { deployment: deployment.to_owned(), attempt };
            let name = "example.org".to_owned();
            let holder = DisruptionHolder { name, seen: Some(seen), ..DisruptionHolder::default() };
            set_nodes::hold(node, holder);
        }
    }

    fn reported(&mut self, not_ready: &[&str]) {
        self.reported_after("edpm", not_ready);
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
    world.reported(&["n1"]);
    assert_eq!(world.settle(), ["status"]);
    assert_eq!(world.condition("Ready"), is("False", "HostsNotReady"));
    assert!(world.message("Ready").contains("n1: Down: It is down."));
    world.reported(&[]);
    assert_eq!(world.settle(), ["status", "release"]);
    assert!(world.is_over());
    assert_eq!(world.condition("ReadinessGatesReady"), is("True", "HostsReady"));
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
    // What becomes of the hosts later is not the deployment's.
    world.reported(&["n0"]);
    assert_eq!(world.settle(), [""; 0]);
    once(&world);
}

#[test]
fn a_gate_that_no_operator_reports_keeps_the_deployment_open_and_is_named() {
    let mut world = gated(json!({}));
    world.run_all();
    let plan = world.pass();
    assert!((300..301).contains(&plan.requeue_after.unwrap().as_secs()));
    world.sleep(299);
    assert_eq!(world.settle(), [""; 0]);
    world.sleep(1);
    assert_eq!(world.settle(), ["status"]);
    assert_eq!(world.condition("Ready"), is("False", "GateNotReported"));
    assert!(world.message("Ready").contains("service first is not reported by any operator"));
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
    let mut world = gated(json!({ "ansibleLimit": "n0" }));
    world.reported(&["n1"]);
    world.run_all();
    assert!(world.is_over());
    let mut world = gated(json!({}));
    world.reported(&["n1"]);
    world.run_all();
    assert!(!world.is_over());
    world.edit("compute", |it| drop(it.spec.nodes.remove("n1")));
    world.settle();
    assert!(world.is_over());
}

#[test]
fn a_deployment_that_failed_or_is_to_be_deleted_awaits_no_gate() {
    let mut world = gated(json!({ "backoffLimit": 0 }));
    world.run_out(|_, host| if host == "n1" { "Failed" } else { "Ok" });
    assert_eq!(world.condition("Ready"), is("False", "BackoffLimitExceeded"));
    let mut world = gated(json!({}));
    world.run_all();
    let deleted = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(world.now);
    world.deployment().metadata.deletion_timestamp = Some(deleted);
    world.settle();
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
fn what_is_said_after_another_deployment_counts_where_that_was_at_the_host_later() {
    let mut world = gated(json!({}));
    world.reported_after("before", &[]);
    world.sleep(60);
    world.run_all();
    assert_eq!(world.condition("Ready"), is("Unknown", "GateAwaited"));
    let text = "what OpenStackDataPlaneNode n0, n1 says is from before the last deployment";
    assert!(world.message("Ready").contains(text), "{}", world.message("Ready"));
    let mut older = world.clone();
    for host in ["n0", "n1"] {
        let later = Time(world.now + SignedDuration::from_secs(1));
        older.with_node("compute", host, |it| {
            it.status.as_mut().unwrap().deployment.as_mut().unwrap().since = later;
        });
    }
    older.settle();
    assert!(older.is_over(), "it has ended there after this one");
    // A younger one answers for its hosts itself, whatever became of it.
    world.seen.younger.insert("before".into());
    world.settle();
    assert!(world.is_over());
}
