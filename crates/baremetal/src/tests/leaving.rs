//! Machines that are given back: of removed hosts, and of sets that are being deleted.

use ConditionStatus::{False, True};

use super::*;

#[test]
fn a_host_that_is_taken_out_gives_its_machine_back_and_its_entry_goes_then() {
    let mut lab = Lab::deployed();
    lab.edit(&json!({"baremetalHosts": {"a": null}}));
    let n_before = lab.log.len();
    lab.pass().unwrap();
    assert_eq!(lab.asked(n_before), ["PUT m0 provision deleted"]);
    assert!(lab.host("a").unwrap().annotated_for_deletion);
    lab.says(
        "Ready",
        False,
        "MachineInProgress",
        &["1 of 1 hosts", "Host a: machine m0 is about to be undeployed"],
    );
    lab.rest().unwrap();
    assert_eq!(lab.host("a"), None);
    assert_eq!(lab.machines(), [("available", None), ("active", Some("b".into()))]);
    lab.says("Ready", True, "Ready", &[]);
}

#[test]
fn the_policy_of_the_human_comes_first() {
    for (policy, adopt, expected) in [
        ("Retain", false, "active"),
        ("Deprovision", false, "available"),
        ("Retain", true, "active"),
        ("Deprovision", true, "available"),
    ] {
        let host =
            json!({"adopt": adopt, "machine": {"node": "m0"}, "ctlPlaneIP": "192.0.2.10/24"});
        let changes =
            json!({"deprovisionPolicy": policy, "baremetalHosts": {"a": host, "b": null}});
        let mut lab = Lab::new(&changes, &[if adopt { "active" } else { "available" }]);
        lab.rest().unwrap();
        lab.edit(&json!({"baremetalHosts": {"a": null}}));
        lab.rest().unwrap();
        assert_eq!(lab.machines(), [(expected, None)], "{policy} {adopt}");
        assert_eq!(lab.model.nodes[0].instance_uuid, None);
    }
}

#[test]
fn a_machine_that_is_retained_is_told_with_the_address_that_it_keeps() {
    let mut lab = Lab::new(&json!({"deprovisionPolicy": "Retain"}), &["available", "available"]);
    lab.rest().unwrap();
    lab.edit(&json!({"baremetalHosts": {"a": null}}));
    lab.gets_ready();
    let told = |it: &&EventDraft| it.warning && it.reason == "MachineRetained";
    let note = lab.notices.iter().find(told).unwrap().note.clone();
    assert!(note.contains("Host a: machine m0 is no longer managed"), "{note}");
    assert!(note.contains("answers at 192.0.2.10/24: do not assign that address"), "{note}");
}

#[test]
fn a_machine_that_was_reserved_and_never_told_of_is_given_back_too() {
    let mut lab = Lab::new(&json!({}), &["available", "available"]);
    lab.pass().unwrap();
    let seen = lab.seen().unwrap();
    for order in orders(&seen, lab.model.now()) {
        lab.model.ask(&order.request).unwrap();
    }
    // The status was not written: it knows no machine, and then not even the host.
    lab.edit(&json!({"baremetalHosts": {"a": null}}));
    lab.set.as_mut().unwrap().status = None;
    lab.rest().unwrap();
    assert_eq!(lab.machines(), [("available", None), ("active", Some("b".into()))]);
}

#[test]
fn a_host_that_somebody_else_asks_for_is_not_given_back_because_a_human_takes_it_out() {
    let mut lab = Lab::new(&json!({}), &["available", "available"]);
    let apply = |lab: &mut Lab, hash: &str| {
        let annotations = lab.set.as_mut().unwrap().annotations_mut();
        annotations.insert("dataplane.openstack.org/applied".into(), hash.into());
    };
    apply(&mut lab, "1");
    lab.rest().unwrap();
    let (before, host) = (lab.host("a"), json!({"ctlPlaneIP": "192.0.2.10/24"}));
    let n_before = lab.log.len();
    lab.edit(&json!({"baremetalHosts": {"a": null}}));
    lab.rests_for("HostInUse", &["Host a: machine m0 is kept", "remove a there"]);
    assert_eq!(lab.asked(n_before), [""; 0]);
    // The requesting owner restores it.
    lab.edit(&json!({"baremetalHosts": {"a": host}}));
    lab.gets_ready();
    assert_eq!((lab.host("a"), lab.asked(n_before)), (before, vec![]));
    // When the owner no longer needs it, it is given back at once and completely.
    lab.edit(&json!({"baremetalHosts": {"a": null}}));
    apply(&mut lab, "2");
    lab.rest().unwrap();
    assert_eq!((lab.host("a"), lab.machines()[0].clone()), (None, ("available", None)));
    lab.delete();
    lab.rest().unwrap();
    assert!(lab.set.is_none());
}

