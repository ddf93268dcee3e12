//! Which changes of nodes and roles are rejected, with given caches.

use operator_runtime::cache::WriteThrough;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

fn object(api: &str, kind: &str, name: &str, annotations: &Value, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("{api}.openstack.org/v1beta1"),
        "kind": kind,
        "metadata": {
            "name": name, "namespace": "ns", "uid": format!("uid-{name}"), "annotations": annotations,
        },
        "spec": spec,
    })
}

fn read<K: DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).unwrap()
}

/// The annotation, or none.
fn cell(cell: Option<&str>) -> Value {
    cell.map_or_else(|| json!({}), |it| json!({ CELL: it }))
}

fn role(name: &str, of_role: Option<&str>) -> Role {
    read(object("dataplane", "OpenStackDataPlaneRole", name, &cell(of_role), &json!({})))
}

fn node_of(name: &str, role: Option<&str>, annotations: &Value) -> Node {
    let spec = json!({ "role": role });
    read(object("dataplane", "OpenStackDataPlaneNode", name, annotations, &spec))
}

fn node(of_node: Option<&str>) -> Node {
    node_of("n0", Some("compute"), &cell(of_node))
}

/// The compute of a node in nova-cell1; it has run.
fn compute(name: &str) -> Value {
    let spec = json!({ "dataplaneNodeName": name, "cellName": "nova-cell1" });
    let mut compute = object("nova", "NovaExternalCompute", name, &json!({}), &spec);
    compute["metadata"]["uid"] = json!(format!("uid-compute-{name}"));
    compute["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "dataplane.openstack.org/v1beta1", "kind": "OpenStackDataPlaneNode",
        "name": name, "uid": format!("uid-{name}"), "controller": true,
    }]);
    compute["status"] = json!({ "services": [{
        "name": "libvirt", "state": "Pending", "hash": "h", "attempt": 1,
        "since": "2026-01-01T00:00:00Z",
    }] });
    compute
}

/// One role with that annotation, and nodes with theirs, each with a compute that has run.
fn world(of_role: Option<&str>, of_nodes: &[Option<&str>]) -> SharedCaches {
    let world = SharedCaches::default();
    world.roles.absorb(&serde_json::to_value(role("compute", of_role)).unwrap());
    for (i, of_node) in of_nodes.iter().enumerate() {
        let name = format!("n{i}");
        let node = node_of(&name, Some("compute"), &cell(*of_node));
        world.nodes.absorb(&serde_json::to_value(node).unwrap());
        world.computes.absorb(&compute(&name));
    }
    world
}

/// The rejection of a change of node n0; empty when it is accepted.
fn of_node(old: &Node, new: &Node, world: &SharedCaches) -> String {
    rejection(&faults_of_node(Some(old), new, world))
}

fn of_role(old: Option<&str>, new: Option<&str>, world: &SharedCaches) -> String {
    rejection(&faults_of_role(Some(&role("compute", old)), &role("compute", new), world))
}

/// Caches in which the compute of n0 is as `change` makes it.
fn with(change: impl FnOnce(&mut Value)) -> SharedCaches {
    let mut changed = compute("n0");
    change(&mut changed);
    let world = world(None, &[]);
    world.computes.absorb(&changed);
    world
}

const ONE: Option<&str> = Some("nova-cell1");
const TWO: Option<&str> = Some("nova-cell2");

#[test]
fn a_node_that_asks_for_another_cell_is_refused_with_compute_both_cells_and_the_way() {
    let refused = of_node(&node(ONE), &node(TWO), &world(None, &[ONE]));
    let way = "kubectl annotate --overwrite -n ns openstackdataplanenode/n0 \
               nova.openstack.org/allow-removal=true nova.openstack.org/cell=";
    for words in ["NovaExternalCompute n0", "cell nova-cell1", "nova-cell2", way] {
        assert!(refused.contains(words), "{words}: {refused}");
    }
}

#[test]
fn a_node_is_refused_only_where_its_effective_cell_leaves_that_of_its_compute() {
    let cases = [
        // Role's annotation, the node's before, the node's after, whether it is rejected.
        (None, ONE, TWO, true),
        (None, ONE, None, true),
        (None, ONE, Some(""), true),
        (ONE, None, Some(""), true),
        (TWO, ONE, None, true),
        (ONE, ONE, None, false),
        (ONE, None, ONE, false),
        (None, ONE, Some(" nova-cell1 "), false),
    ];
    for (of_role, before, after, is_refused) in cases {
        let refused = of_node(&node(before), &node(after), &world(of_role, &[before]));
        assert_eq!(!refused.is_empty(), is_refused, "{of_role:?} {before:?} {after:?}: {refused}");
    }
}

