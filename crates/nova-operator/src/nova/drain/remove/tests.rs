//! Removals against a local nova, placement and neutron: what is deleted, and what is found.

mod leftovers;

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use testkit::http_server::server;
use tokio::select;
use tokio::sync::Notify;

use super::*;
use crate::nova::drain::order::{Drain, DrainMode, HostOrder, OwnService, Stop};
use crate::nova::drain::pass::{HostOfOrder, PassMemory, pass};
use crate::nova::drain::progress::HostProgress;
use crate::nova::drain::service::Witness;
use crate::test_cloud::{
    Answer, apis, assert_other_share_stays, consumer, line_and_body, said, servers, shares, token,
    versions, with_version,
};

const HOST: &str = "n0.example.org";
const WITNESS: &str = "n1.example.org";
const WITNESS_HOST: Witness<'_> = Witness::Host(WITNESS);

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of the cloud on its own")]
/// What the cloud has of the host; consumer `d0` has a share of another provider too.
#[derive(Clone, Debug, PartialEq)]
struct State {
    has_service: bool,
    is_up: bool,
    /// Servers that keep nova from deleting the service.
    servers: Vec<&'static str>,
    has_provider: bool,
    /// Whether placement refuses to delete the provider.
    is_provider_kept: bool,
    consumers: Vec<&'static str>,
    /// A provider of the host's name under another UUID, and those of which nova has a compute node.
    stale: Option<&'static str>,
    hypervisors: &'static [&'static str],
    aggregates: Vec<&'static str>,
    /// Id of each agent, and whether it reports.
    agents: Vec<(&'static str, bool)>,
    has_neutron: bool,
    /// Whether the cell answers, as another host of it shows; `None` without such a host.
    witness: Option<bool>,
    writes: Vec<String>,
    n_asked: usize,
    /// At which request the client goes, and whether before it has an effect.
    cut: Option<(usize, bool)>,
}

/// How many agents neutron has in one list.
const AGENTS_LISTED: usize = 2;

impl Default for State {
    fn default() -> Self {
        Self {
            has_service: true,
            is_up: false,
            servers: vec![],
            has_provider: false,
            is_provider_kept: false,
            consumers: vec![],
            stale: None,
            hypervisors: &[],
            aggregates: vec![],
            agents: vec![],
            has_neutron: true,
            witness: None,
            writes: vec![],
            n_asked: 0,
            cut: None,
        }
    }
}

/// The host, of which any service is its own.
const ANY_SERVICE: HostOfOrder<'static> =
    HostOfOrder { name: HOST, service: None, node: None, witness: Witness::None };

struct Cloud {
    state: Arc<Mutex<State>>,
    cut: Arc<Notify>,
    apis: Apis,
}

async fn cloud(state: State) -> Cloud {
    let (state, cut) = (Arc::new(Mutex::new(state)), Arc::new(Notify::new()));
    let (of_server, cuts) = (Arc::clone(&state), Arc::clone(&cut));
    let (address, _) = server(move |text| answer(&mut of_server.lock(), &cuts, text)).await;
    Cloud { state, cut, apis: apis(address) }
}

impl Cloud {
    async fn remove(&self, is_stopped: bool) -> Removal {
        self.removal(remove(is_stopped)).await
    }

    async fn removal(&self, order: Remove) -> Removal {
        let found = self.pass(&HostOrder::Remove(order), Witness::None).await;
        let HostProgress::Removing(removal) = found else { panic!("{found:?}") };
        removal
    }

    async fn pass(&self, order: &HostOrder, witness: Witness<'_>) -> HostProgress {
        let host = HostOfOrder { witness, ..ANY_SERVICE };
        pass(&self.apis, &host, order, &mut PassMemory::default()).await.unwrap()
    }

    fn writes(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().writes)
    }
}

fn remove(is_stopped: bool) -> Remove {
    Remove {
        service: OwnService::Is("a0".to_owned()),
        compute_id: Some("c0".to_owned()),
        is_stopped,
        is_unmapped: true,
        awaits_agents: false,
    }
}

fn order(is_stopped: bool) -> HostOrder {
    HostOrder::Remove(remove(is_stopped))
}

