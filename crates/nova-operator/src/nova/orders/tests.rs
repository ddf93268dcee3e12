//! The tasks against a local Keystone and nova.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use api::dataplane::DisruptionTarget;
use api::nova::RegisteredNova;
use nova_config::conf::CellView;
use openstack_client::{Error, Service};
use operator_runtime::cache::WriteThrough as _;
use operator_runtime::lease::{Leadership, LeadershipWatch};
use operator_runtime::metrics::Metrics;
use serde_json::{Value, json};
use testkit::http_server::{Asked, server};
use tokio::sync::watch;
use tokio::time::timeout;

use super::*;
use crate::nova::drain::order::{Drain, DrainMode, MARKER, Stop};
use crate::nova::identity::Identity;
use crate::nova::monitor::CellInputs;
use crate::nova::monitor::objects::MonitoredObjects;
use crate::shared_caches::SharedCaches;
use crate::shared_caches::queues::Queues;
use crate::test_cloud::{leads, settings, token, view};

const MICROVERSION: &str = "OpenStack-API-Version: compute 2.69\r\n";
const LIMIT: Duration = Duration::from_secs(30);

/// A Keystone and a nova with one host without servers, which fails while `fails` says so.
async fn cloud(fails: Arc<AtomicBool>) -> (SocketAddr, Asked) {
    let is_disabled = AtomicBool::new(false);
    server(move |text| {
        if text.starts_with("post ") {
            return token(text, &[("compute", "/v2.1")]);
        }
        if fails.load(Relaxed) {
            return (500, String::new(), String::new());
        }
        if text.starts_with("put ") {
            is_disabled.store(text.contains("\"disabled\""), Relaxed);
        }
        let disabled = is_disabled.load(Relaxed);
        let body = if text.starts_with("get /v2.1/ ") {
            json!({"version": {"version": "2.100", "min_version": "2.1"}})
        } else if text.contains("/os-services") {
            json!({"services": [{
                "id": "a0", "host": "n0", "state": "up",
                "status": if disabled { "disabled" } else { "enabled" },
                "disabled_reason": disabled.then_some(MARKER),
            }]})
        } else if text.contains("/os-hypervisors/b0") {
            json!({"hypervisor": {"id": "b0"}})
        } else if text.contains("/os-hypervisors") && !text.contains("marker=") {
            json!({"hypervisors": [{"id": "b0", "service": {"host": "n0"}}]})
        } else if text.contains("/os-hypervisors") {
            json!({"hypervisors": []})
        } else if text.contains("/os-migrations") {
            json!({"migrations": []})
        } else {
            json!({"servers": []})
        };
        (200, MICROVERSION.to_owned(), body.to_string())
    })
    .await
}

struct World {
    monitor: Arc<NovaMonitor>,
    orders: Arc<NovaOrders>,
    queue: Arc<WorkQueue>,
    nodes: Arc<WorkQueue>,
}

impl World {
    /// Gives this order about the object, or none; returns what is found for it.
    fn give(&self, order: Option<&OrderOfHost>) -> HostProgress {
        let order = order.cloned().map(decided);
        self.orders.give(&object(), order.as_slice());
        self.orders.findings(&object()).of(order.as_ref())
    }
}

/// The order as a plan has it.
fn decided(what: OrderOfHost) -> Order<OrderOfHost> {
    Order { what, reason: "of the test".to_owned() }
}

fn world(address: SocketAddr) -> World {
    world_of(address, leads())
}

/// A cloud whose host has nothing, and what was asked of it.
async fn empty_cloud() -> (World, Asked) {
    let (address, asked) = cloud(Arc::default()).await;
    (world(address), asked)
}

fn world_of(address: SocketAddr, leadership: LeadershipWatch) -> World {
    world_with(address, leadership, objects())
}

/// Returns empty caches.
fn objects() -> MonitoredObjects {
    MonitoredObjects { caches: SharedCaches::default(), cells_are_ours: true }
}

