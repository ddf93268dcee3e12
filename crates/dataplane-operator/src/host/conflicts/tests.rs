//! Tests: which of several objects owns a host.

use std::sync::Arc;

use api::dataplane::{Node, Role};
use operator_core::object_key::Key;
use operator_runtime::cache::WriteThrough;
use serde_json::{Value, json};
use testkit::objects::named;

use super::*;
use crate::annotations::{ACCEPT_SHARED, NETWORK_SCOPE};
use crate::host::conflicts::host_claim::HostClaim;

mod claim_index;

fn claim(name: &str, created: &str, hosts: &Value) -> Claim {
    let spec = json!({ "nodeTemplate": { "ansibleSSHPrivateKeySecret": "key" }, "nodes": hosts });
    let metadata = json!({ "creationTimestamp": created });
    Claim::of_node_set(&named("ns", name, json!({ "metadata": metadata, "spec": spec })))
}

fn node(name: &str, created: &str, spec: &Value) -> Claim {
    let metadata = json!({ "creationTimestamp": created });
    Claim::of_node(&named("ns", name, json!({ "metadata": metadata, "spec": spec })), None)
}

fn at(address: &str) -> Value {
    json!({ "ansible": { "ansibleHost": address } })
}

const OLD: &str = "2026-01-01T00:00:00Z";
const NEW: &str = "2026-01-02T00:00:00Z";

#[test]
fn the_older_object_has_the_host_whatever_its_kind() {
    let set = |created| claim("set", created, &json!({ "a": at("192.0.2.1") }));
    let same_name = json!({ "ansibleHost": "192.0.2.9" });
    let same_address = json!({ "ansibleHost": "192.0.2.1" });
    for (name, spec, mark) in [
        ("a", same_name, "name a"),
        ("b", same_address, "address 192.0.2.1"),
        ("b", json!({ "hostName": "A" }), "name a"),
    ] {
        let (old, new) = (node(name, OLD, &spec), node(name, NEW, &spec));
        let taken = set(NEW).taken(&ClaimIndex::of(std::slice::from_ref(&old)));
        assert_eq!((taken.len(), taken[0].mark.as_str()), (1, mark));
        assert_eq!(taken[0].owner, Some(format!("OpenStackDataPlaneNode {name}")));
        assert_eq!(set(OLD).taken(&ClaimIndex::of(std::slice::from_ref(&new))), []);
        assert_eq!(old.taken(&ClaimIndex::of(&[set(NEW)])), []);
        let text = new.taken(&ClaimIndex::of(&[set(OLD)]))[0].message("OpenStackDataPlaneNode b");
        assert!(text.contains("belongs to OpenStackDataPlaneNodeSet set"), "{text}");
    }
}

#[test]
fn of_two_objects_of_one_age_the_name_decides_and_hosts_that_differ_are_nobodys_business() {
    let hosts = json!({ "a": at("192.0.2.1") });
    let (one, two) = (claim("one", OLD, &hosts), claim("two", OLD, &hosts));
    assert_eq!(one.taken(&ClaimIndex::of(std::slice::from_ref(&two))), []);
    assert_eq!(two.taken(&ClaimIndex::of(&[one])).len(), 1);
    let other = claim("zero", OLD, &json!({ "b": at("192.0.2.2") }));
    assert_eq!(two.taken(&ClaimIndex::of(&[other])), []);
}

#[test]
fn a_host_that_stands_twice_in_one_node_set_is_found() {
    let nodes = json!({ "a": at("192.0.2.1"), "b": at("192.0.2.1"), "c": at("192.0.2.3") });
    let found = claim("set", OLD, &nodes);
    assert_eq!(found.twice(), [("spec.nodes[b]", "spec.nodes[a]", "address 192.0.2.1".to_owned())]);
    let mut renamed = json!({ "a": at("192.0.2.1"), "c": at("192.0.2.3") });
    renamed["c"]["hostName"] = json!("a.example.org");
    let found = claim("set", OLD, &renamed);
    assert_eq!(found.twice(), [("spec.nodes[c]", "spec.nodes[a]", "name a".to_owned())]);
}

