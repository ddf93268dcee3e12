//! Tests of the readers against a local Keystone and nova.

use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::Duration;

use api::dataplane::SeenDeployment;
use operator_runtime::cache::WriteThrough as _;
use operator_runtime::metrics::Metrics;
use operator_runtime::workqueue::WorkQueue;
use serde_json::{Value, json};
use testkit::http_server::{Asked, server};

use super::followed::HOSTS_AT_A_TIME;
use super::*;
use crate::nova::health::{MappingHealth, ServiceHealth};
use crate::shared_caches::SharedCaches;
use crate::test_cloud::{leads, settings, token, view};

const MICROVERSION: &str = "OpenStack-API-Version: compute 2.69\r\n";
const LIMIT: Duration = Duration::from_secs(30);

/// The password that Keystone refuses.
const REFUSED: &str = "refused";

/// A Keystone and a nova at one address; the service of host n0 is in the state that `state` says,
/// and mapped.
async fn cloud(state: impl Fn() -> &'static str + Send + 'static) -> (SocketAddr, Asked) {
    mapping_cloud(move || service(state(), None), || true).await
}

/// The service of host n0 in a state, with its last report.
fn service(state: &str, updated_at: Option<&str>) -> Value {
    let status = if state == "UNKNOWN" { state } else { "enabled" };
    json!({
        "id": "a0", "host": "n0.example.org", "status": status, "state": state,
        "updated_at": updated_at,
    })
}

/// The same, where `service` says what nova lists of host n0, and `is_mapped` whether it is mapped.
async fn mapping_cloud(
    service: impl Fn() -> Value + Send + 'static,
    is_mapped: impl Fn() -> bool + Send + 'static,
) -> (SocketAddr, Asked) {
    server(move |text| {
        if text.starts_with("post ") && text.contains(&format!("\"password\":\"{REFUSED}\"")) {
            return (401, String::new(), String::new());
        }
        if text.starts_with("post ") {
            return token(text, &[("compute", "/v2.1")]);
        }
        let body = if text.starts_with("get /v2.1/ ") {
            json!({"version": {"version": "2.100", "min_version": "2.1"}})
        } else if text.contains("/os-services") {
            json!({"services": [service()]})
        } else if text.contains("marker=") || !is_mapped() {
            json!({"hypervisors": []})
        } else {
            json!({"hypervisors": [{"id": "b0", "service": {"host": "n0.example.org"}}]})
        };
        (200, MICROVERSION.to_owned(), body.to_string())
    })
    .await
}

fn compute(name: &str, cell: &str) -> serde_json::Value {
    json!({
        "apiVersion": "nova.openstack.org/v1beta1",
        "kind": "NovaExternalCompute",
        "metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "1"},
        "spec": {"dataplaneNodeName": name, "cellName": cell},
        "status": {
            "hostName": format!("{name}.example.org"), "deployedInputs": {"bus": "a"},
            "services": [{
                "name": "nova-registered", "state": "Succeeded", "hash": "a", "deployedHash": "a",
                "attempt": 1, "since": "2026-01-01T00:00:00Z",
            }],
        },
    })
}

/// A compute of an unknown cell: a service of type nova was deployed to its host.
fn observed(name: &str) -> Value {
    let mut compute = compute(name, "");
    let mut record = compute["status"]["services"][0].take();
    record["name"] = json!("nova");
    compute["spec"] = json!({"dataplaneNodeName": name, "management": "Observed"});
    compute["status"]["services"] = json!([record]);
    compute["metadata"]["resourceVersion"] = json!("2");
    compute
}

struct World {
    monitor: Arc<NovaMonitor>,
    metrics: Metrics,
    queues: Queues,
}

fn world(interval: Duration) -> World {
    world_of(interval, true)
}

/// The same, once it follows the cell at that address.
fn following(interval: Duration, address: SocketAddr) -> World {
    let world = world(interval);
    world.monitor.follow(&cell("cell1"), complete(&view(address, "p")));
    world
}

fn world_of(interval: Duration, cells_are_ours: bool) -> World {
    let caches = SharedCaches::default();
    caches.computes.absorb(&compute("n0", "cell1"));
    let (metrics, queues) = (Metrics::new("test"), Queues::default());
    let objects = MonitoredObjects { caches, cells_are_ours };
    let settings = settings(&metrics, leads());
    let monitor = NovaMonitor::new(interval, settings, objects, queues.clone());
    World { monitor, metrics, queues }
}

