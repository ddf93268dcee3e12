//! Tests of what proves that a compute has registered.

use api::dataplane::Node;
use api::nova::ExternalComputeStatus;
use serde_json::{Value, json};
use testkit::set_nodes;

use super::*;

/// A compute that a service of type nova deploys, with these records.
fn observed(services: &Value) -> ExternalCompute {
    let node: Node = set_nodes::node("ns", "edpm", "n0", "192.0.2.7");
    let mut compute = set_nodes::observed_compute(&node, Some("c1"));
    status(&mut compute).services = serde_json::from_value(services.clone()).unwrap();
    compute
}

fn status(compute: &mut ExternalCompute) -> &mut ExternalComputeStatus {
    compute.status.as_mut().unwrap()
}

fn record(name: &str, deployed_hash: Option<&str>) -> Value {
    json!({
        "name": name, "state": "Succeeded", "hash": "h", "deployedHash": deployed_hash, "attempt": 1,
        "since": "2026-01-01T00:00:00Z",
    })
}

#[test]
fn a_whole_success_of_the_service_of_type_nova_is_the_proof() {
    let compute = observed(&json!([record("nova-custom", Some("h"))]));
    assert!(has_registered(&compute) && was_deployed(&compute));
    assert_eq!(registered_host(&compute), Some("n0.example.org"));
    assert_eq!(registered_at(&compute), None, "another operator's clock is compared with nothing");
    let mut managed = compute;
    managed.spec.management = <_>::default();
    assert!(!has_registered(&managed), "its own check has not succeeded");
    status(&mut managed).services[0].name = NOVA_REGISTERED.to_owned();
    assert!(has_registered(&managed) && registered_at(&managed).is_some());
}

#[test]
fn an_attempt_a_part_of_the_service_and_runs_of_the_operator_prove_nothing() {
    assert!(!has_registered(&observed(&json!([]))));
    assert!(!has_registered(&observed(&json!([record("nova", None)]))), "with tags, or under way");
    let own = json!([record(NOVA_RESTORE, Some("h")), record(NOVA_CLEANUP, Some("h"))]);
    let compute = observed(&own);
    assert!(!has_registered(&compute) && recorded_proof(&compute).is_none());
}

#[test]
fn what_is_recorded_of_nova_stays_a_proof_when_the_record_of_the_service_is_lost() {
    let mut compute = observed(&json!([]));
    assert_eq!(registered_host(&compute), None, "a restore without status");
    status(&mut compute).compute_id = Some("u".to_owned());
    assert_eq!(registered_host(&compute), Some("n0.example.org"));
    assert!(!was_deployed(&compute), "whether its services have succeeded is not known");
}
