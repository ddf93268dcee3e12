//! Data planes, decided step by step against an in-memory API server.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::conditions::find;
use api::dataplane::{DataPlane, Node, Role};
use jiff::Timestamp;
use operator_core::condition_catalog::undeclared;
use operator_core::plan::{Plan, Write};
use operator_core::rejected_write::RejectedWrite;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use testkit::golden::recorded;
use testkit::passes::to_rest;

use super::desired::MANAGER;
use super::{Observed, decide};
use crate::annotations::ADOPT;
use crate::condition_catalog::KINDS;
use crate::reasons;

const NAMESPACE: &str = "openstack";

/// The objects as the API server would hold them, and the writes to them.
struct World {
    plane: Value,
    /// `Kind name` → object.
    objects: BTreeMap<(String, String), Value>,
    /// The fields of each object that the maps' field manager owns.
    applied: BTreeMap<(String, String), Value>,
    writes: Vec<String>,
    n_made: usize,
}

fn typed<K: DeserializeOwned>(object: &Value) -> Arc<K> {
    Arc::new(serde_json::from_value(object.clone()).unwrap())
}

fn named(kind: &str, name: &str) -> (String, String) {
    (kind.to_owned(), name.to_owned())
}

fn role(name: &str) -> (String, String) {
    named("OpenStackDataPlaneRole", name)
}

fn node(name: &str) -> (String, String) {
    named("OpenStackDataPlaneNode", name)
}