#[test]
fn two_nodes_at_one_address_are_one_host_however_it_is_spelled_and_two_ports_are_two() {
    for (one, other, is_one) in [
        (json!({ "ansibleHost": "192.0.2.1" }), json!({ "ansibleHost": "192.0.2.1" }), true),
        (
            json!({ "ansibleHost": "N0.Example.org" }),
            json!({ "ansibleHost": "n0.example.org." }),
            true,
        ),
        (json!({ "ansibleHost": "2001:db8::1" }), json!({ "ansibleHost": "2001:DB8:0::1" }), true),
        (
            json!({ "ansibleHost": "192.0.2.1" }),
            json!({ "node": { "ansibleVars": { "ansible_host": "::ffff:192.0.2.1" } } }),
            true,
        ),
        (
            json!({ "ansibleHost": "192.0.2.1" }),
            json!({ "ansibleHost": "192.0.2.1", "node": { "ansiblePort": 2022 } }),
            false,
        ),
    ] {
        let (old, new) = (node("a", OLD, &one), node("b", NEW, &other));
        let taken = new.taken(&ClaimIndex::of(std::slice::from_ref(&old)));
        assert_eq!(taken.len(), usize::from(is_one), "{one} {other}");
        assert_eq!(old.taken(&ClaimIndex::of(std::slice::from_ref(&new))), []);
    }
}

#[test]
fn across_namespaces_only_a_host_that_was_reached_is_taken_and_nothing_is_told_of_its_owner() {
    let at = |namespace: &str, created: &str, is_reached: bool| {
        in_network(&format!("of-{namespace}"), namespace, created, "", is_reached)
    };
    let taken = |mine: &Claim, other: Claim| mine.taken(&ClaimIndex::of(&[other])).len();
    let new = at("mine", NEW, false);
    assert_eq!(taken(&new, at("theirs", OLD, false)), 0, "naming an address takes nothing");
    assert_eq!(taken(&at("mine", OLD, false), at("theirs", NEW, true)), 1);
    for created in [OLD, NEW] {
        assert_eq!(taken(&at("mine", created, true), at("theirs", OLD, true)), 0);
    }
    let text = new.taken(&ClaimIndex::of(&[at("theirs", OLD, true)]))[0]
        .message("OpenStackDataPlaneNode mine");
    assert!(text.contains("address 192.0.2.1"), "{text}");
    assert!(!text.contains("theirs"), "{text}");
}

#[test]
fn a_claim_is_found_by_each_of_its_marks() {
    let mut nodes = json!({ "a": at("192.0.2.1") });
    nodes["a"]["hostName"] = json!("A.example.org");
    let keys = claim("set", OLD, &nodes).keys();
    let expected = [("", "address 192.0.2.1"), ("ns", "name a"), ("ns", "name a.example.org")];
    assert_eq!(keys, expected.map(|(namespace, it)| Key::new(namespace, it)));
}

#[test]
fn an_address_in_another_network_is_another_machine_and_a_name_is_not() {
    let of = in_network;
    for (scope, n_taken) in [("", 1), (" ", 1), ("rack-1", 0)] {
        let new = of("new", "ns", NEW, scope, false);
        let taken = new.taken(&ClaimIndex::of(&[of("old", "ns", OLD, "", true)]));
        assert_eq!(taken.len(), n_taken, "{scope:?}");
        let taken = new.taken(&ClaimIndex::of(&[of("old", "theirs", OLD, "", true)]));
        assert_eq!(taken.len(), n_taken, "{scope:?} across namespaces");
        let text = taken.first().map(|it| it.message("OpenStackDataPlaneNode new"));
        let way = "annotate dataplane.openstack.org/network-scope with a word";
        assert!(text.is_none_or(|it| it.contains(way)));
    }
    let new = of("same", "ns", NEW, "rack-1", false);
    let taken = new.taken(&ClaimIndex::of(&[of("same", "ns", OLD, "", true)]));
    // Two kinds may have one name.
    assert_eq!(taken, [], "it is the object itself");
    let set = claim("set", NEW, &json!({ "old": at("192.0.2.9") }));
    assert_eq!(
        set.taken(&ClaimIndex::of(&[of("old", "ns", OLD, "rack-1", true)]))[0].mark,
        "name old"
    );
    assert_eq!(new.taken(&ClaimIndex::of(&[of("other", "ns", OLD, "rack-1", false)])).len(), 1);
}

