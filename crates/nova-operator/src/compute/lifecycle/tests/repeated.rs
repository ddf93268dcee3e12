//! What a node repeats of its compute's conditions.

use api::dataplane::node::REDEPLOY_REQUESTED as SUFFIX;
use nova_config::conditions::{NODE_REDEPLOY_REQUESTED, REDEPLOY_REQUESTED};

use super::*;

/// A node of a compute that requests a redeploy, with these conditions of its own.
fn requesting(of_node: &Value) -> Observed {
    let mut compute = made("nova-cell1");
    let message = "Audit a found differences.";
    let requested = stated(REDEPLOY_REQUESTED, "True", "RepairRequested", message);
    compute.status.get_or_insert_default().conditions = vec![requested];
    let mut seen = with(Some("nova-cell1"), compute);
    let status = json!({ "conditions": of_node });
    Arc::make_mut(&mut seen.node).status = Some(serde_json::from_value(status).unwrap());
    seen
}

/// The conditions that are written on the node; `None` where nothing is.
fn written(seen: &Observed) -> Option<Value> {
    let plan = recorded(decide(seen, None, Timestamp::UNIX_EPOCH));
    plan.steps.iter().find_map(|it| {
        let Write::Status { status, .. } = &it.write else { return None };
        Some(status["conditions"].clone())
    })
}

/// The request among these conditions.
fn request(conditions: &Value) -> Option<Condition> {
    let all: Vec<Condition> = serde_json::from_value(conditions.clone()).unwrap();
    find(&all, NODE_REDEPLOY_REQUESTED).cloned()
}

#[test]
fn a_redeploy_that_a_compute_requests_stands_on_its_node_until_it_is_served() {
    let mut seen = requesting(&json!([]));
    let conditions = written(&seen).unwrap();
    let found = request(&conditions).unwrap();
    assert_eq!(
        (found.reason.as_str(), found.message.as_str()),
        ("RepairRequested", "Audit a found differences.")
    );
    assert!(found.type_.ends_with(SUFFIX), "dataplane-operator serves no other type");
    let status = json!({ "conditions": conditions });
    Arc::make_mut(&mut seen.node).status = Some(serde_json::from_value(status).unwrap());
    assert_eq!(written(&seen), None);

    let compute = Arc::make_mut(seen.compute.as_mut().unwrap());
    compute.status.as_mut().unwrap().conditions.clear();
    assert_eq!(request(&written(&seen).unwrap()), None);
}

#[test]
fn a_compute_that_is_being_deleted_requests_nothing() {
    let mut seen = requesting(&json!([]));
    seen.node = requesting(&written(&seen).unwrap()).node;
    let compute = Arc::make_mut(seen.compute.as_mut().unwrap());
    let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH);
    compute.metadata.deletion_timestamp = Some(now);
    assert_eq!(request(&written(&seen).unwrap()), None);
}