#[test]
fn a_cell_may_be_taken_away_only_with_permission_and_never_be_exchanged_with_it() {
    let world = world(None, &[ONE]);
    let allowing = |cell: Value, allows: &str| {
        let mut annotations = cell;
        annotations[ALLOW_REMOVAL] = json!(allows);
        node_of("n0", Some("compute"), &annotations)
    };
    let refused = of_node(&node(ONE), &node(None), &world);
    assert!(refused.contains("nova.openstack.org/allow-removal=true"), "{refused}");
    assert_eq!(of_node(&node(ONE), &allowing(json!({}), "true"), &world), "");
    assert_eq!(of_node(&node(ONE), &allowing(json!({ CELL: "" }), "true"), &world), "");
    assert_ne!(of_node(&node(ONE), &allowing(json!({}), "yes"), &world), "");
    assert_ne!(of_node(&node(ONE), &allowing(json!({ CELL: "nova-cell2" }), "true"), &world), "");
}

#[test]
fn a_node_that_changes_its_role_is_judged_by_the_new_roles_cell() {
    let world = world(ONE, &[None]);
    for (name, of_role) in [("same", ONE), ("other", TWO), ("none", None)] {
        world.roles.absorb(&serde_json::to_value(role(name, of_role)).unwrap());
    }
    let of = |role: Option<&str>, annotations: &Value| node_of("n0", role, annotations);
    let old = node(None);
    for (role, words) in [
        (Some("same"), ""),
        (Some("other"), "nova cannot move it to nova-cell2"),
        (Some("none"), "its node would have none"),
        (None, "its node would have none"),
        (Some("typo"), "Create OpenStackDataPlaneRole typo first"),
    ] {
        let refused = of_node(&old, &of(role, &json!({})), &world);
        assert_eq!(refused.is_empty(), words.is_empty(), "{role:?}: {refused}");
        assert!(refused.contains(words), "{role:?}: {refused}");
    }
    // Its own annotation takes precedence over its role's.
    let own = |role| of(role, &json!({ CELL: "nova-cell1" }));
    for role in [Some("other"), Some("typo"), None] {
        assert_eq!(of_node(&own(Some("compute")), &own(role), &world), "");
    }
}

#[test]
fn a_role_answers_for_all_its_nodes_but_those_that_say_their_own() {
    let two = world(ONE, &[None, ONE, None]);
    let refused = of_role(ONE, TWO, &two);
    for (name, is_named) in [("n0", true), ("n1", false), ("n2", true)] {
        let says = refused.contains(&format!("NovaExternalCompute {name} has run"));
        assert_eq!(says, is_named, "{name}: {refused}");
    }
    assert_ne!(of_role(ONE, None, &two), "");
    assert_ne!(of_role(ONE, Some(""), &two), "");
    assert_eq!(of_role(None, ONE, &two), "");
    assert_eq!(of_role(ONE, TWO, &world(ONE, &[ONE, Some("")])), "");
    assert_eq!(of_role(ONE, TWO, &world(ONE, &[])), "");
}

#[test]
fn a_refusal_names_five_computes_and_counts_the_others() {
    let refused = of_role(ONE, TWO, &world(ONE, &[None; 8]));
    assert_eq!(refused.matches("has run in cell").count(), 5, "{refused}");
    assert!(refused.contains("So it is with 3 more."), "{refused}");
    let refused = of_role(ONE, TWO, &world(ONE, &[None; 5]));
    assert!(!refused.contains("more."), "{refused}");
}

#[test]
fn a_role_without_a_cell_leaves_nodes_that_allow_it() {
    let world = world(ONE, &[]);
    let allowing = node_of("n0", Some("compute"), &json!({ ALLOW_REMOVAL: "true" }));
    world.nodes.absorb(&serde_json::to_value(allowing).unwrap());
    world.computes.absorb(&compute("n0"));
    assert_eq!(of_role(ONE, None, &world), "");
    assert_ne!(of_role(ONE, TWO, &world), "");
}