fn world_with(
    address: SocketAddr,
    leadership: LeadershipWatch,
    objects: MonitoredObjects,
) -> World {
    let (queue, others) = (Arc::<WorkQueue>::default(), Queues::default());
    let interval = Duration::from_millis(20);
    let settings = settings(&Metrics::new("test"), leadership);
    let monitor = NovaMonitor::new(interval, settings, objects, others.clone());
    monitor.follow(&cell(), complete(&view(address, "p")));
    let queues = vec![Arc::clone(&queue), Arc::clone(&others.nodes)];
    let orders = NovaOrders::new(Arc::clone(&monitor), queues);
    World { orders, monitor, queue, nodes: others.nodes }
}

fn complete(view: &CellView) -> CellInputs<'_> {
    CellInputs::Complete { view, secret: "s" }
}

fn cell() -> Key {
    Key::new("ns", "cell1")
}

fn object() -> Key {
    Key::new("ns", "n0")
}

fn of(order: HostOrder) -> OrderOfHost {
    let (host, meant_for) = ("n0".to_owned(), Identity::default());
    OrderOfHost { cell: cell(), host, meant_for, order, target: None }
}

fn drain() -> OrderOfHost {
    of(HostOrder::Drain(Drain { mode: DrainMode::Wait, reason: String::new() }))
}

/// Waits until the object is enqueued and its host is found like that.
async fn until(world: &World, order: &OrderOfHost, is: impl Fn(&HostProgress) -> bool) {
    loop {
        let key = timeout(LIMIT, world.queue.next()).await.expect("the object is enqueued");
        world.queue.done(&key);
        if is(&world.give(Some(order))) {
            return;
        }
    }
}

/// Gives the order to drain, and waits until that is done.
async fn drained(world: &World) {
    world.give(Some(&drain()));
    until(world, &drain(), |it| *it == HostProgress::Drained).await;
}

fn puts(asked: &Asked) -> usize {
    asked.lock().iter().filter(|it| it.starts_with("put ")).count()
}

#[tokio::test]
async fn a_host_is_drained_and_enabled_with_one_write_each() {
    let (world, asked) = empty_cloud().await;
    assert_eq!(world.give(Some(&drain())), HostProgress::Pending);
    until(&world, &drain(), |it| *it == HostProgress::Drained).await;
    assert_eq!(puts(&asked), 1);
    let enable = of(HostOrder::Enable);
    assert_eq!(world.give(Some(&enable)), HostProgress::Pending);
    until(&world, &enable, |it| *it == HostProgress::Released).await;
    assert_eq!(puts(&asked), 2);
}

#[tokio::test]
async fn a_host_is_empty_once_its_compute_node_as_last_read_has_no_servers() {
    let (world, asked) = empty_cloud().await;
    readings(&asked, 3).await;
    let order = of(HostOrder::InspectForRemoval(Stop::Due));
    world.give(Some(&order));
    until(&world, &order, |it| *it == HostProgress::Empty).await;
    assert!(requests(&asked, "/os-hypervisors/b0?with_servers=true ") > 0);
}

#[tokio::test]
async fn a_replica_whose_term_has_ended_reads_but_changes_nothing() {
    let (address, asked) = cloud(Arc::default()).await;
    let term = "me/0".to_owned();
    let (leadership, watch) = watch::channel(Leadership::Leading { term, until: None });
    let world = world_of(address, watch);
    drained(&world).await;
    // It was suspended for longer than its Lease, and runs on.
    let term = "me/0".to_owned();
    leadership.send_replace(Leadership::Leading { term, until: Some(Instant::now()) });
    let enable = of(HostOrder::Enable);
    world.give(Some(&enable));
    let refused = HostProgress::Fails(Fault::of(Service::Compute, Error::NotLeader));
    until(&world, &enable, |it| *it == refused).await;
    assert_eq!(puts(&asked), 1);
}

