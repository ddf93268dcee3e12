//! Identities against a local nova and placement: what is found, and what is deleted.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use testkit::http_server::server;

use super::*;
use crate::nova::drain::order::{Drain, DrainMode, HostOrder};
use crate::nova::drain::pass::{HostOfOrder, PassMemory, pass};
use crate::nova::drain::progress::Occupied;
use crate::nova::drain::service::Witness;
use crate::test_cloud::{
    Answer, apis, assert_other_share_stays, consumer, line_and_body, said, servers, shares, token,
    versions, with_version,
};

const HOST: &str = "n0.example.org";
/// The identity of the host.
const OWN: &str = "c0";
/// The UUID of a provider that has the name of the host.
const STALE: &str = "c1";
/// The name of the host's hypervisor and of its provider, where nova has its compute node.
const HYPERVISOR: &str = "machine-0";

/// What the cloud has; consumer `d0` has a share of the stale provider and one of another.
#[derive(Clone, Debug, Default)]
struct State {
    is_up: bool,
    /// Whether the cell's database answers; the servers of one that does not are left out.
    is_silent: bool,
    servers: Vec<&'static str>,
    /// The servers of the compute node that lists by host leave out.
    left_out: Vec<&'static str>,
    /// UUID and host of each hypervisor.
    hypervisors: Vec<(&'static str, &'static str)>,
    /// The UUID of the provider with the host's name.
    provider: Option<&'static str>,
    /// The consumers that have a share of it.
    consumers: Vec<&'static str>,
    is_kept: bool,
    writes: Vec<String>,
}

fn answer(state: &mut State, text: &str) -> Answer {
    if text.starts_with("post /v3/auth/tokens ") {
        return token(text, &[("compute", "/v2.1"), ("placement", "/placement")]);
    }
    let (line, body) = line_and_body(text);
    let answer =
        if line.starts_with("get ") { read(state, line) } else { written(state, line, body) };
    with_version(line, answer)
}

fn read(state: &State, line: &str) -> Answer {
    let (line, query) = line.split_once('?').unwrap_or((line, ""));
    if let Some(id) = line.strip_prefix("get /v2.1/os-hypervisors/") {
        let found = state.hypervisors.iter().find(|it| it.0 == id);
        return found.map_or_else(
            || said(404, &json!({"itemNotFound": {"code": 404, "message": "none"}})),
            |(id, host)| {
                let (name, service) = (HYPERVISOR, json!({"host": host}));
                let mut found = json!({"id": id, "hypervisor_hostname": name, "service": service});
                if query == "with_servers=true" {
                    let servers = state.left_out.iter().map(|it| json!({"uuid": it, "name": it}));
                    found["servers"] = servers.collect();
                }
                said(200, &json!({"hypervisor": found}))
            },
        );
    }
    if let Some(versions) = versions(line) {
        return versions;
    }
    match line {
        "get /v2.1/os-services" if state.is_silent => {
            let service = json!({"host": HOST, "binary": "nova-compute", "status": "UNKNOWN"});
            said(200, &json!({"services": [service]}))
        }
        "get /v2.1/os-services" => {
            let is = if state.is_up { "up" } else { "down" };
            let service = json!({"id": "a0", "host": HOST, "status": "enabled", "state": is});
            said(200, &json!({"services": [service]}))
        }
        "get /v2.1/servers" => servers(&state.servers, query),
        "get /v2.1/os-migrations" => said(200, &json!({"migrations": []})),
        "get /placement/resource_providers" => {
            let is_known = state.hypervisors.iter().any(|it| it.0 == OWN);
            let name = if is_known { HYPERVISOR } else { HOST };
            let provider = state.provider.iter().filter(|_| query == format!("name={name}"));
            let all = provider.map(|id| json!({"uuid": id, "name": name, "generation": 3}));
            said(200, &json!({"resource_providers": all.collect::<Vec<_>>()}))
        }
        "get /placement/resource_providers/c1/allocations" => shares(&state.consumers),
        "get /placement/allocations/d0" => consumer("c1"),
        _ => panic!("unexpected: {line}"),
    }
}

fn written(state: &mut State, line: &str, body: &str) -> Answer {
    state.writes.push(line.to_owned());
    match line {
        "put /placement/allocations/d0" => {
            assert_other_share_stays(body);
            state.consumers.clear();
            said(204, &Value::Null)
        }
        "put /v2.1/os-services/a0" => said(200, &json!({"service": {}})),
        "delete /placement/resource_providers/c1" if state.is_kept => {
            said(409, &json!({"errors": [{"status": 409, "title": "x", "detail": "in use"}]}))
        }
        "delete /placement/resource_providers/c1" => {
            state.provider = None;
            said(204, &Value::Null)
        }
        _ => panic!("unexpected: {line}"),
    }
}

/// Returns what a pass with the order finds, and what it writes.
async fn found_by(state: &State, order: IdentityOrder) -> (HostProgress, Vec<String>) {
    let state = Arc::new(Mutex::new(state.clone()));
    let of_server = Arc::clone(&state);
    let (address, _) = server(move |text| answer(&mut of_server.lock(), text)).await;
    let order = HostOrder::Identity(order);
    let (apis, mut memory) = (apis(address), PassMemory::default());
    let host = HostOfOrder { name: HOST, service: None, node: None, witness: Witness::None };
    let found = pass(&apis, &host, &order, &mut memory).await.unwrap();
    let writes = state.lock().writes.clone();
    (found, writes)
}

