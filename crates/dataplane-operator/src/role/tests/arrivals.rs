//! Nodes of a large role that are created one after the other.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;

#[test]
fn a_batch_that_is_not_full_waits_for_the_nodes_that_follow() {
    let mut world = World::new();
    world.strategy().batch_size = Some(2);
    world.seen.nodes.push(node("n2", "192.0.2.12"));
    for node in &mut world.seen.nodes {
        Arc::make_mut(node).metadata.creation_timestamp = Some(Time(world.now));
    }
    assert_eq!(runs(&world.settle()), ["run install-os on n0,n1"]);
    let pause = decide::decide(&world.seen, None, world.now).requeue_after.unwrap();
    assert!(pause <= std::time::Duration::from_millis(3100), "{pause:?}");
    world.now = world.now.saturating_add(SignedDuration::from_secs(3)).unwrap();
    assert_eq!(runs(&world.settle()), ["run install-os on n2"]);
}
