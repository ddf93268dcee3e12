//! Node sets whose machines are provisioned.

use api::baremetal::set::FOR;
use operator_core::run_engine::host_key::HostKey;

use super::nodes::other;
use super::*;
use crate::host::machines::set::IN_USE;

const READY: &str = "NodeSetBaremetalProvisionReady";

impl World {
    /// Two hosts whose machines are to be provisioned.
    pub(super) fn bare_metal() -> Self {
        Self::of(&json!({
            "preProvisioned": false,
            "baremetalSetTemplate": {
                "ctlplaneInterface": "eth0", "domainName": "example.org",
                "provisioner": "ironic", "ironic": { "endpoint": "http://i" },
                "deprovisionPolicy": "Retain",
            },
            "services": ["install", "web"],
            "nodeTemplate": {
                "ansibleSSHPrivateKeySecret": "key", "userData": { "name": "for-all" },
            },
            "nodes": {
                "n0": { "ansible": { "ansibleHost": "192.0.2.10" } },
                "n1": { "ansible": { "ansibleHost": "192.0.2.11" }, "ctlplaneInterface": "eth7",
                    "baremetalHost": { "machine": { "node": "rack1" }, "ctlplaneInterface": "x" } },
            },
        }))
    }

    pub(super) fn provisioned() -> Self {
        let mut world = Self::bare_metal();
        world.settle();
        world.seen.machines.run();
        world.settle();
        world
    }

    fn machine(&self, host: &str) -> &api::dataplane::HostMachine {
        &self.seen.set.status.as_ref().unwrap().machines[host]
    }
}

#[test]
fn a_node_set_asks_for_a_machine_for_each_host() {
    let mut world = World::bare_metal();
    assert!(world.settle().contains(&"apply OpenStackBaremetalSet compute".to_owned()));
    let set = world.seen.machines.set_mut().clone();
    assert_eq!(set.labels()[FOR], "compute");
    assert_eq!(set.labels()["osdpns.openstack.org/name"], "compute");
    let hosts = json!({
        "n0": { "ctlPlaneIP": "192.0.2.10/24", "adopt": false },
        "n1": { "ctlPlaneIP": "192.0.2.11/24", "ctlplaneInterface": "eth7", "adopt": false,
            "machine": { "node": "rack1" } },
    });
    assert_eq!(json!(set.spec.baremetal_hosts), hosts);
    assert_eq!(set.spec.template.deployment_ssh_secret.as_deref(), Some("key"));
    assert_eq!(set.spec.template.domain_name.as_deref(), Some("example.org"));
    assert_eq!(set.spec.user_data.unwrap().name.as_deref(), Some("for-all"));
    assert_eq!(set.spec.ironic.unwrap().endpoint, "http://i");
    world.holds([(READY, "False", "Provisioning"), ("SetupReady", "True", "Ready")]);
    assert_eq!(world.condition("Ready"), is("False", "Provisioning"));
}

#[test]
fn hosts_are_ready_one_by_one_as_their_machines_and_ssh_servers_are() {
    let mut world = World::bare_metal().at_rest();
    world.seen.machines.say_state("n0", "active");
    let plan = world.pass();
    assert!(plan.requeue_after.unwrap().as_secs() <= 10);
    assert!(!world.machine("n0").ready);
    assert!(world.message(READY).starts_with("0/2 hosts have their machines. n0: Machine m-n0"));
    world.seen.machines.answer("192.0.2.10");
    world.settle();
    assert!(world.machine("n0").ready && !world.machine("n1").ready);
    assert!(world.message(READY).starts_with("1/2 hosts have their machines. n1: Machine"));
    let mut world = World::provisioned();
    assert_eq!(world.condition(READY), is("True", "Provisioned"));
    assert_eq!(world.settle(), [""; 0]);
    let status = world.seen.set.status.clone().unwrap();
    assert!(status.bmh_ref_hash.is_some());
    world.deployed("d").settle();
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
}