/// Sets the stated fields and removes owned fields that are no longer stated, as server-side apply
/// does.
fn apply(into: &mut Value, owned: &Value, stated: &Value) {
    let Some(stated) = stated.as_object() else {
        into.clone_from(stated);
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    let into = into.as_object_mut().unwrap();
    for (key, owned) in owned.as_object().into_iter().flatten() {
        if !stated.contains_key(key) {
            if owned.is_object() && into.contains_key(key) {
                apply(&mut into[key], owned, &json!({}));
            } else {
                into.remove(key);
            }
        }
    }
    for (key, value) in stated {
        let owned = owned.get(key).cloned().unwrap_or_default();
        apply(into.entry(key.clone()).or_insert(Value::Null), &owned, value);
    }
}

impl World {
    fn new(spec: &Value) -> Self {
        let plane = json!({
            "apiVersion": "dataplane.openstack.org/v1beta1",
            "kind": "OpenStackDataPlane",
            "metadata": { "name": "plane", "namespace": NAMESPACE, "uid": "plane-1", "generation": 1 },
            "spec": spec,
        });
        let (objects, applied) = (BTreeMap::new(), BTreeMap::new());
        Self { plane, objects, applied, writes: Vec::new(), n_made: 0 }
    }

    /// One role, two nodes.
    fn two() -> Self {
        Self::new(&json!({
            "roles": { "compute": { "preProvisioned": true } },
            "nodes": {
                "n0": { "role": "compute", "ansibleHost": "192.0.2.10" },
                "n1": { "role": "compute", "ansibleHost": "192.0.2.11" },
            },
        }))
    }

    /// The same, after the passes.
    fn at_rest(mut self) -> Self {
        self.settle();
        self
    }

    /// Adds an object of another owner.
    fn add(&mut self, (kind, name): (String, String), spec: &Value) {
        self.n_made += 1;
        let object = json!({
            "apiVersion": "dataplane.openstack.org/v1beta1",
            "kind": kind,
            "metadata": { "name": name, "namespace": NAMESPACE, "uid": format!("u{}", self.n_made),
                          "generation": 1 },
            "spec": spec,
        });
        self.objects.insert((kind, name), object);
    }

    fn observed(&self) -> Observed {
        let plane: Arc<DataPlane> = typed(&self.plane);
        let of = |kind: &'static str| {
            self.objects.iter().filter(move |it| it.0.0 == kind).map(|it| (it.0.1.clone(), it.1))
        };
        let roles: BTreeMap<String, Arc<Role>> =
            of("OpenStackDataPlaneRole").map(|(name, it)| (name, typed(it))).collect();
        let nodes: BTreeMap<String, Arc<Node>> =
            of("OpenStackDataPlaneNode").map(|(name, it)| (name, typed(it))).collect();
        let followers =
            |name: &String| nodes.values().filter(|it| it.spec.role.as_ref() == Some(name)).count();
        let n_followers = roles.keys().map(|it| (it.clone(), followers(it))).collect();
        Observed { data_plane: plane, roles, nodes, n_followers }
    }

    fn decide(&self) -> Plan {
        self.decide_after(None)
    }

    fn decide_after(&self, rejected: Option<&RejectedWrite>) -> Plan {
        let now = "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap();
        let plan = decide::decide(&self.observed(), rejected, now);
        recorded(if rejected.is_some() { plan.only_statuses() } else { plan })
    }

    /// Runs one pass.
    fn pass(&mut self) {
        let plan = self.decide();
        for step in plan.independent.iter().chain(&plan.steps) {
            let key = named(&step.target.kind.kind, &step.target.name);
            let short = format!("{} {}", key.0.trim_start_matches("OpenStackDataPlane"), key.1);
            match &step.write {
                Write::Apply { object, manager, .. } => {
                    assert_eq!(manager.as_deref(), Some(MANAGER));
                    self.writes.push(format!("apply {short}"));
                    self.apply(key, object);
                }
                Write::Status { status, .. } => {
                    assert_eq!(undeclared(KINDS, "OpenStackDataPlane", status), [""; 0]);
                    self.writes.push("status".into());
                    self.plane["status"] = status.clone();
                }
                Write::Delete { .. } => {
                    assert_eq!(
                        step.target.uid.as_deref(),
                        self.objects[&key]["metadata"]["uid"].as_str()
                    );
                    self.writes.push(format!("delete {short}"));
                    self.objects.remove(&key);
                }
                Write::Create { .. }
                | Write::AddFinalizer { .. }
                | Write::RemoveFinalizer { .. } => {
                    panic!("{step:?}")
                }
            }
        }
    }

    fn apply(&mut self, key: (String, String), object: &Value) {
        if !self.objects.contains_key(&key) {
            self.add(key.clone(), &json!({}));
            self.applied.remove(&key);
        }
        let owned = self.applied.get(&key).cloned().unwrap_or_default();
        let found = self.objects.get_mut(&key).unwrap();
        let before = found["spec"].clone();
        apply(found, &owned, object);
        if found["spec"] != before {
            let generation = found["metadata"]["generation"].as_i64().unwrap();
            found["metadata"]["generation"] = json!(generation + 1);
        }
        self.applied.insert(key, object.clone());
    }

    /// Runs passes until nothing is written any more.
    fn settle(&mut self) -> Vec<String> {
        to_rest(self, |it| it.writes.clone(), Self::pass);
        std::mem::take(&mut self.writes)
    }

    /// Sets the status that the group controller would report of a node or role.
    fn report(&mut self, key: &(String, String), ready: (&str, &str, &str)) -> &mut Self {
        let role = self.objects[key]["spec"]["role"].as_str().map(str::to_owned);
        let observed_role = role.and_then(|it| {
            let meta = &self.objects.get(&named("OpenStackDataPlaneRole", &it))?["metadata"];
            Some(json!({ "name": it, "uid": meta["uid"], "generation": meta["generation"] }))
        });
        let object = self.objects.get_mut(key).unwrap();
        let severity = if ready.1 == "Deploying" { "Info" } else { "Error" };
        let severity = if ready.0 == "True" { Value::Null } else { json!(severity) };
        let condition = |type_: &str, status: &str, reason: &str| {
            json!({ "type": type_, "status": status, "reason": reason, "message": ready.2,
                    "severity": severity, "lastTransitionTime": "2026-01-01T00:00:00Z" })
        };
        object["status"] = json!({
            "observedGeneration": object["metadata"]["generation"],
            "conditions": [
                condition("Ready", ready.0, ready.1),
                condition("InputReady", "True", "InputComplete"),
                condition("UpToDate", ready.0, "UpToDate"),
            ],
        });
        if let Some(observed) = observed_role {
            object["status"]["observedRole"] = observed;
        }
        self
    }

    fn all_ready(&mut self) -> &mut Self {
        let keys: Vec<_> = self.objects.keys().cloned().collect();
        for key in keys {
            self.report(&key, ("True", "Ready", "fine"));
        }
        self
    }

    /// Edits the data plane, as a user does.
    fn edit(&mut self, change: impl Fn(&mut Value)) -> &mut Self {
        change(&mut self.plane["spec"]);
        let generation = self.plane["metadata"]["generation"].as_i64().unwrap();
        self.plane["metadata"]["generation"] = json!(generation + 1);
        self
    }

    /// Returns status, reason and message of a condition.
    fn condition(&self, type_: &str) -> (String, String, String) {
        let plane: Arc<DataPlane> = typed(&self.plane);
        let found = find(&plane.status.as_ref().unwrap().conditions, type_).unwrap().clone();
        (format!("{:?}", found.status), found.reason, found.message)
    }

    #[track_caller]
    fn says(&self, type_: &str, status: &str, reason: &str, words: &[&str]) {
        let (found, because, message) = self.condition(type_);
        assert_eq!((found.as_str(), because.as_str()), (status, reason), "{message}");
        for it in words {
            assert!(message.contains(it), "{it:?} is not in {message:?}");
        }
    }
}

