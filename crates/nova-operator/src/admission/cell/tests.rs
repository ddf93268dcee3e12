//! Requests as the API server sends them, and the match conditions by which it decides to send one.

use api::dataplane::Node as NodeKind;
use kube::core::admission::AdmissionReview;
use kube::{Resource, ResourceExt};
use kube_cel::cel::{Context, Program, Value as CelValue, to_value};
use nova_config::annotations::{ALLOW_REMOVAL, CELL};
use operator_runtime::cache::WriteThrough;
use serde_json::{Value, json};

use super::*;

/// A node or role with these annotations and that role.
fn object(kind: &str, annotations: &Value, role: Option<&str>) -> Value {
    let mut object = json!({
        "apiVersion": "dataplane.openstack.org/v1beta1", "kind": kind,
        "metadata": { "name": "n0", "namespace": "ns", "uid": "u" },
        "spec": { "hostName": "n0" },
    });
    if !annotations.is_null() {
        object["metadata"]["annotations"] = annotations.clone();
    }
    if let Some(role) = role {
        object["spec"]["role"] = json!(role);
    }
    object
}

fn node_object(annotations: &Value, role: Option<&str>) -> Value {
    object("OpenStackDataPlaneNode", annotations, role)
}

fn request(old: &Value, new: &Value) -> Request {
    let kind = json!({
        "group": "dataplane.openstack.org", "version": "v1beta1", "kind": new["kind"],
    });
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u1", "kind": kind, "name": "n0", "namespace": "ns", "userInfo": {},
            "operation": if old.is_null() { "CREATE" } else { "UPDATE" },
            "resource": { "group": "dataplane.openstack.org", "version": "v1beta1", "resource": "x" },
            "object": new, "oldObject": old,
        },
    });
    let review: AdmissionReview<DynamicObject> = serde_json::from_value(review).unwrap();
    review.try_into().unwrap()
}

fn judge(known: &AdmissionCaches, old: &Value, new: &Value) -> AdmissionDecision {
    validate_cell(&request(old, new), known, node, faults_of_node)
}

/// Caches in which the node's compute has run in nova-cell1.
fn filled() -> SharedCaches {
    let watched = SharedCaches::default();
    watched.computes.absorb(&json!({
        "apiVersion": "nova.openstack.org/v1beta1", "kind": "NovaExternalCompute",
        "metadata": {
            "name": "n0", "namespace": "ns", "uid": "c",
            "ownerReferences": [{
                "apiVersion": NodeKind::api_version(&()), "kind": NodeKind::kind(&()),
                "name": "n0", "uid": "u", "controller": true,
            }],
        },
        "spec": { "dataplaneNodeName": "n0", "cellName": "nova-cell1" },
        "status": { "services": [{
            "name": "nova", "state": "Running", "hash": "h", "attempt": 1,
            "since": "2026-01-01T00:00:00Z",
        }] },
    }));
    assert_eq!(watched.computes.all()[0].name_any(), "n0");
    watched
}

#[test]
fn a_review_of_the_api_server_is_judged_by_the_caches() {
    let known = AdmissionCaches::default();
    known.lead(filled());
    let cell = |it: &str| node_object(&json!({ CELL: it }), None);
    let decision = judge(&known, &cell("nova-cell1"), &cell("nova-cell2"));
    assert!(!decision.allowed && !decision.is_temporary, "{decision:?}");
    assert!(decision.message.contains("NovaExternalCompute n0"), "{decision:?}");
    assert!(judge(&known, &cell("nova-cell2"), &cell("nova-cell1")).allowed);
}

#[test]
fn before_anything_was_read_a_change_is_put_off_and_what_is_new_is_judged_by_itself() {
    let known = AdmissionCaches::default();
    let cell = |it: &str| node_object(&json!({ CELL: it }), None);
    let decision = judge(&known, &cell("nova-cell1"), &cell("nova-cell2"));
    assert!(!decision.allowed && decision.is_temporary, "{decision:?}");
    assert!(judge(&known, &Value::Null, &cell("nova-cell1")).allowed);
    let decision = judge(&known, &Value::Null, &cell("nova-cell0"));
    assert!(!decision.allowed && !decision.is_temporary, "{decision:?}");
}

/// Evaluates a match condition like the API server; an error would reject the update.
fn holds(condition: &str, old: &Value, new: &Value) -> bool {
    let program = Program::compile(condition).unwrap();
    let mut context = Context::default();
    context.add_variable_from_value("object", to_value(new).unwrap());
    context.add_variable_from_value("oldObject", to_value(old).unwrap());
    let found = program.execute(&context).unwrap();
    let CelValue::Bool(holds) = found else { panic!("{condition} gives {found:?}") };
    holds
}

#[test]
fn the_api_server_asks_only_where_cell_or_role_change() {
    let nodes = [
        node_object(&Value::Null, None),
        node_object(&json!({ CELL: "" }), None),
        node_object(&json!({ CELL: "a" }), None),
        node_object(&json!({ CELL: "b" }), None),
        node_object(&json!({ CELL: "a" }), Some("r")),
        node_object(&json!({ CELL: "a" }), Some("s")),
    ];
    for (i, old) in nodes.iter().enumerate() {
        for (j, new) in nodes.iter().enumerate() {
            assert_eq!(holds(NODE_CHANGES, old, new), i != j, "{old} {new}");
            let is_other_cell =
                old["metadata"].get("annotations") != new["metadata"].get("annotations");
            assert_eq!(holds(ROLE_CHANGES, old, new), is_other_cell, "{old} {new}");
        }
    }
}

#[test]
fn all_other_changes_pass_without_a_question() {
    let old = node_object(&json!({ CELL: "a" }), Some("r"));
    let changes: [fn(&mut Value); 5] = [
        |it| it["metadata"]["annotations"][ALLOW_REMOVAL] = json!("true"),
        |it| it["metadata"]["labels"] = json!({ "a": "b" }),
        |it| it["metadata"]["finalizers"] = json!(["a/b"]),
        |it| it["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
        |it| it["spec"]["hostName"] = json!("other"),
    ];
    for change in changes {
        let mut new = old.clone();
        change(&mut new);
        assert!(!holds(NODE_CHANGES, &old, &new) && !holds(ROLE_CHANGES, &old, &new), "{new}");
    }
    // Neither annotations nor a spec: no request, and no error.
    let bare = json!({ "metadata": { "name": "n0" } });
    assert!(!holds(NODE_CHANGES, &bare, &bare) && !holds(ROLE_CHANGES, &bare, &bare));
}

#[test]
fn what_is_new_is_asked_about_only_with_a_cell() {
    let holds = |it: &Value| holds(HAS_CELL, &Value::Null, it);
    assert!(holds(&node_object(&json!({ CELL: "a" }), None)));
    assert!(!holds(&node_object(&json!({ "other": "a" }), None)));
    assert!(!holds(&node_object(&Value::Null, Some("r"))));
}

#[test]
fn the_conditions_speak_of_the_annotation() {
    for (condition, n_mentions) in [(NODE_CHANGES, 4), (ROLE_CHANGES, 4), (HAS_CELL, 1)] {
        assert_eq!(condition.matches(&format!("'{CELL}'")).count(), n_mentions, "{condition}");
    }
}
