//! A compute whose host another nova has, or the same one under another identity.

use api::nova::RegisteredNova;
use nova_config::annotations::{ACCEPT_NOVA, DRAIN};
use operator_core::host_identity::MISSING;

use super::identity::{ROLE, fail, given};
use super::*;
use crate::compute::deploy::nova_matches::held;
use crate::nova::drain::order::HostOrder;
use crate::nova::drain::progress::{HostProgress, IdentityUse};
use crate::nova::health::{HostHealth, MappingHealth, ServiceHealth};
use crate::nova::identity::Identity;

const URL: &str = "http://192.0.2.1:5000";

/// A nova at a URL and in a region, with these UUIDs of the host; without them it has no such host.
fn reading(url: &str, region: &str, ids: Option<(&str, &str)>) -> HostHealth {
    let service = match ids {
        Some(_) => ServiceHealth::Up { disabled: None },
        None => ServiceHealth::NotFound,
    };
    HostHealth {
        service,
        mapping: MappingHealth::Mapped,
        service_id: ids.map(|it| it.0.to_owned()),
        compute_id: ids.map(|it| it.1.to_owned()),
        nova: Some(RegisteredNova { keystone_auth_url: url.to_owned(), region: region.to_owned() }),
        ..HostHealth::default()
    }
}

/// The operator reads this of the host; orders find nothing.
fn read(world: &mut World, health: HostHealth) {
    world.seen.health = Some(health);
    for _ in 0..2 {
        world.seen.drain = Some(held(world.seen.identity_sources()).unwrap_or_default());
        world.settle();
    }
}

/// A compute that has registered in region `one`, long ago.
fn world() -> World {
    let mut world = World::deployed();
    read(&mut world, reading(URL, "one", Some(("s1", "c1"))));
    world.now += SignedDuration::from_hours(1);
    world.node().annotations_mut().insert(DRAIN.into(), "wait".into());
    world.settle();
    world.writes.clear();
    world
}

fn recorded(world: &World) -> (Option<String>, Option<String>, Option<String>) {
    let Identity { nova, service_id, compute_id } = Identity::recorded(&world.seen.compute);
    (nova.map(|it| format!("{} {}", it.keystone_auth_url, it.region)), service_id, compute_id)
}

fn identity(
    nova: &str,
    service: &str,
    compute: &str,
) -> (Option<String>, Option<String>, Option<String>) {
    (Some(nova.to_owned()), Some(service.to_owned()), Some(compute.to_owned()))
}

fn first() -> (Option<String>, Option<String>, Option<String>) {
    identity("http://192.0.2.1:5000 one", "s1", "c1")
}

fn accept(world: &mut World, nova: &str) {
    world.cell().annotations_mut().insert(ACCEPT_NOVA.into(), nova.into());
    world.settle();
}

/// Nothing is ordered, the record stays, and the condition has these parts.
#[track_caller]
fn is_held(world: &World, parts: &[&str]) {
    assert_eq!(host_order(&world.seen), None);
    assert_eq!(recorded(world), first());
    for type_ in ["NovaMatches", "Ready"] {
        assert_eq!(world.condition(type_).status, ConditionStatus::False);
        world.says(type_, "OtherIdentity", parts);
    }
    assert_eq!(world.condition("ServiceUp").status, ConditionStatus::Unknown);
    assert_eq!(world.condition("Drained").reason, "OtherIdentity");
}

/// The host is drained as the user says, and its identity is this one.
#[track_caller]
fn goes_on(world: &World, expected: &(Option<String>, Option<String>, Option<String>)) {
    assert_eq!(&recorded(world), expected);
    assert!(matches!(host_order(&world.seen), Some(HostOrder::Drain(_))));
    assert_eq!(world.condition("Ready").status, ConditionStatus::True);
    assert!(!world.has_condition("NovaMatches"));
}

