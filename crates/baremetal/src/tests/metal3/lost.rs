//! Machines that their hosts lose, and machines that cannot be observed.

use ConditionStatus::False;

use super::*;
use crate::status::INPUT_READY;

#[test]
fn a_machine_that_somebody_else_took_is_told_and_left_alone() {
    let mut world = Metal::new(&json!({}), &["x", "y", "z"]);
    world.rest().unwrap();
    let other = json!({"kind": "Machine", "name": "m", "namespace": "n", "apiVersion": "x/v1"});
    world.change("x", &json!({"spec": {"consumerRef": other}}));
    let n_applied = |world: &Metal| world.log.iter().filter(|it| it.as_str() == "apply x").count();
    let n_before = n_applied(&world);
    world.rests_for("MachineTaken", &["metal/x is now used by Machine n/m"]);
    assert_eq!(world.host("a").unwrap().provisioning_state, "gone");
    assert_eq!(world.state("z"), "available");
    // The advised command works, although labels of the set are still on the machine.
    let parts = ["remove its record with", "\"/status/baremetalHosts/a\""];
    world.says("Ready", False, "MachineTaken", &parts);
    world.forget("a");
    world.gets_ready();
    assert_eq!(world.host("a").unwrap().bmh_ref, "metal/z");
    world.delete();
    world.rest().unwrap();
    assert!(world.set.is_none());
    assert_eq!(n_applied(&world), n_before);
    assert_eq!(world.machine("x")["spec"]["consumerRef"], other);
}

#[test]
fn a_host_that_is_taken_out_after_its_machine_was_taken_comes_back_on_another_one() {
    let mut world = Metal::new(&json!({"baremetalHosts": {"b": null}}), &["x", "y"]);
    world.rest().unwrap();
    let other = json!({"kind": "Machine", "name": "m", "namespace": "n", "apiVersion": "x/v1"});
    world.change("x", &json!({"spec": {"consumerRef": other}}));
    world.rest().unwrap();
    let a = serde_json::to_value(&world.set.as_ref().unwrap().spec.baremetal_hosts["a"]).unwrap();
    world.edit(&json!({"baremetalHosts": {"a": null}}));
    world.rest().unwrap();
    assert_eq!(world.host("a"), None);
    world.edit(&json!({"baremetalHosts": {"a": a}}));
    world.gets_ready();
    assert_eq!(world.host("a").unwrap().bmh_ref, "metal/y");
}

#[test]
fn a_machine_that_is_deleted_while_it_runs_is_told_and_not_replaced() {
    let mut world = Metal::new(&json!({}), &["x", "y", "z"]);
    world.rest().unwrap();
    world.machines.as_mut().unwrap().remove(0);
    world.rests_for("MachineGone", &["metal/x was deleted", "make sure that it is off"]);
    assert_eq!(world.state("z"), "available");
    let command = "kubectl -n ns patch openstackbaremetalset set --subresource=status";
    assert!(world.host("a").unwrap().error.unwrap().contains(command));
    world.forget("a");
    world.gets_ready();
    assert_eq!(world.host("a").unwrap().bmh_ref, "metal/z");
}

#[test]
fn a_machine_that_is_on_its_way_out_or_made_anew_counts_as_one_that_may_run() {
    let mut world = Metal::new(&json!({"baremetalHosts": {"b": null}}), &["x", "y"]);
    world.rest().unwrap();
    world.change("x", &json!({"metadata": {"deletionTimestamp": "2026-02-01T00:00:00Z"}}));
    for state in ["powering off before delete", "deleting"] {
        world.change("x", &json!({"status": {"provisioning": {"state": state}}}));
        world.rests_for("MachineGoing", &["metal/x is being deleted"]);
        assert!(world.host("a").unwrap().installed, "{state}");
    }
    world.machines.as_mut().unwrap().remove(0);
    world.rests_for("MachineGone", &["metal/x was deleted"]);
    // The machine is recreated, and erasing the host's data was not observed.
    let anew = machine("x", &json!({"metadata": {"uid": "anew"}}));
    world.machines.as_mut().unwrap().push(anew);
    for state in ["", "registering"] {
        world.change("x", &json!({"status": {"provisioning": {"state": state}}}));
        world.rests_for("MachineGone", &["metal/x was deleted"]);
        assert_eq!(world.state("y"), "available");
    }
    for state in ["inspecting", "available"] {
        world.change("x", &json!({"status": {"provisioning": {"state": state}}}));
    }
    world.gets_ready();
}

#[test]
fn a_machine_that_is_deleted_on_its_way_is_replaced() {
    let mut world = Metal::new(&json!({"baremetalHosts": {"b": null}}), &["x", "y"]);
    for _ in 0..3 {
        world.pass().unwrap();
    }
    world.work();
    world.pass().unwrap();
    world.machines.as_mut().unwrap().remove(0);
    world.gets_ready();
    assert_eq!(world.host("a").unwrap().bmh_ref, "metal/y");
}

