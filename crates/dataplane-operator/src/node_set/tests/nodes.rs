//! The nodes of a node set: made, described, marked, handed over and deleted.

use api::conditions::Condition;
use api::dataplane::condition_types::NODES_ACCEPTED;
use api::dataplane::{Disruption, HostVars, NodeDeployment};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use operator_core::finalizers::is_terminating;
use operator_core::rejected_write::RejectedWrite;
use testkit::set_nodes::merged;

use super::*;
use crate::reasons;

impl World {
    /// Makes a write to a node.
    pub(super) fn take_node(&mut self, step: &Step) {
        let name = step.target.name.clone();
        let verb = match &step.write {
            Write::Create { object, identity } => {
                assert_eq!(object.pointer(identity), Some(&json!(SET)));
                let mut node: Node = serde_json::from_value(object.clone()).unwrap();
                node.metadata.uid = Some(format!("uid-{name}"));
                node.metadata.generation = Some(1);
                node.metadata.resource_version = Some("1".into());
                assert!(self.seen.nodes.get(&name).is_none(), "{name} exists");
                self.seen.nodes.own.insert(name.clone(), Arc::new(node));
                "create"
            }
            Write::Apply { object, .. } => {
                self.with_node(&name, |node| {
                    node.metadata.labels =
                        serde_json::from_value(object["metadata"]["labels"].clone()).unwrap();
                    node.spec = serde_json::from_value(object["spec"].clone()).unwrap();
                });
                "apply"
            }
            Write::Status { status, notices, resource_version } => {
                assert_eq!(notices, &[], "the node set has the Events");
                let present = self.seen.nodes.get(&name).unwrap().resource_version();
                assert_eq!(*resource_version, present, "{name}: its deployment writes there too");
                let undeclared = undeclared(KINDS, "OpenStackDataPlaneNode", status);
                assert_eq!(undeclared, [""; 0]);
                let ours = serde_json::from_value(status.clone()).unwrap();
                self.with_node(&name, |node| node.status = Some(merged(ours, node.status.take())));
                "status"
            }
            Write::Delete { .. } => {
                let now = self.now;
                self.with_node(&name, |it| it.metadata.deletion_timestamp = Some(Time(now)));
                "delete"
            }
            Write::AddFinalizer { finalizer } => {
                self.with_node(&name, |it| it.finalizers_mut().push(finalizer.clone()));
                "hold"
            }
            Write::RemoveFinalizer { rest, .. } => {
                self.with_node(&name, |it| it.metadata.finalizers = Some(rest.clone()));
                "release"
            }
        };
        self.collect_garbage();
        self.node_writes.push(format!("{verb} {name}"));
    }

    /// Nodes that are being deleted go when nobody holds them.
    fn collect_garbage(&mut self) {
        let is_gone = |it: &Node| is_terminating(it) && it.finalizers().is_empty();
        let SetNodes { own, leaving, .. } = &mut self.seen.nodes;
        own.retain(|_, it| !is_gone(it));
        leaving.retain(|_, it| !is_gone(it));
    }

    /// Somebody deletes a node.
    pub(super) fn delete_node(&mut self, name: &str) -> &mut Self {
        let now = self.now;
        self.with_node(name, |it| it.metadata.deletion_timestamp = Some(Time(now)))
    }

    fn mark(&self, name: &str) -> Option<bool> {
        self.seen.nodes.get(name)?.spec.leaving
    }

    /// Runs passes until nothing is written, and returns the writes to nodes.
    fn settle_nodes(&mut self) -> Vec<String> {
        self.settle();
        self.node_writes.clone()
    }

    /// Returns name, state and attempt of the deployment that a node names.
    fn last(&self, name: &str) -> String {
        let last = self.node(name).deployment.as_ref();
        let text = |it: &NodeDeployment| format!("{} {:?} {}", it.name, it.state, it.attempt);
        last.map(text).unwrap_or_default()
    }

    fn is_accepted(&self) -> bool {
        let status = self.seen.set.status.as_ref().unwrap();
        find(&status.conditions, NODES_ACCEPTED).is_none()
    }

    fn of_node(&self, name: &str, type_: &str) -> &Condition {
        find(&self.node(name).conditions, type_).unwrap()
    }

