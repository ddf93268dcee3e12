//! What nova's API says of a compute, and what that does to its readiness.

use super::*;
use crate::nova::health::{HostHealth, MappingHealth, ServiceHealth};

const DOWN: ServiceHealth = ServiceHealth::Down { since: None, is_forced: false };
const UP: ServiceHealth = ServiceHealth::Up { disabled: None };

/// A deployed compute of which nova says this.
fn world(service: ServiceHealth, mapping: MappingHealth) -> World {
    let mut world = World::deployed();
    read(&mut world, service, mapping);
    world
}

/// Nova's API is read.
fn read(world: &mut World, service: ServiceHealth, mapping: MappingHealth) {
    world.seen.health = Some(HostHealth { service, mapping, ..HostHealth::default() });
    world.settle();
}

/// The status and the reason of a condition.
fn said(world: &World, type_: &str) -> (ConditionStatus, String) {
    let found = world.condition(type_);
    (found.status, found.reason)
}

#[test]
fn without_readings_of_nova_nothing_is_as_it_was_not() {
    let world = World::deployed();
    assert!(!world.has_condition("ServiceUp") && !world.has_condition("HostMapped"));
}

#[test]
fn a_compute_that_has_not_registered_is_not_looked_for_in_nova() {
    let mut world = World::new();
    read(&mut world, ServiceHealth::NotFound, MappingHealth::NotMapped);
    for type_ in ["ServiceUp", "HostMapped"] {
        let expected = (ConditionStatus::Unknown, "NotRegistered".to_owned());
        assert_eq!(said(&world, type_), expected);
    }
    assert_eq!(world.reason("Ready"), "Deploying");
}

/// A compute whose deployment has just ended, before nova is read again.
fn registered() -> World {
    let mut world = World::new();
    world.seen.health = Some(HostHealth::default());
    for _ in 0..3 {
        world.settle();
        world.now += SignedDuration::from_mins(1);
        world.end("Ok");
    }
    world.settle();
    world
}

#[test]
fn ready_is_true_once_nova_was_read_since_the_compute_has_registered() {
    let mut world = registered();
    let second = SignedDuration::from_secs(1);
    let waits = (ConditionStatus::False, "WaitingForNova".to_owned());
    let is_ready = (ConditionStatus::True, "Ready".to_owned());
    assert_eq!(
        (said(&world, "Ready"), world.reason("DeploymentReady")),
        (waits, "Deployed".into())
    );
    let at = world.now;
    let mut read_at = |at: Timestamp, service: ServiceHealth, mapping: MappingHealth| {
        let read_at = Some(at);
        world.seen.health = Some(HostHealth { service, mapping, read_at, ..HostHealth::default() });
        world.settle();
        said(&world, "Ready")
    };
    assert_eq!(read_at(at - second, UP, MappingHealth::Mapped).1, "WaitingForNova");
    assert_eq!(read_at(at + second, UP, MappingHealth::NotMapped).1, "WaitingForDiscovery");
    assert_eq!(read_at(at + second, UP, MappingHealth::Pending).1, "WaitingForDiscovery");
    assert_eq!(read_at(at + second, UP, MappingHealth::Mapped), is_ready);
    let unread = read_at(at + second, ServiceHealth::Pending, MappingHealth::Pending);
    assert_eq!(unread, is_ready, "the operator has started anew");
}

#[test]
fn a_nova_that_does_not_answer_has_no_say_in_the_first_ready() {
    for silent in [ServiceHealth::ApiFails, ServiceHealth::CellNotAnswering] {
        let mut world = registered();
        read(&mut world, silent, MappingHealth::Pending);
        assert_eq!(said(&world, "Ready"), (ConditionStatus::True, "Ready".to_owned()));
    }
}

#[test]
fn a_host_is_said_to_be_scheduled_to_only_while_its_service_is_up_and_enabled() {
    let disabled = ServiceHealth::Up { disabled: Some("maintenance".to_owned()) };
    for (service, is_used) in [(UP, true), (disabled, false), (DOWN, false)] {
        let message = world(service, MappingHealth::Mapped).condition("HostMapped").message;
        assert_eq!(message.contains("so nova schedules to it"), is_used, "{message}");
    }
}

#[test]
fn a_service_that_is_down_or_missing_takes_ready_and_gives_it_back() {
    let forced = ServiceHealth::Down { since: None, is_forced: true };
    for (health, reason) in [
        (DOWN, "ServiceDown"),
        (forced, "ForcedDown"),
        (ServiceHealth::NotFound, "ServiceNotFound"),
    ] {
        let mut world = world(health, MappingHealth::Mapped);
        let expected = (ConditionStatus::False, reason.to_owned());
        assert_eq!(said(&world, "ServiceUp"), expected);
        assert_eq!(said(&world, "Ready"), expected);
        assert_eq!(world.reason("DeploymentReady"), "Deployed");
        read(&mut world, UP, MappingHealth::Mapped);
        assert_eq!(said(&world, "Ready"), (ConditionStatus::True, "Ready".to_owned()));
        assert_eq!(world.n_runs(), 0);
    }
}