#[test]
fn what_has_never_run_hinders_no_change() {
    let never = |it: &mut Value| it["status"] = json!({});
    assert_eq!(of_node(&node(ONE), &node(TWO), &with(never)), "");
    // The node's controller reports what would be lost.
    let configured = |it: &mut Value| {
        never(it);
        it["spec"]["customServiceConfig"] = json!("[libvirt]");
    };
    assert_eq!(of_node(&node(ONE), &node(TWO), &with(configured)), "");
    // A run exists, although no status records it.
    let world = with(never);
    let mut run = object("ansibleee", "OpenStackAnsibleEE", "run", &json!({}), &json!({}));
    run["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "nova.openstack.org/v1beta1", "kind": "NovaExternalCompute", "name": "n0",
        "uid": "uid-compute-n0", "controller": true,
    }]);
    world.runs.absorb(&run);
    assert_eq!(world.runs.all().len(), 1);
    assert_ne!(of_node(&node(ONE), &node(TWO), &world), "");
}

#[test]
fn a_compute_that_goes_or_belongs_to_others_hinders_no_change() {
    let changes: [fn(&mut Value); 4] = [
        |it| it["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
        // The node was recreated under its name.
        |it| it["metadata"]["ownerReferences"][0]["uid"] = json!("uid-earlier"),
        |it| it["metadata"]["ownerReferences"] = json!([]),
        |it| it["metadata"]["name"] = json!("another"),
    ];
    for change in changes {
        assert_eq!(of_node(&node(ONE), &node(TWO), &with(change)), "");
    }
    assert_ne!(of_node(&node(ONE), &node(TWO), &with(|_| {})), "");
    let mut going = node(TWO);
    going.metadata.deletion_timestamp = node_time();
    assert_eq!(of_node(&node(ONE), &going, &with(|_| {})), "");
}

fn node_time() -> Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time> {
    serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap()
}

#[test]
fn cell0_is_refused_for_everyone_and_only_when_it_is_new() {
    let zero = Some("nova-cell0");
    let empty = SharedCaches::default();
    for refused in [
        of_node(&node(None), &node(zero), &empty),
        of_role(None, zero, &empty),
        rejection(&faults_of_node(None, &node(zero), &empty)),
        rejection(&faults_of_role(None, &role("compute", zero), &empty)),
    ] {
        assert!(refused.contains("cell0 holds instances"), "{refused}");
    }
    assert_ne!(of_node(&node(None), &node(Some("Nova Cell")), &empty), "");
    assert_eq!(of_node(&node(zero), &node(zero), &empty), "");
    assert_eq!(of_node(&node(zero), &node(None), &empty), "");
}

#[test]
fn a_cell_that_does_not_exist_is_accepted_and_so_is_whatever_is_new() {
    let world = world(TWO, &[None]);
    let nowhere = Some("nova-cell9");
    assert_eq!(of_node(&node(None), &node(nowhere), &SharedCaches::default()), "");
    assert_eq!(faults_of_node(None, &node(nowhere), &world), []);
    // A restored role is not a change of a role; its nodes report another cell.
    assert_eq!(faults_of_role(None, &role("compute", TWO), &world), []);
}

#[test]
fn what_slipped_past_hinders_no_other_change_and_its_repair_passes() {
    let slipped = world(None, &[TWO]);
    let mut other = node_of("n0", Some("other"), &cell(TWO));
    assert_eq!(of_node(&node(TWO), &other, &slipped), "");
    assert_eq!(of_node(&node(TWO), &node(ONE), &slipped), "");
    other.annotations_mut().insert(CELL.into(), "nova-cell3".into());
    assert_ne!(of_node(&node(TWO), &other, &slipped), "");
}

#[test]
fn a_compute_that_a_service_deploys_hinders_no_annotation() {
    let observed = |it: &mut Value| it["spec"]["management"] = json!("Observed");
    for (before, after) in [(ONE, TWO), (ONE, None), (None, TWO)] {
        assert_eq!(of_node(&node(before), &node(after), &with(observed)), "");
    }
    assert_ne!(of_node(&node(None), &node(Some("nova-cell0")), &with(observed)), "");
}

#[test]
fn a_node_of_a_node_set_is_judged_by_the_cell_that_it_inherits_there() {
    let world = with(|_| {});
    let set = json!({ "nodeTemplate": { "ansibleSSHPrivateKeySecret": "key" }, "nodes": {} });
    world.node_sets.absorb(&object(
        "dataplane",
        "OpenStackDataPlaneNodeSet",
        "edpm",
        &cell(ONE),
        &set,
    ));
    let of_set = |of_node: Option<&str>| -> Node {
        let spec = json!({ "nodeSet": "edpm" });
        read(object("dataplane", "OpenStackDataPlaneNode", "n0", &cell(of_node), &spec))
    };
    assert_eq!(of_node(&of_set(None), &of_set(ONE), &world), "");
    assert_ne!(of_node(&of_set(None), &of_set(TWO), &world), "");
    assert_ne!(of_node(&of_set(None), &of_set(Some("")), &world), "");
}