/// A set with a host that has network data for its ramdisk, and two machines.
fn over_a_network() -> Lab {
    let named = json!({"baremetalHosts": {
        "a": {"preprovisioningNetworkDataName": "ramdisk"}, "b": null}});
    let mut lab = Lab::new(&named, &["available", "available"]);
    lab.secret("ramdisk", &[("networkData", "{links: [{id: n}], networks: [{link: n}]}")]);
    lab.rest().unwrap();
    assert_eq!(lab.model.networks.len(), 1);
    lab
}

#[test]
fn the_network_of_a_ramdisk_stays_until_the_machine_is_clean_and_goes_then() {
    let mut lab = over_a_network();
    lab.delete();
    lab.pass().unwrap();
    lab.model.pass();
    assert_eq!(lab.machines()[0], ("cleaning", None));
    let n_before = lab.log.len();
    lab.pass().unwrap();
    assert_eq!((lab.asked(n_before), lab.model.networks.len()), (vec![], 1));
    let told = lab.host("a").unwrap();
    assert_eq!(told.bmh_ref, lab.model.nodes[0].uuid);
    assert_eq!((told.provisioning_state.as_str(), told.annotated_for_deletion), ("cleaning", true));
    lab.rest().unwrap();
    assert!(lab.set.is_none() && lab.model.networks.is_empty());
    assert_eq!(lab.asked(n_before), ["PATCH m0 node ", "PATCH m0 node "]);
    let node = &lab.model.nodes[0];
    assert!(node.extra.is_empty() && node.instance_uuid.is_none() && node.instance_info.is_empty());
}

#[test]
fn a_cleaning_that_fails_keeps_the_network_that_another_one_needs() {
    let mut lab = over_a_network();
    lab.delete();
    lab.pass().unwrap();
    lab.model.pass();
    lab.model.nodes[0].provision_state = State::CleanFailed;
    lab.model.nodes[0].target_provision_state = None;
    lab.rests_for("CleanFailed", &["machine m0"]);
    assert_eq!(lab.model.networks.len(), 1);
    lab.model.nodes[0].provision_state = State::Available;
    lab.rest().unwrap();
    assert!(lab.set.is_none() && lab.model.networks.is_empty());
}

#[test]
fn whoever_takes_a_machine_with_anothers_network_for_ramdisks_has_replaced_it() {
    let mut lab = over_a_network();
    lab.delete();
    lab.pass().unwrap();
    lab.model.pass();
    lab.model.pass();
    let gone = lab.set.take();
    lab.set = Some(set_of(
        "other",
        &json!({"baremetalHosts": {"a": null, "b": {"machine": {"node": "m0"}}}}),
    ));
    lab.rest().unwrap();
    assert_eq!(lab.host("b").unwrap().bmh_ref, lab.model.nodes[0].uuid);
    assert!(lab.model.networks.is_empty() && lab.model.nodes[0].extra.is_empty());
    let owner = lab.model.nodes[0].instance_uuid.clone();
    lab.set = gone;
    lab.rest().unwrap();
    assert_eq!((lab.set.is_none(), &lab.model.nodes[0].instance_uuid), (true, &owner));
}

#[test]
fn a_machine_that_is_retained_leaves_the_network_of_its_ramdisk_with_the_reservation() {
    let mut lab = over_a_network();
    lab.edit(&json!({"deprovisionPolicy": "Retain"}));
    lab.delete();
    let n_before = lab.log.len();
    lab.rest().unwrap();
    assert_eq!(lab.asked(n_before), ["PATCH m0 node "]);
    assert_eq!((lab.machines()[0].0, lab.model.networks.len()), ("active", 0));
}