#[test]
fn a_machine_that_took_anothers_place_has_nothing_deployed_and_a_key_of_its_own() {
    let mut world = World::provisioned();
    let print = HostKey::parse(KEY).unwrap().fingerprint();
    let shown = |it: &mut Node| it.status.get_or_insert_default().host_key = Some(KEY.into());
    world.with_node("n1", shown).deployed("d").settle();
    assert_eq!(world.states(), [HostState::Deployed; 2]);
    let fields = json!({ "provisioningState": "active", "instance": "i-2" });
    world.seen.machines.say("n1", &fields);
    world.now = "2026-01-02T00:00:00Z".parse().unwrap();
    world.settle();
    assert_eq!(world.states(), [HostState::Deployed, HostState::Undeployed]);
    assert_eq!(world.condition("DeploymentReady"), is("False", "NotDeployed"));
    world.says("UpToDate", &["machine n1"]);
    assert_eq!(world.node("n1").host_key, None);
    assert_eq!(world.machine("n1").former_key.as_ref(), Some(&print));
}

#[test]
fn a_host_that_is_taken_out_gives_its_machine_back_after_a_deployment() {
    let mut world = World::provisioned();
    world.deploy("d", &json!({}), &[("n0", 1, "Running"), ("n1", 1, "Running")]).settle();
    world.take_out().settle();
    assert_eq!(world.seen.machines.hosts(), ["n0", "n1"]);
    assert!(world.seen.looks.is_empty(), "no look begins during a deployment");
    world.end("d", true, ["c1", "s1"]).settle();
    assert_eq!(world.seen.machines.hosts(), ["n0", "n1"], "guests are looked for");
    world.look("Ok", "").settle();
    assert_eq!(world.seen.machines.hosts(), ["n0"]);
}

#[test]
fn a_terminating_host_keeps_its_machine_and_is_no_input() {
    let mut world = World::provisioned();
    world.deployed("d").finalize(&["n0", "n1"]).settle();
    assert!(world.seen.set.status.as_ref().unwrap().inputs.contains_key("machine n1"));
    world.take_out().settle();
    assert_eq!(world.seen.machines.hosts(), ["n0", "n1"]);
    assert!(world.machine("n1").ready);
    assert!(!world.seen.set.status.as_ref().unwrap().inputs.contains_key("machine n1"));
    assert_eq!(world.condition(READY), is("True", "Provisioned"));
    assert!(!world.message(READY).contains("n1"), "{}", world.message(READY));
    assert_eq!(world.settle(), [""; 0]);
    let mut empty = world.clone();
    empty.edit("/nodes", json!({})).settle();
    assert_eq!(empty.seen.machines.hosts(), ["n0", "n1"]);
    world.finalize(&["n0"]).settle();
    world.look("Ok", "").settle();
    assert_eq!(world.seen.machines.hosts(), ["n0"]);
    assert!(!world.seen.set.status.as_ref().unwrap().machines.contains_key("n1"));
}

#[test]
fn a_host_with_a_machine_is_not_handed_over_and_its_node_goes_after_the_machine() {
    let mut world = World::provisioned();
    world.deployed("d").finalize(&["n1"]).settle();
    world.others = vec![other("192.0.2.11")];
    world.take_out().settle();
    assert_eq!(world.states(), [HostState::Deployed, HostState::Terminating]);
    world.finalize(&[]).settle();
    assert!(world.seen.nodes.get("n1").is_some(), "guests are looked for by its node");
    world.look("Ok", "").settle();
    assert_eq!(world.seen.machines.hosts(), ["n0"]);
    assert!(world.seen.nodes.get("n1").is_none());
}

#[test]
fn a_node_that_is_deleted_by_hand_keeps_its_machine_while_its_entry_stands() {
    let mut world = World::provisioned();
    world.deployed("d").settle();
    let known = world.machine("n1").clone();
    world.delete_node("n1").settle();
    assert_eq!(world.node_writes, ["release n1", "create n1", "status n1"]);
    assert_eq!(world.seen.machines.hosts(), ["n0", "n1"]);
    assert_eq!(world.machine("n1"), &known);
    assert!(world.seen.looks.is_empty());
}

