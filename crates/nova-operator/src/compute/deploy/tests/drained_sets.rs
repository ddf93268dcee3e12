//! Hosts of node sets that are drained before a deployment disturbs them, and hosts that leave and stay.

use api::dataplane::{DisruptionHolder, DisruptionTarget, HostState, Node};
use nova_config::annotations::{DRAIN, DRAIN_BEFORE};
use testkit::set_nodes;

use super::observed::{deployed, read};
use super::*;
use crate::group::Group;
use crate::nova::drain::order::{HostOrder, MARKER, REMOVAL_MARKER};
use crate::nova::drain::progress::{HostProgress, Occupied};
use crate::nova::health::{HostHealth, ServiceHealth};

const ROLLOUT: &str = "nova.openstack.org/drain: rollout";

fn annotate_set(world: &mut World, value: &str) {
    let Some(Group::NodeSet(set)) = &mut world.seen.group else { panic!("not a node set") };
    Arc::make_mut(set).annotations_mut().insert(DRAIN_BEFORE.to_owned(), value.to_owned());
}

/// A deployment waits for the host, whose node set has this annotation.
fn awaited(drain_before: &str) -> (World, DisruptionTarget) {
    let mut world = deployed();
    annotate_set(&mut world, drain_before);
    let target = set_nodes::target(world.node(), "d2");
    (world, target)
}

fn give_back(node: &mut Node) {
    node.status.as_mut().unwrap().disruption.as_mut().unwrap().target = None;
}

fn set_state(node: &mut Node, state: HostState) {
    node.status.as_mut().unwrap().deployment.as_mut().unwrap().state = state;
}

/// The last reading has the service disabled for this reason, or enabled.
fn disabled(world: &mut World, reason: Option<&str>) {
    let health = world.seen.health.as_mut().unwrap();
    health.disabled = reason.map(str::to_owned);
    health.service = ServiceHealth::Up { disabled: health.disabled.clone() };
}

fn found(world: &mut World, progress: HostProgress) {
    world.seen.drain = Some(progress);
    world.settle();
}

/// The order of the present plan, and the deployment that it names.
fn ordered(world: &mut World) -> Option<(HostOrder, Option<DisruptionTarget>)> {
    let order = world.pass().orders.pop()?;
    Some((order.what.order, order.what.target))
}

fn is_drain_for(world: &mut World, target: Option<&DisruptionTarget>) -> bool {
    matches!(ordered(world), Some((HostOrder::DrainForChange(_), of)) if of.as_ref() == target)
}

#[test]
fn a_host_is_drained_for_the_deployment_that_waits_for_it_and_given_back_when_it_has_succeeded() {
    let (mut world, target) = awaited("true");
    assert!(is_drain_for(&mut world, Some(&target)));
    let occupied = Occupied { servers: vec!["b0".to_owned()].into(), ..Occupied::default() };
    found(&mut world, HostProgress::Occupied(occupied));
    assert_eq!(world.reason("Drained"), "Migrating");
    disabled(&mut world, Some(ROLLOUT));
    found(&mut world, HostProgress::Drained);
    assert_eq!(
        (world.reason("Drained"), world.reason("Ready")),
        ("Drained".into(), "Ready".into())
    );
    // The deployment is at the host.
    set_nodes::begin(world.node(), "d2");
    assert!(is_drain_for(&mut world, Some(&target)));
    give_back(world.node());
    annotate_set(&mut world, "false");
    assert!(is_drain_for(&mut world, None), "servers that came now would be disturbed");
    annotate_set(&mut world, "true");
    set_nodes::succeed(world.node(), &["nova"]);
    assert_eq!(ordered(&mut world), Some((HostOrder::EnableOnceUp, None)));
    disabled(&mut world, None);
    found(&mut world, HostProgress::Released);
    assert_eq!((ordered(&mut world), world.has_condition("Drained")), (None, false));
}

#[test]
fn a_host_on_which_the_deployment_has_failed_stays_drained_until_the_user_takes_the_drain_back() {
    let (mut world, target) = awaited("true");
    disabled(&mut world, Some(ROLLOUT));
    found(&mut world, HostProgress::Drained);
    set_nodes::begin(world.node(), "d2");
    give_back(world.node());
    set_state(world.node(), HostState::Failed);
    assert!(is_drain_for(&mut world, None));
    let next = set_nodes::target(world.node(), "d2");
    assert!(
        next != target && is_drain_for(&mut world, Some(&next)),
        "another target, another order"
    );
    give_back(world.node());
    disabled(&mut world, None);
    assert!(is_drain_for(&mut world, None), "nova was read before the host was drained");
    disabled(&mut world, Some(MARKER));
    let order = ordered(&mut world);
    assert_eq!(order, Some((HostOrder::EnableOnceUp, None)), "the user's own drain has ended");
    disabled(&mut world, Some(ROLLOUT));
    annotate_set(&mut world, "false");
    assert_eq!(ordered(&mut world), Some((HostOrder::EnableOnceUp, None)));
}