#[test]
fn of_several_machines_that_are_labelled_for_one_host_none_is_touched() {
    let mut world = Metal::provisioned();
    // A user copies one with everything that it has of the set; the copy comes first by name.
    let mut copy = world.machine("y").clone();
    merge(
        &mut copy,
        &json!({"metadata": {"name": "c", "uid": "uid-c"},
        "status": {"provisioning": {"state": "registering"}}}),
    );
    world.machines.as_mut().unwrap().insert(0, copy);
    let owned = world.owned["y"].clone();
    world.owned.insert("c".into(), owned);
    let n_before = world.log.len();
    world.pass().unwrap();
    world.pass().unwrap();
    let parts =
        ["Host b: BareMetalHosts metal/y, metal/c are all labelled as host b", "are copies"];
    world.says("Ready", False, "MachineTwice", &parts);
    let b = world.host("b").unwrap();
    assert_eq!((b.bmh_ref.as_str(), b.needs_human), ("metal/y", true));
    assert_eq!(world.asked(n_before), [""; 0]);
    // The machines of a removed host are given back one after the other.
    world.edit(&json!({"baremetalHosts": {"b": null}}));
    world.gets_ready();
    assert_eq!((world.state("c"), world.state("y")), ("registering", "available"));
    for name in ["c", "y"] {
        assert!(world.machine(name)["spec"]["consumerRef"].is_null(), "{name}");
    }
    assert_eq!((world.host("b"), world.made.len()), (None, 3));
}

#[test]
fn a_namespace_that_is_not_watched_and_a_name_that_is_too_long_are_told() {
    let mut world = Metal::new(&json!({}), &[]);
    world.watched = vec!["far".into()];
    world.rests_for("InvalidInput", &["spec.bmhNamespace: \"metal\"", "watchNamespaces"]);
    let mut world = Metal::new(&json!({}), &["x", "y"]);
    world.set.as_mut().unwrap().metadata.name = Some("s".repeat(49));
    world.rests_for("InvalidInput", &["metadata.name: with 49 characters", "at most 48"]);
    assert_eq!(world.asked(0), [""; 0]);
}

#[test]
fn machines_in_a_namespace_that_is_not_watched_any_more_are_told_and_not_forgotten() {
    let mut world = Metal::provisioned();
    let before = world.host("a").unwrap();
    world.watched = vec!["far".into()];
    world.edit(&json!({"baremetalHosts": {"b": null}}));
    world.rest().unwrap();
    for host in ["a", "b"] {
        let error = world.host(host).unwrap().error.unwrap();
        assert!(error.contains("add metal to watchNamespaces of the chart"), "{error}");
    }
    world.says(INPUT_READY, False, "InvalidInput", &["spec.bmhNamespace: \"metal\""]);
    world.delete();
    world.rest().unwrap();
    assert!(world.set.is_some(), "its machines are not given back");
    assert_eq!(world.host("a").unwrap().instance, before.instance);
    world.watched.clear();
    world.rest().unwrap();
    assert!(world.set.is_none() && world.made.is_empty());
    assert_eq!((world.state("x"), world.state("y")), ("available", "available"));
}

#[test]
fn a_machine_of_another_provisioner_is_told_and_holds_the_set_until_it_is_forgotten() {
    let mut world = Metal::new(&json!({"baremetalHosts": {"b": null}}), &["x"]);
    world.rest().unwrap();
    let status = world.set.as_mut().unwrap().status.as_mut().unwrap();
    let of_ironic = HostStatus {
        bmh_ref: "1be26c0b-03f2-4d2e-ae87-c02d7f33c123".into(),
        ..status.baremetal_hosts["a"].clone()
    };
    status.baremetal_hosts.insert("c".into(), of_ironic);
    world.rest().unwrap();
    let part = "Host c: its machine 1be26c0b-03f2-4d2e-ae87-c02d7f33c123 is not a BareMetalHost";
    world.says("Ready", False, "MachineGone", &[part, "spec.provisioner"]);
    world.delete();
    world.rest().unwrap();
    assert_eq!(world.state("x"), "available");
    assert!(world.host("c").unwrap().annotated_for_deletion);
    world.forget("c");
    world.rest().unwrap();
    assert!(world.set.is_none());
}

#[test]
fn a_set_that_went_from_metal3_to_ironic_does_not_forget_machines_of_hosts_that_were_taken_out() {
    let mut lab = Lab::deployed();
    let status = lab.set.as_mut().unwrap().status.as_mut().unwrap();
    let of_metal3 = HostStatus {
        bmh_ref: "metal/x".into(),
        instance: None,
        ..status.baremetal_hosts["a"].clone()
    };
    status.baremetal_hosts.insert("c".into(), of_metal3);
    lab.rests_for("MachineGone", &["Host c: its machine metal/x no longer exists in Ironic"]);
    lab.delete();
    lab.rest().unwrap();
    assert!(lab.host("c").is_some());
    lab.forget("c");
    lab.rest().unwrap();
    assert!(lab.set.is_none());
}
