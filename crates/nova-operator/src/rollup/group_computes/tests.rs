//! The conditions on a role or node set: which computes it counts, when they are written, and when they
//! are absent.

use std::sync::Arc;

use api::conditions::{Condition, ConditionStatus, READY, find, merge_conditions};
use jiff::Timestamp;
use nova_config::annotations::DRAIN;
use nova_config::conditions::{ANNOTATIONS_IGNORED, HOSTS_COMPUTES_UP};
use operator_core::condition_catalog::undeclared;
use operator_core::object_key::Key;
use operator_core::plan::Write;
use operator_runtime::cache::WriteThrough as _;
use serde_json::{Value, json};
use testkit::conditions::stated;
use testkit::golden::recorded;

use super::observe::observe;
use super::{Observed, decide};
use crate::compute_status::computes_up::ComputeState;
use crate::condition_catalog::KINDS;
use crate::group::{Group, GroupKey};
use crate::reasons;
use crate::shared_caches::SharedCaches;

const NODE_SET: &str = "OpenStackDataPlaneNodeSet";
const ROLE: &str = "OpenStackDataPlaneRole";

fn object(group: &str, kind: &str, name: &str, spec: &Value, status: &Value) -> Value {
    json!({
        "apiVersion": format!("{group}.openstack.org/v1beta1"),
        "kind": kind,
        "metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "1"},
        "spec": spec,
        "status": status,
    })
}

/// Adds a node with that spec and a compute whose `ServiceUp` has that status.
fn add(caches: &SharedCaches, name: &str, node: &Value, service_up: &str) {
    caches.nodes.absorb(&object("dataplane", "OpenStackDataPlaneNode", name, node, &json!({})));
    let spec = json!({"dataplaneNodeName": name, "cellName": "cell1"});
    let status = json!({"conditions": [stated("ServiceUp", service_up, "x", "x")]});
    caches.computes.absorb(&object("nova", "NovaExternalCompute", name, &spec, &status));
}

fn node_set(name: &str, annotations: &Value) -> Value {
    let spec = json!({"nodes": {}, "nodeTemplate": {"ansibleSSHPrivateKeySecret": "ssh"}});
    let mut set = object("dataplane", NODE_SET, name, &spec, &json!({}));
    set["metadata"]["annotations"] = annotations.clone();
    set
}

/// A role and a node set of one name, and an empty role.
fn world() -> SharedCaches {
    let caches = SharedCaches::default();
    for name in ["edpm", "empty"] {
        caches.roles.absorb(&object("dataplane", ROLE, name, &json!({}), &json!({})));
    }
    caches.node_sets.absorb(&node_set("edpm", &json!({})));
    caches
}

fn role(name: &str) -> GroupKey {
    GroupKey::Role(Key::new("ns", name))
}

fn set() -> GroupKey {
    GroupKey::NodeSet(Key::new("ns", "edpm"))
}

/// One reconciliation: the conditions that are written.
fn pass(seen: &mut Observed) -> Option<Value> {
    let plan = recorded(decide(seen, None, Timestamp::UNIX_EPOCH));
    assert!(plan.steps.len() < 2, "{plan:?}");
    let step = plan.steps.into_iter().next()?;
    let Write::Status { status, .. } = step.write else { panic!("no status") };
    assert_eq!(undeclared(KINDS, &step.target.kind.kind, &status), [""; 0]);
    let written = serde_json::from_value(status["conditions"].clone()).unwrap();
    set_conditions(&mut seen.group, written);
    Some(status)
}

fn set_conditions(group: &mut Group, conditions: Vec<Condition>) {
    match group {
        Group::Role(role) => {
            Arc::make_mut(role).status.get_or_insert_default().conditions = conditions;
        }
        Group::NodeSet(set) => {
            Arc::make_mut(set).status.get_or_insert_default().conditions = conditions;
        }
    }
}

