//! The last look at hosts of a node set before their machines are given back.

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::host::last_look::SKIP_CLEANUP;
use crate::node_set::last_looks::MACHINES_GIVEN_BACK;

impl World {
    /// Ends the open look with this result; `guests` is what the play says of them.
    pub(super) fn look(&mut self, result: &str, guests: &str) {
        let is_open = |it: &&mut Arc<AnsibleEe>| {
            it.status.as_ref().is_some_and(|it| it.completion_time.is_none())
        };
        let open = self.seen.looks.iter_mut().find(is_open).expect("a look goes on");
        let host = open.spec.hosts[0].name.clone();
        let failures = json!([{
            "host": host, "path": "/runner/project/playbook.yaml:20",
            "task": "The host must have no guests", "message": guests,
        }]);
        let status = json!({
            "JobStatus": if result == "Ok" { "Succeeded" } else { "Failed" },
            "hosts": [{ "name": host, "result": result }],
            "failures": if guests.is_empty() { json!([]) } else { failures },
            "completionTime": self.now.to_string(),
        });
        Arc::make_mut(open).status = Some(serde_json::from_value(status).unwrap());
    }

    /// Ends all open looks, which find no guests; returns whether there were any.
    pub(super) fn end_looks(&mut self) -> bool {
        let is_open =
            |it: &Arc<AnsibleEe>| it.status.as_ref().is_some_and(|it| it.completion_time.is_none());
        let n_open = self.seen.looks.iter().filter(|it| is_open(it)).count();
        (0..n_open).for_each(|_| self.look("Ok", ""));
        n_open > 0
    }

    /// Two provisioned hosts, to which everything is deployed.
    fn in_service() -> Self {
        let mut world = Self::provisioned();
        world.deployed("d");
        world.settle();
        world
    }
}

#[test]
fn a_host_that_leaves_is_terminating_and_keeps_its_machine_while_guests_are_on_it() {
    let mut world = World::in_service();
    world.take_out();
    world.settle();
    let [run] = &world.seen.looks[..] else { panic!("{:?}", world.seen.looks) };
    assert_eq!(run.owner_references()[0].name, SET);
    assert_eq!(run.spec.hosts[0].address, "192.0.2.11:22");
    assert_eq!(world.condition(MACHINES_GIVEN_BACK), is("False", "LookingForGuests"));
    assert_eq!(world.states(), [HostState::Deployed, HostState::Terminating]);
    for _ in 0..4 {
        world.look("Failed", "1 guest is on this host, so its machine is not given back: g1.");
        world.settle();
        assert_eq!(world.condition(MACHINES_GIVEN_BACK), is("False", "MachineHeld"));
        let message = world.message(MACHINES_GIVEN_BACK);
        for part in ["host n1", "1 guest", "g1", "openstackdataplanenodeset/compute", SKIP_CLEANUP]
        {
            assert!(message.contains(part), "{message}");
        }
        assert_eq!(world.condition("Ready"), is("True", "Ready"), "the others are in service");
        assert!(world.inventory()[SET]["hosts"]["n1"].is_object(), "a run has to reach it");
        world.now += SignedDuration::from_mins(11);
        world.settle();
        assert_eq!(world.seen.machines.hosts(), ["n0", "n1"]);
    }
    world.look("Ok", "");
    world.settle();
    assert_eq!(world.seen.machines.hosts(), ["n0"]);
    assert_eq!(world.states(), [HostState::Deployed]);
    let status = world.seen.set.status.as_ref().unwrap();
    assert!(find(&status.conditions, MACHINES_GIVEN_BACK).is_none());
}

#[test]
fn a_deleted_node_set_keeps_its_machines_until_each_host_was_looked_at() {
    let mut world = World::in_service();
    Arc::make_mut(&mut world.seen.set).metadata.deletion_timestamp = Some(Time(world.now));
    world.settle();
    assert_eq!(world.seen.looks.len(), 2);
    assert_eq!(world.condition("SetupReady"), is("False", "DeletionWaits"));
    assert!(world.message("SetupReady").contains(MACHINES_GIVEN_BACK));
    world.look("Ok", "");
    assert!(!world.settle().iter().any(|it| it.contains("Baremetal")), "one is left");
    world.look("Ok", "");
    assert_eq!(world.settle()[0], "delete OpenStackBaremetalSet compute");
}

#[test]
fn the_user_and_a_namespace_that_goes_let_machines_of_a_node_set_go_without_the_look() {
    let mut world = World::in_service();
    let skip = (SKIP_CLEANUP.to_owned(), "true".to_owned());
    Arc::make_mut(&mut world.seen.set).annotations_mut().extend([skip]);
    world.take_out();
    world.settle();
    assert_eq!(world.seen.machines.hosts(), ["n0"]);
    let mut world = World::in_service();
    world.seen.is_namespace_terminating = true;
    Arc::make_mut(&mut world.seen.set).metadata.deletion_timestamp = Some(Time(world.now));
    assert_eq!(world.settle()[0], "delete OpenStackBaremetalSet compute");
    assert!(world.seen.looks.is_empty());
}
