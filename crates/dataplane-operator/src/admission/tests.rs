//! Tests: a review of the API server in, warnings out.

use kube::core::admission::AdmissionReview;
use operator_runtime::cache::WriteThrough;
use serde_json::{Value, json};

use super::*;

const OLD: &str = "2026-01-01T00:00:00Z";
const NEW: &str = "2026-01-02T00:00:00Z";

fn node(namespace: &str, name: &str, created: Option<&str>, spec: &Value) -> Value {
    json!({
        "apiVersion": "dataplane.openstack.org/v1beta1", "kind": "OpenStackDataPlaneNode",
        "metadata": { "name": name, "namespace": namespace, "creationTimestamp": created,
            "generation": 1 },
        "spec": spec,
    })
}

fn node_set(name: &str, created: Option<&str>, nodes: &Value) -> Value {
    json!({
        "apiVersion": "dataplane.openstack.org/v1beta1", "kind": "OpenStackDataPlaneNodeSet",
        "metadata": { "name": name, "namespace": "ns", "creationTimestamp": created },
        "spec": { "nodeTemplate": { "ansibleSSHPrivateKeySecret": "key" }, "nodes": nodes },
    })
}

fn at(address: &str) -> Value {
    json!({ "ansible": { "ansibleHost": address } })
}

/// Returns the warnings of the webhook of the object's kind.
fn judge(known: &AdmissionCaches, old: &Value, new: &Value) -> Vec<String> {
    let review: AdmissionReview<DynamicObject> = serde_json::from_value(json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u1", "name": new["metadata"]["name"], "namespace": "ns", "userInfo": {},
            "kind": { "group": "dataplane.openstack.org", "version": "v1beta1", "kind": new["kind"] },
            "operation": if old.is_null() { "CREATE" } else { "UPDATE" },
            "resource": { "group": "dataplane.openstack.org", "version": "v1beta1", "resource": "x" },
            "object": new, "oldObject": old,
        },
    }))
    .unwrap();
    let read = if new["kind"] == "OpenStackDataPlaneNode" { of_node } else { of_node_set };
    let decision = validate(&review.try_into().unwrap(), known, read);
    assert!(decision.allowed && decision.patches.is_empty(), "{decision:?}");
    decision.warnings
}

fn known(claim_caches: ClaimCaches) -> AdmissionCaches {
    let known = AdmissionCaches::default();
    known.lead(claim_caches);
    known
}

#[test]
fn a_host_of_an_older_object_is_warned_of_with_its_path_both_objects_and_the_way() {
    let claim_caches = ClaimCaches::default();
    let theirs = node_set("set", Some(OLD), &json!({ "a": at("192.0.2.1") }));
    claim_caches.node_sets.absorb(&theirs);
    let known = known(claim_caches);
    let same_address = node("ns", "n0", None, &json!({ "ansibleHost": "::ffff:192.0.2.1" }));
    let same_name = node("ns", "a", None, &json!({ "ansibleHost": "192.0.2.7" }));
    for (new, mark) in [(same_address, "address 192.0.2.1"), (same_name, "name a")] {
        let found = judge(&known, &Value::Null, &new);
        assert_eq!(found.len(), 1, "{found:?}");
        let words =
            ["spec: Host", "belongs to OpenStackDataPlaneNodeSet set", mark, "take it out of one"];
        assert!(words.iter().all(|it| found[0].contains(it)), "{found:?}");
    }
    let other = node("ns", "n0", None, &json!({ "ansibleHost": "192.0.2.2" }));
    assert_eq!(judge(&known, &Value::Null, &other), [""; 0]);
    let set = node_set("new", None, &json!({ "b": at("192.0.2.1"), "c": at("192.0.2.3") }));
    let found = judge(&known, &Value::Null, &set);
    assert!(found.len() == 1 && found[0].starts_with("spec.nodes[b]: Host b"), "{found:?}");
}