#[test]
fn roles_and_nodes_are_made_and_summed_up() {
    let mut world = World::two();
    assert_eq!(world.settle(), ["apply Role compute", "apply Node n0", "apply Node n1", "status"]);
    let found = &world.objects[&node("n0")];
    assert_eq!(found["spec"], json!({ "role": "compute", "ansibleHost": "192.0.2.10" }));
    let owner = &found["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["uid"], &owner["controller"]), (&json!("plane-1"), &json!(true)));
    let labels = json!({ "openstackdataplane": "plane", "openstackdataplanerole": "compute" });
    assert_eq!(found["metadata"]["labels"], labels);
    let spec = &world.objects[&role("compute")]["spec"];
    assert_eq!(spec, &json!({ "preProvisioned": true, "dataPlane": "plane" }));
    world.says("SetupReady", "True", "Applied", &["3/3 entries"]);
    world.says("Ready", "False", "NotObserved", &["0/1 roles and 0/2 nodes"]);
    assert_eq!(world.all_ready().settle(), ["status"]);
    world.says("Ready", "True", "RolesAndNodesReady", &["1/1 roles and 2/2 nodes"]);
    world.says("Orphaned", "False", "NoOrphans", &[]);
    let status = &world.plane["status"];
    assert_eq!((&status["readyNodes"], &status["upToDateNodes"]), (&json!(2), &json!(2)));
    assert_eq!(status["deployed"], true);
    assert_eq!(world.settle(), [""; 0]);
}

#[test]
fn only_the_entry_that_changed_is_applied() {
    let mut world = World::two().at_rest();
    world.edit(|it| it["nodes"]["n1"]["ansibleHost"] = json!("192.0.2.99"));
    assert_eq!(world.settle(), ["apply Node n1", "status"]);
    assert_eq!(world.objects[&node("n1")]["spec"]["ansibleHost"], "192.0.2.99");
}

#[test]
fn a_field_that_is_stated_no_more_is_given_up() {
    let mut world = World::two();
    world.edit(|it| it["roles"]["compute"]["nodeTemplate"] = json!({ "ansibleUser": "a" }));
    world.settle();
    world.edit(|it| {
        it["roles"]["compute"].as_object_mut().unwrap().remove("nodeTemplate");
    });
    assert_eq!(world.settle(), ["apply Role compute", "status"]);
    assert!(world.objects[&role("compute")]["spec"]["nodeTemplate"]["ansibleUser"].is_null());
}

#[test]
fn what_a_human_adds_to_a_child_stays_and_causes_no_write() {
    let mut world = World::two().at_rest();
    let child = world.objects.get_mut(&node("n0")).unwrap();
    child["spec"]["node"] = json!({ "ansibleVars": { "greeting": "hello" } });
    child["metadata"]["labels"]["rack"] = json!("7");
    child["metadata"]["annotations"]["example.org/note"] = json!("mine");
    let child = world.objects.get_mut(&role("compute")).unwrap();
    child["spec"]["services"] = json!(["own"]);
    assert_eq!(world.settle(), [""; 0]);
    world.edit(|it| it["nodes"]["n0"]["hostName"] = json!("n0.example.org"));
    assert_eq!(world.settle(), ["apply Node n0", "status"]);
    let child = &world.objects[&node("n0")];
    assert_eq!(child["spec"]["node"]["ansibleVars"]["greeting"], "hello");
    assert_eq!(child["metadata"]["labels"]["rack"], "7");
}

#[test]
fn a_stated_field_that_somebody_changes_is_brought_back() {
    let mut world = World::two().at_rest();
    world.objects.get_mut(&node("n0")).unwrap()["spec"]["ansibleHost"] = json!("198.51.100.1");
    assert_eq!(world.settle(), ["apply Node n0"]);
    assert_eq!(world.objects[&node("n0")]["spec"]["ansibleHost"], "192.0.2.10");
}

#[test]
fn the_key_is_the_host_name_of_an_entry_without_an_address() {
    let cases = [
        (json!({}), json!({ "hostName": "n" })),
        (json!({ "ansibleHost": "192.0.2.1" }), json!({ "ansibleHost": "192.0.2.1" })),
        (json!({ "hostName": "h" }), json!({ "hostName": "h" })),
    ];
    for (stated, expected) in cases {
        let world = World::new(&json!({ "nodes": { "n": stated } })).at_rest();
        assert_eq!(world.objects[&node("n")]["spec"], expected);
    }
}

#[test]
fn empty_values_and_nulls_in_an_entry_are_not_applied_for_ever() {
    let mut world = World::new(&json!({
        "roles": { "r": { "env": [], "networkAttachments": [], "baremetalSetTemplate": null,
                          "preProvisioned": false, "nodeTemplate": { "extraMounts": [] } } },
        "nodes": { "n": { "node": { "ansibleVars": {}, "networks": [] } } },
    }));
    assert_eq!(world.settle(), ["apply Role r", "apply Node n", "status"]);
}

#[test]
fn what_is_not_ready_is_named_the_worst_first_and_roles_do_not_repeat_their_nodes() {
    let mut world = World::two().at_rest();
    world.all_ready();
    world.report(&node("n0"), ("False", "Deploying", "is on its way"));
    world.report(&node("n1"), ("False", "TaskFailed", "task x failed."));
    world.report(&role("compute"), ("False", "TaskFailed", "0/2 nodes are ready")).settle();
    let (_, reason, message) = world.condition("DeploymentReady");
    assert_eq!(reason, "TaskFailed");
    let expected = "0/1 roles and 0/2 nodes are ready. OpenStackDataPlaneNode n1: TaskFailed: task x \
                    failed. OpenStackDataPlaneNode n0: Deploying: is on its way";
    assert_eq!(message, expected);
    world.says("Stalled", "True", "TaskFailed", &[]);
    // A node of another owner names the role: only the role reports it.
    world.report(&node("n0"), ("True", "Ready", "fine"));
    world.report(&node("n1"), ("True", "Ready", "fine")).settle();
    world.says("Ready", "False", "TaskFailed", &["OpenStackDataPlaneRole compute: TaskFailed"]);
}

#[test]
fn at_most_five_are_named() {
    let nodes: serde_json::Map<String, Value> =
        (0..8).map(|n| (format!("n{n}"), json!({ "role": "r" }))).collect();
    let mut world = World::new(&json!({ "nodes": nodes })).at_rest();
    for n in 0..8 {
        let cause = if n % 2 == 0 { "even is broken." } else { "odd is broken." };
        world.report(&node(&format!("n{n}")), ("False", "TaskFailed", cause));
    }
    world.settle();
    let (_, _, message) = world.condition("Ready");
    let names = |list: [&str; 2]| list.map(|it| format!("OpenStackDataPlaneNode {it}")).join(", ");
    let even = format!("{}, OpenStackDataPlaneNode n4", names(["n0", "n2"]));
    let expected = format!(
        "0/0 roles and 0/8 nodes are ready. {even}: TaskFailed: even is broken. {}: TaskFailed: odd \
         is broken. And 3 more.",
        names(["n1", "n3"])
    );
    assert_eq!(message, expected);
    world.edit(|it| it["nodes"] = json!({})).settle();
    let (_, _, message) = world.condition("Orphaned");
    assert!(message.contains("n4, and 3 more."), "{message}");
}

#[test]
fn a_status_of_an_earlier_form_of_a_node_or_its_role_counts_for_nothing() {
    let mut world = World::two().at_rest();
    world.all_ready().settle();
    world.edit(|it| it["roles"]["compute"]["nodeTemplate"] = json!({ "ansibleUser": "a" }));
    world.settle();
    world.says("Ready", "False", "NotObserved", &["0/1 roles and 0/2 nodes"]);
    world.report(&role("compute"), ("True", "NodesReady", "fine")).settle();
    world.says("Ready", "False", "NotObserved", &["1/1 roles and 0/2 nodes"]);
    world.all_ready().settle();
    world.says("Ready", "True", "RolesAndNodesReady", &[]);
}

#[test]
fn a_key_taken_out_of_the_map_orphans_and_deletes_only_with_prune() {
    let mut world = World::two().at_rest();
    world.all_ready().settle();
    world.edit(|it| {
        it["nodes"].as_object_mut().unwrap().remove("n1");
    });
    assert_eq!(world.settle(), ["status"]);
    let words = ["1 no longer", "OpenStackDataPlaneNode n1", "spec.prune"];
    world.says("Orphaned", "True", "OrphansKept", &words);
    world.says("Ready", "True", "RolesAndNodesReady", &["1/1 nodes"]);
    assert_eq!(world.plane["status"]["orphans"], 1);
    world.edit(|it| it["prune"] = json!(true));
    // The status is written for the new generation, and once more when the node is gone.
    assert_eq!(world.settle(), ["delete Node n1", "status", "status"]);
    world.says("Orphaned", "False", "NoOrphans", &[]);
    assert!(world.objects.contains_key(&node("n0")));
}

#[test]
fn a_key_that_is_put_back_ends_the_orphanage() {
    let mut world = World::two().at_rest();
    let before = world.plane["spec"].clone();
    world.edit(|it| it["nodes"] = json!({})).settle();
    world.says("Orphaned", "True", "OrphansKept", &["2 no longer"]);
    assert_eq!(world.edit(|it| *it = before.clone()).settle(), ["status"]);
    world.says("Orphaned", "False", "NoOrphans", &[]);
}

#[test]
fn a_pruned_role_stays_for_as_long_as_nodes_follow_it() {
    let mut world = World::two().at_rest();
    world.add(node("foreign"), &json!({ "role": "compute" }));
    world.edit(|it| *it = json!({ "prune": true }));
    assert_eq!(world.settle(), ["delete Node n0", "delete Node n1", "status", "status"]);
    let words = ["OpenStackDataPlaneRole compute stays", "(1)"];
    world.says("Orphaned", "True", "Pruning", &words);
    world.objects.remove(&node("foreign"));
    assert_eq!(world.settle(), ["delete Role compute", "status", "status"]);
    assert!(world.objects.is_empty());
}

#[test]
fn nothing_of_others_is_ever_pruned() {
    let mut world = World::two();
    world.add(node("foreign"), &json!({ "role": "compute" }));
    world.add(role("other"), &json!({ "dataPlane": "plane" }));
    world.settle();
    world.edit(|it| *it = json!({ "prune": true })).settle();
    let left: Vec<&str> = world.objects.keys().map(|it| it.1.as_str()).collect();
    assert_eq!(left, ["foreign", "compute", "other"]);
}

#[test]
fn an_object_that_others_made_is_left_alone_until_they_hand_it_over() {
    let mut world = World::two();
    world.add(node("n1"), &json!({ "ansibleHost": "198.51.100.1" }));
    assert_eq!(world.settle(), ["apply Role compute", "apply Node n0", "status"]);
    let command = format!("kubectl annotate -n openstack openstackdataplanenode/n1 {ADOPT}=plane.");
    let words = ["OpenStackDataPlaneNode n1 was made by others", "out of spec.nodes", &command];
    world.says("SetupReady", "False", "NotOurs", &words);
    world.says("Stalled", "True", "NotOurs", &[]);
    let child = world.objects.get_mut(&node("n1")).unwrap();
    assert_eq!(child["spec"], json!({ "ansibleHost": "198.51.100.1" }));
    child["metadata"]["annotations"] = json!({ ADOPT: "another" });
    assert_eq!(world.settle(), [""; 0]);
    let child = world.objects.get_mut(&node("n1")).unwrap();
    child["metadata"]["annotations"] = json!({ ADOPT: "plane" });
    assert_eq!(world.settle(), ["apply Node n1", "status"]);
    assert_eq!(world.objects[&node("n1")]["spec"]["ansibleHost"], "192.0.2.11");
    world.says("SetupReady", "True", "Applied", &[]);
}

#[test]
fn an_object_of_another_owner_is_left_alone_even_if_it_is_annotated() {
    let mut world = World::two();
    world.add(node("n1"), &json!({}));
    let child = world.objects.get_mut(&node("n1")).unwrap();
    child["metadata"]["annotations"] = json!({ ADOPT: "plane" });
    child["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "dataplane.openstack.org/v1beta1", "kind": "OpenStackDataPlane",
        "name": "other", "uid": "other-1", "controller": true,
    }]);
    assert_eq!(world.settle(), ["apply Role compute", "apply Node n0", "status"]);
    world.says("SetupReady", "False", "NotOurs", &["n1 belongs to OpenStackDataPlane other"]);
}