fn answer(state: &mut State, cut: &Notify, text: &str) -> Answer {
    if text.is_empty() {
        // A client that went before it sent anything.
        return said(400, &Value::Null);
    }
    if text.starts_with("post /v3/auth/tokens ") {
        let mut listed = vec![("compute", "/v2.1"), ("placement", "/placement")];
        listed.extend(state.has_neutron.then_some(("network", "/network")));
        return token(text, &listed);
    }
    state.n_asked += 1;
    if let Some((_, is_before)) = state.cut.filter(|it| it.0 == state.n_asked) {
        cut.notify_one();
        if is_before {
            return said(500, &Value::Null);
        }
    }
    let (line, body) = line_and_body(text);
    let answer =
        if line.starts_with("get ") { read(state, line) } else { written(state, line, body) };
    with_version(line, answer)
}

fn read(state: &State, line: &str) -> Answer {
    if let Some(versions) = versions(line) {
        return versions;
    }
    match line.split('?').next().unwrap_or_default() {
        "get /v2.1/os-services" => {
            let service = json!({
                "id": "a0", "host": HOST, "status": "disabled",
                "state": if state.is_up { "up" } else { "down" },
            });
            let witness = state.witness.map(|answers| {
                if answers {
                    json!({"id": "a1", "host": WITNESS, "status": "enabled", "state": "up"})
                } else {
                    json!({"host": WITNESS, "status": "UNKNOWN"})
                }
            });
            let services = Some(service).filter(|_| state.has_service).into_iter().chain(witness);
            said(200, &json!({"services": services.collect::<Vec<_>>()}))
        }
        "get /v2.1/servers" => servers(&state.servers, line),
        "get /v2.1/os-migrations" => said(200, &json!({"migrations": []})),
        "get /v2.1/os-aggregates" => {
            let named = |it: &&str| json!({"name": it, "hosts": [HOST, "other"]});
            let mut all: Vec<Value> = state.aggregates.iter().map(named).collect();
            all.push(json!({"name": "others", "hosts": ["other"]}));
            said(200, &json!({"aggregates": all}))
        }
        "get /placement/resource_providers/c0" if state.has_provider => {
            said(200, &json!({"uuid": "c0", "name": HOST, "generation": 3}))
        }
        "get /placement/resource_providers" => {
            let named = |it: &'static str| json!({"uuid": it, "name": HOST, "generation": 3});
            let own = state.has_provider.then_some("c0");
            let all: Vec<Value> = state.stale.into_iter().chain(own).map(named).collect();
            said(200, &json!({"resource_providers": all}))
        }
        "get /placement/resource_providers/c9/allocations" => shares(&[]),
        line if state
            .hypervisors
            .iter()
            .any(|it| line == format!("get /v2.1/os-hypervisors/{it}")) =>
        {
            let id = state.hypervisors[0];
            said(200, &json!({"hypervisor": {"id": id, "service": {"host": "other"}}}))
        }
        "get /placement/resource_providers/c0/allocations" => shares(&state.consumers),
        "get /placement/allocations/d0" => consumer("c0"),
        "get /network/v2.0/agents" => {
            let agents = state.agents.iter().take(AGENTS_LISTED).map(|(id, is_alive)| {
                json!({
                    "id": id, "agent_type": "OVN Metadata agent", "binary": "x", "alive": is_alive,
                    "host": HOST,
                })
            });
            said(200, &json!({"agents": agents.collect::<Vec<_>>()}))
        }
        _ => said(404, &Value::Null),
    }
}

fn written(state: &mut State, line: &str, body: &str) -> Answer {
    state.writes.push(line.to_owned());
    match line {
        "delete /v2.1/os-services/a0" if !state.servers.is_empty() => {
            said(409, &json!({"conflictingRequest": {"code": 409, "message": "hosting instances"}}))
        }
        "delete /v2.1/os-services/a0" => {
            state.has_service = state.is_up;
            said(204, &Value::Null)
        }
        "put /placement/allocations/d0" => {
            assert_other_share_stays(body);
            state.consumers.retain(|it| *it != "d0");
            said(204, &Value::Null)
        }
        "delete /placement/resource_providers/c0" => {
            if state.is_provider_kept || !state.consumers.is_empty() {
                let error =
                    json!({"errors": [{"status": 409, "title": "Conflict", "detail": "in use"}]});
                return said(409, &error);
            }
            state.has_provider = false;
            said(204, &Value::Null)
        }
        "delete /placement/resource_providers/c9" => {
            state.stale = None;
            said(204, &Value::Null)
        }
        _ => {
            let agent = line.strip_prefix("delete /network/v2.0/agents/");
            let agent = agent.unwrap_or_else(|| panic!("unexpected: {line}"));
            state.agents.retain(|it| it.0 != agent);
            said(204, &Value::Null)
        }
    }
}

