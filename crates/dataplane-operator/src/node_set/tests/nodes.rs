//! The nodes of a node set: made, described and deleted, and never a reason for anything else.

use api::conditions::Condition;
use api::dataplane::{NODE_SET_UID, NodeStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use operator_core::rejected_write::RejectedWrite;

use super::*;
use crate::node_set::nodes::steps::NODES_ACCEPTED;
use crate::reasons;

impl World {
    /// Makes a write to a node.
    pub(super) fn take_node(&mut self, step: &Step) {
        let name = step.target.name.clone();
        let nodes = &mut self.seen.nodes.own;
        let verb = match &step.write {
            Write::Create { object, identity } => {
                assert_eq!(object.pointer(identity), Some(&json!(SET)));
                let mut node: Node = serde_json::from_value(object.clone()).unwrap();
                node.metadata.uid = Some(format!("uid-{name}"));
                node.metadata.generation = Some(1);
                assert!(nodes.insert(name.clone(), Arc::new(node)).is_none(), "{name} exists");
                "create"
            }
            Write::Apply { object, .. } => {
                let node = Arc::make_mut(nodes.get_mut(&name).unwrap());
                let labels = object["metadata"]["labels"].clone();
                node.metadata.labels = serde_json::from_value(labels).unwrap();
                "apply"
            }
            Write::Status { status, notices, .. } => {
                assert_eq!(notices, &[], "the node set has the Events");
                let undeclared = undeclared(KINDS, "OpenStackDataPlaneNode", status);
                assert_eq!(undeclared, [""; 0]);
                let node = Arc::make_mut(nodes.get_mut(&name).unwrap());
                node.status = Some(serde_json::from_value(status.clone()).unwrap());
                "status"
            }
            Write::Delete { .. } => {
                let foreign = &mut self.seen.nodes.foreign;
                let found = nodes.remove(&name).or_else(|| foreign.remove(&name));
                assert!(found.is_some(), "{name} is gone already");
                "delete"
            }
            other @ (Write::AddFinalizer { .. } | Write::RemoveFinalizer { .. }) => {
                panic!("{other:?}")
            }
        };
        self.node_writes.push(format!("{verb} {name}"));
    }

    /// Runs passes until nothing is written, and returns the writes to nodes.
    fn settle_nodes(&mut self) -> Vec<String> {
        self.settle();
        self.node_writes.clone()
    }

    fn node(&self, name: &str) -> &NodeStatus {
        self.seen.nodes.own[name].status.as_ref().unwrap()
    }

    fn of_node(&self, name: &str, type_: &str) -> &Condition {
        find(&self.node(name).conditions, type_).unwrap()
    }

    /// Returns the reasons of a node's conditions, in the order of `types`.
    fn reasons<const N: usize>(&self, name: &str, types: [&str; N]) -> [&str; N] {
        types.map(|it| self.of_node(name, it).reason.as_str())
    }

    /// Returns state, attempt and reason of a node's services.
    fn services(&self, name: &str) -> Vec<String> {
        let services = self.node(name).services.iter();
        let text = |reason: &Option<String>| reason.clone().unwrap_or_default();
        services
            .map(|it| format!("{} {:?} {} {}", it.name, it.state, it.attempt, text(&it.reason)))
            .collect()
    }

    /// Another object has a node of that name.
    fn occupy(&mut self, name: &str) {
        let node = object::<Node>("OpenStackDataPlaneNode", name, &json!({ "role": "r" }));
        self.seen.nodes.foreign.insert(name.into(), Arc::new(node));
    }

    /// A deployment has come so far on a host.
    fn progress(&mut self, deployment: &str, host: &str, at: &Value) {
        let mut all = self.seen.deployments.iter_mut();
        let known = all.find(|it| it.name_any() == deployment).unwrap();
        let mut object = serde_json::to_value(&**known).unwrap();
        object["status"]["progress"][SET]["hosts"][host] = at.clone();
        *known = Arc::new(serde_json::from_value(object).unwrap());
    }

    fn go(&mut self) {
        Arc::make_mut(&mut self.seen.set).metadata.deletion_timestamp = Some(Time(self.now));
    }
}

/// The progress of a host on which the second service has failed that often.
fn failing(failures: i64) -> Value {
    json!({ "done": 1, "state": "Failed", "attempt": failures, "failures": failures,
            "reason": "TaskFailed", "since": "2026-01-01T00:00:00Z" })
}

/// The API server's answer to the creation of a node.
fn refused(plan: &Plan) -> RejectedWrite {
    let is_node = |it: &&Step| it.target.kind == Kind::of::<Node>();
    let step = plan.independent.iter().find(is_node).unwrap();
    RejectedWrite::of(step, &reasons::FORBIDDEN, "exceeded quota: q")
}

/// A node set with that many hosts.
fn wide(n_hosts: usize) -> World {
    let mut world = World::new();
    let host = |n: usize| {
        let address = format!("198.51.{}.{}", n / 200, n % 200);
        (format!("h{n}"), json!({ "ansible": { "ansibleHost": address } }))
    };
    let nodes: serde_json::Map<String, Value> = (0..n_hosts).map(host).collect();
    world.edit("/nodes", Value::Object(nodes));
    world
}

#[test]
fn each_entry_has_a_node_that_says_what_is_known_of_its_host() {
    let mut world = World::new();
    let made = ["create n0", "create n1", "status n0", "status n1"];
    assert_eq!(world.settle_nodes(), made);
    let node = &world.seen.nodes.own["n0"];
    assert_eq!(node.node_set(), Some(SET));
    assert_eq!(node.labels()[NODE_SET_UID], SET);
    assert!(node.owner_references().is_empty(), "it goes with no cascade");
    let status = world.node("n0");
    assert_eq!(status.group.as_deref(), Some("NodeSet/compute"));
    let of_set = status.observed_node_set.as_ref().unwrap();
    let seen = (of_set.name.as_str(), of_set.generation, of_set.key.as_deref());
    assert_eq!(seen, (SET, 1, Some("n0")));
    assert_eq!(status.address.as_deref(), Some("192.0.2.10:22"));
    assert_eq!(status.host_name.as_deref(), Some("n0"));
    assert_eq!(status.ssh_key_secret_name.as_deref(), Some("key"));
    assert_eq!(status.inventory_secret_name.as_deref(), Some(SECRET));
    let types =
        ["Ready", "DeploymentReady", "UpToDate", "InputReady", "SetupReady", "BaremetalReady"];
    let found = world.reasons("n0", types);
    assert_eq!(
        found,
        ["NotDeployed", "NotDeployed", "NeverDeployed", "InputComplete", "Ready", "NotRequired"]
    );
}

#[test]
fn a_node_has_the_name_of_its_host_and_knows_its_entry() {
    let mut world = World::new();
    world.edit("/nodes/n0/hostName", json!("compute-0.example.org"));
    world.settle();
    let names: Vec<&String> = world.seen.nodes.own.keys().collect();
    assert_eq!(names, ["compute-0", "n1"]);
    let status = world.node("compute-0");
    assert_eq!(status.observed_node_set.as_ref().unwrap().key.as_deref(), Some("n0"));
    assert_eq!(status.host_name.as_deref(), Some("compute-0.example.org"));
    // A host that is called differently is another host.
    world.edit("/nodes/n0/hostName", json!("compute-9"));
    let writes = world.settle_nodes();
    assert!(writes.contains(&"delete compute-0".to_owned()), "{writes:?}");
    assert!(writes.contains(&"create compute-9".to_owned()), "{writes:?}");
}

#[test]
fn a_deployment_writes_a_node_where_it_begins_and_where_it_ends() {
    let mut world = World::new();
    world.settle();
    world.deploy("d", &json!({}), &[("n0", 0, "Running"), ("n1", 0, "Untouched")]);
    assert_eq!(world.settle_nodes(), ["status n0"]);
    assert_eq!(world.services("n0"), ["install Running 1 ", "web Pending 1 "]);
    assert_eq!(world.reasons("n0", ["Ready", "DeploymentReady"]), ["Deploying"; 2]);
    assert!(world.node("n0").services[1].since.0 == world.now, "not before time began");
    for (done, state) in [(0, "Pending"), (1, "Pending"), (1, "Running")] {
        world.deploy("d", &json!({}), &[("n0", done, state), ("n1", 0, "Untouched")]);
        assert_eq!(world.settle_nodes(), [""; 0], "{done} {state}");
    }
    world.deploy("d", &json!({}), &[("n0", 2, "Succeeded"), ("n1", 0, "Running")]);
    assert_eq!(world.settle_nodes(), ["status n0", "status n1"]);
    assert_eq!(world.node("n0").deployed, Some(true));
    assert_eq!(world.reasons("n0", ["Ready", "UpToDate"]), ["Ready", "UpToDate"]);
    assert_eq!(world.services("n0"), ["install Succeeded 1 ", "web Succeeded 1 "]);
    assert!(world.node("n0").services.iter().all(|it| it.deployed_hash.as_ref() == Some(&it.hash)));
    world.deployed("d");
    assert_eq!(world.settle_nodes(), ["status n1"], "the end of the other host says nothing new");
    assert_eq!(world.settle_nodes(), [""; 0]);
}

#[test]
fn a_failure_is_described_with_its_message_and_an_error_once_it_is_given_up() {
    let mut world = World::new();
    world.settle();
    let fail = |world: &mut World, failures: i64| {
        world.deploy("d", &json!({}), &[("n0", 2, "Succeeded"), ("n1", 1, "Running")]);
        world.progress("d", "n1", &failing(failures));
    };
    fail(&mut world, 1);
    world.settle();
    assert_eq!(world.services("n1"), ["install Succeeded 1 ", "web Failed 1 TaskFailed"]);
    assert_eq!(world.reasons("n1", ["Ready", "DeploymentReady"]), ["TaskFailed"; 2]);
    let severity = |world: &World| format!("{:?}", world.of_node("n1", "Ready").severity);
    assert_eq!(severity(&world), "Some(Warning)", "it is tried again");
    assert!(world.of_node("n1", "Ready").message.contains("OpenStackDataPlaneDeployment d"));
    fail(&mut world, 2);
    assert_eq!(world.settle_nodes(), ["status n1"]);
    world.end("d", false, ["c1", "s1"]);
    assert_eq!(world.settle_nodes(), ["status n1"]);
    assert_eq!(severity(&world), "Some(Error)");
    assert_eq!(world.of_node("n1", "Ready").message, "no disk");
    assert_eq!(world.reasons("n0", ["Ready"]), ["Ready"]);
}

#[test]
fn records_of_a_newer_deployment_that_is_gone_stay() {
    let mut world = World::new();
    world.settle();
    world.deployed("d");
    world.settle();
    world.now += jiff::SignedDuration::from_mins(1);
    let hosts = [("n0", 1, "Succeeded"), ("n1", 1, "Succeeded")];
    world.deploy("e", &json!({ "servicesOverride": ["web"] }), &hosts);
    world.end("e", true, ["c1", "s1"]);
    world.settle();
    let hash = |world: &World| {
        let mut services = world.node("n0").services.iter();
        services.find(|it| it.name == "web").unwrap().hash.clone()
    };
    let newer = hash(&world);
    world.seen.deployments.retain(|it| it.name_any() == "d");
    assert_eq!(world.settle_nodes(), [""; 0]);
    assert_eq!(hash(&world), newer);
    assert_eq!(world.node("n0").services.len(), 2, "a deployment of one service drops no other");
}

#[test]
fn a_change_of_the_node_set_is_one_write_of_each_node() {
    let mut world = World::new();
    world.settle();
    world.deployed("d");
    world.settle();
    world.edit("/nodeTemplate/ansible", json!({ "ansibleVars": { "a": "b" } }));
    assert_eq!(world.settle_nodes(), ["status n0", "status n1"]);
    let changed = world.of_node("n0", "UpToDate");
    assert_eq!(changed.reason, "InputsChanged");
    assert_eq!(changed.message, world.message("UpToDate"));
    assert_eq!(world.reasons("n0", ["Ready"]), ["Ready"], "it stays deployed");
}

#[test]
fn a_node_set_without_its_inputs_says_so_on_each_node() {
    let mut world = World::new();
    world.seen.sources.remove(&SourceRef::secret(NAMESPACE, "key"));
    world.settle();
    let found = world.reasons("n0", ["Ready", "InputReady", "SetupReady"]);
    assert_eq!(found, ["SshSecretNotFound", "SshSecretNotFound", "InputMissing"]);
}

#[test]
fn a_node_of_somebody_else_is_left_alone_and_its_host_is_deployed() {
    let mut world = World::new();
    world.occupy("n0");
    assert_eq!(world.settle_nodes(), ["create n1", "status n1"]);
    assert_eq!(world.condition(NODES_ACCEPTED), is("False", "NodeNotOurs"));
    assert!(world.message(NODES_ACCEPTED).starts_with("OpenStackDataPlaneNode n0 is not one"));
    assert_eq!(world.inventory()[SET]["hosts"]["n0"]["ansible_host"], "192.0.2.10");
    world.deployed("d");
    world.settle();
    assert_eq!(world.condition("Ready"), is("True", "Ready"), "it does not depend on nodes");
    world.seen.nodes.foreign.clear();
    assert_eq!(world.settle_nodes(), ["create n0", "status n0"]);
    let status = world.seen.set.status.as_ref().unwrap();
    assert_eq!(find(&status.conditions, NODES_ACCEPTED), None);
    assert_eq!(world.reasons("n0", ["Ready"]), ["Ready"], "made late, it says the same");
}

#[test]
fn a_refused_node_is_reported_and_holds_nothing() {
    let mut world = World::new();
    world.pass();
    let plan = world.whole_plan();
    let refusal = refused(&plan);
    let report = decide::decide(&world.seen, Some(&refusal), world.now).only_statuses();
    let [Step { write: Write::Status { status, .. }, .. }] = report.steps.as_slice() else {
        panic!("{report:?}");
    };
    world.take_status(status);
    assert_eq!(world.condition(NODES_ACCEPTED), is("False", "Forbidden"));
    let text = world.message(NODES_ACCEPTED);
    assert!(text.contains("OpenStackDataPlaneNode n0 cannot be written: exceeded quota"), "{text}");
    let status = world.seen.set.status.as_ref().unwrap();
    assert_eq!(find(&status.conditions, "WritesAccepted"), None, "Ready depends on that");
    assert_eq!(world.condition("SetupReady"), is("True", "Ready"));
    assert_eq!(world.condition("Ready"), is("False", "NotDeployed"));
    // It is tried again, and said again where it is refused again.
    let refusal = refused(&world.whole_plan());
    let again = decide::decide(&world.seen, Some(&refusal), world.now);
    assert_eq!(again.only_statuses().steps, []);
    world.settle();
    let status = world.seen.set.status.as_ref().unwrap();
    assert_eq!(find(&status.conditions, NODES_ACCEPTED), None);
}

#[test]
fn a_node_of_each_of_500_entries_is_made_and_described_once_and_a_quota_is_probed() {
    let mut world = wide(500);
    world.pass();
    let plan = world.whole_plan();
    assert_eq!(plan.independent.len(), 100, "a pass has a deadline");
    assert!(plan.requeue_after.unwrap() <= std::time::Duration::from_secs(1));
    let report = decide::decide(&world.seen, Some(&refused(&plan)), world.now).only_statuses();
    for step in &report.steps {
        world.take(step);
    }
    assert_eq!(world.whole_plan().independent.len(), 20, "a quota refuses the others as well");
    let writes = world.settle_nodes();
    let with = |verb: &str| writes.iter().filter(|it| it.starts_with(verb)).count();
    assert_eq!((with("create"), with("status"), writes.len()), (500, 500, 1000));
    assert_eq!(world.settle_nodes(), [""; 0]);
}

#[test]
fn a_node_set_with_too_many_hosts_makes_no_nodes() {
    let mut world = wide(501);
    assert_eq!(world.settle_nodes(), [""; 0]);
    assert_eq!(world.condition("InputReady"), is("False", "TooManyHosts"));
}

#[test]
fn a_node_that_is_deleted_by_hand_is_made_anew_and_nothing_else_happens() {
    let mut world = World::new();
    world.settle();
    world.deployed("d");
    world.settle();
    let before = world.node("n0").clone();
    world.seen.nodes.own.remove("n0");
    assert_eq!(world.settle(), [""; 0], "not even the status of the node set");
    assert_eq!(world.node_writes, ["create n0", "status n0"]);
    assert_eq!(world.node("n0").services, before.services);
    assert_eq!(world.reasons("n0", ["Ready", "UpToDate"]), ["Ready", "UpToDate"]);
}

#[test]
fn the_node_of_an_entry_that_is_taken_out_goes_once_its_host_has() {
    let mut world = World::new();
    world.settle();
    world.deployed("d");
    world.hold(&["n0", "n1"]);
    world.settle();
    world.take_out();
    assert_eq!(world.settle_nodes(), ["status n0", "status n1"]);
    let status = world.node("n1");
    assert_eq!(status.observed_node_set.as_ref().unwrap().key, None);
    assert_eq!(status.address.as_deref(), Some("192.0.2.11:22"));
    assert_eq!(world.reasons("n1", ["Ready", "DeploymentReady"]), ["Terminating"; 2]);
    world.edit("/nodes/n1", json!({ "ansible": { "ansibleHost": "192.0.2.11" } }));
    world.settle();
    assert_eq!(world.reasons("n1", ["Ready"]), ["NotDeployed"], "it came back");
    world.take_out();
    world.hold(&["n0"]);
    assert_eq!(world.settle_nodes(), ["delete n1", "status n0"]);
    world.edit("/nodes/n1", json!({ "ansible": { "ansibleHost": "192.0.2.11" } }));
    world.settle();
    assert_eq!(world.services("n1"), [""; 0], "it is a new host, although its deployment exists");
}

#[test]
fn the_nodes_of_a_node_set_go_with_it_and_not_before_its_deployments() {
    let mut world = World::new();
    world.settle();
    world.deploy("d", &json!({}), &[("n0", 0, "Running"), ("n1", 0, "Running")]);
    world.settle();
    world.go();
    world.settle();
    assert_eq!(world.seen.nodes.own.len(), 2, "the deployment goes on");
    // Deleted by hand meanwhile, it is not made again: the namespace may be going.
    world.seen.nodes.own.remove("n1");
    assert_eq!(world.settle_nodes(), [""; 0]);
    world.end("d", false, ["c1", "s1"]);
    let plan = world.whole_plan();
    let is_last = plan.steps.last().map(|it| matches!(it.write, Write::RemoveFinalizer { .. }));
    assert_eq!(is_last, Some(true), "the node set stays until they are deleted");
    assert_eq!(plan.steps[0].target.name, "n0");
    world.settle();
    assert!(world.seen.nodes.own.is_empty());
}

#[test]
fn after_a_restore_the_nodes_follow_the_new_node_set() {
    let mut world = World::new();
    world.settle();
    let set = Arc::make_mut(&mut world.seen.set);
    set.metadata.uid = Some("new".into());
    let writes = world.settle_nodes();
    assert_eq!(writes, ["apply n0", "apply n1", "status n0", "status n1"]);
    assert_eq!(world.seen.nodes.own["n0"].labels()[NODE_SET_UID], "new");
    assert_eq!(world.node("n0").observed_node_set.as_ref().unwrap().uid, "new");
}

#[test]
fn no_node_is_made_where_the_kind_is_not_ours_or_its_definition_does_not_know_the_node_set() {
    let mut world = World::new();
    world.seen.nodes.are_made = false;
    assert_eq!(world.settle_nodes(), [""; 0]);
    world.occupy("n0");
    world.settle();
    let status = world.seen.set.status.as_ref().unwrap();
    assert_eq!(find(&status.conditions, NODES_ACCEPTED), None);
}

#[test]
fn a_node_of_another_node_set_is_no_reason_of_its_own() {
    let mut world = World::new();
    world.settle();
    let mut node = world.seen.nodes.own.remove("n0").unwrap();
    Arc::make_mut(&mut node).spec.node_set = Some("other".into());
    world.seen.nodes.foreign.insert("n0".into(), node);
    assert_eq!(world.settle_nodes(), [""; 0]);
    let status = world.seen.set.status.as_ref().unwrap();
    assert_eq!(find(&status.conditions, NODES_ACCEPTED), None);
}

#[test]
fn a_host_that_has_failed_keeps_its_cause_while_tasks_with_a_tag_run_there() {
    let mut world = World::new();
    world.settle();
    world.deploy("d", &json!({}), &[("n0", 2, "Succeeded"), ("n1", 1, "Failed")]);
    world.progress("d", "n1", &failing(2));
    world.end("d", false, ["c1", "s1"]);
    world.settle();
    assert_eq!(world.of_node("n1", "Ready").message, "no disk");
    world.now += jiff::SignedDuration::from_mins(1);
    let hosts = [("n0", 2, "Succeeded"), ("n1", 2, "Succeeded")];
    world.deploy("e", &json!({ "ansibleTags": "debug" }), &hosts);
    world.settle();
    assert_eq!(world.of_node("n1", "Ready").message, "no disk");
    world.end("e", true, ["c1", "s1"]);
    world.settle();
    assert_eq!(world.of_node("n1", "Ready").message, "no disk");
}

#[test]
fn the_end_of_a_deployment_is_recorded_when_a_newer_one_has_begun() {
    let mut world = World::new();
    world.settle();
    world.deploy("d", &json!({}), &[("n0", 0, "Running"), ("n1", 0, "Running")]);
    world.settle();
    world.now += jiff::SignedDuration::from_mins(1);
    let hosts = [("n0", 0, "Running"), ("n1", 0, "Running")];
    world.deploy("e", &json!({ "servicesOverride": ["web"] }), &hosts);
    world.settle();
    let begun = ["install Running 1 ", "web Running 1 "];
    assert_eq!(world.services("n0"), begun);
    let done = json!({ "done": 2, "state": "Succeeded", "attempt": 1 });
    world.progress("d", "n0", &done);
    world.end("d", true, ["c1", "s1"]);
    world.settle();
    assert_eq!(world.services("n0"), ["install Succeeded 1 ", "web Running 1 "]);
}
