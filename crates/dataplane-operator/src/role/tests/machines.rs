//! Hosts with provisioned machines: what is requested, what waits for it, and how it is given back.

use api::baremetal::BaremetalSet;
use api::baremetal::set::FOR;
use api::dataplane::node::REDEPLOY;
use jiff::ToSpan as _;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResourceExt as _, Resource as _};
use operator_core::run_engine::host_key::{ACCEPT, HostKey};
use proptest::prelude::*;

use super::*;
use crate::host::machines::machine_names::known_name;
use crate::host::machines::request::MAX_HOSTS;
use crate::host::machines::set::IN_USE;

pub(super) const OTHER: &str = "example.org/other";
const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIWOnjFtgHBGBoLBE0E8K1SBXAJAwqFXKF1sTvZlPo8+";

impl World {
    /// Two hosts whose machines are to be provisioned.
    pub(super) fn bare() -> Self {
        Self::asking(&json!({ "ctlplaneInterface": "eth0", "ironic": { "endpoint": "http://i" } }))
    }

    fn asking(template: &Value) -> Self {
        let mut world = Self::new();
        let role = world.role();
        role.spec.pre_provisioned = false;
        role.spec.baremetal_set_template = Some(serde_json::from_value(template.clone()).unwrap());
        world
    }

    /// Both machines are there, both answer, and all services are deployed.
    pub(super) fn provisioned() -> Self {
        let mut world = Self::bare();
        world.settle();
        world.seen.machines.run();
        world.deploy();
        world
    }

    fn is_asked_for(&self) -> bool {
        self.writes.iter().any(|it| it == "apply BaremetalSet compute")
    }

    fn bare_reason(&self, idx: usize) -> String {
        self.condition(idx, "BaremetalReady").1
    }
}

#[test]
fn of_many_hosts_no_machine_is_asked_for_before_what_holds_it_is_written() {
    let mut world = World::bare();
    let named = |idx| node(&format!("n{idx}"), &format!("n{idx}.example.org"));
    world.seen.nodes = (0..300).map(named).collect();
    world.pass();
    assert!(!world.is_asked_for(), "the role has no finalizer yet");
    while !world.is_asked_for() {
        assert!(!world.pass().steps.is_empty(), "it is never asked for");
    }
    assert!(world.seen.role.as_ref().unwrap().metadata.finalizers.is_some());
}

#[test]
fn a_role_asks_for_a_machine_for_each_host() {
    let mut world = World::asking(&json!({
        "ctlplaneInterface": "eth0", "ironic": { "endpoint": "http://i" },
        "ctlplaneNetmask": "255.255.248.0",
        "baremetalHosts": {
            "n1": { "machine": { "node": "rack1" }, "ctlplaneVlan": 7 },
            "n9": { "machine": { "node": "rack9" } },
        },
    }));
    world.node(1).spec.baremetal_host =
        Some(serde_json::from_value(json!({ "ctlPlaneIP": "198.51.100.9/26" })).unwrap());
    let section = json!({ "userData": { "name": "own" } });
    world.node(0).spec.node = Some(serde_json::from_value(section).unwrap());
    let writes = world.settle();
    assert_eq!(runs(&writes), [""; 0]);
    assert!(writes.contains(&"apply BaremetalSet compute".to_owned()), "{writes:?}");
    let set = world.seen.machines.set_mut().clone();
    assert_eq!(set.labels()[FOR], "compute");
    let hosts = json!({
        "n0": { "ctlPlaneIP": "192.0.2.10/21", "userData": { "name": "own" }, "adopt": false },
        "n1": { "ctlPlaneIP": "198.51.100.9/26", "ctlplaneVlan": 7, "adopt": false,
                "machine": { "node": "rack1" } },
    });
    assert_eq!(json!(set.spec.baremetal_hosts), hosts);
    assert_eq!(set.spec.template.deployment_ssh_secret.as_deref(), Some("key"));
    assert_eq!(world.settle(), [""; 0]);
}

#[test]
fn a_field_that_is_taken_out_of_the_template_is_taken_out_of_the_set() {
    let mut world = World::bare().at_rest();
    world.role().spec.baremetal_set_template.as_mut().unwrap().remove("ironic");
    assert_eq!(world.settle()[0], "apply BaremetalSet compute");
    assert_eq!(world.seen.machines.set_mut().spec.ironic, None);
}