#[test]
fn a_host_is_reached_at_the_address_of_its_deployment_and_at_no_other() {
    // The reported address, at which another service than the deployed one fails now.
    let is_reached = |address: &str, told: &str, deployed: Value| {
        let service =
            json!({ "name": "t", "state": "Failed", "hash": "h", "attempt": 1, "since": OLD });
        let node = json!({
            "metadata": { "generation": 2 },
            "spec": { "ansibleHost": address },
            "status": { "observedGeneration": 2, "address": told, "services": [service],
                "deployedInputs": deployed },
        });
        has_reached(&named("ns", "n", node), told)
    };
    let at = inputs_at;
    assert!(is_reached("192.0.2.1", "192.0.2.1:22", at("192.0.2.1")));
    assert!(!is_reached("192.0.2.2", "192.0.2.2:22", at("192.0.2.1")), "it was moved");
    assert!(!is_reached("192.0.2.1", "192.0.2.1:2022", at("192.0.2.1")), "another port");
    assert!(!is_reached("192.0.2.1", "192.0.2.1:22", json!({})), "not all services yet");
    let mut without = inputs_at("192.0.2.1");
    without.as_object_mut().unwrap().retain(|it, _| !it.starts_with("service"));
    assert!(!is_reached("192.0.2.1", "192.0.2.1:22", without), "nothing was run");
}

/// A node at 192.0.2.1 in a network, and whether runs have reached it.
fn in_network(name: &str, namespace: &str, created: &str, scope: &str, is_reached: bool) -> Claim {
    let services = json!([{ "name": "s", "state": "Succeeded", "hash": "h", "attempt": 1,
        "deployedHash": "h", "since": OLD }]);
    let status = json!({ "services": services, "address": "192.0.2.1:22",
        "deployedInputs": inputs_at("192.0.2.1") });
    let node = json!({
        "metadata": { "creationTimestamp": created, "annotations": { NETWORK_SCOPE: scope } },
        "spec": { "ansibleHost": "192.0.2.1" },
        "status": if is_reached { status } else { json!({}) },
    });
    Claim::of_node(&named(namespace, name, node), None)
}

/// The recorded inputs of a deployment at that address.
fn inputs_at(host: &str) -> Value {
    let digest = |it: &Value| operator_core::hash::short(it);
    json!({
        "ansibleHost": digest(&json!(host)), "ansiblePort": digest(&json!(22)), "service s": "h",
    })
}

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIWOnjFtgHBGBoLBE0E8K1SBXAJAwqFXKF1sTvZlPo8+";

fn with_keys(claim: Claim) -> Claim {
    claim.showing(|_| operator_core::run_engine::host_key::HostKey::parse(KEY))
}

#[test]
fn a_shared_key_is_told_of_the_younger_object_of_the_namespace_and_of_the_later_host_of_one() {
    let set = |name, created| with_keys(claim(name, created, &json!({ "a": at("192.0.2.1") })));
    let other = |created| with_keys(node("n", created, &json!({ "ansibleHost": "192.0.2.2" })));
    let found = set("set", NEW).shared_keys(&ClaimIndex::of(&[other(OLD)]));
    assert_eq!((found.len(), found[0].host.as_str()), (1, "a"));
    assert_eq!(found[0].other, "host n of OpenStackDataPlaneNode n");
    assert_eq!(set("set", OLD).shared_keys(&ClaimIndex::of(&[other(NEW)])), []);
    let same = with_keys(node("n", OLD, &json!({ "ansibleHost": "192.0.2.1" })));
    assert_eq!(
        set("set", NEW).shared_keys(&ClaimIndex::of(&[same])),
        [],
        "it is told as HostTaken"
    );
    let mut theirs = other(OLD);
    theirs.namespace = "theirs".into();
    assert_eq!(set("set", NEW).shared_keys(&ClaimIndex::of(&[theirs])), []);
    let hosts = json!({ "a": at("192.0.2.1"), "b": at("192.0.2.2"), "c": at("192.0.2.3") });
    let image = with_keys(claim("image", OLD, &hosts));
    let found = image.shared_keys(&ClaimIndex::of(&[]));
    assert_eq!(found.iter().map(|it| it.host.as_str()).collect::<Vec<_>>(), ["b", "c"]);
    let text = image.shared_keys_text(&found).unwrap();
    assert!(text.contains("image: b, c shows") && text.contains("host a of"), "{text}");
    let command = format!(
        "kubectl annotate --overwrite -n ns openstackdataplanenode/b openstackdataplanenode/c \
         {ACCEPT_SHARED}={}",
        found[0].fingerprint
    );
    assert!(text.ends_with(&command), "{text}");
    let accepting = node_of_set("b", ACCEPT_SHARED, &found[0].fingerprint);
    let left = image.with_nodes([&accepting]).shared_keys(&ClaimIndex::of(&[]));
    assert_eq!(left.iter().map(|it| it.host.as_str()).collect::<Vec<_>>(), ["c"]);
}