    /// Returns the reasons of a node's conditions, in the order of `types`.
    fn reasons<const N: usize>(&self, name: &str, types: [&str; N]) -> [&str; N] {
        types.map(|it| self.of_node(name, it).reason.as_str())
    }

    /// Another object has a node of that name.
    fn occupy(&mut self, name: &str) {
        let node = object::<Node>(name, &json!({ "role": "r" }));
        self.seen.nodes.foreign.insert(name.into(), Arc::new(node));
    }

    /// The user deletes the node set.
    pub(super) fn go(&mut self) -> &mut Self {
        Arc::make_mut(&mut self.seen.set).metadata.deletion_timestamp = Some(Time(self.now));
        self
    }
}

/// The API server's answer to the creation of a node.
fn refused(plan: &Plan) -> RejectedWrite {
    let is_node = |it: &&Step| it.target.kind == Kind::of::<Node>();
    let step = plan.independent.iter().find(is_node).unwrap();
    RejectedWrite::of(step, &reasons::FORBIDDEN, "exceeded quota: q")
}

/// A node set with that many hosts.
fn wide(n_hosts: usize) -> World {
    let mut world = World::bare(&two_hosts());
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
    let mut world = World::bare(&two_hosts());
    let made = ["create n0", "create n1", "status n0", "status n1"];
    assert_eq!(world.settle_nodes(), made);
    let node = &world.seen.nodes.own["n0"];
    assert_eq!(node.node_set(), Some(SET));
    assert_eq!(node.labels()[NODE_SET_UID], SET);
    assert_eq!(node.finalizers(), [INVENTORY_FINALIZER], "it is held from the beginning");
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
fn the_inventory_waits_until_each_host_has_its_node() {
    let mut world = World::bare(&two_hosts());
    world.pass();
    assert_eq!(world.condition("SetupReady"), is("False", "NodesAwaited"));
    assert!(world.seen.inventory.is_none());
    assert_eq!(world.settled("SetupReady"), is("True", "Ready"));
    assert!(world.seen.inventory.is_some());
    // So does that of a host which is added later.
    world.edit("/nodes/n2", json!({ "ansible": { "ansibleHost": "192.0.2.12" } }));
    world.pass();
    assert_eq!(world.condition("SetupReady"), is("False", "NodesAwaited"));
    assert_eq!(world.settled("SetupReady"), is("True", "Ready"));
    assert_eq!(world.inventory()[SET]["hosts"].as_object().unwrap().len(), 3);
}

#[test]
fn a_node_has_the_name_of_its_host_and_knows_its_entry() {
    let mut world = World::bare(&two_hosts());
    world.edit("/nodes/n0/hostName", json!("compute-0.example.org")).settle();
    let names: Vec<&String> = world.seen.nodes.own.keys().collect();
    assert_eq!(names, ["compute-0", "n1"]);
    let status = world.node("compute-0");
    assert_eq!(status.observed_node_set.as_ref().unwrap().key.as_deref(), Some("n0"));
    assert_eq!(status.host_name.as_deref(), Some("compute-0.example.org"));
    // A host that is called differently is another host.
    world.edit("/nodes/n0/hostName", json!("compute-9"));
    let writes = world.settle_nodes();
    let left = ["apply compute-0", "delete compute-0", "release compute-0"];
    let of_old: Vec<&String> = writes.iter().filter(|it| it.ends_with("compute-0")).collect();
    assert_eq!(of_old, left);
    assert!(writes.contains(&"create compute-9".to_owned()), "{writes:?}");
}

#[test]
fn what_the_controller_of_deployments_writes_into_a_node_stays_as_it_is() {
    let mut world = deployed();
    let hosts = [
        [("n0", 0, "Running"), ("n1", 0, "Awaiting")],
        [("n0", 1, "Failed"), ("n1", 0, "Untouched")],
        [("n0", 2, "Succeeded"), ("n1", 0, "Running")],
    ];
    let reasons = [["Deploying"; 2], ["TaskFailed"; 2], ["Ready", "Deployed"]];
    for (hosts, reasons) in hosts.iter().zip(reasons) {
        world.deploy("e", &json!({}), hosts);
        assert_eq!(world.settle_nodes(), [""; 0], "{hosts:?}");
        assert_eq!(world.reasons("n0", ["Ready", "DeploymentReady"]), reasons);
    }
    assert_eq!(
        (world.last("n0"), world.last("n1")),
        ("e Deployed 2".into(), "e Deploying 2".into())
    );
    assert_eq!(world.states(), [HostState::Deployed, HostState::Deploying]);
    // It is repeated where something else changes.
    let recorded = left_by_deployments(&world, "n0");
    world.edit("/nodeTemplate/ansible", json!({ "ansibleVars": { "a": "b" } }));
    assert_eq!(world.settle_nodes(), ["status n0", "status n1"]);
    assert_eq!(left_by_deployments(&world, "n0"), recorded);
}

#[test]
fn a_host_that_is_installed_anew_forgets_its_deployments_in_one_write() {
    let mut world = World::provisioned();
    world.deployed("d");
    world.deploy("e", &json!({}), &[("n0", 0, "Untouched"), ("n1", 1, "Awaiting")]).settle();
    assert_eq!(world.states(), [HostState::Deployed, HostState::Deploying]);
    let fields = json!({ "provisioningState": "active", "instance": "i-2" });
    world.seen.machines.say("n1", &fields);
    world.now = "2026-01-02T00:00:00Z".parse().unwrap();
    let writes = world.settle_nodes();
    assert_eq!(writes.iter().filter(|it| *it == "status n1").count(), 1, "{writes:?}");
    let disruption = Some(Disruption { last: 1, ..Disruption::default() });
    let forgotten = NodeStatus { disruption, ..NodeStatus::default() };
    assert_eq!(left_by_deployments(&world, "n1"), forgotten);
    assert_eq!(world.states(), [HostState::Deployed, HostState::Undeployed]);
}

#[test]
fn a_failure_is_described_with_its_message_and_an_error_once_it_is_given_up() {
    let mut world = World::set_up();
    world.deploy("d", &json!({}), &[("n0", 2, "Succeeded"), ("n1", 1, "Failed")]).settle();
    let told = |world: &World| {
        let ready = world.of_node("n1", "Ready");
        (ready.message.clone(), format!("{:?}", ready.severity))
    };
    assert_eq!(world.reasons("n1", ["Ready", "DeploymentReady"]), ["TaskFailed"; 2]);
    assert_eq!(told(&world), ("no disk".into(), "Some(Warning)".into()), "it is tried again");
    world.end("d", false, ["c1", "s1"]).settle();
    assert_eq!(told(&world), ("no disk".into(), "Some(Error)".into()));
    assert_eq!(world.reasons("n0", ["Ready"]), ["Ready"]);
}

#[test]
fn a_change_of_the_node_set_is_one_write_of_each_node() {
    let mut world = deployed();
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
fn a_node_of_somebody_else_holds_its_host_alone() {
    let mut world = World::bare(&two_hosts());
    world.occupy("n0");
    assert_eq!(world.settle_nodes(), ["create n1", "status n1"]);
    assert_eq!(world.condition(NODES_ACCEPTED), is("False", "NodeNotOurs"));
    assert!(world.message(NODES_ACCEPTED).starts_with("OpenStackDataPlaneNode n0 is not one"));
    let hosts = world.inventory()[SET]["hosts"].clone();
    assert_eq!(hosts.as_object().unwrap().keys().collect::<Vec<_>>(), ["n1"]);
    world.deploy("d", &json!({}), &[("n1", 2, "Succeeded")]);
    world.end("d", true, ["c1", "s1"]).settle();
    assert_eq!(world.states(), [HostState::Undeployed, HostState::Deployed]);
    world.seen.nodes.foreign.clear();
    assert_eq!(world.settle_nodes(), ["create n0", "status n0"]);
    assert!(world.is_accepted());
    assert!(world.inventory()[SET]["hosts"].get("n0").is_some());
}

#[test]
fn a_refused_node_is_reported_and_holds_its_host_alone() {
    let mut world = World::bare(&two_hosts());
    world.pass();
    let refuse = |world: &mut World| {
        let plan = world.whole_plan();
        let refusal = refused(&plan);
        // The one of the other host is made.
        for step in plan.independent.iter().filter(|it| it.target.name == "n1") {
            world.take_node(step);
        }
        let is_status = |it: &&Step| matches!(it.write, Write::Status { .. });
        for step in plan.steps.iter().filter(|it| !is_status(it)) {
            world.take(step);
        }
        let report = decide::decide(&world.seen, Some(&refusal), world.now).only_statuses();
        for step in &report.steps {
            world.take(step);
        }
        report.steps.len()
    };
    refuse(&mut world);
    assert_eq!(world.condition(NODES_ACCEPTED), is("False", "Forbidden"));
    world.says(NODES_ACCEPTED, &["OpenStackDataPlaneNode n0 cannot be written: exceeded quota"]);
    let status = world.seen.set.status.as_ref().unwrap();
    assert_eq!(find(&status.conditions, "WritesAccepted"), None, "Ready depends on that");
    // It is tried again, and said again where it is refused again.
    refuse(&mut world);
    world.holds([("SetupReady", "True", "Ready"), ("Ready", "False", "NotDeployed")]);
    assert_eq!(world.inventory()[SET]["hosts"].as_object().unwrap().len(), 1);
    assert_eq!(refuse(&mut world), 0);
    world.settle();
    assert!(world.is_accepted());
    assert_eq!(world.inventory()[SET]["hosts"].as_object().unwrap().len(), 2);
}

#[test]
fn a_node_of_each_of_500_entries_is_made_and_described_once_and_a_quota_is_probed() {
    let mut world = wide(500);
    world.pass();
    let plan = world.whole_plan();
    assert_eq!(plan.independent.len(), WRITES_PER_PASS, "a pass has a deadline");
    assert_eq!(plan.requeue_after, Some(REST_OF_WRITES));
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
    world.says("InputReady", &["several node sets"]);
    assert!(world.seen.inventory.is_none());
}

/// Returns what deployments have left on a node.
fn left_by_deployments(world: &World, name: &str) -> NodeStatus {
    let status = world.node(name).clone();
    NodeStatus {
        services: status.services,
        deployment: status.deployment,
        deployed: status.deployed,
        deployed_config_hash: status.deployed_config_hash,
        deployed_address: status.deployed_address,
        disruption: status.disruption,
        ..NodeStatus::default()
    }
}

#[test]
fn a_node_that_is_deleted_by_hand_goes_in_order_and_is_made_anew() {
    let mut world = deployed();
    world.finalize(&["n0", "n1"]);
    world.delete_node("n0");
    assert_eq!(world.settle_nodes(), ["status n0"]);
    assert_eq!(world.reasons("n0", ["Ready"]), ["Terminating"]);
    assert_eq!(world.states(), [HostState::Terminating, HostState::Deployed]);
    assert!(world.inventory()[SET]["hosts"].get("n0").is_some(), "runs still clean up there");
    world.finalize(&["n1"]);
    assert_eq!(world.settle_nodes(), ["release n0", "create n0", "status n0"]);
    assert_eq!(world.states(), [HostState::Undeployed, HostState::Deployed]);
    assert_eq!(left_by_deployments(&world, "n0"), NodeStatus::default(), "it is a new host");
    assert_eq!(world.reasons("n0", ["Ready"]), ["NotDeployed"]);
    world.deployed("e").settle();
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
}

#[test]
fn a_node_of_a_release_without_finalizers_is_held() {
    let mut world = World::new();
    world.with_node("n0", |it| it.metadata.finalizers = None);
    assert_eq!(world.settle_nodes(), ["hold n0", "status n1", "status n0"]);
}

#[test]
fn a_node_without_a_finalizer_gets_it_before_it_is_deleted() {
    let mut world = deployed();
    world.with_node("n0", |it| it.metadata.finalizers = None);
    world.go();
    world.node_writes.clear();
    world.pass();
    assert_eq!(world.node_writes, ["hold n0", "delete n1"]);
    world.finalize(&["n0"]).settle();
    assert!(world.seen.nodes.get("n0").is_some(), "others clean up");
    assert_eq!(world.finalize(&[]).settle().last().unwrap(), "release NodeSet compute");
}

#[test]
fn the_node_of_an_entry_that_is_taken_out_is_marked_and_goes_when_nobody_holds_it() {
    let mut world = deployed();
    world.finalize(&["n0", "n1"]);
    world.take_out();
    assert_eq!(world.settle_nodes(), ["apply n1", "status n0", "status n1"]);
    assert_eq!((world.mark("n0"), world.mark("n1")), (None, Some(true)));
    let status = world.node("n1");
    assert_eq!(status.observed_node_set.as_ref().unwrap().key, None);
    assert_eq!(status.address.as_deref(), Some("192.0.2.11:22"));
    assert_eq!(world.reasons("n1", ["Ready", "DeploymentReady"]), ["Terminating"; 2]);
    world.finalize(&["n0"]);
    assert_eq!(world.settle_nodes(), ["delete n1", "release n1"]);
    assert!(world.seen.nodes.get("n1").is_none());
    world.edit("/nodes/n1", json!({ "ansible": { "ansibleHost": "192.0.2.11" } })).settle();
    assert_eq!(left_by_deployments(&world, "n1"), NodeStatus::default(), "it is a new host");
    assert_eq!(world.states(), [HostState::Deployed, HostState::Undeployed]);
}

#[test]
fn an_entry_that_is_back_takes_the_mark_back_and_its_host_is_to_be_deployed_again() {
    let mut world = deployed();
    world.finalize(&["n0", "n1"]);
    let hash = world.node("n1").deployed_config_hash.clone();
    world.take_out().settle();
    world.edit("/nodes/n1", json!({ "ansible": { "ansibleHost": "192.0.2.11" } }));
    let writes = world.settle_nodes();
    assert_eq!(writes[0], "apply n1", "{writes:?}");
    assert_eq!(world.mark("n1"), Some(false), "also where another writer has marked it");
    assert_eq!(world.seen.nodes.own["n1"].finalizers(), [INVENTORY_FINALIZER, OTHER]);
    assert_eq!(world.reasons("n1", ["Ready"]), ["NotDeployed"]);
    let status = world.node("n1");
    assert_eq!((status.deployed, &status.deployed_config_hash), (None, &hash), "in service");
    assert!(hash.is_some());
    assert_eq!(world.states(), [HostState::Deployed, HostState::Undeployed]);
    assert_eq!(world.condition("DeploymentReady"), is("False", "NotDeployed"));
    world.says("DeploymentReady", &["taken out of the node set and put back"]);
    world.deployed("again").settle();
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
}

#[test]
fn a_mark_that_another_writer_has_set_is_taken_back_where_the_entry_stands() {
    let mut world = deployed();
    world.with_node("n1", |it| it.spec.leaving = Some(true));
    assert_eq!(world.settle_nodes(), ["status n1", "apply n1", "status n1"]);
    assert_eq!(world.mark("n1"), Some(false));
    assert_eq!(world.states(), [HostState::Deployed, HostState::Undeployed], "others saw the mark");
}

#[test]
fn nothing_leaves_while_a_deployment_is_under_way() {
    let mut world = deployed();
    world.deploy("e", &json!({}), &[("n0", 0, "Running"), ("n1", 0, "Running")]).settle();
    world.take_out().settle();
    assert_eq!(world.mark("n1"), None);
    world.deploy("e", &json!({}), &[("n0", 2, "Succeeded"), ("n1", 2, "Succeeded")]);
    world.end("e", true, ["c1", "s1"]);
    let writes = world.settle_nodes();
    let of_n1: Vec<&String> = writes.iter().filter(|it| it.ends_with("n1")).collect();
    assert_eq!(of_n1, ["apply n1", "delete n1", "release n1"]);
}

/// Another node set with the host n1 at an address.
pub(super) fn other(address: &str) -> Arc<NodeSet> {
    let spec = json!({
        "preProvisioned": true,
        "services": ["install", "web"],
        "nodeTemplate": { "ansibleSSHPrivateKeySecret": "key" },
        "nodes": { "n1": { "ansible": { "ansibleHost": address } } },
    });
    Arc::new(object("other", &spec))
}

#[test]
fn a_host_that_another_node_set_has_too_is_handed_over_as_it_is() {
    let mut world = deployed();
    world.finalize(&["n0", "n1"]);
    world.others = vec![other("192.0.2.11")];
    assert_eq!(world.settle_nodes(), [""; 0], "it is here as long as its entry is");
    assert_eq!(world.writes, [""; 0]);
    let before = world.seen.nodes.own["n1"].clone();
    let as_it_was = left_by_deployments(&world, "n1");
    assert_eq!(as_it_was.deployed, Some(true));
    world.take_out();
    assert_eq!(world.settle_nodes(), ["apply n1", "status n0"]);
    assert_eq!(world.states(), [HostState::Deployed], "nothing is cleaned up after it");
    assert!(world.inventory()[SET]["hosts"].get("n1").is_none());
    let node = world.seen.nodes.foreign.remove("n1");
    assert!(node.is_none(), "it is no host of this node set any more");
    // The other node set takes it over as it was left.
    let mut after = World::bare(&serde_json::to_value(&other("192.0.2.11").spec).unwrap());
    let mut node = (*before).clone();
    node.status.as_mut().unwrap().host_key = Some(KEY.into());
    node.labels_mut().insert(NODE_SET_UID.into(), SET.into());
    let of_before = node.status.as_mut().unwrap().observed_node_set.as_mut().unwrap();
    of_before.name = "before".into();
    of_before.uid = "before".into();
    after.seen.nodes.own.insert("n1".into(), Arc::new(node));
    assert_eq!(after.settle_nodes(), ["status n1"]);
    assert_eq!(after.states(), [HostState::Deployed]);
    assert_eq!(left_by_deployments(&after, "n1"), as_it_was, "it counts as in service");
    assert_eq!(
        after.content["known_hosts"],
        format!("192.0.2.11 {KEY}\n"),
        "no other key is learned"
    );
    assert_eq!(after.seen.nodes.own["n1"].finalizers(), [INVENTORY_FINALIZER, OTHER]);
}

#[test]
fn a_node_set_that_goes_hands_over_what_another_one_has() {
    let mut world = deployed();
    world.finalize(&["n1"]);
    world.others = vec![other("192.0.2.11")];
    let writes = world.go().settle();
    assert_eq!(world.node_writes, ["apply n1", "delete n0", "release n0"]);
    assert_eq!(writes.last().unwrap(), "release NodeSet compute", "it waits for no clean-up");
}

#[test]
fn a_host_at_another_address_or_in_a_node_set_that_goes_is_not_handed_over() {
    let mut going = (*other("192.0.2.11")).clone();
    going.metadata.deletion_timestamp = Some(Time("2026-01-01T00:00:00Z".parse().unwrap()));
    for it in [other("192.0.2.12"), Arc::new(going)] {
        let mut world = deployed();
        world.finalize(&["n1"]);
        world.others = vec![it];
        world.take_out().settle();
        assert_eq!(world.mark("n1"), Some(true));
        assert_eq!(world.seen.nodes.get("n1").unwrap().node_set(), Some(SET));
    }
}

#[test]
fn the_nodes_of_a_node_set_go_before_it_and_not_before_its_deployments() {
    for finalizer in [None, Some("foregroundDeletion"), Some("orphan")] {
        let mut world = World::new().at_rest();
        world.deploy("d", &json!({}), &[("n0", 0, "Running"), ("n1", 0, "Running")]).settle();
        world.finalize(&["n0"]);
        world.go();
        let set = Arc::make_mut(&mut world.seen.set);
        set.finalizers_mut().extend(finalizer.map(str::to_owned));
        world.settle();
        let all = || world.seen.nodes.all().map(|(_, it)| is_terminating(&**it));
        assert_eq!(all().collect::<Vec<_>>(), [false; 2], "the deployment goes on");
        world.end("d", false, ["c1", "s1"]);
        let writes = world.settle_nodes();
        let expected = ["delete n0", "delete n1", "release n1", "status n0"];
        assert_eq!(writes, expected, "{finalizer:?}");
        assert_eq!(world.seen.nodes.all().count(), 1, "others hold n0");
        assert_eq!(world.condition("SetupReady"), is("False", "DeletionWaits"));
        world.says("SetupReady", &["OpenStackDataPlaneNode n0"]);
        assert!(world.seen.inventory.is_some());
        // The garbage collector takes its finalizer off when it is through.
        let set = Arc::make_mut(&mut world.seen.set);
        set.finalizers_mut().retain(|it| Some(it.as_str()) != finalizer);
        assert_eq!(world.finalize(&[]).settle().last().unwrap(), "release NodeSet compute");
        assert!(world.seen.nodes.all().next().is_none() && world.seen.inventory.is_none());
    }
}

#[test]
fn in_a_namespace_that_is_deleted_the_nodes_are_let_go_at_once() {
    let mut world = deployed();
    world.finalize(&["n0"]);
    world.go();
    world.seen.is_namespace_terminating = true;
    let writes = world.settle();
    assert_eq!(world.node_writes[..2], ["delete n0", "delete n1"]);
    let holds = |(_, it): (&String, &Arc<Node>)| it.finalizers() == [OTHER];
    assert!(world.seen.nodes.all().all(holds), "others let go by themselves");
    let expected = ["delete Secret dataplanenodeset-compute", "release NodeSet compute"];
    assert_eq!(writes[1..], expected);
}

#[test]
fn after_a_restore_the_nodes_follow_the_new_node_set_and_nothing_is_deployed() {
    let mut world = deployed();
    let set = Arc::make_mut(&mut world.seen.set);
    set.metadata.uid = Some("new".into());
    set.status = None;
    world.seen.deployments.clear();
    for name in ["n0", "n1"] {
        world.with_node(name, |it| it.status = None);
    }
    assert_eq!(world.settle_nodes(), ["apply n0", "apply n1", "status n0", "status n1"]);
    assert_eq!(world.seen.nodes.own["n0"].labels()[NODE_SET_UID], "new");
    assert_eq!(world.node("n0").observed_node_set.as_ref().unwrap().uid, "new");
    assert_eq!(world.states(), [HostState::Undeployed; 2]);
    assert_eq!(world.reasons("n0", ["Ready"]), ["NotDeployed"], "a deployment is asked for");
}

#[test]
fn no_node_is_made_where_the_kind_is_not_ours_or_its_definition_does_not_know_the_node_set() {
    let mut world = World::bare(&two_hosts());
    world.seen.nodes.are_made = false;
    assert_eq!(world.settle_nodes(), [""; 0]);
    assert_eq!(world.condition(NODES_ACCEPTED), is("False", "NodesNotServed"));
    assert_eq!(world.condition("SetupReady"), is("False", "NodesAwaited"));
}

#[test]
fn a_host_that_was_leaving_before_it_had_a_node_gets_one_that_leaves() {
    let mut world = deployed();
    world.finalize(&["n1"]).take_out().settle();
    assert_eq!(world.states(), [HostState::Deployed, HostState::Terminating]);
    world.seen.nodes.leaving.clear();
    world.pass();
    assert_eq!(world.node_writes.last().unwrap(), "create n1");
    assert_eq!(world.mark("n1"), Some(true));
}

#[test]
fn what_others_write_into_a_status_is_neither_written_nor_compared() {
    let mut world = deployed();
    world.holder("n0", json!({ "name": "example.org", "holds": true }));
    world.with_node("n0", |it| {
        let status = it.status.as_mut().unwrap();
        status.host_vars = vec![HostVars { name: "example.org".into(), ..HostVars::default() }];
    });
    assert_eq!(world.settle_nodes(), [""; 0]);
    world.deploy("e", &json!({}), &[("n0", 0, "Awaiting"), ("n1", 0, "Untouched")]);
    world.edit("/nodeTemplate/ansible", json!({ "ansibleVars": { "a": "b" } }));
    let plan = world.whole_plan();
    let of_n0 = plan.independent.iter().find(|it| it.target.name == "n0").unwrap();
    let Write::Status { status, .. } = &of_n0.write else { panic!("{of_n0:?}") };
    let target = json!({ "deployment": "e", "number": 1 });
    assert_eq!(status["disruption"], json!({ "last": 1, "target": target }));
    assert_eq!(status.get("hostVars"), None);
    world.settle();
    assert_eq!(world.node("n0").disruption.as_ref().unwrap().holders.len(), 1);
}

#[test]
fn a_deployment_of_some_tasks_leaves_a_host_deployed_and_one_that_is_gone_has_failed() {
    let mut world = deployed();
    let spec = json!({ "ansibleTags": "a" });
    world.deploy("e", &spec, &[("n0", 2, "Succeeded"), ("n1", 0, "Running")]).settle();
    assert_eq!(world.states(), [HostState::Deployed; 2]);
    assert_eq!(world.reasons("n0", ["DeploymentReady"]), ["Deployed"]);
    world.seen.deployments.retain(|it| it.name_any() == "d");
    world.settle();
    assert_eq!((world.last("n0"), world.last("n1")), ("e Deployed 2".into(), "e Failed 2".into()));
    assert_eq!(world.states(), [HostState::Deployed, HostState::Failed]);
}