fn done(n_alive: usize) -> Removal {
    Removal {
        service: ServiceRemoval::Done,
        placement: PlacementRemoval::Done,
        agents: Some(AgentsRemoval::Done { n_alive }),
    }
}

#[tokio::test]
async fn a_host_goes_from_nova_placement_and_neutron_in_that_order_and_once() {
    let state = State {
        has_provider: true,
        consumers: vec!["d0"],
        agents: vec![("e0", false), ("e1", true)],
        ..State::default()
    };
    let cloud = cloud(state).await;
    assert_eq!(cloud.remove(true).await, done(1));
    let order = [
        "delete /v2.1/os-services/a0",
        "put /placement/allocations/d0",
        "delete /placement/resource_providers/c0",
        "delete /network/v2.0/agents/e0",
    ];
    assert_eq!(cloud.writes(), order);
    assert_eq!(cloud.remove(true).await, done(1));
    assert_eq!(cloud.writes(), [""; 0]);
}

#[tokio::test]
async fn agents_that_a_cleanup_was_to_stop_are_awaited_until_they_are_down() {
    let agents = vec![("e0", false), ("e1", true)];
    let cloud = cloud(State { agents, ..State::default() }).await;
    let removal = || cloud.removal(Remove { awaits_agents: true, ..remove(true) });
    let found = removal().await;
    assert_eq!(found.agents, Some(AgentsRemoval::Reporting(vec!["x".to_owned()].into())));
    assert!(!found.is_done());
    assert_eq!(cloud.writes(), ["delete /v2.1/os-services/a0", "delete /network/v2.0/agents/e0"]);
    cloud.state.lock().agents[0].1 = false;
    assert_eq!(removal().await, done(0));
    assert_eq!(cloud.writes(), ["delete /network/v2.0/agents/e1"]);
}

#[tokio::test]
async fn a_provider_that_nova_has_under_another_name_of_the_host_keeps_its_shares() {
    for compute_id in [Some("c0".to_owned()), None] {
        let state = State {
            has_provider: true,
            has_service: false,
            hypervisors: &["c0"],
            consumers: vec!["d0"],
            ..State::default()
        };
        let cloud = cloud(state).await;
        let removal = cloud.removal(Remove { compute_id, ..remove(true) }).await;
        let message = "nova has it as the compute node of host other".to_owned();
        let kept = PlacementRemoval::Kept { provider: "c0".to_owned(), message };
        assert_eq!((removal.placement, cloud.writes()), (kept, vec![]));
    }
}

#[tokio::test]
async fn a_provider_that_an_earlier_installation_left_goes_unless_it_is_another_hosts() {
    for (hypervisors, n_writes) in [(&[][..], 1), (&["c9"][..], 0)] {
        let state =
            State { stale: Some("c9"), hypervisors, has_service: false, ..State::default() };
        let cloud = cloud(state).await;
        assert_eq!(cloud.remove(true).await, done(0));
        let deleted = "delete /placement/resource_providers/c9".to_owned();
        assert_eq!(cloud.writes(), vec![deleted; n_writes]);
    }
}

#[tokio::test]
async fn agents_behind_the_end_of_a_list_go_too() {
    let (few, many) = (["e0", "e1", "e2"], ["e0", "e1", "e2", "e3", "e4", "e5", "e6", "e7", "e8"]);
    for (agents, is_done) in [(&few[..], true), (&many[..], false)] {
        let agents: Vec<_> = agents.iter().map(|it| (*it, false)).collect();
        let cloud = cloud(State { agents: agents.clone(), ..State::default() }).await;
        let removal = cloud.remove(true).await;
        assert_eq!(removal.agents, is_done.then_some(AgentsRemoval::Done { n_alive: 0 }));
        assert_eq!(cloud.remove(true).await, done(0), "a later pass goes on");
        assert_eq!(cloud.writes().len(), 1 + agents.len());
    }
}

#[tokio::test]
async fn a_host_whose_compute_node_has_another_name_in_nova_is_not_empty() {
    for (hypervisors, compute_id, is_there) in [
        (&["c0"][..], Some("c0".to_owned()), true),
        (&["c0"][..], None, false),
        (&[][..], Some("c0".to_owned()), false),
    ] {
        let state = State { has_service: false, hypervisors, ..State::default() };
        let cloud = cloud(state).await;
        let drain = Drain { mode: DrainMode::Wait, reason: String::new() };
        let found = cloud.pass(&HostOrder::DrainForRemoval(drain, compute_id), Witness::None).await;
        let other = HostProgress::OtherHost { compute_id: "c0".into(), host: "other".into() };
        assert_eq!(found, if is_there { other } else { HostProgress::NotFound });
    }
}

