//! Passes against a local nova: what is written, and what is found.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use testkit::http_server::server;
use tokio::select;
use tokio::sync::Notify;

use super::*;
use crate::nova::drain::order::{DrainMode, IdentityGoal, IdentityOrder, MARKER, Stop};
use crate::nova::drain::progress::{Occupied, Stuck, StuckCause};
use crate::test_cloud::{apis, token};

const HOST: &str = "n0.example.org";
/// Where nothing but the host itself is known, whose compute node is `d0`.
const READ: HostOfOrder<'static> =
    HostOfOrder { name: HOST, service: None, node: Some("d0"), witness: Witness::None };

/// What nova has of the host.
#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    disabled: Option<String>,
    is_down: bool,
    is_silent: bool,
    /// Id, status and task of each server.
    servers: Vec<(String, &'static str, Option<&'static str>)>,
    /// Those that have a config drive.
    drives: Vec<&'static str>,
    /// The UUIDs of services of the host's name in other cells.
    others: Vec<&'static str>,
    /// The server of each open migration.
    migrations: Vec<String>,
    /// The server of each migration that waits for its confirmation.
    finished: Vec<String>,
    writes: Vec<String>,
    /// What `os-migrateLive` answers, instead of beginning a migration.
    refuses: Option<u16>,
    /// The cell's database stops answering once the servers were listed.
    goes_silent: bool,
    /// What nova answers about the servers of the compute node instead of none: those that its lists leave
    /// out, or that the cell fails their query.
    of_node: Option<Result<Vec<&'static str>, u16>>,
    /// When the client goes: at which request, and whether before it has an effect.
    cut: Option<(usize, bool)>,
    n_asked: usize,
}

#[derive(Clone)]
struct Cloud {
    state: Arc<Mutex<State>>,
    cut: Arc<Notify>,
    apis: Arc<Apis>,
}

impl Cloud {
    async fn new(state: State) -> Self {
        let (state, cut) = (Arc::new(Mutex::new(state)), Arc::new(Notify::new()));
        let (of_server, cuts) = (Arc::clone(&state), Arc::clone(&cut));
        let (address, _) = server(move |text| answer(&mut of_server.lock(), &cuts, text)).await;
        Self { state, cut, apis: Arc::new(apis(address)) }
    }

    async fn pass(&self, order: &HostOrder, memory: &mut PassMemory) -> HostProgress {
        self.try_pass("a0", order, memory).await.unwrap()
    }

    /// A pass over an order that is meant for the service with this UUID.
    async fn try_pass(
        &self,
        service: &str,
        order: &HostOrder,
        memory: &mut PassMemory,
    ) -> Result<HostProgress, Fault> {
        let host = HostOfOrder { service: Some(service), ..READ };
        pass(&self.apis, &host, order, memory).await
    }

    fn writes(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().writes)
    }
}

type Answer = (u16, String, String);

fn said(status: u16, body: &Value) -> Answer {
    let version = "OpenStack-API-Version: compute 2.69\r\n".to_owned();
    (status, version, if body.is_null() { String::new() } else { body.to_string() })
}

fn answer(state: &mut State, cut: &Notify, text: &str) -> Answer {
    if text.is_empty() {
        // A client that went before it sent anything.
        return said(400, &Value::Null);
    }
    if text.starts_with("post /v3/auth/tokens ") {
        return token(text, &[("compute", "/v2.1")]);
    }
    state.n_asked += 1;
    if let Some((n, is_before)) = state.cut.filter(|it| it.0 == state.n_asked) {
        cut.notify_one();
        if is_before {
            return said(500, &json!({"x": {"code": 500, "message": n}}));
        }
    }
    let line = text.lines().next().unwrap_or_default();
    let body = text.split_once("\r\n\r\n").map(|it| it.1).unwrap_or_default();
    of_nova(state, line, body)
}

