//! The condition on a role: which computes it counts, when it is written, and when it is absent.

use std::sync::Arc;

use api::conditions::{ConditionStatus, READY, find, merge_conditions};
use api::dataplane::Role;
use jiff::Timestamp;
use nova_config::conditions::HOSTS_COMPUTES_UP;
use operator_core::condition_catalog::undeclared;
use operator_core::object_key::Key;
use operator_core::plan::Write;
use operator_runtime::cache::WriteThrough as _;
use serde_json::{Value, json};
use testkit::golden::recorded;

use super::observe::observe;
use super::{Observed, decide};
use crate::computes_up::{ComputeState, own_condition};
use crate::condition_catalog::KINDS;
use crate::reasons;
use crate::shared_caches::SharedCaches;

fn object(group: &str, kind: &str, name: &str, spec: &Value, status: &Value) -> Value {
    json!({
        "apiVersion": format!("{group}.openstack.org/v1beta1"),
        "kind": kind,
        "metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "1"},
        "spec": spec,
        "status": status,
    })
}

/// Adds a node of a role with a compute whose `ServiceUp` has that status.
fn add(caches: &SharedCaches, name: &str, role: &str, service_up: &str) {
    let spec = json!({"ansibleHost": "192.0.2.7", "role": role});
    caches.nodes.absorb(&object("dataplane", "OpenStackDataPlaneNode", name, &spec, &json!({})));
    let spec = json!({"dataplaneNodeName": name, "cellName": "cell1"});
    let condition = json!({
        "type": "ServiceUp", "status": service_up, "reason": "x", "message": "x",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let status = json!({"conditions": [condition]});
    caches.computes.absorb(&object("nova", "NovaExternalCompute", name, &spec, &status));
}

fn world() -> SharedCaches {
    let caches = SharedCaches::default();
    for name in ["compute", "empty"] {
        let role = object("dataplane", "OpenStackDataPlaneRole", name, &json!({}), &json!({}));
        caches.roles.absorb(&role);
    }
    caches
}

/// One reconciliation: the status that is written.
fn pass(seen: &mut Observed) -> Option<Value> {
    let plan = recorded(decide(seen, None, Timestamp::UNIX_EPOCH));
    assert!(plan.steps.len() < 2, "{plan:?}");
    let Write::Status { status, .. } = plan.steps.into_iter().next()?.write else {
        panic!("no status")
    };
    assert_eq!(undeclared(KINDS, "OpenStackDataPlaneRole", &status), [""; 0]);
    Arc::make_mut(&mut seen.role).status = Some(serde_json::from_value(status.clone()).unwrap());
    Some(status)
}

#[test]
fn a_role_counts_the_computes_of_its_nodes_alone() {
    let caches = world();
    add(&caches, "n1", "compute", "False");
    add(&caches, "n0", "compute", "True");
    add(&caches, "n2", "other", "False");
    let seen = observe(&caches, &Key::new("ns", "compute")).unwrap();
    let expected = [("n0", ComputeState::Up), ("n1", ComputeState::Down)];
    assert_eq!(seen.states, expected.map(|(name, it)| (name.to_owned(), it)));
    assert_eq!(observe(&caches, &Key::new("ns", "empty")).unwrap().states, []);
    assert!(observe(&caches, &Key::new("ns", "missing")).is_none());
}

#[test]
fn the_condition_is_written_when_the_count_changes_and_goes_with_the_last_compute() {
    let caches = world();
    add(&caches, "n0", "compute", "True");
    let mut seen = observe(&caches, &Key::new("ns", "compute")).unwrap();
    let role: &mut Role = Arc::make_mut(&mut seen.role);
    let other = reasons::cell::READY.condition(READY, "");
    let status = role.status.get_or_insert_default();
    status.conditions = merge_conditions(&[], vec![other], None, Timestamp::UNIX_EPOCH);
    let status = pass(&mut seen).unwrap();
    assert_eq!(status.as_object().unwrap().len(), 1, "nothing but conditions");
    assert_eq!(status["conditions"].as_array().unwrap().len(), 1, "this condition alone is ours");
    let conditions = &seen.role.status.as_ref().unwrap().conditions;
    let found = find(conditions, HOSTS_COMPUTES_UP).unwrap();
    assert_eq!((found.status, &*found.message), (ConditionStatus::True, "1 of 1 computes are up."));
    assert_eq!(pass(&mut seen), None, "nothing has changed");
    seen.states[0].1 = ComputeState::Down;
    assert!(pass(&mut seen).is_some());
    let found = own_condition(seen.role.status.as_ref().map(|it| &it.conditions)).unwrap();
    assert_eq!(found.reason, "ComputesDown");
    seen.states.clear();
    assert_eq!(pass(&mut seen), Some(json!({"conditions": []})));
    assert_eq!(pass(&mut seen), None);
}
