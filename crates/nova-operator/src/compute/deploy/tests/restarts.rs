//! When nova-compute restarts although its files and its image are unchanged.

use super::*;

/// Whether the last run of nova restarts it.
fn restarts(world: &World) -> bool {
    world.run_of_nova().spec.extra_vars["edpm_nova_restart"] == json!(true)
}

fn ask(world: &mut World, value: &str) {
    world.compute().annotations_mut().insert(REDEPLOY.into(), value.into());
}

#[test]
fn a_redeploy_that_was_asked_for_starts_nova_again_and_a_change_afterwards_does_not() {
    let mut world = World::deployed();
    ask(&mut world, "1");
    world.run_all().settle();
    assert!(restarts(&world));
    world.configure(None).settle();
    assert!(!restarts(&world), "the changed file does that");
    world.end_well(2);
}

#[test]
fn a_redeploy_of_the_node_alone_leaves_nova_running() {
    let mut world = World::deployed();
    world.node().status.as_mut().unwrap().host_instance = Some("another".into());
    world.settle();
    world.end("Ok").settle();
    assert!(!restarts(&world));
}

#[test]
fn a_redeploy_of_the_node_leaves_nova_running_after_an_earlier_one_of_the_compute() {
    let mut world = World::deployed();
    ask(&mut world, "1");
    world.run_all().settle();
    world.node().status.as_mut().unwrap().host_instance = Some("another".into());
    world.settle();
    world.end("Ok").settle();
    assert!(!restarts(&world), "its annotation is still there");
}

#[test]
fn whatever_runs_nova_after_it_did_not_register_starts_it_again() {
    let mut world = World::deployed();
    world.configure(None).settle();
    world.end("Ok").settle();
    world.end("Failed").settle();
    assert_eq!(world.reason("Ready"), "TaskFailed");
    world.configure(Some("[libvirt]\ncpu_mode = custom\n")).settle();
    assert!(restarts(&world));
}