#[test]
fn a_mistyped_region_with_a_host_of_the_name_holds_everything_until_it_is_corrected() {
    let mut world = world();
    goes_on(&world, &first());
    read(&mut world, reading(URL, "two", Some(("s2", "c2"))));
    is_held(
        &world,
        &[
            "service s1 and compute node c1 in http://192.0.2.1:5000, region one",
            "service s2 and compute node c2",
            "RegionName in Secret nova-cell1",
            "novacell/nova-cell1 'nova.openstack.org/accept-nova=http://192.0.2.1:5000 two'",
        ],
    );
    // The next typing error leads nowhere.
    let unread = HostHealth { service: ServiceHealth::ApiFails, ..reading(URL, "three", None) };
    read(&mut world, unread);
    is_held(&world, &["service s2"]);
    read(&mut world, reading(URL, "one", Some(("s1", "c1"))));
    goes_on(&world, &first());
    assert_eq!(world.n_runs(), 0);
}

#[test]
fn a_mistyped_region_without_such_a_host_holds_everything_too() {
    let mut world = world();
    read(&mut world, reading(URL, "two", None));
    is_held(&world, &["has no service of host n0.example.org"]);
    read(&mut world, reading(URL, "one", Some(("s1", "c1"))));
    goes_on(&world, &first());
}

#[test]
fn a_nova_that_was_not_read_yet_gets_no_order_and_changes_no_condition() {
    let mut world = world();
    let before = world.seen.compute.status.clone();
    let unread = HostHealth {
        service: ServiceHealth::Pending,
        mapping: MappingHealth::Pending,
        ..reading(URL, "two", None)
    };
    read(&mut world, unread);
    assert_eq!(host_order(&world.seen), None);
    assert_eq!(world.seen.compute.status, before);
}

#[test]
fn a_keystone_that_moved_is_recorded_anew_and_nothing_else_happens() {
    let mut world = world();
    read(&mut world, reading("https://keystone.example.org", "one", Some(("s1", "c1"))));
    goes_on(&world, &identity("https://keystone.example.org one", "s1", "c1"));
    assert_eq!(world.writes, ["status"]);
}

#[test]
fn regions_that_were_swapped_hold_each_host_until_the_user_says_which_nova_it_is() {
    let mut world = world();
    read(&mut world, reading(URL, "two", Some(("s2", "c2"))));
    // A word about another nova is none about this one.
    accept(&mut world, "http://192.0.2.1:5000 one");
    is_held(&world, &["it is \"http://192.0.2.1:5000 one\", which counts for another nova"]);
    accept(&mut world, "http://192.0.2.1:5000/v3 two");
    read(&mut world, reading(URL, "two", Some(("s2", "c2"))));
    goes_on(&world, &identity("http://192.0.2.1:5000 two", "s2", "c2"));
}

#[test]
fn a_cell_that_was_made_anew_takes_its_computes_by_a_word_and_their_next_deployment() {
    let mut world = world();
    let other = "http://192.0.2.9:5000";
    read(&mut world, reading(other, "one", None));
    is_held(&world, &["has no service of host"]);
    accept(&mut world, "http://192.0.2.9:5000 one");
    let none = (Some("http://192.0.2.9:5000 one".to_owned()), None, None);
    assert_eq!(recorded(&world), none);
    world.compute().annotations_mut().insert(REDEPLOY.into(), "1".into());
    world.node().annotations_mut().remove(DRAIN);
    world.run_all();
    read(&mut world, reading(other, "one", Some(("s3", "c1"))));
    assert_eq!(recorded(&world), identity("http://192.0.2.9:5000 one", "s3", "c1"));
    assert_eq!(world.reason("Ready"), "Ready");
}

#[test]
fn a_service_that_a_deployment_registers_anew_is_recorded_and_a_silent_one_is_not() {
    let mut world = world();
    read(&mut world, reading(URL, "one", Some(("s3", "c1"))));
    is_held(&world, &["has host n0.example.org as service s3", "novacell/nova-cell1"]);
    is_held(
        &world,
        &["deploy it again: kubectl annotate --overwrite -n ns novaexternalcompute/n0"],
    );
    world.compute().annotations_mut().insert(REDEPLOY.into(), "1".into());
    for _ in 0..3 {
        world.settle();
        assert_eq!(recorded(&world), first());
        world.end("Ok");
    }
    read(&mut world, reading(URL, "one", Some(("s3", "c1"))));
    goes_on(&world, &identity("http://192.0.2.1:5000 one", "s3", "c1"));
}