#[test]
fn a_set_that_is_deleted_goes_when_its_machines_are_given_back() {
    let mut lab = Lab::deployed();
    lab.delete();
    lab.pass().unwrap();
    assert!(lab.set.is_some());
    lab.says("Ready", False, "MachineInProgress", &["0 of 0 hosts"]);
    lab.rest().unwrap();
    assert!(lab.set.is_none());
    assert_eq!(lab.log.last().unwrap(), "release");
    assert_eq!(lab.machines(), [("available", None), ("available", None)]);
}

#[test]
fn a_set_that_is_deleted_keeps_its_machines_while_others_hold_it() {
    let user = "dataplane.openstack.org/machines-in-use";
    // One host's machine is on its way, another one has none yet.
    let hosts = json!({"baremetalHosts": {"c": {"ctlPlaneIP": "192.0.2.12/24"}}});
    let mut lab = Lab::new(&hosts, &["available", "available"]);
    lab.set.as_mut().unwrap().finalizers_mut().push(user.into());
    for _ in 0..2 {
        lab.pass().unwrap();
    }
    lab.model.nodes[1].provision_state = State::Active;
    lab.model.nodes[1].power_state = Some("power off".into());
    lab.delete();
    let (n_before, machines) = (lab.log.len(), lab.model.nodes.clone());
    lab.rest().unwrap();
    assert_eq!((lab.asked(n_before), &lab.model.nodes), (vec![], &machines));
    lab.says("Ready", False, "DeletionWaits", &[user, "delete what uses the machines"]);
    assert_eq!(lab.host("b").unwrap().provisioning_state, "active");
    assert!(!lab.host("b").unwrap().annotated_for_deletion);
    // The holder of the finalizer may give up one of them.
    lab.edit(&json!({"baremetalHosts": {"b": null}}));
    lab.rest().unwrap();
    assert_eq!(lab.host("b"), None);
    assert_eq!(lab.machines(), [("available", Some("a".into())), ("available", None)]);
    lab.set.as_mut().unwrap().finalizers_mut().retain(|it| it != user);
    lab.rest().unwrap();
    assert!(lab.set.is_none());
    assert_eq!(lab.machines(), [("available", None), ("available", None)]);
}

#[test]
fn a_set_is_not_let_go_while_nobody_can_be_asked_unless_its_namespace_goes() {
    let mut lab = Lab::deployed();
    lab.delete();
    lab.unseen = Some(Unseen::Error(Error::Unreachable("timed out".into())));
    lab.rests_for("Unreachable", &[]);
    let (path, keys) = ("spec.ironic.secret", "username and password");
    lab.unseen = Some(Unseen::NoSecret { path, name: "ironic".into(), keys });
    lab.rests_for("SecretNotFound", &[]);
    lab.is_abandoned = true;
    lab.rest().unwrap();
    assert!(lab.set.is_none());
    assert_eq!(lab.machines()[0], ("active", Some("a".into())));
}

#[test]
fn a_set_whose_ironic_never_answered_is_not_held_for_it_has_taken_nothing() {
    let mut lab = Lab::new(&json!({}), &["available", "available"]);
    lab.unseen = Some(Unseen::Error(Error::Unreachable("timed out".into())));
    lab.rests_for("Unreachable", &[]);
    assert_eq!(lab.set.as_ref().unwrap().finalizers(), [""; 0]);
    lab.unseen = None;
    lab.rest().unwrap();
    assert_eq!(lab.set.as_ref().unwrap().finalizers(), [crate::finalizers::MACHINES]);
}

#[test]
fn whoever_waits_behind_others_is_told_nothing_and_loses_nothing() {
    let mut lab = Lab::deployed();
    let before = (lab.set.clone(), format!("{:?}", lab.machines()));
    lab.unseen = Some(Unseen::NotYet);
    lab.rest().unwrap();
    assert_eq!((lab.set.clone(), format!("{:?}", lab.machines())), before);
    lab.delete();
    lab.rest().unwrap();
    assert!(lab.set.is_some(), "nobody knows what it has");
    lab.unseen = None;
    lab.rest().unwrap();
    assert!(lab.set.is_none());
}