fn of_nova(state: &mut State, line: &str, body: &str) -> Answer {
    if line.starts_with("get /v2.1/ ") {
        return said(200, &json!({"version": {"version": "2.100", "min_version": "2.1"}}));
    }
    if line.starts_with("get /v2.1/os-services?") {
        let mut service = json!({
            "id": "a0", "host": HOST, "status": "enabled", "disabled_reason": null,
            "state": if state.is_down { "down" } else { "up" },
        });
        if let Some(reason) = &state.disabled {
            service["status"] = "disabled".into();
            service["disabled_reason"] = reason.clone().into();
        }
        if state.is_silent {
            service = json!({"host": HOST, "binary": "nova-compute", "status": "UNKNOWN"});
        }
        let others = state.others.iter().map(|id| {
            json!({
                "id": id, "host": HOST, "status": "enabled", "disabled_reason": null, "state": "up",
            })
        });
        let services: Vec<Value> = others.chain([service]).collect();
        return said(200, &json!({"services": services}));
    }
    if line.starts_with("get /v2.1/servers") {
        let is_first = !line.contains("marker=");
        let servers = state.servers.iter().filter(|_| is_first && !state.is_silent);
        let servers: Vec<Value> = servers
            .map(|(id, status, task)| {
                json!({
                    "id": id, "name": id, "status": status, "OS-EXT-STS:task_state": task,
                    "OS-EXT-STS:vm_state": if *status == "ACTIVE" { "active" } else { "stopped" },
                    "config_drive": if state.drives.contains(&id.as_str()) { "True" } else { "" },
                })
            })
            .collect();
        state.is_silent |= state.goes_silent;
        return said(200, &json!({"servers": servers}));
    }
    if line.starts_with("get /v2.1/os-hypervisors/d0?with_servers=true ") {
        let servers = match state.of_node.clone().unwrap_or(Ok(vec![])) {
            Ok(servers) => servers,
            Err(status) => return said(status, &json!({"x": {"code": status, "message": "sql"}})),
        };
        let servers: Vec<Value> =
            servers.iter().map(|it| json!({"uuid": it, "name": it})).collect();
        return said(200, &json!({"hypervisor": {"id": "d0", "servers": servers}}));
    }
    if line.starts_with("get /v2.1/os-migrations?") {
        let is_first = !line.contains("marker=");
        let running = state.migrations.iter().map(|it| (it, "running"));
        let all = running.chain(state.finished.iter().map(|it| (it, "finished")));
        let open: Vec<Value> = all
            .filter(|_| is_first)
            .enumerate()
            .map(|(id, (server, status))| {
                json!({
                    "id": id, "uuid": format!("c{id}"), "instance_uuid": server,
                    "status": status, "migration_type": "live-migration",
                    "source_compute": HOST, "dest_compute": "n1.example.org",
                })
            })
            .collect();
        return said(200, &json!({"migrations": open}));
    }
    written(state, line, body)
}

fn written(state: &mut State, line: &str, body: &str) -> Answer {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    if line.starts_with("put /v2.1/os-services/a0 ") {
        let is_disabled = body["status"] == "disabled";
        state.disabled =
            is_disabled.then(|| body["disabled_reason"].as_str().unwrap_or_default().to_owned());
        state.writes.push(body["status"].as_str().unwrap_or_default().to_owned());
        return said(200, &json!({"service": {}}));
    }
    let server = line.strip_prefix("post /v2.1/servers/").and_then(|it| it.split('/').next());
    let server = server.expect("no other request is sent").to_owned();
    state.writes.push(format!("move {server}"));
    if let Some(status) = state.refuses {
        return said(status, &json!({"x": {"code": status, "message": "no valid host"}}));
    }
    state.migrations.push(server);
    said(202, &Value::Null)
}

fn drain(mode: DrainMode) -> HostOrder {
    HostOrder::Drain(Drain { mode, reason: "kernel".to_owned() })
}

fn migrate(number: usize) -> HostOrder {
    drain(DrainMode::Migrate(NonZeroUsize::new(number).unwrap()))
}

