//! Hosts that leave node sets whose services in nova may be another's: no deployment of nova is known to
//! have succeeded there.

use api::dataplane::{RunState, ServiceRun};

use super::leaving::{leave, occupied};
use super::nova::{PLAY, order, reasons, said};
use super::*;
use crate::compute::removal::tests::leaving::world as proven;
use crate::finalizers;
use crate::nova::drain::order::{HostOrder, Stop};
use crate::nova::drain::progress::{Removal, ServiceRemoval};

/// A host that leaves, on which a deployment of nova has begun and has not succeeded.
fn unproven(found: HostProgress) -> World {
    let mut world = proven(found);
    let status = world.compute.as_mut().unwrap().status.as_mut().unwrap();
    (status.service_id, status.compute_id) = (None, None);
    (status.services[0].state, status.services[0].deployed_hash) = (RunState::Failed, None);
    leave(&mut world, Some(true));
    world
}

/// Has four clean-ups end with a failure and two not reach the host; `holds` is checked after each.
fn clean_up_in_vain(world: &mut World, fail: impl Fn(&mut World), holds: impl Fn(&World)) {
    for result in ["Failed", "Failed", "Failed", "Failed", "Unreachable", "Unreachable"] {
        assert_eq!(n_cleanups(&world.settle()), 1, "{result}");
        if result == "Failed" {
            fail(world);
        } else {
            world.end(result);
        }
        world.settle();
        holds(world);
        world.wait(11);
    }
}

#[test]
fn of_a_host_without_a_proof_nothing_is_changed_in_nova_and_servers_hold_it() {
    let mut world = unproven(occupied());
    assert_eq!(n_cleanups(&world.settle()), 0);
    assert_eq!(order(&world), Some(HostOrder::InspectForRemoval(Stop::Due)));
    assert_eq!(world.told_by_node().0, "ServersOnHost");
    assert!(!said(&world, "Drained").1.contains("schedules nothing"), "its service is enabled");
    world.nova = Some(HostProgress::Empty);
    let writes = world.settle();
    assert_eq!((writes[0].as_str(), n_cleanups(&writes)), ("delete compute", 1));
    let variables = &world.runs[0].spec.extra_vars;
    assert!(!variables.contains_key("edpm_nova_host_leaves"), "agents may be another's");
    world.end("Ok");
    world.pass();
    assert_eq!(order(&world), Some(HostOrder::InspectForRemoval(Stop::Done)));
    world.nova = Some(occupied());
    world.settle();
    assert_eq!(reasons(&world)[..2], ["ServersOnHost", "HostCleaned"]);
    world.nova = Some(HostProgress::Empty);
    world.settle();
    assert!(world.compute.is_none());
    assert_eq!(world.leftovers(), [("n0.example.org".to_owned(), true)], "its service stays");
}

#[test]
fn a_host_that_leaves_in_its_first_deployment_is_cleaned_unless_an_earlier_service_has_failed() {
    for (earlier, last, is_cleaned) in [
        (RunState::Pending, RunState::Pending, true),
        (RunState::Failed, RunState::Pending, false),
        // One that is listed no more stands last, and stops nothing.
        (RunState::Succeeded, RunState::Failed, true),
    ] {
        let mut world = proven(HostProgress::Empty);
        let status = world.compute.as_mut().unwrap().status.as_mut().unwrap();
        (status.service_id, status.compute_id) = (None, None);
        let record = &mut status.services[0];
        (record.state, record.attempt, record.deployed_hash) = (RunState::Pending, 1, None);
        let of_nova = record.clone();
        let before = ServiceRun { name: "bootstrap".into(), state: earlier, ..of_nova.clone() };
        let node = world.node.as_mut().unwrap();
        let after = ServiceRun { name: "former".into(), state: last, ..of_nova.clone() };
        node.status.as_mut().unwrap().services = vec![before, of_nova, after];
        leave(&mut world, Some(true));
        assert_eq!(n_cleanups(&world.settle()) > 0, is_cleaned, "{earlier:?}, {last:?}");
    }
}

#[test]
fn where_novas_api_is_not_read_any_more_a_host_that_leaves_is_let_go_and_nothing_is_stopped() {
    let mut world = proven(HostProgress::Drained);
    leave(&mut world, Some(true));
    world.nova = None;
    // Whichever of the two controllers comes first.
    let mut deleted = world.ending().unwrap();
    Arc::make_mut(&mut deleted.compute).metadata.deletion_timestamp = Some(Time(world.now));
    let plan = removal::decide(&deleted, None, world.now);
    assert!(matches!(plan.steps[..], [Step { write: Write::RemoveFinalizer { .. }, .. }]));
    assert_eq!(n_cleanups(&world.settle()), 0);
    assert!(world.compute.is_none());
    let held = finalizers::NODE.to_owned();
    assert!(!world.node.as_ref().unwrap().finalizers().contains(&held));
}

#[test]
fn a_host_without_a_proof_that_could_not_be_stopped_is_held_until_it_is_down() {
    let mut world = unproven(HostProgress::Empty);
    let inspect = Some(HostOrder::InspectForRemoval(Stop::Due));
    world.end_unreached(|it| assert_eq!(order(it), inspect));
    world.nova = Some(HostProgress::Removing(Removal::of_service(ServiceRemoval::StillUp)));
    world.settle();
    assert_eq!(order(&world), Some(HostOrder::InspectForRemoval(Stop::Failed)));
    assert_eq!(world.told_by_node().0, "StillUp");
    world.nova = Some(HostProgress::Empty);
    world.settle();
    assert!(world.compute.is_none());
}

#[test]
fn a_host_that_records_another_owner_is_held_and_keeps_its_service() {
    let fail = |it: &mut World| _ = it.fail_as_not_owned("It is ns/Node/n9's.");
    let mut world = proven(HostProgress::Drained);
    leave(&mut world, Some(true));
    clean_up_in_vain(&mut world, fail, |world| {
        assert!(matches!(order(world), Some(HostOrder::DrainForRemoval(..))));
        world.node_says("HostNotOwned", &["stays in nova"]);
    });
    world.runs.clear();
    assert_eq!(n_cleanups(&world.settle()), 1, "it is tried again although its runs are gone");
    assert_eq!(world.told_by_node().0, "HostNotOwned");
}

#[test]
fn guests_on_a_host_that_leaves_hold_it_also_when_it_is_not_reached_later() {
    let message = "1 guest is on this host: g1.";
    let fail = |it: &mut World| _ = it.fail(PLAY, "The host must have no guests", message);
    let mut world = proven(HostProgress::Drained);
    leave(&mut world, Some(true));
    clean_up_in_vain(&mut world, fail, |world| {
        world.says("HostCleaned", "GuestsOnHost", &["g1"]);
        assert!(world.compute.is_some());
    });
}