#[test]
fn machines_of_a_deleted_node_set_are_given_back_after_the_finalizers_of_its_nodes_are_removed() {
    let mut world = World::provisioned();
    world.deployed("d").finalize(&["n0", "n1"]).settle();
    assert_eq!(world.go().settle(), ["status NodeSet compute"]);
    assert_eq!(world.seen.machines.hosts(), ["n0", "n1"]);
    world.finalize(&[]).settle();
    assert!(world.end_looks(), "guests are looked for");
    assert_eq!(world.settle()[0], "delete OpenStackBaremetalSet compute");
}

#[test]
fn a_deleted_node_set_gives_its_machines_back_before_it_goes() {
    let mut world = World::provisioned();
    world.go();
    let expected = [
        "delete OpenStackBaremetalSet compute",
        "release OpenStackBaremetalSet compute",
        "status NodeSet compute",
    ];
    assert_eq!(world.settle(), expected);
    assert_eq!(world.condition("SetupReady"), is("False", "DeletionWaits"));
    world.says("SetupReady", &["OpenStackBaremetalSet compute has given back"]);
    world.seen.machines.give_back();
    assert_eq!(world.settle().last().unwrap(), "release NodeSet compute");
    assert!(world.seen.inventory.is_none());
}

#[test]
fn nothing_is_asked_for_while_the_hosts_are_not_what_they_should_be() {
    let mut world = World::bare_metal();
    world.edit("/nodes/n1", json!({ "ansible": { "ansibleHost": "192.0.2.10" } })).settle();
    assert_eq!(world.condition("InputReady").1, "HostTwice");
    assert!(world.seen.machines.set.is_none());
}

#[test]
fn a_set_of_others_and_a_host_of_another_set_are_told_of() {
    let mut world = World::bare_metal().at_rest();
    world.seen.machines.set_mut().labels_mut().clear();
    assert_eq!(world.settled(READY), is("False", "NameTaken"));
    let mut world = World::bare_metal();
    world.seen.machines.elsewhere.insert("n1".into(), "old".into());
    world.settle();
    assert_eq!(world.seen.machines.hosts(), ["n0"]);
    assert_eq!(world.condition(READY), is("False", "MachineElsewhere"));
}

#[test]
fn a_host_in_service_on_another_machine_gets_none_unless_its_own_is_adopted() {
    let mut world = World::bare_metal();
    world.edit("/nodes/n1/baremetalHost", json!({ "adopt": true }));
    world.edit("/preProvisioned", json!(true)).settle();
    let deployed = json!([{ "name": "web", "state": "Succeeded", "hash": "h", "deployedHash": "h",
        "attempt": 1, "since": "2026-01-01T00:00:00Z" }]);
    for host in ["n0", "n1"] {
        let services = serde_json::from_value(deployed.clone()).unwrap();
        world.with_node(host, |it| it.status.get_or_insert_default().services = services);
    }
    world.edit("/preProvisioned", json!(false)).settle();
    assert_eq!(world.seen.machines.hosts(), ["n1"]);
    assert_eq!(world.condition(READY), is("False", "HostInService"));
    world.says(READY, &["spec.preProvisioned: true of OpenStackDataPlaneNodeSet compute"]);
}

#[test]
fn machines_are_no_business_of_hosts_that_are_provisioned_by_others() {
    let mut world = World::set_up();
    let conditions = &world.seen.set.status.as_ref().unwrap().conditions;
    assert!(find(conditions, READY).is_none());
    world.edit("/preProvisioned", json!(false)).settle();
    assert_eq!(world.condition(READY), is("True", "NotRequired"));
    let mut world = World::provisioned();
    world.edit("/preProvisioned", json!(true));
    // The set is released without being deleted, and stays as it is.
    let writes = world.settle().into_iter().filter(|it| it.contains("Baremetal"));
    assert_eq!(writes.collect::<Vec<_>>(), ["release OpenStackBaremetalSet compute"]);
    assert_eq!(world.seen.machines.hosts(), ["n0", "n1"]);
}

