//! What a drain of the host does to the status of its compute.

use nova_config::annotations::{DRAIN, MAX_MIGRATIONS};
use openstack_client::{Error, Fault, Service};
use operator_core::object_key::Key;
use operator_core::plan::Target;
use operator_core::reasons::FORBIDDEN;
use operator_core::rejected_write::RejectedWrite;

use super::*;
use crate::compute::deploy::resolve::with_progress;
use crate::nova::drain::findings::Findings;
use crate::nova::drain::order::{Drain, DrainMode, HostOrder, MARKER};
use crate::nova::drain::progress::{HostProgress, Occupied, Stuck, StuckCause};
use crate::nova::health::{HostHealth, MappingHealth, ServiceHealth};
use crate::nova::identity::Identity;

/// A deployed compute whose node has this annotation, and of which a pass found this.
fn world(drain: Option<&str>, progress: Option<HostProgress>) -> World {
    let mut world = World::deployed();
    annotate(&mut world, drain);
    found(&mut world, progress);
    world
}

fn annotate(world: &mut World, drain: Option<&str>) {
    let annotations = world.node().annotations_mut();
    annotations.remove(DRAIN);
    annotations.extend(drain.map(|it| (DRAIN.to_owned(), it.to_owned())));
}

fn found(world: &mut World, progress: Option<HostProgress>) {
    let up = ServiceHealth::Up { disabled: None };
    world.seen.health = progress.is_some().then(|| HostHealth {
        service: up,
        mapping: MappingHealth::Mapped,
        ..HostHealth::default()
    });
    world.seen.drain = progress;
    world.settle();
}

fn marked(world: &mut World) {
    world.seen.health.as_mut().unwrap().disabled = Some(format!("{MARKER}: kernel"));
    world.settle();
}

#[track_caller]
fn check(world: &World, status: ConditionStatus, reason: &str, part: &str) {
    assert_eq!(world.condition("Drained").status, status);
    world.says("Drained", reason, &[part]);
    assert_eq!(world.reason("Ready"), "Ready", "a drain changes no Ready");
}

#[test]
fn without_a_request_there_is_no_condition() {
    assert!(!world(None, None).has_condition("Drained"));
    let mut world = world(None, Some(HostProgress::Pending));
    assert!(!world.has_condition("Drained"));
    marked(&mut world);
    check(&world, ConditionStatus::False, "EnablingService", "n0.example.org is being enabled");
}

#[test]
fn a_drain_is_reported_from_its_request_to_its_end() {
    let mut world = world(Some("wait"), Some(HostProgress::Pending));
    check(&world, ConditionStatus::Unknown, "NotRead", "have not been read yet");
    let servers = vec!["b0".to_owned(), "b1".to_owned()];
    let occupied = Occupied { servers: servers.into(), migrations: 1, ..Occupied::default() };
    found(&mut world, Some(HostProgress::Occupied(occupied.clone())));
    let part = "has 2 servers and 1 open migration, and nova schedules nothing to it. Migrate or \
                delete them; `openstack server list --all-projects --host n0.example.org` lists \
                them.";
    check(&world, ConditionStatus::False, "ServersOnHost", part);
    found(&mut world, Some(HostProgress::Pending));
    check(&world, ConditionStatus::False, "ServersOnHost", part);
    found(&mut world, Some(HostProgress::DisabledByNova));
    check(&world, ConditionStatus::False, "DisabledByNova", "or disable it in your own words");
    found(&mut world, Some(HostProgress::Drained));
    check(&world, ConditionStatus::True, "Drained", "no servers and no open migrations");
    annotate(&mut world, Some("migrate"));
    found(&mut world, Some(HostProgress::Occupied(occupied)));
    check(&world, ConditionStatus::False, "Migrating", "at most 2 at a time");
    annotate(&mut world, None);
    found(&mut world, Some(HostProgress::Pending));
    check(&world, ConditionStatus::False, "EnablingService", "n0.example.org is being enabled");
    found(&mut world, Some(HostProgress::Released));
    assert!(!world.has_condition("Drained"));
}

