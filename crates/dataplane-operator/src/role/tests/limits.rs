//! The effect of `ansibleLimit` on the hosts within and outside it.

use super::*;

impl World {
    /// Deployed once, then again with another input, which failed on the first host.
    fn failed_on_n0() -> Self {
        let mut world = Self::new();
        world.deploy();
        world.set_var("bad").settle();
        world.finish(&[("n0", "Failed")]);
        world.deploy();
        world
    }

    fn set_limit(&mut self, limit: Option<&str>) {
        self.strategy().ansible_limit = limit.map(str::to_owned);
    }
}

#[test]
fn a_host_outside_the_limit_keeps_its_state() {
    let mut world = World::deployed();
    world.set_limit(Some("n0"));
    assert!(world.settle().contains(&"run install-os on n0".to_owned()));
    world.deploy();
    assert_eq!(world.condition(0, "UpToDate"), is("False", "PartialRun"));
    assert_eq!(world.condition(1, "UpToDate"), is("True", "UpToDate"));
    world.set_limit(None);
    assert!(world.settle().contains(&"run install-os on n0".to_owned()));
    world.deploy();
    assert_eq!(world.condition(0, "UpToDate"), is("True", "UpToDate"));
}

#[test]
fn a_host_outside_the_limit_that_was_never_deployed_says_so() {
    let mut world = World::new();
    world.set_limit(Some("n0"));
    world.deploy();
    assert_eq!(world.condition(1, "Ready"), is("False", "LeftOut"));
    world.set_limit(None);
    world.deploy();
    assert_eq!(world.condition(1, "Ready"), is("True", "Ready"));
}

#[test]
fn a_changed_input_of_a_deployed_host_outside_the_limit_leaves_it_ready() {
    let mut world = World::deployed();
    world.set_limit(Some("n0"));
    world.set_var("hello");
    world.deploy();
    assert_eq!(world.condition(1, "Ready"), is("True", "Ready"));
    assert_eq!(world.condition(1, "UpToDate"), is("False", "InputsChanged"));
}

#[test]
fn a_partial_run_after_a_failed_one_does_not_make_the_host_ready() {
    let mut world = World::failed_on_n0();
    assert_eq!(world.condition(0, "Ready"), is("False", "TaskFailed"));
    world.strategy().ansible_tags = Some("x".into());
    world.deploy();
    assert_eq!(world.condition(0, "Ready"), is("False", "PartialRun"));
    // The full inputs had succeeded on the other host.
    assert_eq!(world.condition(1, "Ready"), is("True", "Ready"));
}

#[test]
fn going_back_after_a_failure_never_names_nothing_as_changed() {
    let mut world = World::failed_on_n0();
    world.set_deploy(false);
    world.template().ansible_vars.remove("greeting");
    assert_eq!(world.settled(0, "UpToDate"), is("False", "InputsChanged"));
    let told = world.message(0, "UpToDate");
    assert!(told.starts_with("The inputs are those of the last deployment again"), "{told}");
}
