//! What computes have left in nova and placement is deleted by its UUIDs, and nothing else.

use super::*;
use crate::nova::drain::order::LeftBehind;
use crate::nova::drain::progress::IdentityUse;

/// The UUIDs of the service and the provider of these tests.
fn left() -> LeftBehind {
    LeftBehind { service_id: Some("a0".to_owned()), compute_id: Some("c0".to_owned()) }
}

fn delete(left: LeftBehind) -> HostOrder {
    HostOrder::DeleteLeftover(left)
}

fn deleted() -> HostProgress {
    HostProgress::Removing(Removal { agents: None, ..done(0) })
}

fn all() -> State {
    State {
        has_provider: true,
        consumers: vec!["d0"],
        agents: vec![("e0", false)],
        ..State::default()
    }
}

#[tokio::test]
async fn what_has_the_recorded_uuids_goes_and_agents_stay() {
    let cloud = cloud(all()).await;
    for writes in [3, 0] {
        assert_eq!(cloud.pass(&delete(left()), Witness::None).await, deleted());
        assert_eq!(cloud.writes().len(), writes);
    }
    let end = cloud.state.lock().clone();
    assert!(!end.has_service && !end.has_provider);
    assert_eq!(end.agents, [("e0", false)], "their UUIDs were not recorded");
}

#[tokio::test]
async fn a_service_of_another_uuid_is_named_and_nothing_is_touched() {
    let cloud = cloud(all()).await;
    for service_id in [Some("a9".to_owned()), None] {
        let other = LeftBehind { service_id, ..left() };
        let expected = HostProgress::OtherService { id: "a0".to_owned() };
        assert_eq!(cloud.pass(&delete(other), WITNESS_HOST).await, expected);
    }
    assert_eq!(cloud.writes(), [""; 0]);
}

#[tokio::test]
async fn a_host_that_reports_or_has_servers_keeps_everything() {
    let up = cloud(State { is_up: true, ..all() }).await;
    let still_up = HostProgress::Removing(Removal::of_service(ServiceRemoval::StillUp));
    assert_eq!(up.pass(&delete(left()), Witness::None).await, still_up);
    assert_eq!(up.writes(), [""; 0]);
    let occupied = cloud(State { servers: vec!["b0"], ..all() }).await;
    let kept = ServiceRemoval::Kept {
        servers: vec!["b0".to_owned()].into(),
        message: "hosting instances".to_owned(),
    };
    let kept = HostProgress::Removing(Removal::of_service(kept));
    assert_eq!(occupied.pass(&delete(left()), Witness::None).await, kept);
    assert_eq!(occupied.writes(), ["delete /v2.1/os-services/a0"], "nova refuses it");
}

#[tokio::test]
async fn without_a_service_shares_are_dropped_only_where_the_cell_answers() {
    let gone = |witness| State { has_service: false, witness, ..all() };
    for (witness, named, expected, n_writes) in [
        (None, Witness::None, HostProgress::CellNotConfirmed, 0),
        (Some(false), WITNESS_HOST, HostProgress::CellNotAnswering, 0),
        (Some(true), WITNESS_HOST, deleted(), 2),
    ] {
        let cloud = cloud(gone(witness)).await;
        assert_eq!(cloud.pass(&delete(left()), named).await, expected);
        assert_eq!(cloud.writes().len(), n_writes, "{expected:?}");
    }
    let without_shares = || cloud(State { consumers: vec![], ..gone(None) });
    let found = without_shares().await.pass(&delete(left()), Witness::None).await;
    assert_eq!(found, deleted());
    let found = without_shares().await.pass(&delete(left()), Witness::Unlisted).await;
    assert_eq!(found, HostProgress::CellNotConfirmed, "it may be another nova");
}

#[tokio::test]
async fn nothing_is_deleted_of_a_compute_node_that_another_host_has_by_now() {
    let state = State { has_service: false, witness: Some(true), hypervisors: &["c0"], ..all() };
    let cloud = cloud(state).await;
    let other = IdentityUse::OtherHost { compute_id: "c0".into(), host: "other".into() };
    let found = cloud.pass(&delete(left()), WITNESS_HOST).await;
    assert_eq!((found, cloud.writes()), (HostProgress::Identity(other), vec![]));
}

#[tokio::test]
async fn what_has_only_one_uuid_is_deleted_by_that_one() {
    let service = LeftBehind { compute_id: None, ..left() };
    let cloud_of_service = cloud(all()).await;
    assert_eq!(cloud_of_service.pass(&delete(service), Witness::None).await, deleted());
    assert_eq!(cloud_of_service.writes(), ["delete /v2.1/os-services/a0"]);
    let provider = LeftBehind { service_id: None, ..left() };
    let state = State { has_service: false, consumers: vec![], ..all() };
    let cloud_of_provider = cloud(state).await;
    assert_eq!(cloud_of_provider.pass(&delete(provider), Witness::None).await, deleted());
    assert_eq!(cloud_of_provider.writes(), ["delete /placement/resource_providers/c0"]);
}

#[tokio::test]
async fn an_operator_that_dies_before_or_after_any_request_deletes_the_same() {
    for cut in (1..=12).flat_map(|n| [(n, true), (n, false)]) {
        let cloud = cloud(State { cut: Some(cut), witness: Some(true), ..all() }).await;
        let (order, mut memory) = (delete(left()), PassMemory::default());
        let is_cut = cloud.cut.notified();
        let host = HostOfOrder { witness: WITNESS_HOST, ..ANY_SERVICE };
        select! {
            () = is_cut => {}
            _ = pass(&cloud.apis, &host, &order, &mut memory) => {}
        }
        cloud.state.lock().cut = None;
        assert_eq!(cloud.pass(&order, WITNESS_HOST).await, deleted(), "{cut:?}");
        let end = cloud.state.lock().clone();
        assert!(!end.has_service && !end.has_provider, "{cut:?}: {end:?}");
    }
}