/// The node of a host of a node set, with an annotation.
fn node_of_set(name: &str, annotation: &str, value: &str) -> Arc<Node> {
    let metadata = json!({ "annotations": { annotation: value } });
    let spec = json!({ "nodeSet": "set" });
    Arc::new(named("ns", name, json!({ "metadata": metadata, "spec": spec })))
}

#[test]
fn a_host_that_leaves_a_node_set_is_found_by_the_address_and_the_key_of_its_node() {
    let caches = ClaimCaches::default();
    caches.node_sets.absorb(&json!({
        "apiVersion": "dataplane.openstack.org/v1beta1", "kind": "OpenStackDataPlaneNodeSet",
        "metadata": { "name": "set", "namespace": "ns", "creationTimestamp": OLD },
        "spec": { "nodeTemplate": { "ansibleSSHPrivateKeySecret": "key" }, "nodes": {} },
    }));
    caches.nodes.absorb(&json!({
        "apiVersion": "dataplane.openstack.org/v1beta1", "kind": "OpenStackDataPlaneNode",
        "metadata": { "name": "a", "namespace": "ns", "creationTimestamp": OLD },
        "spec": { "nodeSet": "set", "leaving": true },
        "status": { "address": "192.0.2.1:22", "deployedAddress": "192.0.2.1:22", "hostKey": KEY },
    }));
    let new = node("b", NEW, &json!({ "ansibleHost": "192.0.2.1" }));
    let found = caches.overlapping(std::slice::from_ref(&new), []);
    let text = new.taken(&ClaimIndex::of(&found))[0].message("OpenStackDataPlaneNode b");
    assert!(text.contains("was taken out of OpenStackDataPlaneNodeSet set"), "{text}");
    let mut theirs = new.clone();
    theirs.namespace = "theirs".into();
    assert_eq!(theirs.taken(&ClaimIndex::of(&found)).len(), 1, "its runs have reached the host");
    let key = operator_core::run_engine::host_key::HostKey::parse(KEY).unwrap();
    assert_eq!(caches.overlapping(&[], [key_of("ns", &key)]), found);
}

#[test]
fn the_network_scope_of_a_node_wins_over_that_of_its_role_or_node_set() {
    let scoped = json!({
        "metadata": { "creationTimestamp": OLD, "annotations": { NETWORK_SCOPE: "rack-1" } },
        "spec": {
            "nodeTemplate": { "ansibleSSHPrivateKeySecret": "key" },
            "nodes": { "a": at("192.0.2.1"), "b": at("192.0.2.2") },
        },
    });
    let other = |address: &str| node("n", NEW, &json!({ "ansibleHost": address }));
    let own = node_of_set("b", NETWORK_SCOPE, "");
    let claim = Claim::of_node_set(&named("ns", "group", scoped.clone())).with_nodes([&own]);
    assert_eq!(
        other("192.0.2.1").taken(&ClaimIndex::of(std::slice::from_ref(&claim))),
        [],
        "the node set's scope"
    );
    assert_eq!(
        other("192.0.2.2").taken(&ClaimIndex::of(std::slice::from_ref(&claim))).len(),
        1,
        "its node's own"
    );
    let role: Role = named("ns", "group", scoped);
    for (annotations, n_taken) in [(json!({}), 0), (json!({ NETWORK_SCOPE: "" }), 1)] {
        let old = json!({
            "metadata": { "creationTimestamp": OLD, "annotations": annotations },
            "spec": { "role": "group", "ansibleHost": "192.0.2.1" },
        });
        let old = Claim::of_node(&named("ns", "old", old), Some(&role));
        let taken = other("192.0.2.1").taken(&ClaimIndex::of(&[old]));
        assert_eq!(taken.len(), n_taken, "{annotations}");
    }
}

#[test]
fn who_shows_a_key_is_found_by_it() {
    let found = with_keys(node("n", OLD, &json!({}))).keys();
    assert!(found.contains(&Key::new("ns", format!("key {KEY}"))), "{found:?}");
}