#[test]
fn a_set_that_is_refused_keeps_no_inventory_back() {
    let mut world = World::bare_metal();
    world.pass();
    let plan = recorded(decide::decide(&world.seen, None, world.now));
    let is_set = |it: &Step| it.target.kind.kind == "OpenStackBaremetalSet";
    assert!(plan.independent.iter().any(is_set), "apart from the inventory");
    assert!(!plan.steps.iter().any(is_set));
}

#[test]
fn a_set_is_asked_for_only_once_the_node_set_is_held() {
    let mut world = World::bare_metal();
    world.pass();
    assert!(world.seen.machines.set.is_none());
    assert_eq!(world.seen.set.finalizers(), [INVENTORY_FINALIZER]);
    world.pass();
    assert_eq!(world.seen.machines.set_mut().finalizers(), [IN_USE]);
}

#[test]
fn a_set_that_somebody_deletes_gives_nothing_back_while_the_node_set_has_hosts() {
    let mut world = World::provisioned();
    world.seen.machines.deleted(world.now);
    assert!(!world.settle().iter().any(|it| it.contains("Baremetal")));
    world.says(READY, &["is to be deleted, which cannot be undone"]);
    world.edit("/nodes", json!({}));
    assert!(world.settle().contains(&"release OpenStackBaremetalSet compute".to_owned()));
}

#[test]
fn a_set_of_which_nobody_asks_anything_is_held_while_it_would_take_machines_from_others() {
    let mut world = World::provisioned();
    world.seen.machines.set_mut().spec.deprovision_policy = None;
    Arc::make_mut(&mut world.seen.set).finalizers_mut().push("example.org/other".into());
    world.edit("/preProvisioned", json!(true)).settle();
    assert_eq!(world.seen.machines.set_mut().finalizers(), [IN_USE]);
    Arc::make_mut(&mut world.seen.set).finalizers_mut().retain(|it| it == INVENTORY_FINALIZER);
    assert!(world.settle().contains(&"release OpenStackBaremetalSet compute".to_owned()));
}

#[test]
fn hosts_that_run_already_are_taken_over_and_stay_deployed() {
    let mut world = deployed();
    assert_eq!(world.states(), [HostState::Deployed; 2]);
    let adopted = json!({ "machine": { "node": "rack" }, "adopt": true });
    for host in ["n0", "n1"] {
        world.edit(&format!("/nodes/{host}/baremetalHost"), adopted.clone());
    }
    world.edit("/baremetalSetTemplate", json!({ "ctlplaneInterface": "eth0" }));
    world.edit("/preProvisioned", json!(false)).settle();
    for host in ["n0", "n1"] {
        world.seen.machines.say_state(host, "active");
    }
    world.settle();
    assert!(world.machine("n0").adopted && world.machine("n0").ready);
    assert_eq!(world.states(), [HostState::Deployed; 2]);
    assert!(!world.message("UpToDate").contains("machine n0"), "{}", world.message("UpToDate"));
    let fields = json!({ "provisioningState": "active", "instance": "i-2" });
    world.seen.machines.say("n1", &fields);
    world.now = "2026-01-02T00:00:00Z".parse().unwrap();
    world.settle();
    assert_eq!(world.states(), [HostState::Deployed, HostState::Undeployed]);
}

#[test]
fn a_host_that_is_called_differently_keeps_its_machine_and_says_so() {
    let mut world = World::provisioned();
    world.deployed("d").settle();
    let before = world.seen.machines.set_mut().spec.clone();
    let writes = world.edit("/nodes/n0/hostName", json!("n00.example.org")).settle();
    assert!(!writes.iter().any(|it| it.contains("Baremetal")), "{writes:?}");
    assert_eq!(world.seen.machines.set_mut().spec, before);
    let words = [
        "Node n0 of OpenStackDataPlaneNodeSet compute is called n00 now",
        "asked for as n0,",
        "Set spec.nodes[n0].hostName to n0.example.org again",
    ];
    world.says("InputReady", &words);
    world.holds([("InputReady", "False", "HostNameChanged"), (READY, "False", "HostNameChanged")]);
    assert_eq!(world.condition("SetupReady").0, "False");
    // It is not ready for deployments, under either name.
    assert!(!world.machine("n0").ready && world.machine("n1").ready);
    assert!(!world.seen.set.status.as_ref().unwrap().machines.contains_key("n00"));
    world.edit("/nodes/n0/hostName", json!("n0.example.org")).settle();
    assert_eq!(world.condition(READY), is("True", "Provisioned"));
    assert_eq!(world.condition("InputReady").0, "True");
    assert_eq!(world.seen.machines.set_mut().spec, before);
    assert!(world.machine("n0").ready);
}

