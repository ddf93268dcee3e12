//! The operator crashes before and after each of its writes: one machine for each host, one
//! deployment of each, no Secret left, the same result.

use super::*;

fn world() -> World {
    let mut world = World::new(&json!({}), &["x", "y", "z"]);
    world.failing.insert("x".into(), 1);
    world
}

/// Two hosts are added, one is removed, the set is deleted.
fn story(world: &mut World, chapter: usize) {
    match chapter {
        0 => {}
        1 => world.edit(&json!({"baremetalHosts": {"a": null}})),
        _ => world.delete(),
    }
}

/// Returns what must be the same at the end of each chapter, wherever the operator crashed.
fn end(world: &World) -> Value {
    let set = serde_json::to_value(&world.set).unwrap();
    let mut machines = world.machines.clone().unwrap();
    for machine in &mut machines {
        machine["metadata"]["resourceVersion"].take();
    }
    json!({"set": set, "machines": machines, "made": world.made, "deployed": world.deployed})
}

fn ends(death: Option<Death>) -> (Vec<Value>, usize) {
    let mut world = world();
    world.life.death = death;
    let mut ends = Vec::new();
    for chapter in 0..3 {
        story(&mut world, chapter);
        while world.rest().is_err() {
            world.life.death = None;
        }
        ends.push(end(&world));
    }
    (ends, world.life.n_calls)
}

#[test]
fn wherever_the_operator_dies_each_host_gets_one_machine_and_no_secret_is_left() {
    let (expected, n_calls) = ends(None);
    assert_eq!(expected[0]["deployed"], json!({"x": 1, "y": 1}));
    assert_eq!(expected[0]["made"].as_object().unwrap().len(), 6);
    assert_eq!(expected[1]["made"].as_object().unwrap().len(), 3);
    assert_eq!((&expected[2]["set"], &expected[2]["made"]), (&Value::Null, &json!({})));
    assert!(n_calls > 20, "{n_calls}");
    ends_alike(&expected, n_calls, |it| ends(Some(it)).0);
}
