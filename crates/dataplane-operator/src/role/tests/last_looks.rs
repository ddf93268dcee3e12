//! The last look at a host before its machine is given back.

use super::machines::OTHER;
use super::*;
use crate::annotations::SKIP_CLEANUP;
use crate::host::machines::test_model::{end_look, end_looks};

const UNREACHABLE: &str = "Unreachable";

impl World {
    /// Ends the open look with this result; `guests` is what the play says of them.
    pub(super) fn look(&mut self, result: &str, guests: &str) -> &mut Self {
        assert!(end_look(&mut self.seen.looks, (result, guests), self.now), "a look goes on");
        self
    }

    /// Ends all open looks, which find no guests; returns whether there were any.
    pub(super) fn end_looks(&mut self) -> bool {
        end_looks(&mut self.seen.looks, self.now)
    }

    /// Both machines are there, and the first node is being deleted; nobody else needs it.
    fn leaving() -> Self {
        let mut world = Self::provisioned();
        world.remove("n0").settle();
        world
    }

    /// The next attempt is due, begins and ends.
    fn again(&mut self, result: &str, guests: &str) {
        self.now += SignedDuration::from_mins(11);
        self.settle();
        self.look(result, guests).settle();
    }

    fn is_kept(&mut self) -> bool {
        self.seen.machines.hosts() == ["n0", "n1"]
    }

    /// The provisioner reads the power of the machine as off.
    fn power_off(&mut self) -> &mut Self {
        let status = self.seen.machines.set_mut().status.as_mut().unwrap();
        status.baremetal_hosts.get_mut("n0").unwrap().powered_off = true;
        let type_ = "OpenStackBaremetalSetProvServerReady";
        status.conditions = vec![stated(type_, "True", "Answering", "")];
        self
    }
}

#[test]
fn a_machine_is_given_back_once_a_run_has_found_no_guests_on_its_host() {
    let mut world = World::provisioned();
    world.finalize("n0", &[INVENTORY_FINALIZER, OTHER]).remove("n0").settle();
    assert!(world.seen.looks.is_empty(), "others still use the host");
    world.finalize("n0", &[INVENTORY_FINALIZER]).settle();
    let [run] = &world.seen.looks[..] else { panic!("{:?}", world.seen.looks) };
    assert_eq!(run.owner_references()[0].name, "n0", "it goes with its node");
    let text = serde_json::to_string(&run.spec).unwrap();
    for part in
        ["Look for guests", "The host must have no guests", "dataplanenode-n0", "192.0.2.10:22"]
    {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(world.condition(0, "BaremetalReady"), is("False", "LookingForGuests"));
    assert!(world.is_kept());
    world.look("Ok", "").settle();
    assert!(!world.is_kept());
    assert_eq!(world.condition(0, "BaremetalReady"), is("False", "GivingBack"));
}

#[test]
fn guests_on_the_host_hold_its_machine_until_they_are_gone_even_if_the_host_is_off() {
    let mut world = World::leaving();
    world.look("Failed", "2 guests are on this host, so its machine is not given back: g1, g2.");
    world.settle();
    for _ in 0..5 {
        assert_eq!(world.condition(0, "BaremetalReady"), is("False", "MachineHeld"));
        let words = ["host n0", "2 guests", "g1, g2", "Migrate or delete", SKIP_CLEANUP];
        world.says(0, "BaremetalReady", &words);
        world.again(
            "Failed",
            "2 guests are on this host, so its machine is not given back: g1, g2.",
        );
    }
    world.power_off();
    for _ in 0..4 {
        world.again(UNREACHABLE, "");
        assert!(world.is_kept(), "their disks may be there");
    }
    assert!(world.seen.looks.len() <= 6, "old runs go: {}", world.seen.looks.len());
    world.again("Ok", "");
    assert!(!world.is_kept());
}

#[test]
fn a_host_that_cannot_be_reached_keeps_its_machine_until_that_is_off() {
    let mut world = World::leaving();
    world.look(UNREACHABLE, "").power_off().settle();
    world.again(UNREACHABLE, "");
    assert!(world.is_kept(), "two attempts are not enough");
    world.again(UNREACHABLE, "");
    assert!(!world.is_kept());
    let mut world = World::leaving();
    world.look(UNREACHABLE, "");
    for _ in 0..5 {
        world.again(UNREACHABLE, "");
        assert!(world.is_kept());
    }
    assert_eq!(world.condition(0, "BaremetalReady"), is("False", "MachineHeld"));
    world.says(0, "BaremetalReady", &["HostUnreachable", "switch its machine off"]);
    world.power_off();
    let status = world.seen.machines.set_mut().status.as_mut().unwrap();
    status.conditions.clear();
    world.settle();
    assert!(world.is_kept(), "nothing answers, so the reading is an old one");
    world.power_off().settle();
    assert!(!world.is_kept());
}

#[test]
fn a_look_that_fails_is_tried_again_and_never_counts_as_an_empty_host() {
    let mut world = World::leaving();
    world.look("Failed", "").settle();
    for _ in 0..5 {
        world.again("Failed", "");
        assert!(world.is_kept());
        assert_eq!(world.condition(0, "BaremetalReady"), is("False", "MachineHeld"));
    }
}

#[test]
fn the_user_and_a_namespace_that_goes_let_a_machine_go_without_the_look() {
    let mut world = World::leaving();
    world.look("Failed", "1 guest is on this host: g1.").settle();
    world.node(0).annotations_mut().insert(SKIP_CLEANUP.to_owned(), "true".to_owned());
    world.settle();
    assert!(!world.is_kept());
    let mut world = World::provisioned();
    world.seen.is_namespace_terminating = true;
    world.remove("n0").settle();
    assert!(!world.is_kept() && world.seen.looks.is_empty());
}

#[test]
fn a_machine_on_which_no_run_has_ever_succeeded_is_not_asked() {
    let mut world = World::bare().at_rest();
    world.seen.machines.run();
    world.settle();
    world.finish(&[("n0", UNREACHABLE), ("n1", UNREACHABLE)]).settle();
    world.remove("n0").settle();
    assert!(!world.is_kept() && world.seen.looks.is_empty());
}

#[test]
fn guests_that_were_found_are_not_forgotten_when_a_later_look_fails_otherwise() {
    let mut world = World::leaving();
    world.look("Failed", "1 guest is on this host: g1.").settle();
    world.again("Failed", "");
    world.power_off();
    for _ in 0..3 {
        world.again("Failed", "");
        assert!(world.is_kept(), "their disks may be there");
        world.says(0, "BaremetalReady", &["GuestsOnHost", "g1"]);
    }
}

#[test]
fn a_look_that_hangs_says_why_and_how_to_go_on() {
    let mut world = World::leaving();
    let ready = fault("Ready", Severity::Warning, "Unschedulable", "No worker has room.");
    let run = world.seen.looks.iter_mut().find(|it| is_open(it)).unwrap();
    let status = Arc::make_mut(run).status.get_or_insert_default();
    status.conditions = vec![ready];
    assert_eq!(world.settled(0, "BaremetalReady"), is("False", "MachineHeld"));
    world.says(0, "BaremetalReady", &["No worker has room", SKIP_CLEANUP]);
}
