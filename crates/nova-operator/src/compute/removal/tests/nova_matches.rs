//! Removals while nova has the host under another identity than the recorded one.

use api::nova::RegisteredNova;
use nova_config::annotations::{ACCEPT_NOVA, SKIP_CLEANUP};

use super::nova::{reasons, said, world};
use super::*;
use crate::compute::removal::host_order::host_order;
use crate::compute::removal::resolve::Resolved;
use crate::nova::drain::order::HostOrder;
use crate::nova::health::ServiceHealth;

fn nova(region: &str) -> RegisteredNova {
    let keystone_auth_url = "http://k".to_owned();
    RegisteredNova { keystone_auth_url, region: region.to_owned() }
}

/// What a nova of a region has of the host.
fn reading(region: &str, service: &str, compute: &str) -> HostHealth {
    HostHealth {
        service: ServiceHealth::Up { disabled: None },
        service_id: Some(service.to_owned()),
        compute_id: Some(compute.to_owned()),
        nova: Some(nova(region)),
        ..HostHealth::default()
    }
}

/// A compute that has registered in region `one` as service `a0` and compute node `c0`, and whose host
/// is found empty.
fn registered() -> World {
    let mut world = world(HostProgress::Drained);
    let status = world.compute.as_mut().unwrap().status.as_mut().unwrap();
    status.nova = Some(nova("one"));
    world.health = Some(reading("one", "a0", "c0"));
    world
}

fn order(world: &World) -> Option<HostOrder> {
    host_order(&Resolved::of(&world.ending()?))
}

fn accept(world: &mut World, nova: &str) {
    let cell = world.cell.as_mut().unwrap();
    cell.annotations_mut().insert(ACCEPT_NOVA.to_owned(), nova.to_owned());
}

/// The removal does nothing, and node and cell say why.
#[track_caller]
fn is_held(world: &mut World) {
    assert_eq!(n_cleanups(&world.settle()), 0, "nothing is stopped");
    assert_eq!(order(world), None);
    assert_eq!(reasons(world)[..2], ["OtherIdentity", "WaitingForDrain"]);
    let (reason, message) = world.told_by_node();
    let cell = world.cell.as_ref().unwrap().status.as_ref().unwrap();
    let of_cell = find(&cell.conditions, "NovaMatches").unwrap();
    assert!(of_cell.message.contains("1 of 1 computes"), "{}", of_cell.message);
    assert_eq!(reason, "OtherIdentity");
    for message in [&message, &of_cell.message] {
        for part in ["service a0 and compute node c0", "as service s2", ACCEPT_NOVA] {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
    assert!(message.contains(SKIP_CLEANUP), "{message}");
}

#[test]
fn a_host_is_not_removed_from_another_region_that_has_one_of_its_name() {
    let mut world = registered();
    world.health = Some(reading("two", "s2", "c2"));
    world.delete_node(false);
    is_held(&mut world);
    // The region is corrected.
    world.health = Some(reading("one", "a0", "c0"));
    assert_eq!(n_cleanups(&world.settle()), 1);
    let status = world.compute.as_ref().unwrap().status.as_ref().unwrap();
    assert_eq!(
        (status.service_id.as_deref(), status.compute_id.as_deref()),
        (Some("a0"), Some("c0"))
    );
}

#[test]
fn a_host_is_not_removed_while_the_same_nova_has_another_service_of_it() {
    let mut world = registered();
    world.health = Some(reading("one", "s2", "c0"));
    world.delete_node(false);
    is_held(&mut world);
}

#[test]
fn a_removal_goes_on_in_the_nova_that_the_user_accepts_with_the_identity_there() {
    let mut world = registered();
    world.health = Some(reading("two", "s2", "c2"));
    world.delete_node(false);
    is_held(&mut world);
    accept(&mut world, "http://k one");
    is_held(&mut world);
    accept(&mut world, "http://k two");
    assert_eq!(n_cleanups(&world.settle()), 1);
    let status = world.compute.as_ref().unwrap().status.as_ref().unwrap();
    assert_eq!(
        (status.service_id.as_deref(), status.compute_id.as_deref()),
        (Some("s2"), Some("c2"))
    );
    assert!(world.events.iter().any(|it| it.contains("IdentityRecorded")), "{:?}", world.events);
}

#[test]
fn a_removal_goes_on_where_keystone_has_moved() {
    let mut world = registered();
    world.health = Some(reading("moved", "a0", "c0"));
    assert_eq!(n_cleanups(&world.delete_node(false).settle()), 1);
    let status = world.compute.as_ref().unwrap().status.as_ref().unwrap();
    assert_eq!(status.nova, Some(nova("moved")));
}

#[test]
fn a_removal_that_has_stopped_the_host_deletes_nothing_in_another_region() {
    let mut world = registered();
    world.delete_node(false).settle();
    world.end("Ok");
    world.removing();
    world.health = Some(reading("two", "s2", "c2"));
    world.settle();
    assert_eq!(order(&world), None);
    assert_eq!(said(&world, "ServiceDeleted").0, "OtherIdentity");
    assert!(world.compute.is_some());
    world.health = Some(HostHealth { nova: Some(nova("one")), ..HostHealth::default() });
    world.settle();
    assert!(world.compute.is_none());
}

#[test]
fn a_compute_that_was_restored_without_its_status_goes_only_once_nova_shows_its_host_empty() {
    for (service, is_held) in [
        (ServiceHealth::Up { disabled: None }, true),
        (ServiceHealth::CellNotAnswering, true),
        (ServiceHealth::ApiFails, true),
        (ServiceHealth::Pending, true),
        (ServiceHealth::NotFound, false),
    ] {
        let mut world = registered();
        let status = world.compute.as_mut().unwrap().status.as_mut().unwrap();
        let host_name = status.host_name.clone();
        *status = api::nova::ExternalComputeStatus { host_name, ..<_>::default() };
        world.health = Some(HostHealth { service: service.clone(), ..<_>::default() });
        let is_pending = service == ServiceHealth::Pending;
        world.nova = Some(if is_pending { HostProgress::NotFound } else { HostProgress::Pending });
        assert_eq!(n_cleanups(&world.delete_node(false).settle()), 0, "{service:?}");
        assert_eq!(world.compute.is_some(), is_held, "{service:?}");
        if is_held {
            assert!(matches!(order(&world), Some(HostOrder::InspectForRemoval(_))));
            let skipped = world.compute.as_mut().unwrap().annotations_mut();
            skipped.insert(SKIP_CLEANUP.to_owned(), "true".to_owned());
            world.settle();
            assert!(world.compute.is_none(), "the user lets it go");
        }
    }
}
