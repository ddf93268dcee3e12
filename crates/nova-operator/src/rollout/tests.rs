//! Which computes get a slot, which ones are enqueued, and which cells recount.

use api::dataplane::{RunState, ServiceRun};
use futures::FutureExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use operator_runtime::cache::WriteThrough;
use serde_json::{Value, json};
use testkit::conditions::stated;

use super::*;
use crate::rollout::blocked_rollout::BlockedRollout;

/// A coordinator for two nodes of one role with a limit of one, and their computes, both deployed.
fn two() -> (RolloutCoordinator, SharedCaches) {
    let watched = SharedCaches::default();
    let peers = RolloutCoordinator::new(watched.clone());
    for name in ["a", "b"] {
        watched.nodes.absorb(&node(name, "compute"));
        put(&peers, &watched, &compute(name, "Succeeded"));
    }
    (peers, watched)
}

fn node(name: &str, role: &str) -> Value {
    json!({
        "apiVersion": "dataplane.openstack.org/v1beta1", "kind": "OpenStackDataPlaneNode",
        "metadata": { "namespace": "ns", "name": name, "uid": name },
        "spec": { "role": role },
        "status": { "maxUnavailable": 1, "deploy": true },
    })
}

/// A compute that was deployed before, and whose service is in this state now.
fn compute(name: &str, state: &str) -> Value {
    let state: RunState = serde_json::from_value(json!(state)).unwrap();
    let service = ServiceRun {
        name: "nova".into(),
        state,
        hash: "h".into(),
        attempt: 1,
        run: None,
        deployed_hash: Some("h".into()),
        failures: 0,
        since: Time(jiff::Timestamp::UNIX_EPOCH),
        reason: None,
        message: None,
    };
    json!({
        "apiVersion": "nova.openstack.org/v1beta1", "kind": "NovaExternalCompute",
        "metadata": { "namespace": "ns", "name": name, "uid": name },
        "spec": { "dataplaneNodeName": name, "cellName": "cell1" },
        "status": { "services": [service], "deployedInputs": { "Secret bus transport_url": "1" } },
    })
}

/// The same, waiting for nothing but a slot.
fn waiting(name: &str) -> Value {
    let types = ["InputReady", "NodeReady", "NovaCellReady", "ServiceConfigReady"];
    let mut conditions: Vec<_> = types.iter().map(|it| stated(it, "True", "R", "")).collect();
    conditions.push(stated("UpToDate", "False", "R", ""));
    let mut compute = compute(name, "Succeeded");
    compute["status"]["conditions"] = json!(conditions);
    compute
}

fn put(peers: &RolloutCoordinator, watched: &SharedCaches, compute: &Value) -> Requeue {
    watched.computes.absorb(compute);
    peers.refresh(&key(compute["metadata"]["name"].as_str().unwrap()))
}

fn key(name: &str) -> Key {
    Key::new("ns", name)
}

async fn turn(peers: &RolloutCoordinator, watched: &SharedCaches, name: &str) -> RolloutSlot {
    let compute = watched.computes.get(&key(name)).unwrap();
    let node = watched.nodes.get(&key(name));
    peers.slot(&compute, node.as_deref()).await
}

#[tokio::test]
async fn of_two_computes_of_a_role_the_second_decides_when_the_first_has_written() {
    let (peers, watched) = two();
    let first = turn(&peers, &watched, "a").await;
    assert!(matches!(first, RolloutSlot::Taken(_)), "{first:?}");
    let mut second = std::pin::pin!(turn(&peers, &watched, "b"));
    assert!(second.as_mut().now_or_never().is_none(), "it waits for the first");
    let mut begun = waiting("a");
    begun["status"]["services"] = compute("a", "Pending")["status"]["services"].clone();
    put(&peers, &watched, &begun);
    drop(first);
    assert_eq!(second.await.blocked(), Some(&BlockedRollout::Turn));
}

#[tokio::test]
async fn a_turn_that_was_not_used_goes_to_the_next() {
    let (peers, watched) = two();
    let first = turn(&peers, &watched, "a").await;
    let mut second = std::pin::pin!(turn(&peers, &watched, "b"));
    assert!(second.as_mut().now_or_never().is_none());
    drop(first);
    let second = second.await;
    assert!(matches!(second, RolloutSlot::Taken(_)), "{second:?}");
}

#[tokio::test]
async fn who_has_begun_and_who_may_begin_with_all_others_waits_for_nobody() {
    let (peers, watched) = two();
    put(&peers, &watched, &compute("a", "Running"));
    let begun = turn(&peers, &watched, "a").await;
    assert!(matches!(begun, RolloutSlot::Free), "{begun:?}");
    let mut unlimited = node("b", "compute");
    unlimited["status"] = json!({ "maxUnavailable": "100%" });
    watched.nodes.absorb(&unlimited);
    let free = turn(&peers, &watched, "b").await;
    assert!(matches!(free, RolloutSlot::Free), "{free:?}");
    // Without a limit, it is a fifth of the computes and at least one.
    unlimited["status"] = json!({});
    watched.nodes.absorb(&unlimited);
    assert_eq!(turn(&peers, &watched, "b").await.blocked(), Some(&BlockedRollout::Turn));
}

