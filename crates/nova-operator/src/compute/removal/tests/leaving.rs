//! Hosts of node sets that leave: their computes stay as long as nothing was stopped there.

use api::dataplane::NodeSet;
use nova_config::annotations::SKIP_CLEANUP;
use openstack_client::{Error, Fault, Service};
use testkit::set_nodes;

use super::nova::{order, reasons, said};
use super::*;
use crate::finalizers;
use crate::group::conflicting_service::ConflictingService;
use crate::nova::drain::order::{HostOrder, OwnService, Remove};
use crate::nova::drain::progress::{Occupied, Removal, ServiceRemoval};

/// A host of a node set whose service of type nova has deployed it, and of which a pass found this.
pub(super) fn world(found: HostProgress) -> World {
    let mut world = World::new();
    let mut node = set_nodes::node("ns", "edpm", "n0", "192.0.2.7");
    set_nodes::begin(&mut node, "d1");
    set_nodes::succeed(&mut node, &["nova"]);
    let services = node.status.as_ref().unwrap().services.clone();
    world.node = Some(node);
    let spec = json!({
        "services": ["nova"], "nodes": { "n0": {} },
        "nodeTemplate": { "ansibleSSHPrivateKeySecret": "key" },
    });
    let set: NodeSet = object("edpm", &spec);
    world.group = Some(Group::NodeSet(Arc::new(set)));
    let listed = ConflictingService { lister: "edpm".into(), service: "nova".into() };
    let (deployed, cells) = (Some("nova".to_owned()), vec!["nova-cell1".to_owned()]);
    world.services = NovaServices { listed: Some(listed), deployed, cells };
    world.nova = Some(found);
    (world.compute, world.now) = (None, world.now + SignedDuration::from_hours(1));
    world.settle();
    let compute = world.compute.as_mut().unwrap();
    assert!(compute.is_observed());
    let status = compute.status.get_or_insert_default();
    (status.host_name, status.services) = (Some("n0.example.org".into()), services);
    (status.address, status.service_id) = (Some("192.0.2.7:22".into()), Some("a0".into()));
    status.compute_id = Some("c0".into());
    world.settle();
    world.events.clear();
    world
}

/// The entry is taken out of the node set, or is there again.
pub(super) fn leave(world: &mut World, leaving: Option<bool>) {
    world.node.as_mut().unwrap().spec.leaving = leaving;
}

pub(super) fn occupied() -> HostProgress {
    let servers = vec!["b0".to_owned()];
    HostProgress::Occupied(Occupied { servers: servers.into(), ..Occupied::default() })
}

fn uid(world: &World) -> Option<String> {
    world.compute.as_ref().and_then(ResourceExt::uid)
}

fn is_held(world: &World) -> bool {
    world.node.as_ref().unwrap().finalizers().contains(&finalizers::NODE.to_owned())
}

#[test]
fn a_host_is_drained_and_only_then_its_compute_goes_as_any_other() {
    let mut world = world(occupied());
    assert_eq!((order(&world), is_held(&world)), (None, true));
    leave(&mut world, Some(true));
    let writes = world.settle();
    assert!(!writes.iter().any(|it| it.contains("delete") || it.contains("run")), "{writes:?}");
    assert!(matches!(order(&world), Some(HostOrder::DrainForRemoval(..))));
    assert_eq!(reasons(&world)[..2], ["ServersOnHost", "WaitingForDrain"]);
    assert_eq!(world.told_by_node().0, "ServersOnHost");
    world.nova = Some(HostProgress::Drained);
    let writes = world.settle();
    assert_eq!((writes[0].as_str(), n_cleanups(&writes)), ("delete compute", 1));
    let variables = &world.runs[0].spec.extra_vars;
    assert!(variables.contains_key("edpm_nova_host_leaves"), "{variables:?}");
    let text = serde_json::to_string(&world.runs[0].spec).unwrap();
    assert!(text.contains("dataplanenodeset-edpm"), "{text}");
    world.end("Ok").settle();
    let Some(HostOrder::Remove(Remove { service, .. })) = order(&world) else { panic!() };
    assert_eq!(service, OwnService::Is("a0".into()));
    world.removing().settle();
    assert_eq!((uid(&world), is_held(&world)), (None, false));
    assert_eq!(world.leftovers(), []);
}

