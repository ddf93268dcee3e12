//! The last look at hosts of a node set before their machines are given back.

use api::ansibleee::AnsibleEe;
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use operator_core::run_engine::layout::{Layout, NodeSets};

use super::*;
use crate::annotations::SKIP_CLEANUP;
use crate::host::last_look::{LeavingHost, template};
use crate::host::machines::test_model::{end_look, end_looks};
use crate::node_set::last_looks::MACHINES_GIVEN_BACK;

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

    /// Two provisioned hosts, to which everything is deployed.
    fn in_service() -> Self {
        let mut world = Self::provisioned();
        world.deployed("d").settle();
        world
    }
}

#[test]
fn a_host_that_leaves_is_terminating_and_keeps_its_machine_while_guests_are_on_it() {
    let mut world = World::in_service();
    world.take_out().settle();
    let [run] = &world.seen.looks[..] else { panic!("{:?}", world.seen.looks) };
    let owner = &run.owner_references()[0];
    assert_eq!((owner.kind.as_str(), owner.name.as_str()), ("OpenStackDataPlaneNode", "n1"));
    assert_eq!(run.spec.hosts[0].address, "192.0.2.11:22");
    assert_eq!(world.condition(MACHINES_GIVEN_BACK), is("False", "LookingForGuests"));
    assert_eq!(world.states(), [HostState::Deployed, HostState::Terminating]);
    for _ in 0..4 {
        world.look("Failed", "1 guest is on this host, so its machine is not given back: g1.");
        assert_eq!(world.settled(MACHINES_GIVEN_BACK), is("False", "MachineHeld"));
        world.says(
            MACHINES_GIVEN_BACK,
            &["host n1", "1 guest", "g1", "openstackdataplanenode/n1", SKIP_CLEANUP],
        );
        assert_eq!(world.condition("Ready"), is("True", "Ready"), "the others are in service");
        assert!(world.inventory()[SET]["hosts"]["n1"].is_object(), "a run has to reach it");
        world.now += SignedDuration::from_mins(11);
        world.settle();
        assert_eq!(world.seen.machines.hosts(), ["n0", "n1"]);
    }
    world.look("Ok", "").settle();
    assert_eq!(world.seen.machines.hosts(), ["n0"]);
    assert_eq!(world.states(), [HostState::Deployed]);
    let status = world.seen.set.status.as_ref().unwrap();
    assert!(find(&status.conditions, MACHINES_GIVEN_BACK).is_none());
}

#[test]
fn a_deleted_node_set_keeps_its_machines_until_each_host_was_looked_at() {
    let mut world = World::in_service();
    world.go().settle();
    assert_eq!(world.seen.looks.len(), 2);
    assert_eq!(world.condition("SetupReady"), is("False", "DeletionWaits"));
    world.says("SetupReady", &[MACHINES_GIVEN_BACK]);
    world.look("Ok", "");
    assert!(!world.settle().iter().any(|it| it.contains("Baremetal")), "one is left");
    assert_eq!(world.look("Ok", "").settle()[0], "delete OpenStackBaremetalSet compute");
}

#[test]
fn the_user_and_a_namespace_that_goes_let_machines_of_a_node_set_go_without_the_look() {
    let mut world = World::in_service();
    let skip = (SKIP_CLEANUP.to_owned(), "true".to_owned());
    Arc::make_mut(&mut world.seen.set).annotations_mut().extend([skip]);
    world.take_out().settle();
    assert_eq!(world.seen.machines.hosts(), ["n0"]);
    // The node wins over its node set.
    let mut world = World::in_service();
    let skip = |it: &str| (SKIP_CLEANUP.to_owned(), it.to_owned());
    Arc::make_mut(&mut world.seen.set).annotations_mut().extend([skip("true")]);
    world.with_node("n1", |it| it.annotations_mut().extend([skip("false")]));
    world.take_out().settle();
    assert_eq!(world.seen.machines.hosts(), ["n0", "n1"]);
    world.with_node("n1", |it| it.annotations_mut().extend([skip("true")])).settle();
    assert_eq!(world.seen.machines.hosts(), ["n0"]);
    let mut world = World::in_service();
    world.seen.is_namespace_terminating = true;
    assert_eq!(world.go().settle()[0], "delete OpenStackBaremetalSet compute");
    assert!(world.seen.looks.is_empty());
}