/// The same as `compute`, whose last run failed.
fn failing(name: &str) -> Value {
    let mut compute = compute(name, "Failed");
    compute["status"]["services"][0]["failures"] = json!(1);
    compute["status"]["services"][0]["reason"] = json!("TaskFailed");
    compute
}

#[tokio::test]
async fn a_compute_that_fails_keeps_its_place_until_it_is_taken_out_of_the_count() {
    let (peers, watched) = two();
    put(&peers, &watched, &waiting("b"));
    put(&peers, &watched, &compute("a", "Running"));
    assert_eq!(turn(&peers, &watched, "b").await.blocked(), Some(&BlockedRollout::Turn));
    let stir = put(&peers, &watched, &failing("a"));
    assert_eq!(stir.computes, [key("b")], "it says now who fails");
    let stuck = BlockedRollout::Stuck { failing: "a".into() };
    assert_eq!(turn(&peers, &watched, "b").await.blocked(), Some(&stuck));
    for words in ["a. Correct", "raise deployStrategy.maxUnavailable", "deploy: false"] {
        assert!(stuck.text().contains(words), "{}", stuck.text());
    }
    let mut left_out = node("a", "compute");
    left_out["spec"]["deployStrategy"] = json!({ "deploy": false });
    watched.nodes.absorb(&left_out);
    assert_eq!(peers.refresh(&key("a")).computes, [key("b")]);
    let free = turn(&peers, &watched, "b").await;
    assert!(free.blocked().is_none(), "{free:?}");
}

#[tokio::test]
async fn a_compute_that_was_never_in_service_keeps_no_place_when_it_fails() {
    let (peers, watched) = two();
    let mut new = failing("a");
    new["status"]["deployedInputs"] = json!({});
    put(&peers, &watched, &new);
    watched.nodes.absorb(&node("c", "compute"));
    put(&peers, &watched, &compute("c", "Succeeded"));
    let free = turn(&peers, &watched, "b").await;
    assert!(matches!(free, RolloutSlot::Taken(_)), "{free:?}");
}

#[test]
fn a_further_compute_may_make_a_share_larger_which_one_that_waits_hears() {
    let watched = SharedCaches::default();
    let peers = RolloutCoordinator::new(watched.clone());
    let add = |idx: usize, compute: &dyn Fn(&str) -> Value| {
        let name = format!("n{idx}");
        let mut node = node(&name, "compute");
        node["status"] = json!({ "maxUnavailable": "20%", "deploy": true });
        watched.nodes.absorb(&node);
        put(&peers, &watched, &compute(&name))
    };
    add(0, &|it| compute(it, "Running"));
    for idx in 1..9 {
        add(idx, &waiting);
    }
    let stir = add(9, &|it| compute(it, "Succeeded"));
    assert_eq!(stir.computes, [key("n1")]);
}

#[test]
fn a_place_that_is_free_wakes_one_that_waits() {
    let (peers, watched) = two();
    watched.nodes.absorb(&node("c", "compute"));
    put(&peers, &watched, &compute("a", "Running"));
    for name in ["b", "c"] {
        let stir = put(&peers, &watched, &waiting(name));
        assert_eq!(stir.computes, [], "to wait is no news for the others");
    }
    let stir = put(&peers, &watched, &compute("a", "Succeeded"));
    assert_eq!(stir.computes, [key("b")]);
    // It is up to date by itself, so its slot is for the next one.
    let stir = put(&peers, &watched, &compute("b", "Succeeded"));
    assert_eq!(stir.computes, [key("c")]);
    assert_eq!(put(&peers, &watched, &compute("b", "Succeeded")), Requeue::default());
}

#[test]
fn a_compute_that_moves_to_another_role_leaves_its_place() {
    let (peers, watched) = two();
    put(&peers, &watched, &compute("a", "Running"));
    put(&peers, &watched, &waiting("b"));
    watched.nodes.absorb(&node("a", "other"));
    assert_eq!(peers.refresh(&key("a")).computes, [key("b")]);
}

#[test]
fn a_cell_counts_again_when_a_compute_comes_goes_or_uses_other_credentials() {
    let (peers, watched) = two();
    let cells = |stir: Requeue| stir.cells;
    assert_eq!(cells(put(&peers, &watched, &compute("a", "Running"))), []);
    let mut rotated = compute("a", "Succeeded");
    rotated["status"]["deployedInputs"] = json!({ "Secret bus transport_url": "2" });
    assert_eq!(cells(put(&peers, &watched, &rotated)), [key("cell1")]);
    // A change of the compute's own inputs does not concern the cell.
    rotated["status"]["deployedInputs"]["customServiceConfig"] = json!("1");
    assert_eq!(cells(put(&peers, &watched, &rotated)), []);
    assert_eq!(cells(put(&peers, &watched, &compute("c", "Succeeded"))), [key("cell1")]);
    rotated["spec"]["cellName"] = json!("cell2");
    assert_eq!(cells(put(&peers, &watched, &rotated)), [key("cell1"), key("cell2")]);
}