#[test]
fn a_deployment_does_not_make_another_nova_the_own_one() {
    let mut world = world();
    read(&mut world, reading(URL, "two", Some(("s2", "c2"))));
    world.compute().annotations_mut().insert(REDEPLOY.into(), "1".into());
    world.run_all();
    read(&mut world, reading(URL, "two", Some(("s2", "c2"))));
    is_held(&world, &["service s2"]);
}

#[test]
fn the_record_of_a_release_before_counts_and_gets_its_nova_with_the_next_reading() {
    let mut world = world();
    world.compute().status.as_mut().unwrap().nova = None;
    read(&mut world, reading(URL, "two", Some(("s2", "c2"))));
    assert_eq!(host_order(&world.seen), None);
    assert_eq!(world.reason("NovaMatches"), "OtherIdentity");
    read(&mut world, reading(URL, "one", Some(("s1", "c1"))));
    goes_on(&world, &first());
    assert_eq!(world.n_runs(), 0);
}

#[test]
fn a_compute_that_was_restored_without_its_status_has_no_orders_until_it_is_deployed() {
    let mut world = world();
    world.node().annotations_mut().remove(DRAIN);
    world.compute().status = None;
    world.seen.runs.clear();
    world.compute().spec.deploy = Some(false);
    read(&mut world, reading(URL, "one", Some(("s1", "c1"))));
    world.node().annotations_mut().insert(DRAIN.into(), "wait".into());
    assert_eq!((host_order(&world.seen), recorded(&world)), (None, (None, None, None)));
    world.compute().spec.deploy = Some(true);
    world.run_all();
    read(&mut world, reading(URL, "one", Some(("s1", "c1"))));
    goes_on(&world, &first());
}

#[test]
fn a_host_that_has_lost_its_identity_is_never_given_that_of_another_nova() {
    let mut world = world();
    world.node().annotations_mut().remove(DRAIN);
    read(&mut world, reading(URL, "two", Some(("s2", "c2"))));
    world.compute().annotations_mut().insert(REDEPLOY.into(), "1".into());
    world.settle();
    world.end("Ok").settle();
    assert_eq!(given(&world).0, json!("c1"));
    fail(&mut world, ROLE, &format!("osp.edpm.edpm_nova : {MISSING}"), "it is gone");
    world.writes.clear();
    world.now += SignedDuration::from_hours(1);
    read(&mut world, reading(URL, "two", Some(("s2", "c2"))));
    assert_eq!((host_order(&world.seen), world.n_runs()), (None, 0));
    assert_eq!(world.reason("DeploymentReady"), "IdentityNotChecked");
    // The region is corrected: the host gets its own identity back.
    world.seen.health = Some(reading(URL, "one", Some(("s1", "c1"))));
    world.seen.drain = Some(HostProgress::Identity(IdentityUse::Free));
    let Some(HostOrder::Identity(order)) = host_order(&world.seen) else { panic!("no order") };
    assert_eq!(order.compute_id, "c1");
    world.settle();
    assert_eq!(given(&world).0, json!("c1"));
}

#[test]
fn a_first_record_is_of_the_compute_node_that_the_deployment_has_found_on_the_host() {
    let mut world = World::deployed();
    for run in &mut world.seen.runs {
        let status = Arc::make_mut(run).status.as_mut().unwrap();
        status.report = Some(json!({"compute_ids": {"n0": "c1"}}).to_string());
    }
    read(&mut world, reading(URL, "two", Some(("s2", "c2"))));
    assert_eq!(recorded(&world), (None, None, Some("c1".to_owned())));
    assert_eq!(host_order(&world.seen), None);
    let found = world.condition("NovaMatches");
    assert!(found.message.contains("has registered as compute node c1."), "{}", found.message);
    assert!(found.message.contains("RegionName in Secret nova-cell1"), "{}", found.message);
    read(&mut world, reading(URL, "one", Some(("s1", "c1"))));
    assert_eq!(recorded(&world), first());
    assert_eq!((world.reason("Ready"), world.n_runs()), ("Ready".to_owned(), 0));
}

#[test]
fn a_service_that_is_not_the_recorded_one_is_named_where_it_keeps_a_drain_from_going_on() {
    let mut world = world();
    world.seen.drain = Some(HostProgress::OtherService { id: "s9".to_owned() });
    world.settle();
    world.says("Drained", "OtherIdentity", &["service s9"]);
}
