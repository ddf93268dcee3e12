//! Deletions that verify that nova has no mapping of the host, where the operator discovers hosts.

use api::conditions::ConditionStatus;
use nova_config::annotations::{
    HOST_DISCOVERY, HOST_DISCOVERY_IMAGE, HOST_DISCOVERY_SECRET, SKIP_CLEANUP,
};
use openstack_client::{Error, Fault, Service};

use super::nova::{order, reasons, removed, said, stopped};
use super::*;
use crate::nova::drain::order::{HostOrder, Remove};
use crate::nova::drain::progress::{Removal, ServiceRemoval};

/// What a pass has found that leaves the agents for later.
fn out_of_nova() -> HostProgress {
    HostProgress::Removing(Removal { agents: None, ..removed() })
}

/// A host whose nova-compute was stopped, in a cell whose hosts the operator discovers.
fn discovering(found: HostProgress) -> World {
    let mut world = stopped(HostProgress::Pending);
    let annotations = world.cell.as_mut().unwrap().annotations_mut();
    annotations.insert(HOST_DISCOVERY.to_owned(), "operator".to_owned());
    annotations.insert(HOST_DISCOVERY_SECRET.to_owned(), "nova-manage".to_owned());
    annotations.insert(HOST_DISCOVERY_IMAGE.to_owned(), "image".to_owned());
    world.discovery = Some(Seen { secret_version: Some("1".into()), ..Seen::default() });
    world.nova = Some(found);
    world.settle();
    world
}

fn n_readings(world: &World) -> usize {
    world.discovery.as_ref().unwrap().mapping_jobs.len()
}

/// Ends the Job of the cell; its pod leaves the message.
fn end_reading(world: &mut World, type_: &str, message: &str) {
    let found = world.discovery.as_mut().unwrap();
    found.mapping_message = Some(message.to_owned());
    let job = found.mapping_jobs.first_mut().expect("a Job goes on");
    let status = json!({ "conditions": [{ "type": type_, "status": "True", "message": "m" }] });
    Arc::make_mut(job).status = Some(serde_json::from_value(status).unwrap());
    world.settle();
}

/// Whether the agents are to be deleted now.
fn is_unmapped(world: &World) -> bool {
    let Some(HostOrder::Remove(Remove { is_unmapped, .. })) = order(world) else {
        panic!("{:?}", order(world))
    };
    is_unmapped
}

#[test]
fn the_mapping_is_read_after_placement_and_before_the_agents() {
    let mut world = discovering(HostProgress::Pending);
    assert_eq!((n_readings(&world), is_unmapped(&world)), (0, false));
    let kept = ServiceRemoval::Kept { servers: vec![].into(), message: "no".to_owned() };
    world.nova = Some(HostProgress::Removing(Removal::of_service(kept)));
    world.settle();
    assert_eq!((n_readings(&world), said(&world, "HostUnmapped").0), (0, "Waiting".to_owned()));

    world.nova = Some(out_of_nova());
    world.settle();
    assert_eq!((n_readings(&world), is_unmapped(&world)), (1, false));
    let expected = ["ServiceDeleted", "PlacementClean", "ReadingMappings", "Waiting"];
    assert_eq!(reasons(&world)[2..], expected);
    assert_eq!(world.told_by_node().0, "ReadingMappings");
    assert_eq!(world.settle(), [""; 0], "nothing is written while it is read");

    end_reading(&mut world, "Complete", "");
    assert_eq!(reasons(&world)[4..], ["HostUnmapped", "Waiting"]);
    assert!(is_unmapped(&world) && n_readings(&world) == 0);
    // The order has changed: nothing is known of it at first.
    world.nova = Some(HostProgress::Pending);
    assert_eq!(world.settle(), [""; 0]);
    assert!(is_unmapped(&world), "what was read is recorded");
    world.removing().settle();
    assert!(world.node.is_none() && world.compute.is_none());
}

#[test]
fn a_host_that_is_still_mapped_holds_the_compute_with_the_command() {
    let mut world = discovering(out_of_nova());
    end_reading(&mut world, "Complete", "n0.example.org\n");
    let (reason, message) = said(&world, "HostUnmapped");
    assert_eq!((reason.as_str(), is_unmapped(&world)), ("StillMapped", false));
    let command = "nova-manage cell_v2 delete_host --cell_uuid UUID --host n0.example.org";
    assert!(message.contains(command) && message.contains(SKIP_CLEANUP), "{message}");
    assert_eq!(world.told_by_node().0, "StillMapped");
    assert_eq!(n_readings(&world), 0);
    world.wait(1).settle();
    assert_eq!((n_readings(&world), said(&world, "HostUnmapped").1), (1, message));
    end_reading(&mut world, "Complete", "");
    world.removing().settle();
    assert!(world.compute.is_none());
}

#[test]
fn a_user_lets_a_host_go_that_is_still_mapped() {
    let mut world = discovering(out_of_nova());
    end_reading(&mut world, "Complete", "n0.example.org\n");
    world.skip().settle();
    assert!(world.compute.is_none());
    assert_eq!(world.leftovers(), [("n0.example.org".to_owned(), true)]);
}