#[test]
fn services_begin_when_the_machine_is_there_and_ssh_answers() {
    let mut world = World::bare().at_rest();
    assert_eq!(world.bare_reason(0), "Provisioning");
    assert_eq!(world.condition(0, "DeploymentReady").1, "MachineNotReady");
    assert_eq!(world.condition(0, "Ready").1, "Provisioning");
    for state in ["enroll", "manageable", "available", "deploying", "wait call-back", "powering on"]
    {
        world.seen.machines.say_state("n0", state);
        assert_eq!(runs(&world.settle()), [""; 0], "{state}");
        let told = world.message(0, "BaremetalReady");
        let expected = format!("Machine m-n0: {state} since 2026-01-01T00:00:00Z.");
        assert!(told.starts_with(&expected), "{told}");
    }
    world.seen.machines.say_state("n0", "active");
    assert_eq!(runs(&world.settle()), [""; 0]);
    assert_eq!(world.bare_reason(0), "WaitingForSsh");
    assert!(world.pass().requeue_after.unwrap().as_secs() <= 10);
    world.seen.machines.answer("192.0.2.10");
    assert_eq!(runs(&world.settle()), ["run install-os on n0"]);
    assert_eq!(world.condition(0, "BaremetalReady"), is("True", "Provisioned"));
    // The other host has no machine, and does not hold up any other.
    assert_eq!(world.bare_reason(1), "Provisioning");
    let role = world.seen.role.clone().unwrap().status.clone().unwrap();
    assert_eq!(role.provisioned_nodes, Some(1));
    let told = conditions::message(&role.conditions, "RoleBaremetalProvisionReady");
    assert!(told.starts_with("1/2 hosts have their machines. n1: Machine"), "{told}");
}

#[test]
fn who_cannot_be_asked_and_who_does_not_answer_for_long_is_tried_by_a_run() {
    let mut world = World::bare().at_rest();
    world.seen.machines.say_state("n0", "active");
    world.settle();
    world.now += 11.minutes();
    assert_eq!(runs(&world.settle()), ["run install-os on n0"]);
    // Only the pods of runs are attached to those networks.
    let mut world = World::bare();
    world.seen.networks = Networks::Known(["ctlplane".to_owned()].into());
    world.role().spec.network_attachments = vec!["ctlplane".into()];
    world.settle();
    world.seen.machines.say_state("n0", "active");
    assert_eq!(runs(&world.settle()), ["run install-os on n0"]);
}

#[test]
fn what_answered_once_is_not_asked_for_again() {
    let mut world = World::provisioned();
    world.seen.machines.answering.clear();
    assert_eq!(world.settle(), [""; 0]);
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
}

#[test]
fn a_status_of_an_earlier_set_provisions_nobody() {
    let mut world = World::bare().at_rest();
    world.seen.machines.say_state("n0", "active");
    world.seen.machines.answer("192.0.2.10");
    world.seen.machines.set_mut().status.as_mut().unwrap().observed_generation = Some(0);
    assert_eq!(runs(&world.settle()), [""; 0]);
    let mut world = World::provisioned();
    world.node(0).annotations_mut().insert(REDEPLOY.into(), "1".into());
    let fields = json!({ "provisioningState": "active", "annotatedForDeletion": true });
    world.seen.machines.say("n0", &fields);
    assert_eq!(runs(&world.settle()), [""; 0]);
}

#[test]
fn another_installation_gets_its_services_and_is_known_by_its_own_key() {
    let mut world = World::provisioned();
    let before = world.seen.nodes[0].status.as_ref().unwrap().host_instance.clone();
    assert!(before.as_ref().unwrap().starts_with('p'));
    world.node(0).status.as_mut().unwrap().host_key = Some(KEY.into());
    let print = HostKey::parse(KEY).unwrap().fingerprint();
    world.node(0).annotations_mut().insert(ACCEPT.into(), print.clone());
    for digests in world.seen.sources.values_mut() {
        digests.texts.clear();
    }
    world.seen.machines.say("n0", &json!({ "provisioningState": "deploying", "instance": "i-2" }));
    assert_eq!(runs(&world.settle()), [""; 0]);
    assert_eq!(world.condition(0, "Ready"), is("False", "Provisioning"));
    let kept = world.seen.nodes[0].status.as_ref().unwrap();
    assert_eq!((&kept.host_instance, kept.host_key.as_deref()), (&before, Some(KEY)));
    world.seen.machines.answering.clear();
    world.seen.machines.say("n0", &json!({ "provisioningState": "active", "instance": "i-2" }));
    assert_eq!(runs(&world.settle()), [""; 0]);
    let status = world.seen.nodes[0].status.as_ref().unwrap();
    assert_ne!(status.host_instance, before);
    assert_eq!(status.host_key, None);
    let machine = status.machine.as_ref().unwrap();
    assert_eq!(machine.former_key.as_ref(), Some(&print));
    world.says(0, "UpToDate", &["machine"]);
    world.seen.machines.answer("192.0.2.10");
    assert_eq!(runs(&world.settle()), ["run install-os on n0"]);
    // The accepted key is the old machine's, so the run scans for any key.
    let scan = world.seen.runs.last().unwrap().spec.hosts[0].scan_host_key.clone();
    assert_eq!(scan.unwrap().fingerprint, None);
}