fn running(ids: &[&str]) -> State {
    let servers = ids.iter().map(|it| ((*it).to_owned(), "ACTIVE", None)).collect();
    State { servers, ..State::default() }
}

fn ours() -> String {
    format!("{MARKER}: kernel")
}

fn occupied(servers: &[&str], migrations: usize) -> HostProgress {
    let servers = servers.iter().map(|it| (*it).to_owned()).collect();
    HostProgress::Occupied(Occupied { servers, migrations, ..Occupied::default() })
}

#[tokio::test]
async fn an_empty_host_is_drained_by_the_pass_after_the_one_that_disabled_its_service() {
    let (cloud, mut memory) = (Cloud::new(State::default()).await, PassMemory::default());
    let order = drain(DrainMode::Wait);
    assert_eq!(cloud.pass(&order, &mut memory).await, occupied(&[], 0));
    assert_eq!(
        (cloud.writes(), cloud.state.lock().disabled.clone()),
        (vec!["disabled".into()], Some(ours()))
    );
    for _ in 0..2 {
        assert_eq!(cloud.pass(&order, &mut memory).await, HostProgress::Drained);
    }
    assert_eq!(cloud.writes(), [""; 0]);
}

#[tokio::test]
async fn servers_and_open_migrations_keep_a_host_from_being_drained() {
    let (cloud, mut memory) = (Cloud::new(running(&["b1", "b0"])).await, PassMemory::default());
    let order = drain(DrainMode::Wait);
    assert_eq!(cloud.pass(&order, &mut memory).await, occupied(&["b0", "b1"], 0));
    cloud.state.lock().servers.clear();
    cloud.state.lock().migrations.push("b9".to_owned());
    assert_eq!(cloud.pass(&order, &mut memory).await, occupied(&[], 1));
    cloud.state.lock().migrations.clear();
    assert_eq!(cloud.pass(&order, &mut memory).await, HostProgress::Drained);
    assert_eq!(cloud.writes(), ["disabled"]);
}

#[tokio::test]
async fn a_cell_that_stops_answering_between_the_readings_leaves_it_unknown() {
    let state = State { disabled: Some(ours()), goes_silent: true, ..State::default() };
    let (cloud, mut memory) = (Cloud::new(state).await, PassMemory::default());
    let order = drain(DrainMode::Wait);
    for _ in 0..2 {
        let found = cloud.pass(&order, &mut memory).await;
        assert_eq!(found, HostProgress::CellNotAnswering);
    }
    assert_eq!(cloud.writes(), [""; 0]);
}

#[tokio::test]
async fn a_service_that_another_administrator_disabled_stays_as_it_is() {
    let state = State { disabled: Some("broken fan".to_owned()), ..State::default() };
    let (cloud, mut memory) = (Cloud::new(state.clone()).await, PassMemory::default());
    assert_eq!(cloud.pass(&drain(DrainMode::Wait), &mut memory).await, HostProgress::Drained);
    assert_eq!(cloud.pass(&HostOrder::Enable, &mut memory).await, HostProgress::Released);
    assert_eq!(cloud.writes(), [""; 0]);
    assert_eq!(cloud.state.lock().disabled, state.disabled);
}

/// Returns a host whose service somebody else has disabled.
async fn disabled_by_others(reason: &str) -> Cloud {
    Cloud::new(State { disabled: Some(reason.to_owned()), ..State::default() }).await
}

const OF_NOVA: &str = "AUTO: Connection to libvirt lost: 1";