#[test]
fn an_update_is_warned_of_where_it_describes_another_host_than_before() {
    let claim_caches = ClaimCaches::default();
    claim_caches.nodes.absorb(&node("ns", "n0", Some(OLD), &json!({ "ansibleHost": "192.0.2.1" })));
    claim_caches.nodes.absorb(&node("ns", "n1", Some(NEW), &json!({ "ansibleHost": "192.0.2.2" })));
    let known = known(claim_caches);
    let of = |name, created, address: &str, user: &str| {
        let spec = json!({ "ansibleHost": address, "node": { "ansibleUser": user } });
        node("ns", name, Some(created), &spec)
    };
    let (n0, n1) = (of("n0", OLD, "192.0.2.1", "a"), of("n1", NEW, "192.0.2.2", "a"));
    assert_eq!(judge(&known, &n0, &of("n0", OLD, "192.0.2.1", "b")), [""; 0]);
    let found = judge(&known, &n1, &of("n1", NEW, "192.0.2.1", "a"));
    assert!(found.len() == 1 && found[0].contains("belongs to OpenStackDataPlaneNode n0"));
    let found = judge(&known, &n0, &of("n0", OLD, "192.0.2.2", "a"));
    let words = ["described by OpenStackDataPlaneNode n1 too, which is younger", "192.0.2.2"];
    assert!(found.len() == 1 && words.iter().all(|it| found[0].contains(it)), "{found:?}");
    // The object keeps a host that already belonged to another one: its condition reports that.
    let taken = of("n1", NEW, "192.0.2.1", "a");
    assert_eq!(judge(&known, &taken, &of("n1", NEW, "192.0.2.1", "b")), [""; 0]);
}

#[test]
fn across_namespaces_only_a_host_that_was_reached_is_warned_of_and_nobody_is_named() {
    let claim_caches = ClaimCaches::default();
    let mut theirs = node("theirs", "secret", Some(OLD), &json!({ "ansibleHost": "192.0.2.1" }));
    claim_caches.nodes.absorb(&theirs);
    let known = known(claim_caches.clone());
    let mine = node("ns", "n0", None, &json!({ "ansibleHost": "192.0.2.1" }));
    assert_eq!(judge(&known, &Value::Null, &mine), [""; 0]);
    theirs["metadata"]["resourceVersion"] = json!("2");
    theirs["status"] = json!({ "observedGeneration": 1, "address": "192.0.2.1:22", "services": [{
        "name": "s", "state": "Succeeded", "hash": "h", "attempt": 1, "deployedHash": "h",
        "since": OLD,
    }], "deployedInputs": {
        "ansibleHost": operator_core::hash::short(&json!("192.0.2.1")),
        "ansiblePort": operator_core::hash::short(&json!(22)),
        "service s": "h",
    } });
    claim_caches.nodes.absorb(&theirs);
    let found = judge(&known, &Value::Null, &mine);
    assert!(found.len() == 1 && found[0].contains("an object of another namespace"), "{found:?}");
    assert!(!found[0].contains("secret") && !found[0].contains("theirs"), "{found:?}");
}

#[test]
fn nothing_is_said_before_anything_is_known_and_no_more_than_a_terminal_shows() {
    let nodes: serde_json::Map<String, Value> =
        (1..=40).map(|it| (format!("n{it}"), at(&format!("192.0.2.{it}")))).collect();
    let nodes = Value::Object(nodes);
    let new = node_set("new", None, &nodes);
    assert_eq!(judge(&AdmissionCaches::default(), &Value::Null, &new), [""; 0]);
    let claim_caches = ClaimCaches::default();
    claim_caches.node_sets.absorb(&node_set("old", Some(OLD), &nodes));
    let found = judge(&known(claim_caches), &Value::Null, &new);
    assert_eq!(found.len(), WARNED + 1);
    assert!(found[WARNED].starts_with("32 more hosts"), "{found:?}");
    let n_chars: usize = found.iter().map(|it| it.chars().count()).sum();
    assert!(n_chars < 4_096, "{n_chars}");
}

#[test]
fn a_port_that_only_the_role_gives_counts_from_the_first_moment() {
    let claim_caches = ClaimCaches::default();
    claim_caches.roles.absorb(&json!({
        "apiVersion": "dataplane.openstack.org/v1beta1", "kind": "OpenStackDataPlaneRole",
        "metadata": { "name": "role", "namespace": "ns" },
        "spec": { "services": [], "nodeTemplate": { "ansibleVars": { "ansible_port": "2022" } } },
    }));
    let spec = json!({ "ansibleHost": "192.0.2.1", "role": "role" });
    claim_caches.nodes.absorb(&node("ns", "n0", Some(OLD), &spec));
    let known = known(claim_caches);
    let on = |port: i32| {
        let spec = json!({ "ansibleHost": "192.0.2.1", "node": { "ansiblePort": port } });
        judge(&known, &Value::Null, &node("ns", "n1", None, &spec)).len()
    };
    assert_eq!((on(22), on(2022)), (0, 1));
}