#[test]
fn what_is_wrong_with_a_machine_is_told_in_the_provisioners_words() {
    let mut world = World::bare().at_rest();
    let error = "Deploy step failed: no agent. Look at its console, then …";
    let mut fields = json!({ "provisioningState": "deploy failed", "error": error });
    world.seen.machines.say("n0", &fields);
    let sum = "OpenStackBaremetalSetBmhProvisioningReady";
    // The summary names only the worst hosts, in words that may be another host's name.
    world.seen.machines.complain(sum, Severity::Error, "0/2 machines. Host x: machine n0 failed.");
    assert_eq!(world.settled(0, "BaremetalReady"), is("False", "ProvisioningFailed"));
    assert_eq!(world.condition(0, "Reconciling").0, "True");
    fields["needsHuman"] = json!(true);
    world.seen.machines.say("n0", &fields);
    assert_eq!(world.settled(0, "BaremetalReady"), is("False", "ProvisioningFailed"));
    world.says(0, "BaremetalReady", &[error, "deploy failed since"]);
    assert_eq!(world.condition(0, "Stalled"), is("True", "ProvisioningFailed"));
    // A failure of another machine is not reported on this node.
    assert_eq!(world.bare_reason(1), "Provisioning");
    let words = "Secret s does not exist: make it.";
    world.seen.machines.complain("InputReady", Severity::Warning, words);
    assert_eq!(world.settled(1, "BaremetalReady"), is("False", "ProvisioningFailed"));
    world.says(1, "BaremetalReady", &["InputReady: Secret s does not exist"]);
    // When Ironic answers, each host reports the inputs that it is provisioned from.
    world.seen.machines.hold("OpenStackBaremetalSetProvServerReady");
    world.settle();
    assert_eq!(world.bare_reason(1), "Provisioning");
}

#[test]
fn other_user_data_is_told_of_and_does_nothing() {
    let mut world = World::provisioned();
    let fields = json!({ "provisioningState": "active", "isCurrent": false });
    world.seen.machines.say("n0", &fields);
    // Its message names the first few.
    let words = "Their config drives have changed: n1.";
    world.seen.machines.complain("UpToDate", Severity::Info, words);
    assert_eq!(runs(&world.settle()), [""; 0]);
    assert_eq!(world.condition(0, "BaremetalReady"), is("True", "Provisioned"));
    world.says(0, "BaremetalReady", &["only when it is provisioned again"]);
    assert!(!world.message(1, "BaremetalReady").contains("only when it is provisioned again"));
}

#[test]
fn a_template_that_no_set_can_have_is_told_and_asks_for_nothing() {
    let mut world = World::asking(&json!({ "ctlplaneInterface": "eth0", "iron": 1 }));
    assert!(!world.settle().iter().any(|it| it.contains("BaremetalSet") || it.starts_with("run")));
    assert_eq!(world.condition(0, "BaremetalReady"), is("False", "TemplateInvalid"));
    world.says(0, "Ready", &["it has no field iron."]);
    assert_eq!(world.role_reason("RoleBaremetalProvisionReady").unwrap(), "TemplateInvalid");
}

#[test]
fn a_set_of_others_is_left_alone() {
    let mut world = World::bare().at_rest();
    world.seen.machines.set_mut().labels_mut().clear();
    world.seen.machines.say_state("n0", "active");
    assert!(!world.settle().iter().any(|it| it.contains("BaremetalSet") || it.starts_with("run")));
    assert_eq!(world.condition(0, "BaremetalReady"), is("False", "NameTaken"));
    world.says(0, "BaremetalReady", &["kubectl label --overwrite -n openstack"]);
}

#[test]
fn a_host_that_another_set_has_gets_no_second_machine() {
    let mut world = World::bare();
    world.seen.machines.elsewhere.insert("n1".into(), "old".into());
    world.settle();
    assert_eq!(world.seen.machines.hosts(), ["n0"]);
    assert_eq!(world.condition(1, "BaremetalReady"), is("False", "MachineElsewhere"));
    world.seen.machines.elsewhere.clear();
    world.settle();
    assert_eq!(world.seen.machines.hosts(), ["n0", "n1"]);
}

#[test]
fn a_host_in_service_on_another_machine_gets_none_unless_its_own_is_adopted() {
    let template = json!({ "ctlplaneInterface": "eth0", "ironic": { "endpoint": "http://i" } });
    let mut world = World::deployed();
    let role = world.role();
    role.spec.pre_provisioned = false;
    role.spec.baremetal_set_template = Some(serde_json::from_value(template).unwrap());
    world.node(1).spec.baremetal_host =
        Some(serde_json::from_value(json!({ "adopt": true })).unwrap());
    world.settle();
    assert_eq!(world.seen.machines.hosts(), ["n1"]);
    assert_eq!(world.condition(0, "BaremetalReady"), is("False", "HostInService"));
    world.says(
        0,
        "BaremetalReady",
        &["spec.preProvisioned: true of OpenStackDataPlaneRole compute"],
    );
}