#[tokio::test]
async fn a_removal_keeps_the_reason_of_others_and_gives_it_back_where_it_is_taken_back() {
    let goes = Drain { mode: DrainMode::Wait, reason: "it goes".to_owned() };
    let removal = HostOrder::DrainForRemoval(goes, None);
    for other in ["broken fan", "", OF_NOVA] {
        for taken_back in [HostOrder::Enable, drain(DrainMode::Wait)] {
            let (cloud, mut memory) = (disabled_by_others(other).await, PassMemory::default());
            if other == OF_NOVA {
                // Nova may have enabled it before it got our reason.
                assert_eq!(cloud.pass(&removal, &mut memory).await, occupied(&[], 0));
            }
            assert_eq!(cloud.pass(&removal, &mut memory).await, HostProgress::Drained);
            // The server sees requests in lower case.
            let disabled = || cloud.state.lock().disabled.clone().unwrap();
            let other = other.to_lowercase();
            assert_eq!(disabled(), format!("{REMOVAL_MARKER}; before: {other}").trim_end());
            for _ in 0..2 {
                cloud.pass(&taken_back, &mut memory).await;
                assert_eq!(disabled(), other);
            }
            assert_eq!(cloud.writes(), ["disabled", "disabled"]);
        }
    }
}

#[tokio::test]
async fn a_host_is_not_drained_while_nova_itself_may_enable_its_service() {
    let (cloud, mut memory) = (disabled_by_others(OF_NOVA).await, PassMemory::default());
    let order = drain(DrainMode::Wait);
    for _ in 0..2 {
        assert_eq!(cloud.pass(&order, &mut memory).await, HostProgress::DisabledByNova);
    }
    assert_eq!(cloud.writes(), [""; 0], "nova has its handle");
    cloud.state.lock().disabled = Some("broken fan".to_owned());
    assert_eq!(cloud.pass(&order, &mut memory).await, HostProgress::Drained);
    cloud.state.lock().disabled = None;
    assert_eq!(cloud.pass(&order, &mut memory).await, occupied(&[], 0));
    assert_eq!(cloud.pass(&order, &mut memory).await, HostProgress::Drained);
    assert_eq!(cloud.writes(), ["disabled"]);
}

#[tokio::test]
async fn a_host_is_not_empty_whose_cell_fails_the_query_of_servers_alone() {
    let goes = Drain { mode: DrainMode::Wait, reason: "it goes".to_owned() };
    for order in [
        drain(DrainMode::Wait),
        migrate(2),
        HostOrder::DrainForRemoval(goes, None),
        HostOrder::Inspect,
        HostOrder::InspectForRemoval(Stop::Due),
    ] {
        let state = State { disabled: Some(ours()), of_node: Some(Err(500)), ..State::default() };
        let (cloud, mut memory) = (Cloud::new(state).await, PassMemory::default());
        let fault = cloud.try_pass("a0", &order, &mut memory).await.unwrap_err();
        assert!(fault.to_string().contains("500"), "{order:?}: {fault}");
        cloud.state.lock().of_node = Some(Ok(vec!["b0"]));
        assert_eq!(cloud.pass(&order, &mut memory).await, occupied(&["b0"], 0), "{order:?}");
        cloud.state.lock().of_node = Some(Err(404));
        let found = cloud.pass(&order, &mut memory).await;
        let is_empty = matches!(found, HostProgress::Drained | HostProgress::Empty);
        assert!(is_empty, "{order:?}: a node that nova does not list says nothing: {found:?}");
    }
    let state = State { disabled: Some(ours()), of_node: Some(Err(500)), ..State::default() };
    let cloud = Cloud::new(state).await;
    let goes = Drain { mode: DrainMode::Wait, reason: "it goes".to_owned() };
    let order = HostOrder::DrainForRemoval(goes, Some("d0".to_owned()));
    let unread = HostOfOrder { node: None, ..READ };
    let found = pass(&cloud.apis, &unread, &order, &mut PassMemory::default()).await;
    assert!(found.is_err(), "the recorded UUID counts where none was read: {found:?}");
}

