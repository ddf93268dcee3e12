//! Tests of the readers against a local Keystone and nova.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use nova_config::rendered_secret::cell_secret_name;
use operator_runtime::cache::{Cache, WriteThrough as _};
use operator_runtime::metrics::Metrics;
use serde_json::json;
use testkit::http_server::{Asked, server};

use super::followed::HOSTS_AT_A_TIME;
use super::*;
use crate::nova_health::{MappingHealth, ServiceHealth};
use crate::shared_caches::SharedCaches;
use crate::test_cloud::{leads, nova_cell, settings, token, view};

const MICROVERSION: &str = "OpenStack-API-Version: compute 2.69\r\n";
const LIMIT: Duration = Duration::from_secs(30);

/// A Keystone and a nova at one address; the service of host n0 is in the state that `state` says,
/// and mapped.
async fn cloud(state: impl Fn() -> &'static str + Send + 'static) -> (SocketAddr, Asked) {
    mapping_cloud(state, || true).await
}

/// The same, where `is_mapped` says whether host n0 is mapped.
async fn mapping_cloud(
    state: impl Fn() -> &'static str + Send + 'static,
    is_mapped: impl Fn() -> bool + Send + 'static,
) -> (SocketAddr, Asked) {
    server(move |text| {
        if text.starts_with("post ") {
            return token(text, &[("compute", "/v2.1")]);
        }
        let body = if text.starts_with("get /v2.1/ ") {
            json!({"version": {"version": "2.100", "min_version": "2.1"}})
        } else if text.contains("/os-services") {
            let state = state();
            let status = if state == "UNKNOWN" { state } else { "enabled" };
            json!({"services": [
                {"id": "a0", "host": "n0.example.org", "status": status, "state": state},
            ]})
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

/// The report about the node set: nova had its host as `host` in the second cell.
fn report(version: &str, host: &str) -> serde_json::Value {
    let recorded = json!({"n0": {"cell": "cell2", "serviceID": "a0"}}).to_string();
    json!({
        "apiVersion": "dataplane.openstack.org/v1beta1",
        "kind": "OpenStackDataPlaneHostReadiness",
        "metadata": {
            "name": "set-nova", "namespace": "ns", "uid": "r", "resourceVersion": version,
            "annotations": {"nova.openstack.org/hosts": recorded},
        },
        "spec": {"nodeSet": "set", "conditionType": "x", "hostFinalizers": {"n0": host}},
    })
}

/// A node set with host n0, under the name with which it is registered.
fn node_set() -> serde_json::Value {
    json!({
        "apiVersion": "dataplane.openstack.org/v1beta1",
        "kind": "OpenStackDataPlaneNodeSet",
        "metadata": {"name": "set", "namespace": "ns", "uid": "set", "resourceVersion": "1"},
        "spec": {
            "services": ["nova"],
            "nodes": {"n0": {"hostName": "n0.example.org"}},
            "nodeTemplate": {"ansibleSSHPrivateKeySecret": "ssh"},
        },
    })
}

struct World {
    monitor: Arc<NovaMonitor>,
    metrics: Metrics,
    queues: Queues,
}

fn world(interval: Duration) -> World {
    world_of(interval, true)
}

fn world_of(interval: Duration, cells_are_ours: bool) -> World {
    let caches = SharedCaches::default();
    caches.computes.absorb(&compute("n0", "cell1"));
    let (metrics, queues) = (Metrics::new("test"), Queues::default());
    let node_sets = Cache::new(vec![]);
    node_sets.absorb(&node_set());
    let objects = MonitoredObjects {
        caches,
        node_sets,
        reports: Cache::new(vec![]),
        services: Cache::new(vec![]),
        cells: Cache::new(vec![]),
        cells_are_ours,
    };
    let settings = settings(&metrics, leads());
    let monitor = NovaMonitor::new(interval, settings, objects, MonitorQueues::of(&queues));
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
    next(&world.queues.node_sets).await;
    assert_eq!(next(&world.queues.cells).await, cell("cell2"));
    world.monitor.follow(&cell("cell1"), complete(&view(address, "p")));
    assert_eq!(next(&world.queues.computes).await, Key::new("ns", "n0"));
    assert_eq!(next(&world.queues.cells).await, cell("cell1"));
    assert_eq!(world.monitor.api(&cell("cell1")), ApiHealth::Answers);
}

#[tokio::test]
async fn a_host_of_a_node_set_is_found_in_the_cell_that_has_it() {
    let (address, asked) = cloud(|| "up").await;
    let world = world(Duration::from_millis(5));
    let cells = [cell("cell1"), cell("cell2")];
    let of = |host: &str| world.monitor.host_in(&cells, host).service;
    world.monitor.follow(&cells[0], complete(&view(address, "p")));
    assert_eq!(of("n0.example.org"), ServiceHealth::Pending);
    assert_eq!(next(&world.queues.node_sets).await, Key::new("ns", "set"));
    assert_eq!(of("n0.example.org"), ServiceHealth::Up { disabled: None });
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
async fn the_cell_of_a_host_is_the_one_that_has_it_and_its_compute_is_found_there() {
    let (address, _) = cloud(|| "up").await;
    let world = world(Duration::from_mins(10));
    let (monitor, cells) = (&world.monitor, [cell("cell0"), cell("cell1")]);
    monitor.follow(&cells[1], complete(&view(address, "p")));
    assert_eq!(monitor.cell_with(&cells, "n0.example.org"), None, "nothing was read yet");
    next(&world.queues.node_sets).await;
    assert_eq!(monitor.cell_with(&cells, "n0.example.org"), Some(cell("cell1")));
    assert_eq!(monitor.cell_with(&cells, "other"), None);
    let compute = Some(Key::new("ns", "n0"));
    assert_eq!(monitor.compute_on(&cell("cell1"), "n0.example.org"), compute);
    assert_eq!(monitor.compute_on(&cell("cell1"), "other"), None);
    assert_eq!(monitor.compute_on(&cell("cell0"), "n0.example.org"), None, "it is not read");
}

#[tokio::test]
async fn other_credentials_are_another_reader_and_an_unused_one_ends() {
    let (address, asked) = cloud(|| "up").await;
    let world = world(Duration::from_millis(10));
    world.monitor.follow(&cell("cell1"), complete(&view(address, "p")));
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
    let host = std::slice::from_ref(&cell);
    assert_eq!(world.monitor.cell_with(host, "n0.example.org").as_ref(), Some(&cell));
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
    let world = world(Duration::from_millis(10));
    world.monitor.follow(&cell("cell1"), complete(&view(address, "p")));
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
    next(&world.queues.node_sets).await;
    assert_eq!(next(&world.queues.cell_readings).await, cell("cell1"));
    let expected = "Keystone refuses the credentials. Correct ServicePassword in Secret nova-cell1, or ACID \
         and ACSecret there if it has them.";
    assert_eq!(cause().as_deref(), Some(expected));
    for text in ["Secret bus is missing.", "Secret bus has no transport_url."] {
        world.monitor.follow(&cell("cell1"), CellInputs::Missing(text));
        next(&world.queues.node_sets).await;
        assert_eq!(cause().as_deref(), Some(text));
    }
}

#[tokio::test]
async fn a_refused_login_is_sent_once_and_leaves_the_hosts_unknown_after_three_readings() {
    let (address, asked) = server(|_| (401, String::new(), String::new())).await;
    let world = world(Duration::from_millis(5));
    world.monitor.follow(&cell("cell1"), complete(&view(address, "p")));
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
    let world = world(Duration::from_mins(10));
    world.monitor.follow(&cell("cell1"), complete(&view(address, "p")));
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
    let world = world(Duration::from_mins(10));
    world.monitor.follow(&cell("cell1"), complete(&view(address, "p")));
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
    world.monitor.follow(&cell("cell2"), complete(&view(address, "q")));
    assert_eq!(hosts(), ApiHosts::OfSeveralCells, "another user reads the same API");
    world.monitor.follow(&cell("cell1"), CellInputs::Gone);
    assert_eq!(hosts(), ApiHosts::Unknown);
}

fn service(name: &str, cell: &str) -> serde_json::Value {
    json!({
        "apiVersion": "dataplane.openstack.org/v1beta1",
        "kind": "OpenStackDataPlaneService",
        "metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "1"},
        "spec": {
            "edpmServiceType": "nova", "playbook": "osp.edpm.nova",
            "dataSources": [{"secretRef": {"name": cell_secret_name(cell)}}],
        },
    })
}

#[tokio::test]
async fn a_host_of_a_node_set_counts_once_to_the_cell_whose_files_its_set_uses() {
    let (address, _) = cloud(|| "up").await;
    let world = world(Duration::from_millis(5));
    let monitor = &world.monitor;
    let mut second = node_set();
    second["metadata"]["name"] = json!("younger");
    second["metadata"]["uid"] = json!("younger");
    second["metadata"]["creationTimestamp"] = json!("2026-01-02T00:00:00Z");
    monitor.objects.node_sets.absorb(&second);
    for name in ["cell1", "cell2"] {
        monitor.follow(&cell(name), complete(&view(address, "p")));
    }
    next(&world.queues.node_sets).await;
    let hosts = |name: &str| -> Vec<String> {
        monitor.set_hosts(&cell(name)).into_iter().flatten().map(|it| it.name).collect()
    };
    let both = || (hosts("cell1"), hosts("cell2"));
    let none: Vec<String> = vec![];
    assert_eq!(both(), (none.clone(), none.clone()), "a compute has the host");
    let mut other = compute("n0", "cell1");
    other["metadata"]["resourceVersion"] = json!("2");
    other["status"] = json!({});
    monitor.objects.caches.computes.absorb(&other);
    let of_first = vec!["set/n0".to_owned()];
    assert_eq!(both(), (of_first.clone(), none.clone()), "its set uses no cell");
    monitor.objects.services.absorb(&service("nova", "cell2"));
    assert_eq!(both(), (none, of_first), "the older set has it, and uses the second cell");
    assert_eq!(monitor.witness(&cell("cell2"), "gone"), None, "two cells may have its host");
    let lists_no_other = || monitor.lists_no_other(&cell("cell2"), "gone");
    assert!(!lists_no_other(), "no other is recorded");
    for (version, host, expected) in [("1", "n0.example.org", false), ("2", "n7", true)] {
        monitor.objects.reports.absorb(&report(version, host));
        assert_eq!(lists_no_other(), expected, "{host}");
    }
    monitor.follow(&cell("cell1"), CellInputs::Gone);
    let witness = || monitor.witness(&cell("cell2"), "gone");
    assert_eq!(witness().as_deref(), Some("n0.example.org"));
    monitor.objects.cells.absorb(&nova_cell("cell3", address));
    assert_eq!(witness(), None, "a cell that was not looked at may have its host");
    monitor.follow(&cell("cell3"), CellInputs::Gone);
    assert_eq!(witness().as_deref(), Some("n0.example.org"));
    monitor.follow(&cell("cell1"), complete(&view(address, "p")));
    let counted = async {
        let series = "edpm_nova_computes{namespace=\"ns\",cell=\"cell2\",state=\"up\"} 1";
        while !world.metrics.encode().contains(series) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LIMIT, counted).await.expect("the metric has it");
    assert_eq!(super::tests::counted(&world, "up").as_deref(), Some("0"));
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
    let world = world(Duration::from_millis(5));
    world.monitor.follow(&cell("cell1"), complete(&view(address, "p")));
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
async fn a_node_set_is_enqueued_when_one_of_its_hosts_is_mapped() {
    let is_mapped = Arc::new(AtomicBool::new(false));
    let mapped = Arc::clone(&is_mapped);
    let (address, _) = mapping_cloud(|| "up", move || mapped.load(Relaxed)).await;
    let world = world(Duration::from_millis(5));
    world.monitor.follow(&cell("cell1"), complete(&view(address, "p")));
    let of_host = || world.monitor.host_in(&[cell("cell1")], "n0.example.org");
    next(&world.queues.node_sets).await;
    assert_eq!(of_host().service, ServiceHealth::Up { disabled: None });
    assert_eq!(of_host().mapping, MappingHealth::NotMapped);
    is_mapped.store(true, Relaxed);
    assert_eq!(next(&world.queues.node_sets).await, Key::new("ns", "set"));
    assert_eq!(of_host().mapping, MappingHealth::Mapped);
}

#[test]
fn a_host_that_stays_missing_concerns_nothing_any_more() {
    let missing = |second| HostHealth {
        service: ServiceHealth::NotFound,
        missing_since: jiff::Timestamp::from_second(second).ok(),
        ..HostHealth::default()
    };
    let of = |cell| Registered {
        cell,
        key: Key::new("ns", "x"),
        host: "n0".to_owned(),
        at: jiff::Timestamp::from_second(5).ok(),
    };
    let up = || HostHealth { service: ServiceHealth::Up { disabled: None }, ..missing(1) };
    assert!(!of(None).is_concerned(&missing(1), &missing(2)));
    assert!(of(None).is_concerned(&up(), &missing(1)));
    let compute = of(Some(cell("cell1")));
    assert!(compute.is_concerned(&up(), &missing(1)));
    assert!(!compute.is_concerned(&missing(1), &missing(2)));
    assert!(compute.is_concerned(&missing(5), &missing(6)), "it registered before, and is missing");
    assert!(!compute.is_concerned(&missing(6), &missing(7)));
    let read = |second| HostHealth { read_at: jiff::Timestamp::from_second(second).ok(), ..up() };
    assert!(compute.is_concerned(&read(4), &read(6)), "it has registered in between");
    assert!(
        !compute.is_concerned(&read(6), &read(7)) && !of(None).is_concerned(&read(4), &read(6))
    );
    let down = |disabled: Option<&str>| HostHealth {
        service: ServiceHealth::Down { since: None, is_forced: false },
        disabled: disabled.map(str::to_owned),
        ..HostHealth::default()
    };
    assert!(of(None).is_concerned(&down(None), &down(Some("x"))), "it may have to be enabled");
}

#[tokio::test]
async fn cells_with_other_credentials_and_those_that_lost_their_inputs_share_a_nova() {
    let (address, _) = cloud(|| "up").await;
    let world = world(Duration::from_mins(10));
    let monitor = &world.monitor;
    monitor.follow(&cell("cell1"), complete(&view(address, "p")));
    monitor.follow(&cell("cell2"), complete(&view(address, "q")));
    let both = BTreeSet::from(["cell1", "cell2"].map(cell));
    let compute = Some(Key::new("ns", "n0"));
    let known = || (monitor.sharing(&cell("cell2")), monitor.nova_of(&cell("cell1")));
    let before = known();
    assert_eq!((before.0.clone(), before.1.is_some()), (both, true));
    assert_eq!(monitor.compute_on(&cell("cell2"), "n0.example.org"), compute);
    for cause in ["Secret nova-cell1 does not exist.", "Secret bus does not exist."] {
        monitor.follow(&cell("cell1"), CellInputs::Missing(cause));
        assert_eq!(known(), before);
        assert_eq!(monitor.compute_on(&cell("cell2"), "n0.example.org"), compute);
    }
    monitor.follow(&cell("cell1"), CellInputs::Gone);
    assert_eq!(monitor.sharing(&cell("cell2")), [cell("cell2")].into());
}

#[tokio::test]
async fn hosts_of_node_sets_are_not_known_before_nova_was_read() {
    let (address, _) = cloud(|| "up").await;
    let world = world(Duration::from_mins(10));
    let hosts = || world.monitor.set_hosts(&cell("cell1"));
    assert_eq!(hosts(), None);
    world.monitor.follow(&cell("cell1"), complete(&view(address, "p")));
    next(&world.queues.computes).await;
    assert_eq!(hosts(), Some(vec![]), "a compute has the host");
    assert_eq!(world.monitor.set_hosts(&Key::new("other", "cell1")), Some(vec![]));
}