#[test]
fn two_nodes_with_one_host_name_get_one_machine() {
    let mut world = World::bare();
    world.node(1).spec.host_name = Some("n0.example.org".into());
    world.settle();
    assert_eq!(world.seen.machines.hosts(), ["n0"]);
    assert_eq!(world.condition(1, "BaremetalReady"), is("False", "HostTwice"));
}

#[test]
fn a_cluster_without_the_kind_says_so() {
    let mut world = World::bare();
    world.seen.machines.is_missed = true;
    let plan = world.pass();
    assert_eq!(world.condition(0, "BaremetalReady"), is("False", "MachinesNotServed"));
    assert!(plan.requeue_after.unwrap().as_secs() <= 60);
    assert_eq!(world.seen.machines.set, None);
}

#[test]
fn hosts_with_domains_have_machines_by_their_short_names() {
    let mut world = World::bare();
    for idx in 0..2 {
        world.node(idx).spec.host_name = Some(format!("n{idx}.example.org"));
    }
    world.settle();
    assert_eq!(world.seen.machines.hosts(), ["n0", "n1"]);
    let template = &world.seen.machines.set_mut().spec.template;
    assert_eq!(template.domain_name.as_deref(), Some("example.org"));
}

#[test]
fn a_node_without_a_role_has_a_set_of_its_own() {
    let mut world = World::new();
    let spec = json!({
        "ansibleHost": "192.0.2.10", "services": ["install-os", "run-os"],
        "deployStrategy": { "deploy": true }, "node": { "ansibleSSHPrivateKeySecret": "key" },
        "baremetalSetTemplate": { "ctlplaneInterface": "eth0" },
    });
    let mut node: Node = objects::new(NAMESPACE, "n0", &spec);
    node.metadata.finalizers = Some(vec![INVENTORY_FINALIZER.to_owned()]);
    world.seen.group = NodeGroup::Node("n0".into());
    world.seen.role = None;
    world.seen.nodes = vec![Arc::new(node)];
    let writes = world.settle();
    assert!(writes.contains(&"apply BaremetalSet n0".to_owned()), "{writes:?}");
    assert_eq!(runs(&writes), [""; 0]);
    world.seen.machines.say_state("n0", "active");
    world.seen.machines.answer("192.0.2.10");
    world.deploy();
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
    assert_eq!(world.remove("n0").settle(), ["status DataPlaneNode n0", "run last-look on n0"]);
    world.look("Ok", "");
    let writes = ["status DataPlaneNode n0", "delete BaremetalSet n0", "release BaremetalSet n0"];
    assert_eq!(world.settle(), writes);
    world.seen.machines.give_back();
    let last = ["delete ConfigMap dataplanenode-n0", "release DataPlaneNode n0"];
    assert_eq!(world.settle(), last);
}

impl World {
    pub(super) fn remove(&mut self, node: &str) -> &mut Self {
        let at = Time(self.now);
        self.change("DataPlaneNode", node, |it| it.deletion_timestamp = Some(at));
        self
    }

    pub(super) fn finalize(&mut self, node: &str, finalizers: &[&str]) -> &mut Self {
        let all = finalizers.iter().map(|it| (*it).to_owned()).collect();
        self.change("DataPlaneNode", node, |it| it.finalizers = Some(all));
        self
    }
}

#[test]
fn a_machine_is_given_back_last_of_all() {
    let mut world = World::provisioned();
    world.finalize("n0", &[INVENTORY_FINALIZER, OTHER]).remove("n0").settle();
    assert_eq!(world.seen.machines.hosts(), ["n0", "n1"]);
    world.finalize("n0", &[INVENTORY_FINALIZER]).settle();
    let writes = world.look("Ok", "").settle();
    assert_eq!(world.seen.machines.hosts(), ["n1"]);
    assert!(!writes.iter().any(|it| it.starts_with("delete") || it.starts_with("release")));
    assert_eq!(world.condition(0, "BaremetalReady"), is("False", "GivingBack"));
    world.says(0, "BaremetalReady", &["Machine m-n0"]);
    // The recorded state of its services stays reported.
    assert_eq!(world.condition(0, "DeploymentReady"), is("True", "Deployed"));
    // Gone from the status, but the set was not reconciled since: that status may be outdated.
    world.seen.machines.set_mut().status.as_mut().unwrap().baremetal_hosts.remove("n0");
    assert!(!world.settle().contains(&"release DataPlaneNode n0".to_owned()));
    world.seen.machines.give_back();
    let writes = world.settle();
    let last = ["delete ConfigMap dataplanenode-n0", "release DataPlaneNode n0"];
    assert_eq!(writes[..2], last);
    assert_eq!(world.seen.nodes.len(), 1);
}