#[tokio::test]
async fn a_host_that_nova_has_with_another_service_is_neither_changed_nor_found_empty() {
    let state = State { disabled: Some(ours()), ..State::default() };
    let (cloud, mut memory) = (Cloud::new(state).await, PassMemory::default());
    let asked = Drain { mode: DrainMode::Wait, reason: String::new() };
    let identity = |goal| IdentityOrder { compute_id: "c1".to_owned(), goal, drain: None };
    for order in [
        HostOrder::Drain(asked.clone()),
        HostOrder::DrainForChange(asked.clone()),
        HostOrder::DrainForRemoval(asked, Some("c1".to_owned())),
        HostOrder::Enable,
        HostOrder::EnableOnceUp,
        HostOrder::Inspect,
        HostOrder::InspectForRemoval(Stop::Due),
        HostOrder::Identity(identity(IdentityGoal::Restore)),
        HostOrder::Identity(identity(IdentityGoal::Name)),
    ] {
        let found = cloud.try_pass("a1", &order, &mut memory).await.unwrap();
        assert_eq!(found, HostProgress::OtherService { id: "a0".to_owned() }, "{order:?}");
        assert!(found.forbids_runs());
    }
    assert_eq!(cloud.writes(), [""; 0]);
}

#[tokio::test]
async fn of_two_services_of_a_host_the_recorded_one_is_drained() {
    let state = State { disabled: Some(ours()), others: vec!["a9"], ..State::default() };
    let (cloud, mut memory) = (Cloud::new(state).await, PassMemory::default());
    assert_eq!(cloud.pass(&drain(DrainMode::Wait), &mut memory).await, HostProgress::Drained);
    let found = cloud.try_pass("a1", &HostOrder::Enable, &mut memory).await.unwrap();
    assert_eq!(found, HostProgress::OtherService { id: "a9".to_owned() });
    assert_eq!(cloud.writes(), [""; 0]);
}

#[tokio::test]
async fn what_the_operator_disabled_is_enabled_again_once() {
    let state = State { disabled: Some(ours()), ..State::default() };
    let (cloud, mut memory) = (Cloud::new(state).await, PassMemory::default());
    for _ in 0..2 {
        assert_eq!(cloud.pass(&HostOrder::Enable, &mut memory).await, HostProgress::Released);
    }
    assert_eq!(cloud.writes(), ["enabled"]);
}

#[tokio::test]
async fn a_removal_has_a_marker_of_its_own_which_a_drain_replaces() {
    let (cloud, mut memory) = (Cloud::new(State::default()).await, PassMemory::default());
    let removal = Drain { mode: DrainMode::Wait, reason: "it goes".to_owned() };
    cloud.pass(&HostOrder::DrainForRemoval(removal, None), &mut memory).await;
    let disabled = || cloud.state.lock().disabled.clone();
    assert_eq!(disabled().as_deref(), Some("nova.openstack.org/removal: it goes"));
    cloud.pass(&drain(DrainMode::Wait), &mut memory).await;
    assert_eq!(disabled(), Some(ours()));
    assert_eq!(cloud.pass(&HostOrder::Enable, &mut memory).await, HostProgress::Released);
    assert_eq!(cloud.writes(), ["disabled", "disabled", "enabled"]);
}

#[tokio::test]
async fn what_a_rollout_disabled_is_enabled_once_it_is_up() {
    let state = State { disabled: Some(ours()), is_down: true, ..State::default() };
    let (cloud, mut memory) = (Cloud::new(state).await, PassMemory::default());
    let order = HostOrder::EnableOnceUp;
    assert_eq!(cloud.pass(&order, &mut memory).await, HostProgress::NotReporting);
    assert_eq!(cloud.writes(), [""; 0]);
    cloud.state.lock().is_down = false;
    for _ in 0..2 {
        assert_eq!(cloud.pass(&order, &mut memory).await, HostProgress::Released);
    }
    assert_eq!(cloud.writes(), ["enabled"]);
    // A service that is down and enabled, or disabled by an administrator, is left alone.
    for disabled in [None, Some("broken fan".to_owned())] {
        *cloud.state.lock() = State { disabled, is_down: true, ..State::default() };
        assert_eq!(cloud.pass(&order, &mut memory).await, HostProgress::Released);
        assert_eq!(cloud.writes(), [""; 0]);
    }
}