#[test]
fn a_machine_that_the_list_lacks_is_not_taken_for_given_back() {
    let mut lab = Lab::deployed();
    // Other credentials show no machine, or only some of them.
    let hidden = lab.model.nodes.remove(0);
    lab.delete();
    lab.rest().unwrap();
    assert!(lab.set.is_some());
    let parts = [
        "Host a: its machine",
        hidden.uuid.as_str(),
        "credentials",
        "no longer exists in Ironic",
        "remove its record",
    ];
    lab.says("Ready", False, "MachineGone", &parts);
    assert!(lab.host("a").unwrap().needs_human);
    assert_eq!((lab.host("b"), lab.machines()), (None, vec![("available", None)]));
    // With the right credentials it is given back as usual.
    lab.model.nodes.push(hidden);
    lab.rest().unwrap();
    assert!(lab.set.is_none());
    assert_eq!(lab.machines(), [("available", None), ("available", None)]);
}

#[test]
fn a_human_may_have_a_machine_forgotten_that_is_gone_for_good() {
    let mut lab = Lab::deployed();
    lab.model.nodes.remove(0);
    lab.edit(&json!({"baremetalHosts": {"a": null}}));
    lab.rests_for("MachineGone", &[]);
    lab.forget("a");
    lab.gets_ready();
    assert_eq!(lab.host("a"), None);
}

#[test]
fn a_set_that_was_given_to_another_provisioner_does_not_forget_its_machines() {
    let mut lab = Lab::deployed();
    // As before a validation rule forbade it.
    lab.edit(&json!({"provisioner": "metal3"}));
    lab.delete();
    lab.rest().unwrap();
    assert!(lab.set.is_some());
    lab.edit(&json!({"provisioner": "ironic"}));
    lab.rest().unwrap();
    assert!(lab.set.is_none());
    assert_eq!(lab.machines(), [("available", None), ("available", None)]);
    let mut lab = Lab::new(&json!({"provisioner": "metal3"}), &[]);
    lab.set.as_mut().unwrap().finalizers_mut().push(crate::finalizers::MACHINES.into());
    lab.rest().unwrap();
    lab.delete();
    lab.rest().unwrap();
    assert!(lab.set.is_none());
}

#[test]
fn a_machine_that_cannot_be_undeployed_is_told() {
    let mut lab = Lab::deployed();
    lab.edit(&json!({"baremetalHosts": {"a": null}}));
    lab.pass().unwrap();
    let before = lab.host("a").unwrap();
    // Ironic removes the reservation whether undeploying succeeds or not.
    let node = &mut lab.model.nodes[0];
    (node.provision_state, node.target_provision_state) = (State::Error, None);
    (node.instance_uuid, node.instance_info) = (None, serde_json::Map::new());
    node.last_error = Some("no power".into());
    lab.rest().unwrap();
    let parts = ["Host a: machine m0 could not be undeployed", "no power", "undeploy m0"];
    lab.says("Ready", False, "UndeployFailed", &parts);
    // The running system still answers at its address, so the set stays until that is over.
    let told = lab.host("a").unwrap();
    assert_eq!((&told.bmh_ref, told.installed), (&before.bmh_ref, true));
    assert_eq!(told.ip_addresses, before.ip_addresses);
    lab.delete();
    lab.rest().unwrap();
    assert!(lab.set.is_some());
    lab.undeploy(0);
    lab.rest().unwrap();
    assert!(lab.set.is_none());
    assert_eq!(lab.machines()[0], ("available", None));
}

#[test]
fn a_host_that_comes_back_while_its_machine_goes_is_deployed_anew() {
    let mut lab = Lab::new(&json!({"baremetalHosts": {"b": null}}), &["available"]);
    lab.rest().unwrap();
    lab.edit(&json!({"baremetalHosts": {"a": null}}));
    lab.pass().unwrap();
    lab.edit(&json!({"baremetalHosts": {"a": {"ctlPlaneIP": "192.0.2.10/24"}}}));
    lab.gets_ready();
    assert_eq!(lab.model.deployed.values().sum::<u32>(), 2);
}
