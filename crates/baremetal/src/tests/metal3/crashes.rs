//! The operator crashes before and after each of its writes: one machine for each host, one
//! deployment of each, no Secret left, the same result.

use super::*;
use crate::tests::crashes::{Compared, ends};

fn world() -> Metal {
    let mut world = Metal::new(&json!({}), &["x", "y", "z"]);
    world.failing.insert("x".into(), 1);
    world
}

impl Compared for Metal {
    fn end(&self) -> Value {
        let mut machines = self.machines.clone().unwrap();
        for machine in &mut machines {
            machine["metadata"]["resourceVersion"].take();
        }
        json!({"set": self.set, "machines": machines, "made": self.made, "deployed": self.deployed})
    }
}

#[test]
fn wherever_the_operator_dies_each_host_gets_one_machine_and_no_secret_is_left() {
    let (expected, n_calls) = ends(world(), None);
    assert_eq!(expected[0]["deployed"], json!({"x": 1, "y": 1}));
    assert_eq!(expected[0]["made"].as_object().unwrap().len(), 6);
    assert_eq!(expected[1]["made"].as_object().unwrap().len(), 3);
    assert_eq!((&expected[2]["set"], &expected[2]["made"]), (&Value::Null, &json!({})));
    assert!(n_calls > 20, "{n_calls}");
    ends_alike(&expected, n_calls, |it| ends(world(), Some(it)).0);
}