#[test]
fn a_name_can_be_corrected_until_a_machine_is_chosen_and_once_it_was_given_back() {
    let mut world = World::bare_metal().at_rest();
    world.edit("/nodes/n0/hostName", json!("n00.example.org")).settle();
    assert_eq!(world.seen.machines.hosts(), ["n00", "n1"]);
    let mut world = World::provisioned();
    world.seen.machines.set = None;
    world.edit("/nodes/n0/hostName", json!("n00.example.org")).settle();
    assert_eq!(world.seen.machines.hosts(), ["n00", "n1"]);
}

#[test]
fn a_host_that_gets_the_name_of_anothers_machine_takes_nothing() {
    let mut world = World::provisioned();
    world.edit("/nodes/n0/hostName", json!("n1.example.org"));
    world.edit("/nodes/n1/hostName", json!("n0.example.org"));
    let before = world.seen.machines.set_mut().spec.clone();
    assert_eq!(world.settled(READY), is("False", "HostNameChanged"));
    // A new host takes the name, and the host that has the machine was renamed.
    let mut world = World::provisioned();
    world.edit("/nodes/n1/hostName", json!("n2.example.org"));
    let newcomer = json!({ "hostName": "n1.example.org",
        "ansible": { "ansibleHost": "192.0.2.12" } });
    world.edit("/nodes/a", newcomer).settle();
    let expected = "Node a of OpenStackDataPlaneNodeSet compute has the host name n1, by which the \
                    machine of node n1 is known: correct spec.nodes[a].hostName.";
    world.says("InputReady", &[expected]);
    assert_eq!(world.machine("n1").node.as_deref(), Some("n1"));
    assert!(!world.machine("n1").ready);
    assert_eq!(world.seen.machines.set_mut().spec, before);
    // It belongs to no host any more, and is given back.
    world.take_out().settle();
    assert_eq!(world.seen.machines.hosts(), ["n0"]);
}

#[test]
fn a_domain_by_which_a_host_is_called_differently_wipes_nothing() {
    let mut world = World::bare_metal();
    world.edit("/nodes/n0/hostName", json!("web"));
    world.edit("/baremetalSetTemplate/domainName", json!("")).settle();
    assert_eq!(world.seen.machines.hosts(), ["n1", "web"]);
    world.seen.machines.say_state("web", "active");
    world.settle();
    world.edit("/baremetalSetTemplate/domainName", json!("example.org")).settle();
    assert_eq!(world.seen.machines.hosts(), ["n1", "web"]);
    world.says("InputReady", &["Set spec.nodes[n0].hostName to web.example.org again"]);
    world.edit("/nodes/n0/hostName", json!("web.example.org")).settle();
    assert_eq!(world.condition("InputReady").0, "True");
    assert_eq!(world.seen.machines.hosts(), ["n1", "web"]);
}

#[test]
fn a_machine_goes_with_the_name_to_another_key() {
    let mut world = World::provisioned();
    let nodes = json!({
        "n0": { "ansible": { "ansibleHost": "192.0.2.10" } },
        "k1": { "hostName": "n1.example.org", "ansible": { "ansibleHost": "192.0.2.11" } },
    });
    world.edit("/nodes", nodes).settle();
    assert_eq!(world.seen.machines.hosts(), ["n0", "n1"]);
    assert_eq!(world.machine("n1").node.as_deref(), Some("k1"));
    assert_eq!(world.condition(READY), is("True", "Provisioned"));
}