#[tokio::test]
async fn servers_are_migrated_as_many_at_a_time_as_allowed() {
    let (cloud, mut memory) =
        (Cloud::new(running(&["b0", "b1", "b2"])).await, PassMemory::default());
    let all = ["b0", "b1", "b2"];
    assert_eq!(cloud.pass(&migrate(2), &mut memory).await, occupied(&all, 2));
    assert_eq!(cloud.pass(&migrate(2), &mut memory).await, occupied(&all, 2));
    assert_eq!(cloud.writes(), ["disabled", "move b0", "move b1"]);
    cloud.state.lock().servers.remove(0);
    cloud.state.lock().migrations.remove(0);
    assert_eq!(cloud.pass(&migrate(2), &mut memory).await, occupied(&["b1", "b2"], 2));
    assert_eq!(cloud.writes(), ["move b2"]);
}

#[tokio::test]
async fn an_accepted_migration_takes_its_place_before_nova_has_a_record_of_it() {
    let mut state = running(&["b0", "b1", "b2"]);
    state.servers[0].2 = Some("migrating");
    let (cloud, mut memory) = (Cloud::new(state).await, PassMemory::default());
    cloud.pass(&migrate(2), &mut memory).await;
    cloud.pass(&migrate(2), &mut memory).await;
    assert_eq!(cloud.writes(), ["disabled", "move b1"]);
}

#[tokio::test]
async fn what_cannot_move_is_named_and_refused_servers_are_not_asked_for_at_once_again() {
    let mut state = running(&["b0", "b1"]);
    state.servers.push(("b2".to_owned(), "SHUTOFF", None));
    state.servers.push(("b3".to_owned(), "ACTIVE", Some("rebooting")));
    state.refuses = Some(409);
    let (cloud, mut memory) = (Cloud::new(state).await, PassMemory::default());
    let stuck = |server: &str, cause| Stuck { server: server.to_owned(), cause };
    let refused = || StuckCause::Refused("no valid host".to_owned());
    let found = HostProgress::Occupied(Occupied {
        servers: vec!["b3".to_owned()].into(),
        stuck: vec![
            stuck("b0", refused()),
            stuck("b1", refused()),
            stuck("b2", StuckCause::Status("SHUTOFF".to_owned())),
        ]
        .into(),
        ..Occupied::default()
    });
    for _ in 0..2 {
        assert_eq!(cloud.pass(&migrate(5), &mut memory).await, found);
    }
    assert_eq!(cloud.writes(), ["disabled", "move b0", "move b1"]);
}

#[tokio::test]
async fn config_drives_are_counted_of_the_servers_that_move() {
    let mut state = running(&["b0", "b1", "b2"]);
    state.servers.push(("b3".to_owned(), "SHUTOFF", None));
    state.drives = vec!["b0", "b2", "b3"];
    let (cloud, mut memory) = (Cloud::new(state).await, PassMemory::default());
    for (order, expected) in [(drain(DrainMode::Wait), 0), (migrate(1), 2)] {
        let found = cloud.pass(&order, &mut memory).await;
        let HostProgress::Occupied(found) = found else { panic!("{found:?}") };
        assert_eq!(found.config_drives, expected, "{order:?}");
    }
}

#[tokio::test]
async fn a_task_that_does_not_end_is_named_and_takes_no_place() {
    let mut state = running(&["b0", "b1"]);
    state.servers[0].2 = Some("migrating");
    let (cloud, mut memory) = (Cloud::new(state).await, PassMemory::default());
    assert_eq!(cloud.pass(&migrate(1), &mut memory).await, occupied(&["b0", "b1"], 0));
    memory.moves.age(Duration::from_mins(9));
    assert_eq!(cloud.pass(&migrate(1), &mut memory).await, occupied(&["b0", "b1"], 0));
    memory.moves.age(Duration::from_mins(1));
    let found = cloud.pass(&migrate(1), &mut memory).await;
    let HostProgress::Occupied(found) = found else { panic!("{found:?}") };
    let cause = StuckCause::Task("migrating".to_owned());
    assert_eq!(found.stuck.first(), [Stuck { server: "b0".to_owned(), cause }]);
    assert_eq!((found.servers.names(9), found.migrations), ("b1".to_owned(), 1));
    assert_eq!(cloud.writes(), ["disabled", "move b1"]);
    // Another task begins anew.
    cloud.state.lock().servers[0].2 = Some("rebooting");
    assert_eq!(cloud.pass(&migrate(1), &mut memory).await, occupied(&["b0", "b1"], 1));
}