#[test]
fn the_servers_that_move_and_may_lose_their_config_drive_are_counted() {
    let servers = vec!["b0".to_owned(), "b1".to_owned()];
    let mut occupied =
        Occupied { servers: servers.into(), config_drives: 1, ..Occupied::default() };
    let part = "Servers with a config drive among those that move: 1; nova 2025.1 or later leaves \
                it empty on a host without shared storage, see docs/guests.md.";
    let mut world = world(Some("migrate"), Some(HostProgress::Occupied(occupied.clone())));
    check(&world, ConditionStatus::False, "Migrating", &format!("at most 2 at a time. {part}"));
    let cause = StuckCause::Status("SHUTOFF".to_owned());
    occupied.stuck = vec![Stuck { server: "b2".to_owned(), cause }].into();
    found(&mut world, Some(HostProgress::Occupied(occupied.clone())));
    let expected = format!("{part} Not migrated live: b2");
    check(&world, ConditionStatus::False, "ServersStuck", &expected);
    occupied.config_drives = 0;
    found(&mut world, Some(HostProgress::Occupied(occupied)));
    assert!(!world.condition("Drained").message.contains("config drive"));
}

#[test]
fn only_a_service_that_the_operator_disabled_is_enabled() {
    let mut world = world(None, Some(HostProgress::Pending));
    let disable = |world: &mut World, reason: Option<&str>| {
        world.seen.health.as_mut().unwrap().disabled = reason.map(str::to_owned);
    };
    for (reason, order) in
        [(Some(MARKER), Some(HostOrder::Enable)), (Some("broken"), None), (None, None)]
    {
        disable(&mut world, reason);
        assert_eq!(host_order(&world.seen), order);
    }
    annotate(&mut world, Some("wait"));
    for reason in [None, Some("broken"), Some(MARKER)] {
        disable(&mut world, reason);
        assert!(matches!(host_order(&world.seen), Some(HostOrder::Drain(_))));
    }
    annotate(&mut world, Some("evacuate"));
    assert_eq!(host_order(&world.seen), None);
}

/// What passes have found with the order of the present plan.
fn found_with(world: &mut World, progress: HostProgress) -> (OrderOfHost, Findings) {
    let order = world.pass().orders.pop().expect("an order").what;
    let found = [(order.clone(), progress)].into_iter().collect();
    (order, found)
}

#[test]
fn a_plan_has_the_order_about_the_host_with_what_it_is_meant_for_and_why() {
    let mut world = world(Some("wait"), Some(HostProgress::Pending));
    let status = world.compute().status.as_mut().unwrap();
    (status.service_id, status.compute_id) = (Some("s".to_owned()), Some("c".to_owned()));
    let orders = world.pass().orders;
    assert_eq!(orders.len(), 1, "{orders:?}");
    let drain = Drain { mode: DrainMode::Wait, reason: String::new() };
    let expected = OrderOfHost {
        cell: Key::new("ns", "nova-cell1"),
        host: "n0.example.org".to_owned(),
        meant_for: Identity::recorded(&world.seen.compute),
        order: HostOrder::Drain(drain),
        target: None,
    };
    assert_eq!(orders[0].what, expected);
    assert_eq!(expected.meant_for.service_id.as_deref(), Some("s"));
    assert_eq!(orders[0].reason, "a drain of its host is requested");
    let step = Step::delete(Target::of(&*world.seen.compute), "of the test");
    let rejected = RejectedWrite::of(&step, &FORBIDDEN, "no");
    let report = decide(&world.seen, Some(&rejected), world.now).only_statuses();
    assert_eq!(report.orders, orders, "also where a write is rejected");
    world.seen.drain = None;
    assert_eq!(world.pass().orders, [], "nova's API is not used");
}

#[test]
fn what_was_found_counts_only_for_the_order_that_is_decided_now() {
    let mut world = world(Some("wait"), Some(HostProgress::Pending));
    let (_, found) = found_with(&mut world, HostProgress::Drained);
    let drain = |world: &World| with_progress(&world.seen, &found).drain;
    assert_eq!(drain(&world), Some(HostProgress::Drained));
    annotate(&mut world, Some("migrate"));
    assert_eq!(drain(&world), Some(HostProgress::Pending), "of another drain");
    annotate(&mut world, Some("wait"));
    world.seen.health.as_mut().unwrap().service_id = Some("s1".to_owned());
    world.compute().status.as_mut().unwrap().service_id = Some("s0".to_owned());
    let other = drain(&world);
    assert!(matches!(other, Some(HostProgress::OtherIdentity(_))), "{other:?}");
    assert_eq!(world.pass().orders, [], "nothing is asked of another service");
}

#[test]
fn an_order_stays_the_same_whatever_is_found_with_it() {
    let mut world = world(Some("wait"), Some(HostProgress::Drained));
    annotate(&mut world, None);
    world.seen.drain = Some(HostProgress::Pending);
    let (order, found) = found_with(&mut world, HostProgress::Released);
    assert_eq!(order.order, HostOrder::Enable);
    world.seen = with_progress(&world.seen, &found);
    assert_eq!(world.seen.drain, Some(HostProgress::Released));
    let plan = decide(&world.seen, None, world.now);
    assert_eq!(plan.orders.into_iter().map(|it| it.what).collect::<Vec<_>>(), [order]);
}