#[test]
fn readings_from_before_a_compute_registered_do_not_miss_it() {
    let mut world = World::deployed();
    let registered = world.now;
    let mut missing = |since: Timestamp| {
        world.seen.health = Some(HostHealth {
            service: ServiceHealth::NotFound,
            missing_since: Some(since),
            ..HostHealth::default()
        });
        world.settle();
        (said(&world, "ServiceUp"), world.reason("Ready"))
    };
    let (up, ready) = missing(registered - SignedDuration::from_hours(1));
    assert_eq!((up.1.as_str(), ready.as_str()), ("NotRead", "Ready"));
    let (up, ready) = missing(registered + SignedDuration::from_hours(1));
    assert_eq!((up.1.as_str(), ready.as_str()), ("ServiceNotFound", "ServiceNotFound"));
}

#[test]
fn what_cannot_be_asked_is_unknown_and_takes_no_ready() {
    for (health, reason) in [
        (ServiceHealth::ApiFails, "NovaNotAnswering"),
        (ServiceHealth::CellNotAnswering, "CellNotAnswering"),
        (ServiceHealth::Pending, "NotRead"),
    ] {
        let world = world(health, MappingHealth::Pending);
        assert_eq!(said(&world, "ServiceUp"), (ConditionStatus::Unknown, reason.to_owned()));
        assert_eq!(said(&world, "HostMapped"), (ConditionStatus::Unknown, "NotRead".to_owned()));
        assert_eq!(world.reason("Ready"), "Ready");
    }
}

#[test]
fn the_cause_is_in_the_conditions_where_the_cell_does_not_report_it() {
    let mut world = world(ServiceHealth::ApiFails, MappingHealth::ApiFails);
    world.seen.health.as_mut().unwrap().cause = Some("Secret bus does not exist.".into());
    world.settle();
    for type_ in ["ServiceUp", "HostMapped"] {
        let found = world.condition(type_);
        assert_eq!(found.reason, "NovaNotAnswering");
        assert!(found.message.ends_with(": Secret bus does not exist."), "{}", found.message);
        assert!(!found.message.contains("NovaAPIReady"), "{}", found.message);
    }
}

#[test]
fn a_list_of_hypervisors_that_cannot_be_read_is_named_and_leaves_what_was_known() {
    let not_listed = || MappingHealth::NotListed { reason: "AnswerTooLarge" };
    let new = world(UP, not_listed());
    assert_eq!(said(&new, "HostMapped"), (ConditionStatus::Unknown, "NotRead".to_owned()));
    new.mentions("HostMapped", &["AnswerTooLarge", "condition NovaAPIReady of NovaCell"]);
    assert_eq!(
        (new.reason("ServiceUp"), new.reason("Ready")),
        ("ServiceUp".into(), "Ready".into())
    );
    for known in [MappingHealth::Mapped, MappingHealth::NotMapped] {
        let mut world = world(UP, known);
        let before = world.condition("HostMapped");
        read(&mut world, UP, not_listed());
        assert_eq!(world.condition("HostMapped").message, before.message);
    }
}

#[test]
fn a_nova_that_stops_answering_makes_no_compute_ready_that_was_down_or_unmapped() {
    for (service, mapping, minutes, reason) in [
        (DOWN, MappingHealth::Mapped, 0, "ServiceDown"),
        (ServiceHealth::NotFound, MappingHealth::Mapped, 0, "ServiceNotFound"),
        (UP, MappingHealth::NotMapped, 0, "WaitingForDiscovery"),
        (UP, MappingHealth::NotMapped, 21, "NotMapped"),
    ] {
        let mut world = world(service, mapping);
        world.now += jiff::SignedDuration::from_mins(minutes);
        world.settle();
        assert_eq!(world.reason("Ready"), reason);
        for unknown in [ServiceHealth::ApiFails, ServiceHealth::CellNotAnswering] {
            read(&mut world, unknown, MappingHealth::Pending);
            assert_eq!(said(&world, "ServiceUp").0, ConditionStatus::Unknown);
            assert_eq!(world.reason("Ready"), reason, "it is as it was");
        }
        read(&mut world, UP, MappingHealth::Mapped);
        assert_eq!(world.reason("Ready"), "Ready");
    }
}

#[test]
fn a_compute_whose_cell_loses_its_inputs_is_unknown_and_stays_ready() {
    let mut world = world(UP, MappingHealth::Mapped);
    world.seen.health = Some(HostHealth::unread());
    world.settle();
    for type_ in ["ServiceUp", "HostMapped"] {
        let expected = (ConditionStatus::Unknown, "NovaNotAnswering".to_owned());
        assert_eq!(said(&world, type_), expected);
        world.mentions(type_, &["condition NovaAPIReady of NovaCell"]);
    }
    assert_eq!(world.reason("Ready"), "Ready");
}