#[test]
fn a_node_that_leaves_the_role_gives_its_machine_back_unless_others_hold_it() {
    let mut world = World::provisioned();
    world.finalize("n0", &[INVENTORY_FINALIZER, OTHER]);
    let mut moved = world.seen.nodes.remove(0);
    Arc::make_mut(&mut moved).spec.role = Some("another".into());
    world.seen.migrating_nodes = vec![Arc::clone(&moved)];
    let entry = world.seen.machines.set_mut().spec.baremetal_hosts["n0"].clone();
    world.settle();
    assert_eq!(world.seen.machines.set_mut().spec.baremetal_hosts["n0"], entry);
    assert!(world.pass().requeue_after.unwrap().as_secs() <= 60);
    Arc::make_mut(&mut moved).finalizers_mut().retain(|it| it == INVENTORY_FINALIZER);
    world.seen.migrating_nodes = vec![moved];
    assert!(world.settle().contains(&"run last-look on n0".to_owned()));
    assert_eq!(world.seen.machines.hosts(), ["n0", "n1"], "guests may be there");
    world.look("Ok", "").settle();
    assert_eq!(world.seen.machines.hosts(), ["n1"]);
}

#[test]
fn a_deleted_role_with_machines_waits_for_its_nodes_and_then_for_its_set() {
    let mut world = World::provisioned();
    let at = Time(world.now);
    world.change("DataPlaneRole", "compute", |it| it.deletion_timestamp = Some(at));
    assert_eq!(world.settle(), ["status DataPlaneRole compute"]);
    assert_eq!(world.role_reason("RoleBaremetalProvisionReady").unwrap(), "DeletionWaits");
    world.role_says(&["n0, n1"]);
    assert!(world.seen.machines.set_mut().meta().deletion_timestamp.is_none());
    for (node, rest) in [("n0", vec!["n0", "n1"]), ("n1", vec!["n1"])] {
        world.remove(node).settle();
        assert_eq!(world.seen.machines.hosts(), rest, "guests are looked for");
        world.look("Ok", "");
        if node == "n0" {
            world.settle();
        }
    }
    assert!(world.settle().contains(&"delete BaremetalSet compute".to_owned()));
    world.role_says(&["has given back its machines"]);
    assert_eq!(world.seen.nodes.len(), 2);
    world.seen.machines.give_back();
    world.settle();
    assert!(world.seen.role.is_none() && world.seen.nodes.is_empty());
    assert!(world.seen.inventories.is_empty(), "{:?}", world.seen.inventories.keys());
}

#[test]
fn machines_that_nobody_asks_for_any_more_stay_and_are_told_of() {
    let mut world = World::provisioned();
    world.role().spec.pre_provisioned = true;
    let writes = world.settle();
    // The set is released to whoever deletes it.
    assert_eq!(writes[0], "release BaremetalSet compute");
    let acts = |it: &String| it.contains("BaremetalSet") || it.starts_with("run");
    assert!(!writes[1..].iter().any(acts), "{writes:?}");
    assert_eq!(world.seen.machines.hosts(), ["n0", "n1"]);
    assert_eq!(world.condition(0, "BaremetalReady"), is("True", "NotRequired"));
    world.says(0, "BaremetalReady", &["Machine m-n0"]);
    assert_eq!(world.condition(0, "UpToDate"), is("True", "UpToDate"));
}

/// The API server's rejection of a set with an invalid field.
fn is_set(step: &Step) -> bool {
    step.target.kind.kind == "OpenStackBaremetalSet" && matches!(step.write, Write::Apply { .. })
}

#[test]
fn a_set_that_is_refused_keeps_no_run_back_and_is_told_once() {
    let mut world = World::bare();
    world.seen.nodes.truncate(1);
    world.settle();
    world.seen.machines.say_state("n0", "active");
    world.seen.machines.answer("192.0.2.10");
    world.deploy();
    // A host is added, a variable changes, and the template is one that no API server accepts.
    world.seen.nodes.push(node("n1", "192.0.2.11"));
    let template = world.role().spec.baremetal_set_template.as_mut().unwrap();
    template.insert("ironic".into(), json!({ "endpoint": "http://other" }));
    world.set_var("a");
    world.refused_pass(is_set);
    assert_eq!(runs(&world.writes), ["run install-os on n0"]);
    assert_eq!(world.role_reason("WritesAccepted").as_deref(), Some("Forbidden"));
    assert_eq!(world.condition(1, "BaremetalReady"), is("False", "Forbidden"));
    let told = world.message(1, "BaremetalReady");
    assert!(told.starts_with("OpenStackBaremetalSet compute cannot be written: "), "{told}");
    assert_eq!(world.role_reason("RoleBaremetalProvisionReady").as_deref(), Some("Forbidden"));
    assert_eq!(world.condition(0, "BaremetalReady"), is("True", "Provisioned"));
    assert_eq!(world.condition(0, "DeploymentReady").1, "Deploying");
    world.refused_pass(is_set);
    world.writes.clear();
    for _ in 0..3 {
        world.refused_pass(is_set);
        assert_eq!(world.writes, [""; 0], "told once");
    }
    world.finish(&[]);
    world.refused_pass(is_set);
    assert_eq!(runs(&world.writes), ["run run-os on n0"]);
    world.finish(&[]);
    world.refused_pass(is_set);
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
    world.settle();
    assert_eq!(world.role_reason("WritesAccepted"), None);
    assert_eq!(world.seen.machines.hosts(), ["n0", "n1"]);
    assert_eq!(world.condition(1, "BaremetalReady").1, "Provisioning");
}