#[test]
fn without_the_annotation_nothing_is_drained_and_another_value_is_refused_with_the_legal_ones() {
    for drain_before in ["false", ""] {
        let (mut world, _) = awaited(drain_before);
        if drain_before == "false" {
            assert_eq!((ordered(&mut world), world.has_condition("Drained")), (None, false));
            continue;
        }
        assert_eq!(ordered(&mut world), None);
        world.says("Drained", "DrainInvalid", &["OpenStackDataPlaneNodeSet edpm"]);
    }
    // The user's drain is no permission by itself, and names the deployment too.
    let (mut world, target) = awaited("true");
    world.node().annotations_mut().insert(DRAIN.to_owned(), "wait".to_owned());
    assert!(is_drain_for(&mut world, Some(&target)));
    give_back(world.node());
    assert!(matches!(ordered(&mut world), Some((HostOrder::Drain(_), None))));
}

#[test]
fn a_host_that_nova_does_not_list_or_no_deployment_has_proved_is_not_empty_and_the_way_on_is_said()
{
    let (mut world, target) = awaited("true");
    read(&mut world, None, None);
    found(&mut world, HostProgress::NotFound);
    assert!(is_drain_for(&mut world, Some(&target)));
    world.says(
        "Drained",
        "ServiceNotFound",
        &["does not list host n0.example.org", "OpenStackDataPlaneNode n0 to false"],
    );
    // Its records are lost, as after a restore without status.
    world.compute().status = None;
    world.node().status.as_mut().unwrap().services.clear();
    world.seen.nova.deployed = None;
    found(&mut world, HostProgress::Pending);
    assert_eq!(ordered(&mut world), None, "what has its name in nova may be another's");
    assert_eq!(world.reason("Drained"), "NovaNotDeployed");
}

#[test]
fn a_restart_enables_nothing_before_nova_was_read() {
    let (mut world, target) = awaited("true");
    disabled(&mut world, Some(ROLLOUT));
    found(&mut world, HostProgress::Drained);
    let unread = |world: &mut World| {
        world.seen.health = Some(HostHealth::default());
        world.seen.drain = Some(HostProgress::Pending);
        world.writes.clear();
    };
    unread(&mut world);
    assert!(is_drain_for(&mut world, Some(&target)));
    assert_eq!(world.writes, [""; 0], "what was reported stays");
    set_nodes::begin(world.node(), "d2");
    give_back(world.node());
    assert!(is_drain_for(&mut world, None));
    annotate_set(&mut world, "false");
    assert!(!matches!(ordered(&mut world), Some((HostOrder::Enable | HostOrder::EnableOnceUp, _))));
}

#[test]
fn a_host_at_which_a_deployment_is_stays_drained_although_no_reading_has_shown_the_marker_yet() {
    let (mut world, target) = awaited("true");
    found(&mut world, HostProgress::Drained);
    let name = "nova.openstack.org".to_owned();
    let allowed = Some(target);
    set_nodes::hold(world.node(), DisruptionHolder { name, allowed, ..<_>::default() });
    set_nodes::begin(world.node(), "d2");
    give_back(world.node());
    assert!(is_drain_for(&mut world, None));
    set_nodes::succeed(world.node(), &["nova"]);
    assert_eq!(ordered(&mut world), Some((HostOrder::EnableOnceUp, None)));
}

#[test]
fn a_host_that_stays_after_all_has_the_service_enabled_that_its_removal_disabled() {
    let mut world = deployed();
    world.node().spec.leaving = Some(true);
    let mut ending = leaving(&world.seen);
    Arc::make_mut(&mut ending.compute).metadata.deletion_timestamp = None;
    let occupied = Occupied { servers: vec!["b0".to_owned()].into(), ..Occupied::default() };
    ending.drain = Some(HostProgress::Occupied(occupied));
    let plan = recorded(removal::decide(&ending, None, world.now));
    assert!(matches!(plan.orders[0].what.order, HostOrder::DrainForRemoval(..)));
    world.take(&plan.steps);
    assert_eq!(world.reason("HostCleaned"), "WaitingForDrain");
    world.node().spec.leaving = None;
    disabled(&mut world, Some(&format!("{REMOVAL_MARKER}: it leaves")));
    world.settle();
    assert_eq!(ordered(&mut world), Some((HostOrder::Enable, None)));
    assert!(!world.has_condition("HostCleaned"));
    assert_eq!(world.reason("Ready"), "Ready");
    disabled(&mut world, Some(MARKER));
    assert_eq!(ordered(&mut world), Some((HostOrder::Enable, None)));
}