#[test]
fn a_set_that_goes_keeps_machines_that_nobody_asks_for_until_their_hosts_were_looked_at() {
    let abandoned = || {
        let mut world = World::in_service();
        world.seen.machines.deleted(world.now);
        world.seen.machines.set_mut().spec.deprovision_policy = None;
        world.edit("/preProvisioned", json!(true));
        world
    };
    let release = "release OpenStackBaremetalSet compute".to_owned();
    let mut world = abandoned();
    assert!(!world.settle().contains(&release));
    assert_eq!(world.condition(MACHINES_GIVEN_BACK), is("False", "MachineHeld"));
    world.says(MACHINES_GIVEN_BACK, &["spec.nodes", SKIP_CLEANUP]);
    let skip = (SKIP_CLEANUP.to_owned(), "true".to_owned());
    Arc::make_mut(&mut world.seen.set).annotations_mut().extend([skip]);
    assert!(world.settle().contains(&release), "the user's word");
    let mut world = abandoned();
    world.settle();
    world.edit("/nodes", json!({})).settle();
    assert!(world.end_looks());
    assert!(world.settle().contains(&release), "they were looked at");
    let mut world = abandoned();
    world.seen.is_namespace_terminating = true;
    assert!(world.settle().contains(&release));
}

#[test]
fn a_look_that_was_refused_is_tried_again_when_what_it_copies_is_corrected() {
    let mut world = World::in_service();
    world.take_out().settle();
    world.look("Failed", "1 guest is on this host: g1.").settle();
    world.now += SignedDuration::from_mins(11);
    world.settle();
    let refused = |world: &mut World| {
        world.look("Unknown", "");
        let runs = &mut world.seen.looks;
        let is_it = |it: &&mut Arc<AnsibleEe>| {
            it.status.as_ref().is_some_and(|it| it.reason.is_none() && it.failures.is_empty())
        };
        let last = runs.iter_mut().find(is_it).unwrap();
        Arc::make_mut(last).status.as_mut().unwrap().reason = Some("InvalidSpec".into());
        world.settle();
    };
    refused(&mut world);
    world.says(MACHINES_GIVEN_BACK, &["GuestsOnHost", "automatically"]);
    let mut world = World::in_service();
    world.take_out().settle();
    refused(&mut world);
    world.now += SignedDuration::from_mins(11);
    world.settle();
    world.says(MACHINES_GIVEN_BACK, &["InvalidSpec", "when that is corrected"]);
    assert_eq!(world.seen.looks.len(), 1, "another would be refused as well");
    world.edit("/env", json!([{ "name": "A", "value": "b" }])).settle();
    assert_eq!(world.seen.looks.len(), 2);
}

#[test]
fn a_look_at_a_host_without_an_address_says_that_and_how_to_go_on() {
    let world = World::in_service();
    let node = world.seen.nodes.get("n0").unwrap();
    let layout = NodeSets { ssh_secrets: BTreeMap::new(), is_global: false, tls: Vec::new() };
    let host = LeavingHost {
        node,
        machine: None,
        is_off: false,
        address: None,
        ssh: ("key".to_owned(), None),
        template: template(node, Layout::NodeSets(layout)),
    };
    let held = host.held(&[], world.now).expect("nothing has looked");
    assert_eq!(held.reason.word, "MachineHeld");
    for part in ["host n0", "address is not known", SKIP_CLEANUP] {
        assert!(held.message.contains(part), "{}", held.message);
    }
}

#[test]
fn a_host_whose_node_was_made_anew_is_looked_at_although_the_node_knows_of_no_deployment() {
    let mut world = World::in_service();
    world.now += SignedDuration::from_hours(1);
    world.delete_node("n1").settle();
    let now = Time(world.now);
    world.with_node("n1", |it| it.metadata.creation_timestamp = Some(now));
    assert_eq!(world.node("n1").services, [], "what ran there is not known any more");
    world.take_out().settle();
    assert_eq!(world.seen.machines.hosts(), ["n0", "n1"]);
    world.look("Ok", "").settle();
    assert_eq!(world.seen.machines.hosts(), ["n0"]);
}

#[test]
fn a_machine_whose_host_has_lost_its_node_is_held_with_words_until_the_users_word() {
    let mut world = World::in_service();
    let mut foreign = world.seen.nodes.own.remove("n1").unwrap();
    Arc::make_mut(&mut foreign).spec.node_set = None;
    world.seen.nodes.foreign.insert("n1".into(), foreign);
    world.take_out().settle();
    assert_eq!(world.condition(MACHINES_GIVEN_BACK), is("False", "MachineHeld"));
    let message = world.message(MACHINES_GIVEN_BACK);
    let command = format!("openstackdataplanenodeset/compute {SKIP_CLEANUP}=true");
    assert!(message.contains("host n1") && message.ends_with(&command), "{message}");
    assert_eq!(world.seen.machines.hosts(), ["n0", "n1"]);
    let skip = (SKIP_CLEANUP.to_owned(), "true".to_owned());
    Arc::make_mut(&mut world.seen.set).annotations_mut().extend([skip]);
    world.settle();
    assert_eq!(world.seen.machines.hosts(), ["n0"]);
}