/// Inputs that are there.
fn complete(view: &CellView) -> CellInputs<'_> {
    CellInputs::Complete { view, secret: "nova-cell1" }
}

/// The value of the series of computes of cell1 in a state; `None` without it.
fn counted(world: &World, state: &str) -> Option<String> {
    let text = world.metrics.encode();
    let series =
        format!("edpm_nova_computes{{namespace=\"ns\",cell=\"cell1\",state=\"{state}\"}} ");
    text.lines().find_map(|it| it.strip_prefix(&series)).map(str::to_owned)
}

async fn next(queue: &WorkQueue) -> Key {
    let key = tokio::time::timeout(LIMIT, queue.next()).await.expect("something is enqueued");
    queue.done(&key);
    key
}

fn cell(name: &str) -> Key {
    Key::new("ns", name)
}

fn requests(asked: &Asked, part: &str) -> usize {
    asked.lock().iter().filter(|it| it.contains(part)).count()
}

/// Waits until so many readings have begun; all before the last of them are taken in then.
async fn readings(asked: &Asked, n: usize) {
    let begun = async {
        while requests(asked, "os-services") < n {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LIMIT, begun).await.expect("the API is read again and again");
}

#[tokio::test]
async fn cells_that_use_the_same_api_share_one_login_and_one_reading() {
    let (address, asked) = cloud(|| "up").await;
    let world = world(Duration::from_mins(10));
    for name in ["cell1", "cell2"] {
        world.monitor.follow(&cell(name), complete(&view(address, "p")));
        world.monitor.follow(&cell(name), complete(&view(address, "p")));
    }
    assert_eq!(next(&world.queues.computes).await, Key::new("ns", "n0"));
    let health = world.monitor.host(&cell("cell1"), "n0.example.org");
    assert_eq!(health.service, ServiceHealth::Up { disabled: None });
    assert_eq!(health.mapping, MappingHealth::Mapped);
    let both = [next(&world.queues.cells).await, next(&world.queues.cells).await];
    assert_eq!(both, [cell("cell1"), cell("cell2")]);
    assert_eq!(world.monitor.api(&cell("cell2")), ApiHealth::Answers);
    let counts = ["post /v3/auth/tokens", "get /v2.1/ ", "os-services", "os-hypervisors"]
        .map(|it| requests(&asked, it));
    assert_eq!(counts, [1, 1, 1, 2]);
}

#[tokio::test]
async fn a_cell_that_joins_an_api_which_was_read_enqueues_its_objects() {
    let (address, _) = cloud(|| "up").await;
    let world = world(Duration::from_mins(10));
    world.monitor.follow(&cell("cell2"), complete(&view(address, "p")));
    assert_eq!(next(&world.queues.cells).await, cell("cell2"));
    world.monitor.follow(&cell("cell1"), complete(&view(address, "p")));
    assert_eq!(next(&world.queues.computes).await, Key::new("ns", "n0"));
    assert_eq!(next(&world.queues.cells).await, cell("cell1"));
    assert_eq!(world.monitor.api(&cell("cell1")), ApiHealth::Answers);
}

#[tokio::test]
async fn a_host_whose_cell_is_unknown_is_found_in_the_cell_that_has_it() {
    let (address, asked) = cloud(|| "up").await;
    let world = world(Duration::from_millis(5));
    let computes = &world.monitor.objects.caches.computes;
    computes.absorb(&observed("n0"));
    let cells = [cell("cell1"), cell("cell2")];
    let of = |host: &str| world.monitor.host_in(&cells, host).service;
    world.monitor.follow(&cells[0], complete(&view(address, "p")));
    assert_eq!(of("n0.example.org"), ServiceHealth::Pending);
    assert_eq!(next(&world.queues.computes).await, Key::new("ns", "n0"));
    assert_eq!(of("n0.example.org"), ServiceHealth::Up { disabled: None });
    assert_eq!(counted(&world, "up").as_deref(), Some("0"), "it counts to no cell");
    assert_eq!(of("other"), ServiceHealth::Pending, "the second cell may have it");
    // Only two readings show that the first cell does not have it.
    readings(&asked, 3).await;
    assert_eq!(of("other"), ServiceHealth::Pending, "the second cell may still have it");
    world.monitor.follow(&cells[1], CellInputs::Gone);
    assert_eq!(of("other"), ServiceHealth::ApiFails, "it is unknown what the second cell has");
    world.monitor.follow(&cells[1], complete(&view(address, "p")));
    let missing = async {
        while of("other") != ServiceHealth::NotFound {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LIMIT, missing).await.expect("both cells were read twice");
}

#[tokio::test]
async fn other_credentials_are_another_reader_and_an_unused_one_ends() {
    let (address, asked) = cloud(|| "up").await;
    let world = following(Duration::from_millis(10), address);
    next(&world.queues.computes).await;
    world.monitor.follow(&cell("cell1"), complete(&view(address, "q")));
    assert_eq!(world.monitor.api(&cell("cell1")), ApiHealth::Pending);
    next(&world.queues.computes).await;
    assert_eq!(requests(&asked, "\"password\":\"q\""), 1);
    world.monitor.follow(&cell("cell1"), CellInputs::Gone);
    assert!(world.monitor.cells.lock().readers.is_empty());
    let health = world.monitor.host(&cell("cell1"), "n0.example.org");
    assert_eq!(health.service, ServiceHealth::ApiFails);
}

#[tokio::test]
async fn a_cell_that_loses_an_input_leaves_what_was_known_for_three_intervals() {
    let (address, _) = cloud(|| "up").await;
    let world = world(Duration::from_millis(200));
    let (cell, of_host) = (cell("cell1"), |it: &Key| world.monitor.host(it, "n0.example.org"));
    assert_eq!(of_host(&cell), HostHealth::default(), "the cell was not reconciled yet");
    world.monitor.follow(&cell, complete(&view(address, "p")));
    next(&world.queues.computes).await;
    assert!(of_host(&cell).service.is_known());
    assert_eq!(counted(&world, "up").as_deref(), Some("1"));
    let missing = CellInputs::Missing("Secret bus is missing.");
    world.monitor.follow(&cell, missing);
    assert_eq!(next(&world.queues.computes).await, Key::new("ns", "n0"));
    assert_eq!(of_host(&cell).service, ServiceHealth::Pending, "what was reported stays");
    assert!(!world.monitor.is_unread(&cell) && !world.monitor.is_pending(&cell));
    world.monitor.follow(&cell, missing);
    assert_eq!(next(&world.queues.computes).await, Key::new("ns", "n0"));
    let health = of_host(&cell);
    assert_eq!(
        (health.service, health.mapping),
        (ServiceHealth::ApiFails, MappingHealth::ApiFails)
    );
    assert_eq!(health.cause, None, "the cell reports it");
    assert!(world.monitor.is_unread(&cell));
    assert_eq!(counted(&world, "unknown").as_deref(), Some("1"), "the series stay");
    world.monitor.follow(&cell, complete(&view(address, "p")));
    assert_eq!(of_host(&cell).service, ServiceHealth::Pending);
    next(&world.queues.computes).await;
    assert!(of_host(&cell).service.is_known());
}

#[tokio::test]
async fn a_cell_that_is_deleted_leaves_nothing_known_of_its_hosts_and_no_series() {
    let (address, _) = cloud(|| "up").await;
    let world = following(Duration::from_millis(10), address);
    next(&world.queues.computes).await;
    world.monitor.follow(&cell("cell1"), CellInputs::Gone);
    assert_eq!(next(&world.queues.computes).await, Key::new("ns", "n0"));
    let health = world.monitor.host(&cell("cell1"), "n0.example.org");
    assert_eq!(health.service, ServiceHealth::ApiFails);
    assert_eq!(health.cause.as_deref(), Some("NovaCell cell1 does not exist."));
    assert!(world.monitor.is_unread(&cell("cell1")));
    assert_eq!(counted(&world, "up"), None);
    world.monitor.follow(&cell("cell1"), CellInputs::Gone);
    assert!(world.queues.computes.is_empty(), "nothing has changed");
}

#[tokio::test]
async fn hosts_have_the_cause_where_another_operator_reconciles_their_cell() {
    let (address, _) = server(|_| (401, String::new(), String::new())).await;
    let world = world_of(Duration::from_millis(5), false);
    let cause = || world.monitor.host(&cell("cell1"), "n0.example.org").cause;
    world.monitor.follow(&cell("cell1"), complete(&view(address, "p")));
    next(&world.queues.computes).await;
    assert_eq!(next(&world.queues.cell_readings).await, cell("cell1"));
    let expected = "Keystone refuses the credentials. Correct ServicePassword in Secret nova-cell1, or ACID \
         and ACSecret there if it has them.";
    assert_eq!(cause().as_deref(), Some(expected));
    for text in ["Secret bus is missing.", "Secret bus has no transport_url."] {
        world.monitor.follow(&cell("cell1"), CellInputs::Missing(text));
        next(&world.queues.computes).await;
        assert_eq!(cause().as_deref(), Some(text));
    }
}

#[tokio::test]
async fn a_refused_login_is_sent_once_and_leaves_the_hosts_unknown_after_three_readings() {
    let (address, asked) = server(|_| (401, String::new(), String::new())).await;
    let world = following(Duration::from_millis(5), address);
    assert_eq!(next(&world.queues.computes).await, Key::new("ns", "n0"));
    let health = world.monitor.host(&cell("cell1"), "n0.example.org");
    let unread = HostHealth { nova: health.nova.clone(), ..HostHealth::unread() };
    assert_eq!(health, unread);
    assert_eq!(requests(&asked, "post /v3/auth/tokens"), 1);
    let shared = world.monitor.shared(&cell("cell1")).unwrap();
    assert!(shared.apis.placement.provider("a0").await.is_err());
    assert_eq!(requests(&asked, "post /v3/auth/tokens"), 1, "tasks of hosts share the pause");
}

#[tokio::test]
async fn a_host_of_the_cell_that_nova_has_shows_whether_the_cell_answers() {
    let (address, _) = cloud(|| "up").await;
    let world = following(Duration::from_mins(10), address);
    next(&world.queues.computes).await;
    let witness = |cell: &Key, host| world.monitor.witness(cell, host);
    assert_eq!(witness(&cell("cell1"), "gone").as_deref(), Some("n0.example.org"));
    assert_eq!(witness(&cell("cell1"), "n0.example.org"), None, "it is no other one");
    world.monitor.follow(&cell("cell2"), complete(&view(address, "p")));
    assert_eq!(witness(&cell("cell2"), "gone"), None, "it is in another cell");
    assert!(!world.monitor.lists_no_other(&cell("cell1"), "gone"));
    assert!(!world.monitor.lists_no_other(&cell("cell1"), "n0.example.org"), "there is no other");
}

#[tokio::test]
async fn a_host_of_which_nothing_was_read_yet_shows_nothing() {
    let world = world(Duration::from_mins(10));
    assert!(world.monitor.lists_no_other(&cell("cell1"), "gone"));
    assert_eq!(world.monitor.witness(&cell("cell1"), "gone"), None);
}

#[tokio::test]
async fn a_host_shows_that_the_cell_is_silent_as_long_as_it_is() {
    let (address, _) = cloud(|| "UNKNOWN").await;
    let world = following(Duration::from_mins(10), address);
    next(&world.queues.computes).await;
    let health = world.monitor.host(&cell("cell1"), "n0.example.org");
    assert_eq!(health.service, ServiceHealth::CellNotAnswering);
    let witness = world.monitor.witness(&cell("cell1"), "gone");
    assert_eq!(witness.as_deref(), Some("n0.example.org"));
}

#[tokio::test]
async fn a_cell_whose_hosts_hang_leaves_the_places_of_another_one_free() {
    let (address, _) = cloud(|| "up").await;
    let world = world(Duration::from_mins(10));
    let shared = |name: &str| {
        world.monitor.follow(&cell(name), complete(&view(address, "p")));
        world.monitor.shared(&cell(name)).unwrap()
    };
    let (hanging, other) = (shared("cell1"), shared("cell2"));
    assert!(Arc::ptr_eq(&hanging.apis, &other.apis), "they share the API");
    let all = u32::try_from(HOSTS_AT_A_TIME).unwrap();
    let _held = hanging.permits.try_acquire_many(all).unwrap();
    assert!(hanging.permits.try_acquire().is_err());
    assert!(other.permits.try_acquire().is_ok());
}

#[tokio::test]
async fn the_hosts_of_an_api_are_those_of_a_cell_that_uses_it_alone() {
    let (address, _) = cloud(|| "up").await;
    let world = world(Duration::from_mins(10));
    let hosts = || world.monitor.hosts(&cell("cell1"));
    assert_eq!(hosts(), ApiHosts::Unknown);
    world.monitor.follow(&cell("cell1"), complete(&view(address, "p")));
    next(&world.queues.computes).await;
    assert_eq!(hosts(), ApiHosts::OfCell(["n0.example.org".to_owned()].into()));
    for (name, password, expected) in [
        ("cell2", REFUSED, ApiHosts::OfCell(["n0.example.org".to_owned()].into())),
        ("cell3", "q", ApiHosts::OfSeveralCells),
    ] {
        world.monitor.follow(&cell(name), complete(&view(address, password)));
        while next(&world.queues.cells).await != cell(name) {}
        assert_eq!(hosts(), expected, "{name}: who has no login reads nothing");
    }
    world.monitor.follow(&cell("cell1"), CellInputs::Gone);
    assert_eq!(hosts(), ApiHosts::Unknown);
}

#[test]
fn a_compute_that_has_never_registered_is_not_counted() {
    let world = world(Duration::from_mins(10));
    let mut unregistered = compute("n1", "cell1");
    unregistered["status"] = json!({"hostName": "n1.example.org"});
    world.monitor.objects.caches.computes.absorb(&unregistered);
    let counted = world.monitor.objects.computes(&cell("cell1"));
    let hosts: Vec<&str> = counted.iter().map(|it| it.host.as_str()).collect();
    assert_eq!(hosts, ["n0.example.org"]);
}

#[tokio::test]
async fn a_compute_is_enqueued_when_what_is_known_of_it_changes_and_not_otherwise() {
    let is_up = Arc::new(AtomicBool::new(true));
    let state = Arc::clone(&is_up);
    let (address, asked) = cloud(move || if state.load(Relaxed) { "up" } else { "down" }).await;
    let world = following(Duration::from_millis(5), address);
    next(&world.queues.computes).await;
    let of_host = || world.monitor.host(&cell("cell1"), "n0.example.org").service;
    assert_eq!(of_host(), ServiceHealth::Up { disabled: None });
    is_up.store(false, Relaxed);
    let down = ServiceHealth::Down { since: None, is_forced: false };
    // First it is no longer known to be up, then it is known to be down.
    while of_host() != down {
        next(&world.queues.computes).await;
    }
    readings(&asked, requests(&asked, "os-services") + 3).await;
    // The second change may have been enqueued after the first one was handed out.
    if let Ok(key) = tokio::time::timeout(Duration::ZERO, world.queues.computes.next()).await {
        world.queues.computes.done(&key);
    }
    assert!(world.queues.computes.is_empty(), "readings that say the same enqueue nothing");
}

#[tokio::test]
async fn a_compute_is_enqueued_when_its_host_is_mapped() {
    let is_mapped = Arc::new(AtomicBool::new(false));
    let mapped = Arc::clone(&is_mapped);
    let (address, _) = mapping_cloud(|| service("up", None), move || mapped.load(Relaxed)).await;
    let world = following(Duration::from_millis(5), address);
    let of_host = || world.monitor.host_in(&[cell("cell1")], "n0.example.org");
    next(&world.queues.computes).await;
    assert_eq!(of_host().service, ServiceHealth::Up { disabled: None });
    assert_eq!(of_host().mapping, MappingHealth::NotMapped);
    is_mapped.store(true, Relaxed);
    assert_eq!(next(&world.queues.computes).await, Key::new("ns", "n0"));
    assert_eq!(of_host().mapping, MappingHealth::Mapped);
}

#[test]
fn a_host_that_stays_missing_concerns_nothing_any_more() {
    let missing = |second| HostHealth {
        service: ServiceHealth::NotFound,
        missing_since: jiff::Timestamp::from_second(second).ok(),
        ..HostHealth::default()
    };
    let compute = Registered {
        cell: Some(cell("cell1")),
        key: Key::new("ns", "x"),
        host: "n0".to_owned(),
        at: jiff::Timestamp::from_second(5).ok(),
    };
    let up = || HostHealth { service: ServiceHealth::Up { disabled: None }, ..missing(1) };
    assert!(compute.is_concerned(&up(), &missing(1)));
    assert!(!compute.is_concerned(&missing(1), &missing(2)));
    assert!(compute.is_concerned(&missing(5), &missing(6)), "it registered before, and is missing");
    assert!(!compute.is_concerned(&missing(6), &missing(7)));
    let read = |second| HostHealth { read_at: jiff::Timestamp::from_second(second).ok(), ..up() };
    assert!(compute.is_concerned(&read(4), &read(6)), "it has registered in between");
    assert!(!compute.is_concerned(&read(6), &read(7)));
    let down = |disabled: Option<&str>| HostHealth {
        service: ServiceHealth::Down { since: None, is_forced: false },
        disabled: disabled.map(str::to_owned),
        ..HostHealth::default()
    };
    assert!(compute.is_concerned(&down(None), &down(Some("x"))), "it may have to be enabled");
}

/// A world where computes of two cells have recorded the service that nova has of host n0.
async fn contested() -> (World, SocketAddr) {
    let (address, _) = cloud(|| "up").await;
    let world = world(Duration::from_mins(10));
    for (name, of, service_id) in
        [("n0", "cell1", "a0"), ("n1", "cell2", "a0"), ("n2", "cell2", "a9")]
    {
        let mut compute = compute(name, of);
        compute["status"]["hostName"] = json!("n0.example.org");
        compute["status"]["serviceID"] = json!(service_id);
        compute["metadata"]["resourceVersion"] = json!("2");
        world.monitor.objects.caches.computes.absorb(&compute);
    }
    world.monitor.follow(&cell("cell1"), complete(&view(address, "p")));
    while next(&world.queues.cells).await != cell("cell1") {}
    (world, address)
}

#[tokio::test]
async fn a_cell_without_a_login_shares_no_nova_and_confirms_nothing() {
    let (world, address) = contested().await;
    let confirmed = |name: &str| world.monitor.confirmed_on(&cell(name), "n0.example.org");
    let (own, other) = (Key::new("ns", "n0"), Key::new("ns", "n1"));
    assert_eq!(confirmed("cell1"), std::slice::from_ref(&own));
    world.monitor.follow(&cell("cell2"), complete(&view(address, REFUSED)));
    while next(&world.queues.cells).await != cell("cell2") {}
    assert_eq!(
        confirmed("cell1"),
        std::slice::from_ref(&own),
        "the URL of its Keystone alone says nothing"
    );
    assert_eq!(confirmed("cell2"), std::slice::from_ref(&own), "it learns who has the host");
    world.monitor.follow(&cell("cell2"), complete(&view(address, "q")));
    while next(&world.queues.cells).await != cell("cell2") {}
    assert_eq!(
        confirmed("cell1"),
        [own.clone(), other],
        "that the UUID differs is no proof either"
    );
    for inputs in [CellInputs::Missing("Secret bus is missing."), CellInputs::Gone] {
        world.monitor.follow(&cell("cell2"), inputs);
        assert_eq!(confirmed("cell1"), std::slice::from_ref(&own));
    }
    assert_eq!(world.monitor.confirmed_on(&cell("cell1"), "other"), []);
}

/// What `has_read_twice_since` is asked about.
fn attempt(attempt: i64) -> SeenDeployment {
    SeenDeployment { deployment: "d".into(), attempt }
}

#[tokio::test]
async fn a_host_is_read_twice_since_a_deployment_once_its_service_has_reported_in_between() {
    let (reports, n_reports) = (Arc::new(AtomicBool::new(false)), AtomicUsize::new(0));
    let is_reporting = Arc::clone(&reports);
    let reported = move || {
        let n = n_reports.fetch_add(usize::from(is_reporting.load(Relaxed)), Relaxed);
        service("up", Some(&format!("2026-01-01T00:{:02}:{:02}", n / 60 % 60, n % 60)))
    };
    let (address, asked) = mapping_cloud(reported, || true).await;
    let world = following(Duration::from_millis(5), address);
    next(&world.queues.computes).await;
    let n0 = Key::new("ns", "n0");
    let has = |number| world.monitor.has_read_twice_since(&n0, &attempt(number));
    assert!(!has(1));
    readings(&asked, requests(&asked, "os-services") + 4).await;
    assert!(!has(1), "nova goes on to have a service as up that has died");
    reports.store(true, Relaxed);
    assert_eq!(next(&world.queues.nodes).await, n0);
    assert!(has(1));
    assert!(!has(2), "what was read before another attempt has ended says nothing of it");
    assert_eq!(next(&world.queues.nodes).await, n0);
    assert!(has(2));
}

#[tokio::test]
async fn a_host_whose_service_is_down_was_read_too() {
    let (address, _) = cloud(|| "down").await;
    let world = following(Duration::from_millis(5), address);
    let n0 = Key::new("ns", "n0");
    assert!(!world.monitor.has_read_twice_since(&n0, &attempt(1)));
    assert_eq!(next(&world.queues.nodes).await, n0);
    assert!(world.monitor.has_read_twice_since(&n0, &attempt(1)));
}