#[test]
fn a_service_is_enabled_although_no_reading_has_shown_the_marker_yet() {
    let mut world = world(Some("wait"), Some(HostProgress::Drained));
    annotate(&mut world, None);
    world.seen.drain = Some(HostProgress::Pending);
    assert_eq!(host_order(&world.seen), Some(HostOrder::Enable));
    found(&mut world, Some(HostProgress::NotFound));
    assert!(!world.has_condition("Drained"));
    assert_eq!(host_order(&world.seen), None);
}

#[test]
fn servers_that_cannot_move_are_named_with_the_cause() {
    let stuck = |server: &str, cause| Stuck { server: server.to_owned(), cause };
    let occupied = Occupied {
        servers: vec![].into(),
        stuck: vec![
            stuck("b0", StuckCause::Status("SHUTOFF".to_owned())),
            stuck("b1", StuckCause::Refused("no valid host".to_owned())),
            stuck("b2", StuckCause::Stayed),
            stuck("b3", StuckCause::Task("migrating".to_owned())),
        ]
        .into(),
        ..Occupied::default()
    };
    let world = world(Some("migrate"), Some(HostProgress::Occupied(occupied)));
    let part = "b0 (its status is SHUTOFF), b1 (nova refuses: no valid host), b2 (nova did not \
                move it; `openstack server event list b2` has its attempts), b3 (its task \
                migrating has not ended for ten minutes). \
                Start, confirm, migrate or delete them";
    check(&world, ConditionStatus::False, "ServersStuck", part);
}

#[test]
fn servers_elsewhere_whose_resize_waits_for_its_confirmation_are_named() {
    let unconfirmed = vec!["b8".to_owned(), "b9".to_owned()];
    let occupied =
        Occupied { migrations: 2, unconfirmed: unconfirmed.into(), ..Occupied::default() };
    let found_now = || Some(HostProgress::Occupied(occupied.clone()));
    let part = "0 servers and 2 open migrations, and nova schedules nothing to it. A resize or \
                migration waits to be confirmed or reverted (`openstack server resize confirm \
                SERVER`, or `revert`), of servers that may be on another host: b8, b9.";
    for (mode, reason) in [("wait", "ServersOnHost"), ("migrate", "ServersStuck")] {
        let world = world(Some(mode), found_now());
        check(&world, ConditionStatus::False, reason, part);
        let message = world.condition("Drained").message;
        assert!(message.ends_with(part), "{message}");
    }
    let moving = Occupied { migrations: 1, ..Occupied::default() };
    let world = world(Some("migrate"), Some(HostProgress::Occupied(moving)));
    let part = "`openstack server migration list --host n0.example.org` lists what is open.";
    check(&world, ConditionStatus::False, "Migrating", part);
}

#[test]
fn what_nova_does_not_say_is_unknown() {
    let denied = Fault::of(Service::Compute, Error::Forbidden("policy".to_owned()));
    let cases = [
        (HostProgress::CellNotAnswering, "CellNotAnswering", "start that database"),
        (
            HostProgress::Unread { cell: "nova-cell1".to_owned() },
            "NovaNotAnswering",
            "all inputs of NovaCell nova-cell1: see its condition InputReady.",
        ),
        (HostProgress::Fails(denied), "NovaNotAnswering", "the role admin in its project"),
        (HostProgress::NotFound, "ServiceNotFound", "no compute service of host"),
    ];
    for (progress, reason, part) in cases {
        let world = world(Some("wait"), Some(progress));
        check(&world, ConditionStatus::Unknown, reason, part);
    }
}

#[test]
fn a_request_that_is_not_understood_or_cannot_be_met_is_an_error() {
    let progress = || Some(HostProgress::Pending);
    let world_of = |value| world(Some(value), progress());
    for value in ["", "true", "Wait"] {
        check(&world_of(value), ConditionStatus::False, "DrainInvalid", "wait or migrate");
    }
    let unread = world(Some("wait"), None);
    check(&unread, ConditionStatus::False, "NovaAPINotUsed", "nova.api.enabled to true");
    let mut limited = world(Some("migrate"), progress());
    limited.node().annotations_mut().insert(MAX_MIGRATIONS.into(), "0".into());
    limited.settle();
    check(&limited, ConditionStatus::False, "DrainInvalid", "a number from 1 to 100");
}