#[tokio::test]
async fn a_server_whose_resize_is_to_be_confirmed_is_named_wherever_it_is() {
    let state = State { finished: vec!["b9".to_owned()], ..State::default() };
    let (cloud, mut memory) = (Cloud::new(state).await, PassMemory::default());
    for order in [drain(DrainMode::Wait), migrate(1)] {
        let found = cloud.pass(&order, &mut memory).await;
        let unconfirmed = vec!["b9".to_owned()];
        let expected =
            Occupied { migrations: 1, unconfirmed: unconfirmed.into(), ..Occupied::default() };
        assert_eq!(found, HostProgress::Occupied(expected));
    }
}

#[tokio::test]
async fn a_server_that_nova_accepted_and_did_not_move_waits_longer_each_time() {
    let (cloud, mut memory) = (Cloud::new(running(&["b0"])).await, PassMemory::default());
    cloud.pass(&migrate(1), &mut memory).await;
    cloud.state.lock().migrations.clear();
    let found = cloud.pass(&migrate(1), &mut memory).await;
    let HostProgress::Occupied(found) = found else { panic!("{found:?}") };
    assert_eq!(found.stuck.first(), [Stuck { server: "b0".to_owned(), cause: StuckCause::Stayed }]);
    for pause in [2, 4, 8, 16, 30, 30] {
        let now = Instant::now();
        memory.moves.started("b0", now, None);
        assert_eq!(memory.moves.again_at("b0"), now + Duration::from_mins(pause));
    }
    assert_eq!(cloud.writes(), ["disabled", "move b0"]);
}

/// Runs passes of a new operator until the host is drained, with the servers moving away in between.
async fn drain_to_the_end(cloud: &Cloud, order: &HostOrder) {
    let mut memory = PassMemory::default();
    for _ in 0..10 {
        if cloud.pass(order, &mut memory).await == HostProgress::Drained {
            return;
        }
        let mut seen = cloud.state.lock();
        let gone = std::mem::take(&mut seen.migrations);
        seen.servers.retain(|it| !gone.contains(&it.0));
    }
    panic!("it is never drained: {:?}", cloud.state.lock());
}