#[test]
fn a_host_that_stays_after_all_keeps_its_compute_as_long_as_nothing_was_stopped_there() {
    let mut world = world(occupied());
    let before = uid(&world);
    leave(&mut world, Some(true));
    world.settle();
    leave(&mut world, None);
    world.settle();
    assert!(world.ending().is_none() && order(&world).is_none());
    assert_eq!((uid(&world), is_held(&world)), (before, true));
    assert!(!is_terminating(world.compute.as_ref().unwrap()));
}

#[test]
fn a_host_that_comes_back_after_the_stop_gets_another_compute_when_the_first_one_is_gone() {
    let mut world = world(HostProgress::Drained);
    let before = uid(&world);
    leave(&mut world, Some(true));
    assert_eq!(n_cleanups(&world.settle()), 1);
    leave(&mut world, None);
    world.settle();
    assert!(is_terminating(world.compute.as_ref().unwrap()), "what was begun is ended");
    world.end("Ok");
    world.removing();
    world.wait(1).settle();
    assert!(uid(&world).is_some() && uid(&world) != before);
    let compute = world.compute.as_ref().unwrap();
    assert!(!is_terminating(compute) && compute.status.is_none() && is_held(&world));
}

#[test]
fn a_host_that_does_not_answer_is_tried_three_times_and_then_must_be_down() {
    let mut world = world(HostProgress::Drained);
    leave(&mut world, Some(true));
    world.end_unreached(|_| ());
    world.nova = Some(HostProgress::Removing(Removal::of_service(ServiceRemoval::StillUp)));
    world.settle();
    let Some(HostOrder::Remove(Remove { is_stopped, .. })) = order(&world) else { panic!() };
    assert!(!is_stopped && said(&world, "ServiceDeleted").0 == "StillUp");
    world.removing().settle();
    assert_eq!((uid(&world), is_held(&world)), (None, false));
}

#[test]
fn an_api_that_does_not_answer_keeps_the_host_unless_the_user_lets_the_hosts_of_the_set_go() {
    let fault = Fault { service: Service::Compute, error: Error::Unreachable("gone".into()) };
    let mut world = world(HostProgress::Fails(fault));
    leave(&mut world, Some(true));
    let writes = world.settle();
    assert!(!writes.contains(&"delete compute".to_owned()), "{writes:?}");
    assert_eq!(world.told_by_node().0, "NovaNotAnswering");
    let Some(Group::NodeSet(set)) = &mut world.group else { panic!() };
    Arc::make_mut(set).annotations_mut().insert(SKIP_CLEANUP.into(), "true".into());
    let mut kept = world.node.clone().unwrap();
    kept.annotations_mut().insert(SKIP_CLEANUP.into(), "false".into());
    let own = world.node.replace(kept);
    assert_eq!(world.settle(), [""; 0], "the host's own annotation wins");
    world.node = own;
    world.settle();
    assert_eq!((uid(&world), is_held(&world)), (None, false));
    assert_eq!(world.leftovers(), [("n0.example.org".to_owned(), false)]);
}

#[test]
fn a_node_that_is_deleted_with_its_set_is_held_until_its_host_is_drained() {
    let mut world = world(occupied());
    leave(&mut world, Some(true));
    world.settle();
    let writes = world.delete_node(false).settle();
    assert!(
        writes.contains(&"delete compute".to_owned()) && n_cleanups(&writes) == 0,
        "{writes:?}"
    );
    assert_eq!(world.told_by_node().0, "ServersOnHost");
    world.nova = Some(HostProgress::Drained);
    assert_eq!(n_cleanups(&world.settle()), 1);
    world.end("Ok");
    world.removing().settle();
    assert!(world.node.is_none() && world.compute.is_none());
}