#[test]
fn a_role_and_a_node_set_count_the_computes_of_their_nodes_alone() {
    let caches = world();
    add(&caches, "n1", &json!({"role": "edpm"}), "False");
    add(&caches, "n0", &json!({"role": "edpm"}), "True");
    add(&caches, "n2", &json!({"role": "other"}), "False");
    add(&caches, "n3", &json!({"nodeSet": "edpm"}), "Unknown");
    let states = |group: &GroupKey| observe(&caches, group, true).unwrap().states.unwrap();
    let named = |all: &[(&str, ComputeState)]| -> Vec<(String, ComputeState)> {
        all.iter().map(|(name, it)| ((*name).to_owned(), *it)).collect()
    };
    let of_role = named(&[("n0", ComputeState::Up), ("n1", ComputeState::Down)]);
    assert_eq!(states(&role("edpm")), of_role);
    assert_eq!(states(&set()), named(&[("n3", ComputeState::Unknown)]));
    assert_eq!(states(&role("empty")), []);
    assert!(observe(&caches, &role("missing"), true).is_none());
    assert!(observe(&caches, &set(), false).unwrap().states.is_none(), "nova's API is not read");
}

#[test]
fn the_condition_is_written_when_the_count_changes_and_goes_with_the_last_compute() {
    let caches = world();
    add(&caches, "n0", &json!({"role": "edpm"}), "True");
    add(&caches, "n1", &json!({"nodeSet": "edpm"}), "True");
    for group in [role("edpm"), set()] {
        let mut seen = observe(&caches, &group, true).unwrap();
        let other = reasons::cell::READY.condition(READY, "");
        let others = merge_conditions(&[], vec![other], None, Timestamp::UNIX_EPOCH);
        set_conditions(&mut seen.group, others);
        let status = pass(&mut seen).unwrap();
        assert_eq!(status.as_object().unwrap().len(), 1, "nothing but conditions");
        assert_eq!(status["conditions"].as_array().unwrap().len(), 1, "this one alone is ours");
        let found = find(seen.group.conditions(), HOSTS_COMPUTES_UP).unwrap();
        let expected = (ConditionStatus::True, "1 of 1 computes are up.");
        assert_eq!((found.status, &*found.message), expected);
        assert_eq!(pass(&mut seen), None, "nothing has changed");
        seen.states.as_mut().unwrap()[0].1 = ComputeState::Down;
        assert!(pass(&mut seen).is_some());
        let found = find(seen.group.conditions(), HOSTS_COMPUTES_UP).unwrap();
        assert_eq!(found.reason, "ComputesDown");
        seen.states = Some(Vec::new());
        assert_eq!(pass(&mut seen), Some(json!({"conditions": []})));
        assert_eq!(pass(&mut seen), None);
    }
}

#[test]
fn annotations_that_do_not_count_are_reported_also_where_novas_api_is_not_read() {
    let caches = world();
    caches.nodes.absorb(&object(
        "dataplane",
        "OpenStackDataPlaneNode",
        "n0",
        &json!({"nodeSet": "edpm"}),
        &json!({}),
    ));
    let mut seen = observe(&caches, &set(), false).unwrap();
    assert_eq!(pass(&mut seen), None);
    let mut annotated = node_set("edpm", &json!({ DRAIN: "wait" }));
    annotated["metadata"]["resourceVersion"] = json!("2");
    caches.node_sets.absorb(&annotated);
    seen = observe(&caches, &set(), false).unwrap();
    assert!(pass(&mut seen).is_some());
    let found = find(seen.group.conditions(), ANNOTATIONS_IGNORED).unwrap();
    assert!(found.message.contains(DRAIN) && found.message.contains("edpm"), "{}", found.message);
    let Group::NodeSet(set) = &mut seen.group else { panic!("a role") };
    Arc::make_mut(set).metadata.annotations = None;
    assert_eq!(pass(&mut seen), Some(json!({"conditions": []})));
}