#[test]
fn a_namespace_that_goes_waits_for_no_mapping() {
    let mut world = discovering(out_of_nova());
    world.namespace_goes = true;
    world.settle();
    assert!(world.compute.is_none());
}

#[test]
fn a_job_that_fails_holds_nothing_and_its_cause_is_reported() {
    let mut world = discovering(out_of_nova());
    end_reading(&mut world, "Failed", "DBError: no database");
    let (reason, message) = said(&world, "HostUnmapped");
    assert_eq!((reason.as_str(), is_unmapped(&world)), ("NotVerified", true));
    assert!(message.contains("has failed: DBError: no database"), "{message}");
    world.removing().settle();
    assert!(world.compute.is_none());
}

#[test]
fn a_missing_secret_holds_nothing() {
    let mut world = discovering(HostProgress::Pending);
    world.discovery.as_mut().unwrap().secret_version = None;
    world.nova = Some(out_of_nova());
    world.settle();
    let (reason, message) = said(&world, "HostUnmapped");
    assert_eq!((reason.as_str(), n_readings(&world)), ("NotVerified", 0));
    assert!(message.contains("Secret nova-manage"), "{message}");
    assert!(is_unmapped(&world));
}

#[test]
fn without_discovery_the_agents_are_deleted_in_the_same_pass_by_nova_s_word() {
    let mut world = stopped(HostProgress::Pending);
    assert!(is_unmapped(&world));
    world.nova = Some(out_of_nova());
    world.settle();
    world.says("HostUnmapped", "NotVerified", &["leaves the discovery of hosts to others"]);
}

#[test]
fn a_service_that_is_back_has_the_mapping_read_again() {
    let mut world = discovering(out_of_nova());
    end_reading(&mut world, "Complete", "");
    world.wait(1);
    world.nova = Some(HostProgress::Removing(Removal::of_service(ServiceRemoval::StillUp)));
    world.settle();
    assert_eq!(reasons(&world)[2..5], ["StillUp", "PlacementClean", "Waiting"]);
    assert!(!is_unmapped(&world));
    world.wait(1);
    world.nova = Some(out_of_nova());
    world.settle();
    assert_eq!((n_readings(&world), reasons(&world)[4].as_str()), (1, "ReadingMappings"));
}

#[test]
fn an_api_that_does_not_answer_keeps_no_mapping_from_being_read() {
    let busy = || HostProgress::Fails(Fault::of(Service::Compute, Error::Busy("later".into())));
    let mut world = discovering(out_of_nova());
    world.nova = Some(busy());
    world.settle();
    assert_eq!(reasons(&world)[4..], ["ReadingMappings", "Waiting"]);
    end_reading(&mut world, "Complete", "");
    assert_eq!(reasons(&world)[4..], ["HostUnmapped", "NovaNotAnswering"]);
}

/// Of a removal that began before the operator read mappings: it has the conditions of that time.
#[test]
fn a_removal_that_began_without_the_step_gets_it_and_loses_nothing() {
    let mut world = discovering(out_of_nova());
    let found = world.discovery.as_mut().unwrap();
    found.mapping_jobs.clear();
    world.cell.as_mut().unwrap().status.as_mut().unwrap().mapping_reading = None;
    let status = world.compute.as_mut().unwrap().status.as_mut().unwrap();
    status.conditions.retain(|it| it.type_ != "HostUnmapped");
    let agents = status.conditions.iter_mut().find(|it| it.type_ == "AgentsDeleted").unwrap();
    (agents.status, agents.reason) = (ConditionStatus::True, "AgentsDeleted".into());
    world.nova = Some(HostProgress::Pending);
    world.settle();
    let expected = ["ServiceDeleted", "PlacementClean", "ReadingMappings", "AgentsDeleted"];
    assert_eq!(reasons(&world)[2..], expected);
    assert_eq!(n_readings(&world), 1);
    end_reading(&mut world, "Complete", "");
    world.removing().settle();
    assert!(world.compute.is_none());
}

#[test]
fn an_operator_that_dies_between_any_two_writes_reads_once() {
    for at_most in 1..4 {
        let mut world = discovering(HostProgress::Pending);
        world.nova = Some(out_of_nova());
        let writes = world.settle_by(at_most);
        let n_jobs = |writes: &[String]| writes.iter().filter(|it| *it == "create job").count();
        assert_eq!(n_jobs(&writes), 1, "{writes:?}");
        let found = world.discovery.as_mut().unwrap();
        found.mapping_message = Some(String::new());
        let status = json!({ "conditions": [{ "type": "Complete", "status": "True" }] });
        Arc::make_mut(&mut found.mapping_jobs[0]).status = serde_json::from_value(status).unwrap();
        let writes = world.settle_by(at_most);
        assert_eq!((n_jobs(&writes), is_unmapped(&world)), (0, true), "{writes:?}");
    }
}