#[tokio::test]
async fn an_order_that_is_meant_for_another_nova_is_not_carried_out() {
    let (address, asked) = cloud(Arc::default()).await;
    let world = world(address);
    let nova = |region: &str| {
        let (keystone_auth_url, region) = (format!("http://{address}"), region.to_owned());
        let nova = Some(RegisteredNova { keystone_auth_url, region });
        let meant_for = Identity { nova, ..Identity::default() };
        OrderOfHost { meant_for, ..drain() }
    };
    let memory =
        || Memory { of_passes: PassMemory::default(), n_failed: 0, read_at: Instant::now() };
    let found = world.orders.found(&nova("one"), &mut memory()).await;
    assert_eq!((found, puts(&asked)), (Some(HostProgress::Pending), 0));
    let found = world.orders.found(&nova("regionOne"), &mut memory()).await;
    assert!(matches!(found, Some(HostProgress::Occupied(_))), "{found:?}");
    assert_eq!(puts(&asked), 1);
}

#[tokio::test]
async fn a_task_ends_without_an_order_and_begins_anew_with_one() {
    let (world, _) = empty_cloud().await;
    drained(&world).await;
    assert_eq!(world.give(None), HostProgress::Pending);
    tasks_left(&world, 0).await;
    drained(&world).await;
}

#[tokio::test]
async fn a_failure_is_known_after_three_passes_and_forgotten_after_one() {
    let fails = Arc::new(AtomicBool::new(false));
    let (address, _) = cloud(Arc::clone(&fails)).await;
    let world = world(address);
    drained(&world).await;
    fails.store(true, Relaxed);
    until(&world, &drain(), |it| matches!(it, HostProgress::Fails(_))).await;
    fails.store(false, Relaxed);
    until(&world, &drain(), |it| *it == HostProgress::Drained).await;
}

#[tokio::test]
async fn a_cell_that_loses_its_inputs_leaves_the_progress_unknown() {
    let (address, _) = cloud(Arc::default()).await;
    let world = world(address);
    drained(&world).await;
    world.monitor.follow(&cell(), CellInputs::Missing("It is missing."));
    let unread = HostProgress::Unread { cell: "cell1".to_owned() };
    until(&world, &drain(), |it| *it == unread).await;
    world.monitor.follow(&cell(), complete(&view(address, "p")));
    until(&world, &drain(), |it| *it == HostProgress::Drained).await;
}