#[test]
fn a_node_that_is_to_go_tells_of_the_set_that_is_refused() {
    let mut world = World::provisioned();
    world.remove("n0").settle();
    world.look("Ok", "");
    world.refused_pass(is_set);
    assert_eq!(world.condition(0, "BaremetalReady"), is("False", "Forbidden"));
    world.writes.clear();
    world.refused_pass(is_set);
    assert_eq!(world.writes, [""; 0]);
    assert_eq!(world.settled(0, "BaremetalReady"), is("False", "GivingBack"));
    assert_eq!(world.role_reason("WritesAccepted"), None);
}

#[test]
fn more_hosts_than_a_set_can_have_are_not_asked_for() {
    let max = |it: &Value| {
        it["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
            ["baremetalHosts"]["maxProperties"]
            .clone()
    };
    let definition = serde_json::to_value(BaremetalSet::crd()).unwrap();
    assert_eq!(max(&definition), json!(MAX_HOSTS));
    let mut world = World::bare().at_rest();
    let template = world.seen.machines.set_mut().spec.baremetal_hosts["n0"].clone();
    let hosts = &mut world.seen.machines.set_mut().spec.baremetal_hosts;
    hosts.remove("n1");
    hosts.extend((1..MAX_HOSTS).map(|it| (format!("x{it}"), template.clone())));
    world.pass();
    assert_eq!(world.condition(1, "BaremetalReady"), is("False", "SetFull"));
    assert_eq!(world.condition(0, "BaremetalReady").1, "Provisioning");
    // The other hosts have no node, so they are removed and make room.
    world.settle();
    assert_eq!(world.seen.machines.hosts(), ["n0", "n1"]);
}

#[test]
fn a_host_that_runs_already_is_taken_over_and_nothing_is_deployed_again() {
    let mut world = World::deployed();
    for digests in world.seen.sources.values_mut() {
        digests.texts.clear();
    }
    world.node(0).status.as_mut().unwrap().host_key = Some(KEY.into());
    let before = world.seen.nodes[0].status.clone().unwrap();
    let role = world.role();
    role.spec.pre_provisioned = false;
    let template = json!({ "ctlplaneInterface": "eth0", "baremetalHosts": {
        "n0": { "machine": { "node": "rack0" }, "adopt": true },
        "n1": { "machine": { "node": "rack1" }, "adopt": true },
    } });
    role.spec.baremetal_set_template = Some(serde_json::from_value(template).unwrap());
    world.settle();
    world.seen.machines.say_state("n0", "adopting");
    assert_eq!(runs(&world.settle()), [""; 0]);
    world.seen.machines.say_state("n0", "active");
    assert_eq!(runs(&world.settle()), [""; 0]);
    let after = world.seen.nodes[0].status.clone().unwrap();
    assert!(after.machine.as_ref().unwrap().adopted);
    assert_eq!(after.host_instance, before.host_instance);
    assert_eq!(after.host_key.as_deref(), Some(KEY));
    assert_eq!(after.deployed_inputs, before.deployed_inputs);
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
    assert_eq!(world.condition(0, "UpToDate"), is("True", "UpToDate"));
    // A later installation is another system.
    world.seen.machines.answer("192.0.2.10");
    let other = json!({ "provisioningState": "active", "instance": "i-2", "configDriveHash": "d" });
    world.seen.machines.say("n0", &other);
    assert_eq!(runs(&world.settle()), ["run install-os on n0"]);
    assert!(!world.seen.nodes[0].status.clone().unwrap().machine.unwrap().adopted);
    // A machine that was deployed although it was to be adopted did not run before.
    world.seen.machines.answer("192.0.2.11");
    let first = json!({ "provisioningState": "active", "configDriveHash": "d" });
    world.seen.machines.say("n1", &first);
    assert_eq!(runs(&world.settle()), ["run install-os on n1"]);
}

#[test]
fn a_set_that_nobody_looks_at_is_told_after_a_while() {
    let mut world = World::bare().at_rest();
    world.seen.machines.set_mut().metadata.creation_timestamp = Some(Time(world.now));
    assert!(world.pass().requeue_after.unwrap().as_secs() <= 60);
    assert_eq!(world.condition(0, "BaremetalReady").1, "Provisioning");
    world.now += 6.minutes();
    assert_eq!(world.settled(0, "BaremetalReady"), is("False", "ProvisioningFailed"));
    world.says(0, "BaremetalReady", &["was not reconciled by any operator since it was made"]);
    world.seen.machines.say_state("n0", "deploying");
    assert_eq!(world.settled(0, "BaremetalReady").1, "Provisioning");
}

#[test]
fn a_set_that_somebody_deletes_gives_nothing_back_while_nodes_need_it() {
    let mut world = World::provisioned();
    world.finalize("n0", &[INVENTORY_FINALIZER, OTHER]);
    world.seen.machines.deleted(world.now);
    assert!(!world.settle().iter().any(|it| it.contains("BaremetalSet") || it.starts_with("run")));
    assert_eq!(world.seen.machines.set_mut().finalizers(), [IN_USE]);
    assert_eq!(world.condition(0, "BaremetalReady"), is("False", "ProvisioningFailed"));
    world.says(0, "BaremetalReady", &["compute is to be deleted, which cannot be undone"]);
    world.remove("n0");
    assert!(!world.remove("n1").settle().iter().any(|it| it.contains("BaremetalSet")));
    world.finalize("n0", &[INVENTORY_FINALIZER]).settle();
    assert!(world.end_looks());
    assert!(world.settle().contains(&"release BaremetalSet compute".to_owned()));
    world.seen.machines.give_back();
    assert!(world.seen.machines.set.is_none());
    world.settle();
    assert_eq!(world.seen.nodes.len(), 0);
}

#[test]
fn a_set_is_held_from_its_first_host_to_its_last() {
    let mut world = World::bare().at_rest();
    assert_eq!(world.seen.machines.set_mut().finalizers(), [IN_USE]);
    // A set of an earlier version, or one from which a user removed the finalizer.
    world.seen.machines.released(&[OTHER.to_owned()]);
    assert_eq!(world.settle()[0], "apply BaremetalSet compute");
    assert_eq!(world.seen.machines.set_mut().finalizers(), [IN_USE, OTHER]);
    world.seen.nodes.clear();
    world.settle();
    assert_eq!(world.seen.machines.set_mut().finalizers(), [OTHER]);
}

/// Whether the set is held after the passes.
fn is_held(world: &mut World) -> bool {
    world.settle();
    world.seen.machines.set_mut().finalizers() == [IN_USE]
}

#[test]
fn a_set_of_which_nobody_asks_anything_is_held_while_it_would_take_machines_from_others() {
    let abandoned = |finalizers: &[&str], policy: Option<&str>| {
        let mut world = World::provisioned();
        world.finalize("n0", finalizers);
        let policy = policy.map(|it| serde_json::from_value(json!(it)).unwrap());
        world.seen.machines.set_mut().spec.deprovision_policy = policy;
        world.role().spec.pre_provisioned = true;
        world
    };
    assert!(is_held(&mut abandoned(&[INVENTORY_FINALIZER, OTHER], None)));
    assert!(!is_held(&mut abandoned(&[INVENTORY_FINALIZER, OTHER], Some("Retain"))));
    assert!(!is_held(&mut abandoned(&[INVENTORY_FINALIZER], None)));
    // Nothing would be left to release the set later.
    let mut world = abandoned(&[INVENTORY_FINALIZER, OTHER], None);
    let at = Time(world.now);
    world.change("DataPlaneRole", "compute", |it| it.deletion_timestamp = Some(at));
    assert!(!is_held(&mut world));
    assert!(world.seen.role.is_none());
}

#[test]
fn a_set_that_goes_keeps_the_machines_of_a_role_that_asks_for_none_unless_the_user_lets_them_go() {
    let abandoned = |policy: &str| {
        let mut world = World::provisioned();
        world.seen.machines.deleted(world.now);
        let policy = serde_json::from_value(json!(policy)).unwrap();
        world.seen.machines.set_mut().spec.deprovision_policy = Some(policy);
        world.role().spec.pre_provisioned = true;
        world
    };
    let mut world = abandoned("Deprovision");
    assert!(is_held(&mut world));
    let skip = ("dataplane.openstack.org/skip-cleanup".to_owned(), "true".to_owned());
    world.role().annotations_mut().extend([skip]);
    assert!(!is_held(&mut world));
    assert!(!is_held(&mut abandoned("Retain")), "nothing would be wiped");
    let mut world = abandoned("Deprovision");
    world.seen.is_namespace_terminating = true;
    assert!(!is_held(&mut world));
}

#[test]
fn the_set_that_a_node_had_before_it_got_a_role_is_left_to_whoever_deletes_it() {
    let released = |finalizers: &[&str], of: &str, policy: &str| {
        let mut world = World::bare();
        world.role().spec.pre_provisioned = true;
        world.finalize("n0", finalizers);
        let node = world.seen.nodes.iter().find(|it| it.name_any() == "n0").unwrap();
        let uid = if of == "n0" { node.uid().unwrap() } else { of.to_owned() };
        let set = json!({
            "metadata": {
                "uid": "own-set", "labels": { FOR: uid }, "finalizers": [IN_USE],
            },
            "spec": {
                "ctlplaneInterface": "eth0", "deprovisionPolicy": policy,
                "baremetalHosts": { known_name(node): {} },
            },
        });
        world.seen.machines.others = vec![Arc::new(objects::named(NAMESPACE, "n0", set))];
        let plan = recorded(decide::decide(&world.seen, None, world.now));
        let is_of_set = |it: &&Step| it.target.uid.as_deref() == Some("own-set");
        let mut steps = plan.steps.iter().filter(is_of_set);
        steps.any(|it| matches!(it.write, Write::RemoveFinalizer { .. }))
    };
    assert!(released(&[INVENTORY_FINALIZER], "n0", "Deprovision"));
    assert!(released(&[INVENTORY_FINALIZER, OTHER], "n0", "Retain"));
    assert!(!released(&[INVENTORY_FINALIZER, OTHER], "n0", "Deprovision"));
    assert!(!released(&[INVENTORY_FINALIZER], "another", "Deprovision"));
}

/// Events for hosts of a role, in any order.
#[derive(Clone, Debug)]
enum Event {
    State(usize, &'static str, u8),
    Goes(usize, bool),
    Answers(usize),
    Redeploy(u8),
    Passes(i64),
    Finish,
    Unobserved,
    SetGoes,
}

fn event() -> impl Strategy<Value = Event> {
    let states = ["active", "deploying", "available", "deploy failed", "gone", "rescue", ""];
    prop_oneof![
        (0..2usize, prop::sample::select(states.to_vec()), 0..3u8)
            .prop_map(|(host, state, instance)| Event::State(host, state, instance)),
        (0..2usize, any::<bool>()).prop_map(|(host, goes)| Event::Goes(host, goes)),
        (0..2usize).prop_map(Event::Answers),
        any::<u8>().prop_map(Event::Redeploy),
        (1..20i64).prop_map(Event::Passes),
        Just(Event::Finish),
        Just(Event::Unobserved),
        Just(Event::SetGoes),
    ]
}

impl World {
    fn happen(&mut self, event: &Event) {
        if self.seen.machines.set.is_none() {
            return;
        }
        match event {
            Event::State(host, state, instance) => {
                let instance = format!("i{instance}");
                let fields = json!({ "provisioningState": state, "instance": instance });
                self.seen.machines.say(&format!("n{host}"), &fields);
            }
            Event::Goes(host, goes) => {
                let fields = json!({ "provisioningState": "active", "annotatedForDeletion": goes });
                self.seen.machines.say(&format!("n{host}"), &fields);
            }
            Event::Answers(host) => self.seen.machines.answer(&format!("192.0.2.1{host}")),
            Event::Redeploy(value) => {
                self.role().annotations_mut().insert(REDEPLOY.into(), value.to_string());
            }
            Event::Passes(minutes) => self.now += minutes.minutes(),
            Event::Finish => {
                self.finish(&[]);
            }
            Event::Unobserved => {
                self.seen.machines.set_mut().status.get_or_insert_default().observed_generation =
                    None;
            }
            Event::SetGoes => self.seen.machines.deleted(self.now),
        }
    }

    fn is_there(&self, host: &str) -> bool {
        let set = self.seen.machines.set.as_ref().unwrap();
        let told = set.host_status(host);
        set.meta().deletion_timestamp.is_none()
            && told
                .is_some_and(|it| it.provisioning_state == "active" && !it.annotated_for_deletion)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_run_is_made_for_a_host_without_its_machine(
        events in prop::collection::vec(event(), 1..25)
    ) {
        let mut world = World::bare();
        world.pass();
        for event in events {
            world.happen(&event);
            for _ in 0..3 {
                let plan = recorded(decide::decide(&world.seen, None, world.now));
                for step in &plan.steps {
                    let Write::Create { object, .. } = &step.write else { continue };
                    let run: AnsibleEe = serde_json::from_value(object.clone()).unwrap();
                    for host in &run.spec.hosts {
                        prop_assert!(world.is_there(&host.name), "{} after {event:?}", host.name);
                    }
                }
                world.take(&plan.steps);
            }
        }
    }
}