#[tokio::test]
async fn an_operator_that_dies_before_or_after_any_request_comes_to_the_same_end() {
    let mode = DrainMode::Migrate(NonZeroUsize::MIN);
    let by_removal = HostOrder::DrainForRemoval(Drain { mode, reason: "kernel".to_owned() }, None);
    let of_removal = format!("{REMOVAL_MARKER}: kernel");
    for (order, disabled) in [
        (migrate(1), Some(ours())),
        (by_removal, Some(of_removal)),
        (HostOrder::Enable, None),
        (HostOrder::EnableOnceUp, None),
    ] {
        for cut in (1..=9).flat_map(|n| [(n, true), (n, false)]) {
            let mut state = running(&["b0", "b1"]);
            state.disabled = disabled.is_none().then(ours);
            state.cut = Some(cut);
            let cloud = Cloud::new(state).await;
            let mut memory = PassMemory::default();
            select! {
                () = cloud.cut.notified() => {}
                _ = cloud.try_pass("a0", &order, &mut memory) => {}
            }
            cloud.state.lock().cut = None;
            if disabled.is_none() {
                cloud.pass(&order, &mut PassMemory::default()).await;
                assert_eq!(cloud.state.lock().disabled, None, "{cut:?}");
                continue;
            }
            drain_to_the_end(&cloud, &order).await;
            let end = cloud.state.lock().clone();
            assert_eq!(
                (end.disabled, end.servers, end.migrations),
                (disabled.clone(), vec![], vec![]),
                "{cut:?}"
            );
            for server in ["move b0", "move b1"] {
                assert_eq!(end.writes.iter().filter(|it| *it == server).count(), 1, "{cut:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_resize_that_waits_for_its_confirmation_is_named_and_takes_no_place() {
    let mut state = running(&["b0", "b1"]);
    state.servers.push(("b9".to_owned(), "VERIFY_RESIZE", None));
    state.finished = vec!["b9".to_owned(), "b8".to_owned()];
    let (cloud, mut memory) = (Cloud::new(state).await, PassMemory::default());
    let found = cloud.pass(&migrate(1), &mut memory).await;
    let HostProgress::Occupied(found) = found else { panic!("{found:?}") };
    let cause = StuckCause::Status("VERIFY_RESIZE".to_owned());
    assert_eq!(found.stuck.first(), [Stuck { server: "b9".to_owned(), cause }]);
    assert_eq!((found.migrations, cloud.writes()), (3, vec!["disabled".into(), "move b0".into()]));
}

#[tokio::test]
async fn a_server_that_nova_fails_to_migrate_holds_back_no_other_one() {
    let mut state = running(&["b0", "b1"]);
    state.refuses = Some(500);
    let (cloud, mut memory) = (Cloud::new(state).await, PassMemory::default());
    let found = cloud.pass(&migrate(2), &mut memory).await;
    let HostProgress::Occupied(found) = found else { panic!("{found:?}") };
    assert_eq!(found.stuck.len(), 2);
    assert_eq!(cloud.writes(), ["disabled", "move b0", "move b1"]);
}

/// Returns a service that nova has as down behind a cell that hangs; it reported in that second.
fn late(second: i8) -> Found {
    Found::Known(KnownService {
        id: "a0".into(),
        liveness: Liveness::Late,
        is_forced_down: false,
        is_disabled: false,
        disabled_reason: None,
        updated_at: Some(jiff::civil::date(2026, 11, 27).at(2, 0, second, 0)),
    })
}

#[test]
fn behind_a_cell_that_hangs_the_reports_between_two_passes_of_one_order_count() {
    let (order, start) = (HostOrder::EnableOnceUp, Instant::now());
    let judged = |earlier: &HostOrder, seconds, second| {
        let mut memory = PassMemory::default();
        memory.judged(earlier, start, late(8));
        match memory.judged(&order, start + Duration::from_secs(seconds), late(second)) {
            Found::Known(service) => service.liveness,
            Found::Unknown | Found::Absent => panic!("it has a service"),
        }
    };
    assert_eq!(judged(&order, 60, 9), Liveness::Up);
    assert_eq!(judged(&order, 60, 8), Liveness::Down);
    assert_eq!(judged(&order, 39, 8), Liveness::Late, "the pause of a report may be so long");
    // What was reported before the order was given says nothing of what the order is about.
    assert_eq!(judged(&HostOrder::Enable, 60, 9), Liveness::Late);
    assert_eq!(judged(&HostOrder::Enable, 60, 8), Liveness::Late);
}

#[test]
fn a_service_that_was_absent_or_silent_in_between_is_not_judged_by_older_reports() {
    let (order, start) = (HostOrder::Enable, Instant::now());
    for between in [Found::Absent, Found::Unknown] {
        let mut memory = PassMemory::default();
        memory.judged(&order, start, late(8));
        memory.judged(&order, start + Duration::from_mins(1), between);
        let found = memory.judged(&order, start + Duration::from_mins(2), late(8));
        let Found::Known(service) = found else { panic!("it has a service") };
        assert_eq!(service.liveness, Liveness::Late);
    }
}