#[tokio::test]
async fn a_service_with_servers_stays_and_they_are_named() {
    let cloud =
        cloud(State { servers: vec!["b1", "b0"], has_provider: true, ..State::default() }).await;
    let servers = vec!["b0".to_owned(), "b1".to_owned()];
    let kept =
        ServiceRemoval::Kept { servers: servers.into(), message: "hosting instances".to_owned() };
    assert_eq!(cloud.remove(true).await, Removal::of_service(kept));
    assert_eq!(cloud.writes(), ["delete /v2.1/os-services/a0"], "nothing else is touched");
}

#[tokio::test]
async fn a_nova_compute_that_was_not_stopped_must_be_down_first() {
    let cloud = cloud(State { is_up: true, ..State::default() }).await;
    let still_up = Removal::of_service(ServiceRemoval::StillUp);
    assert_eq!(cloud.remove(false).await, still_up);
    assert_eq!(cloud.writes(), [""; 0]);
    assert_eq!(cloud.remove(true).await, still_up, "it registers again");
    cloud.state.lock().is_up = false;
    assert_eq!(cloud.remove(false).await, done(0));
}

#[tokio::test]
async fn a_host_that_could_not_be_stopped_counts_as_empty_once_its_service_is_down_or_gone() {
    let state = || State { is_up: true, witness: Some(true), ..State::default() };
    let cloud = cloud(state()).await;
    let found = async |stop| cloud.pass(&HostOrder::InspectForRemoval(stop), WITNESS_HOST).await;
    let still_up = HostProgress::Removing(Removal::of_service(ServiceRemoval::StillUp));
    assert_eq!(found(Stop::Failed).await, still_up);
    assert_eq!(found(Stop::Done).await, HostProgress::Empty, "it was stopped");
    cloud.state.lock().is_up = false;
    assert_eq!(found(Stop::Failed).await, HostProgress::Empty);
    cloud.state.lock().has_service = false;
    assert_eq!(found(Stop::Failed).await, HostProgress::NotFound);
    *cloud.state.lock() = State { servers: vec!["b0"], ..state() };
    assert!(matches!(found(Stop::Failed).await, HostProgress::Occupied(_)));
    assert_eq!(cloud.writes(), [""; 0]);
}

#[tokio::test]
async fn what_placement_keeps_and_aggregates_that_list_the_host_are_reported() {
    let state = State { has_provider: true, is_provider_kept: true, ..State::default() };
    let kept = cloud(state).await;
    let provider =
        PlacementRemoval::Kept { provider: "c0".to_owned(), message: "in use".to_owned() };
    let expected = Removal { placement: provider, agents: None, ..done(0) };
    assert_eq!(kept.remove(true).await, expected);
    let listed = cloud(State { aggregates: vec!["rack7"], ..State::default() }).await;
    let aggregates = PlacementRemoval::InAggregates(vec!["rack7".to_owned()].into());
    let expected = Removal { placement: aggregates, agents: None, ..done(0) };
    assert_eq!(listed.remove(true).await, expected);
}

#[tokio::test]
async fn shares_of_a_provider_are_dropped_only_when_nova_has_nothing_on_the_host() {
    let state = State {
        has_service: false,
        has_provider: true,
        servers: vec!["b0"],
        consumers: vec!["d0"],
        ..State::default()
    };
    let cloud = cloud(state).await;
    let found = cloud.remove(true).await;
    assert!(matches!(found.placement, PlacementRemoval::Kept { .. }), "{found:?}");
    assert_eq!(cloud.writes(), [""; 0]);
    cloud.state.lock().servers.clear();
    assert_eq!(cloud.remove(true).await, done(0));
}