/// Waits until the services were listed so many more times.
async fn readings(asked: &Asked, n: usize) {
    let count = || requests(asked, "/os-services?binary=nova-compute ");
    let n = count() + n;
    let read = async {
        while count() < n {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LIMIT, read).await.expect("the services are listed");
}

fn requests(asked: &Asked, part: &str) -> usize {
    asked.lock().iter().filter(|it| it.contains(part)).count()
}

#[tokio::test]
async fn a_drained_host_costs_no_requests_until_its_service_is_enabled_or_unknown() {
    let fails = Arc::new(AtomicBool::new(false));
    let (address, asked) = cloud(Arc::clone(&fails)).await;
    let world = world(address);
    drained(&world).await;
    // The reading that has the service disabled, and a pass that may have begun before it.
    readings(&asked, 3).await;
    let n_lists = requests(&asked, "/servers?");
    readings(&asked, 10).await;
    assert_eq!(requests(&asked, "/servers?"), n_lists);
    let nova = world.monitor.shared(&cell()).unwrap();
    nova.apis.compute.enable("a0").await.unwrap();
    let again = async {
        while requests(&asked, "/servers?") < n_lists + 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LIMIT, again).await.expect("a service that was enabled is disabled again");
    assert!(puts(&asked) >= 3);
}

/// Waits until so many tasks are left.
async fn tasks_left(world: &World, n: usize) {
    let ended = async {
        while world.orders.tasks.lock().len() != n {
            tokio::task::yield_now().await;
        }
    };
    timeout(LIMIT, ended).await.expect("the other tasks end");
}

#[tokio::test]
async fn each_host_of_an_object_has_an_order_of_its_own() {
    let (world, asked) = empty_cloud().await;
    let on = |host: &str| decided(OrderOfHost { host: host.to_owned(), ..drain() });
    let both = [on("n0"), on("n1")];
    // The second host has no service.
    let expected = [HostProgress::Drained, HostProgress::NotFound];
    loop {
        world.orders.give(&object(), &both);
        let found = world.orders.findings(&object());
        if both.each_ref().map(|it| found.of(Some(it))) == expected {
            break;
        }
        let key = timeout(LIMIT, world.queue.next()).await.expect("the object is enqueued");
        world.queue.done(&key);
    }
    assert_eq!(puts(&asked), 1);
    world.orders.give(&object(), &both[1..]);
    let found = world.orders.findings(&object());
    assert_eq!(
        both.each_ref().map(|it| found.of(Some(it))),
        [HostProgress::Pending, HostProgress::NotFound]
    );
    tasks_left(&world, 1).await;
}

#[tokio::test]
async fn each_leftover_of_a_host_has_an_order_of_its_own() {
    let (world, asked) = empty_cloud().await;
    let leftover = |id: &str| {
        let left = LeftBehind { service_id: Some(id.to_owned()), compute_id: None };
        decided(of(HostOrder::DeleteLeftover(left)))
    };
    let both = [leftover("a1"), leftover("a2")];
    world.orders.give(&object(), &both);
    tasks_left(&world, 2).await;
    world.orders.give(&object(), &both[1..]);
    tasks_left(&world, 1).await;
    assert_eq!(puts(&asked), 0, "nova has another service of the host");
}

#[tokio::test]
async fn what_was_found_says_nothing_of_another_order_and_stays_where_the_same_one_is_given_again()
{
    let (world, asked) = empty_cloud().await;
    drained(&world).await;
    let found = world.orders.findings(&object());
    for other in [
        of(HostOrder::DrainForRemoval(
            Drain { mode: DrainMode::Wait, reason: String::new() },
            None,
        )),
        OrderOfHost { cell: Key::new("ns", "cell2"), ..drain() },
        OrderOfHost {
            meant_for: Identity { service_id: Some("a0".to_owned()), ..Identity::default() },
            ..drain()
        },
        for_target(1),
    ] {
        assert_eq!(found.of(Some(&decided(other))), HostProgress::Pending);
    }
    let reason = "another reason".to_owned();
    world.orders.give(&object(), &[Order { what: drain(), reason }]);
    assert_eq!(world.orders.findings(&object()), found);
    assert_eq!(puts(&asked), 1, "it is given once");
}

#[tokio::test]
async fn an_order_that_is_not_decided_any_more_ends_also_where_no_new_one_may_begin() {
    let (world, asked) = empty_cloud().await;
    drained(&world).await;
    world.orders.keep(&object(), &[decided(drain())]);
    let kept = world.orders.findings(&object()).of(Some(&decided(drain())));
    assert_eq!(kept, HostProgress::Drained, "it goes on");
    world.orders.keep(&object(), &[decided(of(HostOrder::Enable))]);
    assert_eq!(world.orders.findings(&object()), Findings::default());
    tasks_left(&world, 0).await;
    assert_eq!(puts(&asked), 1, "the service stays disabled");
}

#[tokio::test]
async fn a_host_that_is_to_be_changed_is_read_again_although_it_was_found_empty() {
    let (world, asked) = empty_cloud().await;
    drained(&world).await;
    readings(&asked, 3).await;
    let n_lists = requests(&asked, "/servers?");
    let change =
        of(HostOrder::DrainForChange(Drain { mode: DrainMode::Wait, reason: String::new() }));
    assert_eq!(world.give(Some(&change)), HostProgress::Pending);
    until(&world, &change, |it| *it == HostProgress::Drained).await;
    readings(&asked, 10).await;
    assert!(requests(&asked, "/servers?") > n_lists + 1, "it is read as long as it waits");
    assert_eq!(puts(&asked), 1);
}

/// A drain that a deployment waits for.
fn for_target(number: i64) -> OrderOfHost {
    let target = DisruptionTarget { deployment: "d".to_owned(), number };
    OrderOfHost { target: Some(target), ..drain() }
}

#[tokio::test]
async fn another_target_is_another_order_and_the_newest_one_is_known() {
    let (world, _) = empty_cloud().await;
    assert_eq!(world.orders.newest(&object()), None);
    world.give(Some(&for_target(1)));
    until(&world, &for_target(1), |it| *it == HostProgress::Drained).await;
    let node = timeout(LIMIT, world.nodes.next()).await.expect("the node is enqueued too");
    assert_eq!(node, object());
    assert_eq!(world.orders.newest(&object()), Some((for_target(1), HostProgress::Drained)));
    assert_eq!(world.give(Some(&for_target(2))), HostProgress::Pending, "it is drained anew");
    assert_eq!(world.orders.newest(&object()), Some((for_target(2), HostProgress::Pending)));
    world.give(None);
    assert_eq!(world.orders.newest(&object()), None);
}

#[tokio::test]
async fn nothing_is_done_about_a_host_that_nova_shows_to_be_of_another_compute_too() {
    let (address, asked) = cloud(Arc::default()).await;
    let objects = with_compute(None);
    let mut rival = compute_n9();
    rival["metadata"]["resourceVersion"] = json!("2");
    rival["status"]["hostName"] = json!("n0");
    rival["status"]["serviceID"] = json!("a0");
    objects.caches.computes.absorb(&rival);
    let world = world_with(address, leads(), objects);
    let confirmed = async {
        while world.monitor.confirmed_on(&cell(), "n0").is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LIMIT, confirmed).await.expect("nova shows who has the host");
    world.give(Some(&drain()));
    until(&world, &drain(), |it| matches!(it, HostProgress::OtherIdentity(_))).await;
    let HostProgress::OtherIdentity(text) = world.give(Some(&drain())) else { panic!("not held") };
    assert!(text.contains("NovaExternalCompute ns/n9") && text.contains("skip-cleanup"), "{text}");
    let inspection = of(HostOrder::Inspect);
    world.give(Some(&inspection));
    until(&world, &inspection, |it| *it == HostProgress::Empty).await;
    assert_eq!(puts(&asked), 0);
}

/// Waits until a host that nova has no service of is found like that.
async fn found_absent(world: &World, order: HostOrder) -> HostProgress {
    let order = OrderOfHost { host: "gone".to_owned(), ..of(order) };
    world.give(Some(&order));
    until(world, &order, |it| *it != HostProgress::Pending).await;
    world.give(Some(&order))
}

const DELETED: Option<&str> = Some("2026-01-01T00:00:00Z");

/// A registered compute of another host of the cell.
fn compute_n9() -> Value {
    json!({
        "apiVersion": "nova.openstack.org/v1beta1",
        "kind": "NovaExternalCompute",
        "metadata": {
            "name": "n9", "namespace": "ns", "uid": "n9", "resourceVersion": "1",
        },
        "spec": {"dataplaneNodeName": "n9", "cellName": "cell1"},
        "status": {
            "hostName": "n9", "deployedInputs": {"bus": "a"},
            "services": [{
                "name": "nova-registered", "state": "Succeeded", "hash": "a",
                "deployedHash": "a", "attempt": 1, "since": "2026-01-01T00:00:00Z",
            }],
        },
    })
}

/// Returns caches with that compute.
fn with_compute(deleted: Option<&str>) -> MonitoredObjects {
    let (objects, mut compute) = (objects(), compute_n9());
    compute["metadata"]["deletionTimestamp"] = json!(deleted);
    objects.caches.computes.absorb(&compute);
    objects
}

#[tokio::test]
async fn a_removal_is_held_where_nova_lists_none_of_the_other_hosts_of_the_cell() {
    let drain = || Drain { mode: DrainMode::Wait, reason: String::new() };
    let unconfirmed = HostProgress::CellNotConfirmed;
    for (objects, expected) in
        [(with_compute(None), &unconfirmed), (with_compute(DELETED), &HostProgress::NotFound)]
    {
        let (address, _) = cloud(Arc::default()).await;
        let world = world_with(address, leads(), objects);
        let removal = HostOrder::DrainForRemoval(drain(), None);
        assert_eq!(&found_absent(&world, removal).await, expected);
        let of_user = found_absent(&world, HostOrder::Drain(drain())).await;
        assert_eq!(of_user, HostProgress::NotFound, "a drain alone stops nothing");
    }
}