async fn found(state: &State, goal: IdentityGoal) -> (HostProgress, Vec<String>) {
    found_by(state, IdentityOrder { compute_id: OWN.to_owned(), goal, drain: None }).await
}

fn free() -> HostProgress {
    HostProgress::Identity(IdentityUse::Free)
}

#[tokio::test]
async fn an_identity_is_free_on_an_empty_host_of_which_nothing_reports() {
    let down = State { hypervisors: vec![(OWN, HOST)], ..State::default() };
    for state in [State::default(), down] {
        assert_eq!(found(&state, IdentityGoal::Restore).await, (free(), vec![]));
    }
    let up = State { is_up: true, ..State::default() };
    let reporting = HostProgress::Identity(IdentityUse::Reporting);
    assert_eq!(found(&up, IdentityGoal::Restore).await, (reporting, vec![]));
    let moved = State { hypervisors: vec![(OWN, "n1.example.org")], ..State::default() };
    let other = IdentityUse::OtherHost { compute_id: OWN.into(), host: "n1.example.org".into() };
    let other = HostProgress::Identity(other);
    assert_eq!(found(&moved, IdentityGoal::Restore).await, (other, vec![]));
}

#[tokio::test]
async fn a_host_with_servers_or_in_a_silent_cell_has_nothing_freed() {
    let provider = State { provider: Some(STALE), ..State::default() };
    let servers = State { servers: vec!["b1", "b0"], ..provider.clone() };
    let silent = State { is_silent: true, ..provider };
    for goal in [IdentityGoal::Restore, IdentityGoal::Name] {
        let (progress, writes) = found(&servers, goal).await;
        let HostProgress::Occupied(occupied) = progress else { panic!("{progress:?}") };
        assert_eq!((occupied.servers.names(9), writes), ("b0, b1".to_owned(), vec![]));
        assert_eq!(found(&silent, goal).await, (HostProgress::CellNotAnswering, vec![]));
    }
}

#[tokio::test]
async fn a_stale_provider_of_the_hosts_name_is_deleted_and_its_consumers_keep_other_shares() {
    let stale =
        State { is_up: true, provider: Some(STALE), consumers: vec!["d0"], ..State::default() };
    let (progress, writes) = found(&stale, IdentityGoal::Name).await;
    assert_eq!(progress, free());
    let expected = ["put /placement/allocations/d0", "delete /placement/resource_providers/c1"];
    assert_eq!(writes, expected);
    let kept = State { is_kept: true, consumers: vec![], ..stale };
    let (progress, _) = found(&kept, IdentityGoal::Name).await;
    let message = "in use".to_owned();
    let expected = IdentityUse::ProviderKept { provider: STALE.to_owned(), message };
    assert_eq!(progress, HostProgress::Identity(expected));
}

#[tokio::test]
async fn nothing_of_a_stale_provider_is_dropped_while_the_compute_node_has_servers() {
    let stale = State {
        provider: Some(STALE),
        consumers: vec!["d0"],
        hypervisors: vec![(OWN, HOST)],
        left_out: vec!["b0"],
        ..State::default()
    };
    let (progress, writes) = found(&stale, IdentityGoal::Name).await;
    assert!(matches!(progress, HostProgress::Occupied(_)), "{progress:?}");
    assert_eq!(writes, [""; 0]);
}

#[tokio::test]
async fn a_stale_provider_has_the_name_of_the_hypervisor_where_nova_says_it() {
    let hypervisors = vec![(OWN, HOST)];
    let state = State { is_up: true, provider: Some(STALE), hypervisors, ..State::default() };
    let deleted = vec!["delete /placement/resource_providers/c1".to_owned()];
    assert_eq!(found(&state, IdentityGoal::Name).await, (free(), deleted));
}

#[tokio::test]
async fn the_hosts_own_provider_and_that_of_another_compute_node_stay() {
    for provider in [None, Some(OWN)] {
        let state = State { is_up: true, provider, ..State::default() };
        assert_eq!(found(&state, IdentityGoal::Name).await, (free(), vec![]));
    }
    let hypervisors = vec![(STALE, "n1.example.org")];
    let state = State { provider: Some(STALE), hypervisors, ..State::default() };
    let other = IdentityUse::OtherHost { compute_id: STALE.into(), host: "n1.example.org".into() };
    let other = HostProgress::Identity(other);
    assert_eq!(found(&state, IdentityGoal::Name).await, (other, vec![]));
}

#[tokio::test]
async fn a_drain_that_is_requested_at_the_same_time_goes_first() {
    let drain = Drain { mode: DrainMode::Wait, reason: "memory".to_owned() };
    let order = IdentityOrder {
        compute_id: OWN.to_owned(),
        goal: IdentityGoal::Restore,
        drain: Some(drain),
    };
    // Its service is enabled, so this pass disables it, and a later one may find the host drained.
    let (progress, writes) = found_by(&State::default(), order).await;
    assert_eq!(progress, HostProgress::Occupied(Occupied::default()));
    assert_eq!(writes, ["put /v2.1/os-services/a0"]);
}