#[tokio::test]
async fn without_a_service_a_host_is_empty_unless_another_one_shows_that_the_cell_is_silent() {
    let gone = |witness| State { has_service: false, witness, ..State::default() };
    let drain = || Drain { mode: DrainMode::Wait, reason: String::new() };
    let of_user = || [HostOrder::DrainForChange(drain()), HostOrder::Drain(drain())];
    let of_removal = || {
        [
            HostOrder::DrainForRemoval(drain(), None),
            HostOrder::InspectForRemoval(Stop::Due),
            HostOrder::Inspect,
        ]
    };
    let unconfirmed = HostProgress::CellNotConfirmed;
    for (witness, named, expected) in [
        (Some(true), WITNESS_HOST, HostProgress::NotFound),
        (Some(false), WITNESS_HOST, HostProgress::CellNotAnswering),
        // Nova has lost the other host since the last reading.
        (None, WITNESS_HOST, unconfirmed.clone()),
        (Some(true), Witness::Unlisted, unconfirmed.clone()),
        (Some(true), Witness::None, HostProgress::NotFound),
    ] {
        let cloud = cloud(gone(witness)).await;
        for order in of_removal() {
            let found = cloud.pass(&order, named).await;
            assert_eq!(found, expected, "{order:?} {witness:?} {named:?}");
        }
        for order in of_user() {
            let found = cloud.pass(&order, named).await;
            let is_unconfirmed = expected == unconfirmed;
            let expected = if is_unconfirmed { &HostProgress::NotFound } else { &expected };
            assert_eq!(&found, expected, "{order:?} {witness:?} {named:?}");
        }
    }
    let servers = State { servers: vec!["b0"], ..gone(Some(false)) };
    let found = cloud(servers).await.pass(&of_removal()[0], WITNESS_HOST).await;
    assert!(matches!(found, HostProgress::Occupied(_)), "{found:?}");
}

#[tokio::test]
async fn nothing_is_removed_without_a_service_while_the_cell_is_silent() {
    let state = State {
        has_service: false,
        has_provider: true,
        consumers: vec!["d0"],
        witness: Some(false),
        ..State::default()
    };
    let cloud = cloud(state).await;
    let found = cloud.pass(&order(true), WITNESS_HOST).await;
    assert_eq!((found, cloud.writes()), (HostProgress::CellNotAnswering, vec![]));
    cloud.state.lock().witness = Some(true);
    assert_eq!(cloud.pass(&order(true), WITNESS_HOST).await, HostProgress::Removing(done(0)));
}

#[tokio::test]
async fn agents_stay_until_the_mapping_of_the_host_is_known_to_be_gone() {
    let state = State { has_provider: true, agents: vec![("e0", false)], ..State::default() };
    let cloud = cloud(state).await;
    let found = cloud.removal(Remove { is_unmapped: false, ..remove(true) }).await;
    assert_eq!(found, Removal { agents: None, ..done(0) });
    assert!(!cloud.writes().iter().any(|it| it.contains("/agents/")));
    assert_eq!(cloud.remove(true).await, done(0));
    assert_eq!(cloud.writes(), ["delete /network/v2.0/agents/e0"]);
}

#[tokio::test]
async fn a_cloud_without_neutron_has_no_agents() {
    let cloud = cloud(State { has_neutron: false, ..State::default() }).await;
    let expected = Removal { agents: Some(AgentsRemoval::NoNeutron), ..done(0) };
    assert_eq!(cloud.remove(true).await, expected);
}

#[tokio::test]
async fn an_operator_that_dies_before_or_after_any_request_removes_the_same() {
    for cut in (1..=16).flat_map(|n| [(n, true), (n, false)]) {
        let state = State {
            has_provider: true,
            consumers: vec!["d0"],
            agents: vec![("e0", false)],
            cut: Some(cut),
            ..State::default()
        };
        let cloud = cloud(state).await;
        let mut memory = PassMemory::default();
        let (order, is_cut) = (order(true), cloud.cut.notified());
        select! {
            () = is_cut => {}
            _ = pass(&cloud.apis, &ANY_SERVICE, &order, &mut memory) => {}
        }
        cloud.state.lock().cut = None;
        assert!(cloud.remove(true).await.is_done(), "{cut:?}");
        let end = cloud.state.lock().clone();
        assert!(!end.has_service && !end.has_provider && end.agents.is_empty(), "{cut:?}: {end:?}");
    }
}

#[tokio::test]
async fn another_service_than_the_recorded_one_is_left_and_nothing_else_is_removed() {
    for service in [OwnService::Is("a9".to_owned()), OwnService::None] {
        let cloud = cloud(State::default()).await;
        let order = HostOrder::Remove(Remove { service, ..remove(true) });
        let found = cloud.pass(&order, Witness::None).await;
        assert_eq!(found, HostProgress::OtherService { id: "a0".to_owned() });
        assert_eq!(cloud.writes(), [""; 0]);
    }
    let cloud = cloud(State { has_service: false, ..State::default() }).await;
    cloud.removal(Remove { service: OwnService::None, ..remove(true) }).await;
}