#[test]
fn a_child_that_is_being_deleted_is_made_again_when_it_is_gone() {
    let mut world = World::two().at_rest();
    let child = world.objects.get_mut(&node("n0")).unwrap();
    child["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(world.settle(), ["status"]);
    world.says("SetupReady", "False", "Terminating", &["OpenStackDataPlaneNode n0."]);
    world.objects.remove(&node("n0"));
    assert_eq!(world.settle(), ["apply Node n0", "status"]);
    world.says("SetupReady", "True", "Applied", &[]);
}

#[test]
fn a_key_that_cannot_be_a_name_is_told_and_stops_no_other() {
    let mut world = World::new(&json!({ "nodes": { "N_0": {}, "n1": {} } }));
    assert_eq!(world.settle(), ["apply Node n1", "status"]);
    world.says("SetupReady", "False", "InvalidName", &["\"N_0\" of spec.nodes", "lower-case"]);
}

#[test]
fn nothing_is_written_while_the_data_plane_goes() {
    let mut world = World::two();
    world.plane["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(world.settle(), [""; 0]);
}

#[test]
fn fields_are_taken_over_only_of_an_object_that_was_seen() {
    let mut world = World::two();
    let forced = |world: &World| -> Vec<(bool, bool)> {
        let plan = world.decide();
        let flags = plan.independent.iter().map(|it| match &it.write {
            Write::Apply { object, force, .. } => (*force, object["metadata"]["uid"].is_string()),
            Write::Create { .. }
            | Write::Status { .. }
            | Write::Delete { .. }
            | Write::AddFinalizer { .. }
            | Write::RemoveFinalizer { .. } => panic!("{it:?}"),
        });
        flags.collect()
    };
    assert_eq!(forced(&world), [(false, false); 3]);
    world.settle();
    world.edit(|it| it["nodes"]["n0"]["hostName"] = json!("x"));
    assert_eq!(forced(&world), [(true, true)]);
}

#[test]
fn a_refusal_is_told_with_its_cause_and_does_not_flap() {
    let mut world = World::two().at_rest();
    world.edit(|it| it["nodes"]["n0"]["role"] = json!("other"));
    // Of two failures that are retried, Ready reports the first one.
    world.report(&node("n1"), ("False", "HostUnreachable", "x"));
    let object = world.objects.get_mut(&node("n1")).unwrap();
    object["status"]["conditions"][0]["severity"] = json!("Warning");
    let refusal =
        RejectedWrite::of(&world.decide().independent[0], &reasons::INVALID, "a policy says no");
    let plan = world.decide_after(Some(&refusal));
    let Write::Status { status, notices, .. } = &plan.steps[0].write else { panic!("{plan:?}") };
    assert!(notices.iter().any(|it| it.warning && it.reason == "Invalid"), "{notices:?}");
    world.plane["status"] = status.clone();
    let words = ["OpenStackDataPlaneNode n0 cannot be written: a policy says no"];
    world.says("WritesAccepted", "False", "Invalid", &words);
    world.says("DeploymentReady", "False", "HostUnreachable", &[]);
    world.says("Ready", "False", "Invalid", &words);
    // The next attempt writes only the entry, and another rejection writes nothing.
    assert_eq!(world.decide().steps, []);
    assert_eq!(world.decide_after(Some(&refusal)).steps, []);
    // Accepted at last, the condition goes.
    world.settle();
    let conditions = world.plane["status"]["conditions"].as_array().unwrap();
    assert!(conditions.iter().all(|it| it["type"] != "WritesAccepted"), "{conditions:?}");
}

#[test]
fn many_nodes_are_made_in_portions_and_then_looked_at_without_a_write() {
    let nodes: serde_json::Map<String, Value> =
        (0..1000).map(|n| (format!("n{n}"), json!({ "role": "r" }))).collect();
    let mut world = World::new(&json!({ "roles": { "r": {} }, "nodes": nodes }));
    world.pass();
    assert_eq!(world.writes.len(), 251);
    world.says("SetupReady", "False", "Applying", &["0/1001"]);
    assert_eq!(world.settle().iter().filter(|it| it.starts_with("apply")).count(), 1001);
    world.edit(|it| it["nodes"]["n77"]["ansibleHost"] = json!("192.0.2.1"));
    assert_eq!(world.settle(), ["apply Node n77", "status"]);
    assert_eq!(world.settle(), [""; 0]);
}