#[test]
fn a_reading_that_says_nothing_leaves_what_was_reported() {
    let mut world = world(DOWN, MappingHealth::NotMapped);
    let before = world.seen.compute.status.clone();
    read(&mut world, ServiceHealth::Pending, MappingHealth::Pending);
    assert_eq!(world.seen.compute.status, before);
}

#[test]
fn a_disabled_service_is_up_and_its_reason_is_one_line() {
    let disabled = Some("maintenance\n\u{1b}[31m of rack 7".to_owned());
    let world = world(ServiceHealth::Up { disabled }, MappingHealth::Mapped);
    assert_eq!(said(&world, "ServiceUp"), (ConditionStatus::True, "ServiceDisabled".to_owned()));
    let message = world.condition("ServiceUp").message;
    assert!(message.ends_with("with the reason: maintenance [31m of rack 7"), "{message}");
}

#[test]
fn the_time_of_the_last_report_is_in_the_message() {
    let since = "2026-11-26T02:00:00.5".parse().ok();
    let world = world(ServiceHealth::Down { since, is_forced: false }, MappingHealth::Mapped);
    world.mentions("ServiceUp", &["has not reported to nova since 2026-11-26 02:00:00 UTC."]);
}

#[test]
fn a_service_that_is_down_and_disabled_says_both() {
    for is_forced in [false, true] {
        let mut world = World::deployed();
        world.seen.health = Some(HostHealth {
            service: ServiceHealth::Down { since: None, is_forced },
            mapping: MappingHealth::Mapped,
            disabled: Some("disk is replaced".to_owned()),
            ..HostHealth::default()
        });
        world.settle();
        let both = ", and its service is disabled with the reason: disk is replaced.";
        world.mentions("ServiceUp", &[both]);
    }
}

#[test]
fn the_command_that_maps_a_host_is_there_once_novas_scheduler_has_had_its_turn() {
    let mut world = world(UP, MappingHealth::NotMapped);
    let waiting = (ConditionStatus::False, "WaitingForDiscovery".to_owned());
    assert_eq!(said(&world, "HostMapped"), waiting);
    assert_eq!(said(&world, "Ready"), waiting);
    // What upstream's control plane sets as interval of its scheduler, and a reading more.
    world.now += SignedDuration::from_secs(900 + 60);
    world.settle();
    assert_eq!(said(&world, "Ready"), waiting);
    world.mentions("Ready", &["discover_hosts_in_cells_interval"]);
    let plan = world.pass();
    assert!(plan.requeue_after.unwrap() <= std::time::Duration::from_secs(241));
    world.now += SignedDuration::from_secs(241);
    world.settle();
    assert_eq!(said(&world, "Ready"), (ConditionStatus::False, "NotMapped".to_owned()));
    let message = world.condition("Ready").message;
    assert!(message.ends_with("nova-manage cell_v2 discover_hosts"), "{message}");
    read(&mut world, UP, MappingHealth::Mapped);
    assert_eq!(said(&world, "HostMapped"), (ConditionStatus::True, "Mapped".to_owned()));
    assert_eq!(world.reason("Ready"), "Ready");
}

#[test]
fn where_the_operator_discovers_hosts_no_command_is_asked_for() {
    let mut world = world(UP, MappingHealth::NotMapped);
    let annotation = ("nova.openstack.org/host-discovery".to_owned(), "operator".to_owned());
    let cell = Arc::make_mut(world.seen.cell.as_mut().unwrap());
    cell.metadata.annotations.get_or_insert_default().extend([annotation]);
    world.settle();
    let message = world.condition("HostMapped").message;
    assert!(message.ends_with("nova-operator discovers it."), "{message}");
    world.now += SignedDuration::from_secs(121);
    world.settle();
    let message = world.condition("HostMapped").message;
    assert!(message.contains("condition HostDiscovery of NovaCell"), "{message}");
    assert!(!message.contains("nova-manage"), "{message}");
    world.seen.cells_are_ours = false;
    world.now += SignedDuration::from_mins(20);
    world.settle();
    let message = world.condition("HostMapped").message;
    assert!(message.ends_with("nova-manage cell_v2 discover_hosts"), "{message}");
}

#[test]
fn a_secret_that_goes_missing_does_not_undo_a_deployment_whose_service_is_down() {
    let mut world = world(DOWN, MappingHealth::Mapped);
    world.seen.cell_secret = None;
    world.settle();
    assert_eq!(world.reason("DeploymentReady"), "Deployed");
    assert_eq!(world.reason("Ready"), "ServiceDown");
}
