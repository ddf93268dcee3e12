//! The mapping of machines to nodes: hosts with other or equal names, and hosts that are deleted.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::machines::OTHER;
use super::*;

/// A node of the role that was created a day later than the others.
fn latecomer(name: &str, host: &str) -> Arc<Node> {
    let mut late = node(name, "192.0.2.19");
    let it = Arc::make_mut(&mut late);
    it.spec.host_name = Some(host.into());
    it.metadata.creation_timestamp = Some(Time("2026-01-02T00:00:00Z".parse().unwrap()));
    late
}

impl World {
    fn add(&mut self, node: Arc<Node>) -> &mut Self {
        self.seen.nodes.push(node);
        self.seen.nodes.sort_by_key(|it| it.name_any());
        self
    }

    fn entry(&mut self, host: &str) -> Value {
        json!(self.seen.machines.set_mut().spec.baremetal_hosts[host])
    }

    fn at(&self, name: &str) -> usize {
        self.seen.nodes.iter().position(|it| it.name_any() == name).unwrap()
    }

    fn deleted_role(&mut self) {
        let at = Time(self.now);
        self.change("DataPlaneRole", "compute", |it| it.deletion_timestamp = Some(at));
    }
}

#[test]
fn a_host_that_is_called_differently_keeps_its_machine_and_says_so() {
    let mut world = World::provisioned();
    let entry = world.entry("n0");
    world.node(0).spec.host_name = Some("n00".into());
    world.node(0).spec.ansible_host = Some("192.0.2.99".into());
    let writes = world.settle();
    assert_eq!(world.seen.machines.hosts(), ["n0", "n1"]);
    assert_eq!(world.entry("n0"), entry);
    assert!(!writes.iter().any(|it| it.starts_with("run")), "{writes:?}");
    assert_eq!(world.condition(0, "BaremetalReady"), is("False", "HostNameChanged"));
    world.says(0, "BaremetalReady", &["Set spec.hostName to n0 again"]);
    world.node(0).spec.host_name = Some("n0.example.org".into());
    assert_eq!(world.settled(0, "BaremetalReady"), is("True", "Provisioned"));
    assert_eq!(world.seen.machines.hosts(), ["n0", "n1"]);
}

#[test]
fn a_host_that_is_called_differently_gives_back_the_machine_that_it_has() {
    let mut world = World::provisioned();
    world.node(0).spec.host_name = Some("n00".into());
    world.settle();
    world.remove("n0").settle();
    world.look("Ok", "").settle();
    assert_eq!(world.seen.machines.hosts(), ["n1"]);
    assert_eq!(world.condition(0, "BaremetalReady").1, "GivingBack");
    world.says(0, "BaremetalReady", &["Machine m-n0"]);
    world.seen.machines.give_back();
    world.settle();
    assert_eq!(world.seen.nodes.len(), 1);
}

#[test]
fn a_name_can_be_corrected_until_a_machine_is_chosen_and_once_it_was_given_back() {
    let mut world = World::bare().at_rest();
    world.node(0).spec.host_name = Some("n00".into());
    world.settle();
    assert_eq!(world.seen.machines.hosts(), ["n00", "n1"]);
    // The request is withdrawn, and the set is gone.
    let mut world = World::provisioned();
    world.role().spec.pre_provisioned = true;
    world.settle();
    let host = |world: &World| {
        let status = world.seen.nodes[0].status.clone().unwrap();
        status.machine.unwrap().host
    };
    assert_eq!(host(&world).as_deref(), Some("n0"));
    world.seen.machines.set = None;
    assert_eq!(world.settle().iter().filter(|it| it.starts_with("run")).count(), 0);
    assert_eq!(host(&world), None);
}

#[test]
fn a_second_node_of_the_same_host_name_takes_nothing_and_wipes_nothing() {
    let mut world = World::provisioned();
    world.finalize("n1", &[INVENTORY_FINALIZER, OTHER]);
    let entry = world.entry("n1");
    // It sorts first by its name, and has the same age.
    let mut thief = node("a", "192.0.2.19");
    Arc::make_mut(&mut thief).spec.host_name = Some("n1".into());
    world.add(thief).settle();
    let (thief, host) = (world.at("a"), world.at("n1"));
    assert_eq!(world.condition(thief, "BaremetalReady"), is("False", "HostTwice"));
    world.says(thief, "BaremetalReady", &["correct spec.hostName of a."]);
    assert_eq!(world.condition(host, "BaremetalReady"), is("True", "Provisioned"));
    assert_eq!(world.entry("n1"), entry);
    world.remove("a").settle();
    assert_eq!(world.seen.machines.hosts(), ["n0", "n1"]);
    assert_eq!(world.entry("n1"), entry);
    assert_eq!(world.seen.nodes.len(), 2);
    assert_eq!(world.condition(1, "BaremetalReady"), is("True", "Provisioned"));
}

#[test]
fn of_two_nodes_that_ask_for_one_machine_the_older_one_gets_it() {
    let mut world = World::bare();
    world.add(latecomer("a", "n1")).settle();
    assert_eq!(world.entry("n1")["ctlPlaneIP"], "192.0.2.11/24");
    assert_eq!(world.condition(world.at("a"), "BaremetalReady"), is("False", "HostTwice"));
}

#[test]
fn a_status_of_an_earlier_machine_takes_nobody_elses() {
    let mut world = World::provisioned();
    // It had a machine under that name, and has since had another host name in another role.
    let mut earlier = node("a", "192.0.2.19");
    let machine = json!({ "host": "n1", "machine": "m-old", "state": "active",
        "since": "2025-01-01T00:00:00Z" });
    Arc::make_mut(&mut earlier).status =
        Some(serde_json::from_value(json!({ "machine": machine })).unwrap());
    world.add(earlier);
    let entry = world.entry("n1");
    world.settle();
    assert_eq!(world.seen.machines.hosts(), ["a", "n0", "n1"]);
    assert_eq!(world.entry("n1"), entry);
    assert_eq!(world.condition(world.at("n1"), "BaremetalReady"), is("True", "Provisioned"));
}

#[test]
fn what_is_to_go_gets_no_machine_and_keeps_the_one_that_it_has() {
    let mut world = World::provisioned();
    let mut late = latecomer("n2", "n2");
    Arc::make_mut(&mut late).metadata.finalizers = Some(vec![OTHER.into()]);
    world.add(late);
    world.remove("n2");
    world.finalize("n1", &[INVENTORY_FINALIZER, OTHER]).remove("n1").settle();
    assert_eq!(world.seen.machines.hosts(), ["n0", "n1"]);
}

#[test]
fn a_new_node_of_a_role_that_is_to_go_gets_no_machine_and_keeps_nothing() {
    let mut world = World::provisioned();
    world.deleted_role();
    world.add(latecomer("n2", "n2")).settle();
    assert_eq!(world.seen.machines.hosts(), ["n0", "n1"]);
    world.role_says(&["n0, n1. Delete"]);
    world.remove("n0").remove("n1").settle();
    assert!(world.end_looks());
    assert!(world.settle().contains(&"delete BaremetalSet compute".to_owned()));
    world.seen.machines.give_back();
    world.settle();
    assert!(world.seen.role.is_none());
    assert_eq!(world.seen.nodes.len(), 1);
}
