//! Faults of the hosts' inputs: reported with path, value and valid alternatives, and no machine is
//! lost.

use ConditionStatus::{False, True, Unknown};

use super::*;
use crate::status::{INPUT_READY, PROVISIONED};

/// Asserts that a set with these changes waits and reports it, and continues when they are
/// reverted.
#[track_caller]
fn waits(changes: &Value, back: &Value, reason: &str, parts: &[&str]) {
    let mut lab = Lab::new(changes, &["available", "available"]);
    lab.secret("own", &[("userData", "#cloud-config\n{}")]);
    lab.rest().unwrap();
    lab.says(INPUT_READY, False, reason, parts);
    lab.says("Ready", False, reason, parts);
    lab.says("Stalled", True, reason, &[]);
    assert!(lab.notices.iter().any(|it| it.warning && it.reason == reason));
    lab.edit(back);
    lab.gets_ready();
}

#[test]
fn each_fault_is_told_once_where_it_stands() {
    let none = "spec.deploymentSSHSecret: \"none\" is not an existing Secret; create it, with key \
                authorized_keys.";
    waits(
        &json!({"deploymentSSHSecret": "none"}),
        &json!({"deploymentSSHSecret": "keys"}),
        "SecretNotFound",
        &[none],
    );
    waits(
        &json!({"passwordSecret": {"name": "keys"}}),
        &json!({"passwordSecret": null}),
        "InvalidInput",
        &[
            "spec.passwordSecret: \"keys\" is a Secret that lacks a key; give it key NodeRootPassword with a text",
        ],
    );
    waits(
        &json!({"ctlplaneGateway": "198.51.100.1"}),
        &json!({"ctlplaneGateway": "192.0.2.1"}),
        "InvalidInput",
        &["spec.ctlplaneGateway: \"198.51.100.1\" is outside the subnet 192.0.2.0/24"],
    );
    waits(
        &json!({"userData": {"name": "own", "namespace": "far"}}),
        &json!({"userData": {"namespace": null}}),
        "InvalidInput",
        &["spec.userData.namespace", "move the Secret to ns"],
    );
}

#[test]
fn a_fault_of_one_host_holds_it_alone() {
    let mut lab = Lab::new(
        &json!({"baremetalHosts": {"b": {"ctlplaneGateway": "198.51.100.1"}}}),
        &["available", "available"],
    );
    lab.rest().unwrap();
    let part = "spec.baremetalHosts[b].ctlplaneGateway: \"198.51.100.1\" is outside the subnet";
    lab.says("Ready", False, "InvalidInput", &[part]);
    lab.says(PROVISIONED, False, "InputMissing", &["1 of 2 hosts", "Host b: spec", part]);
    assert!(lab.host("b").unwrap().error.unwrap().starts_with(part));
    assert_eq!(lab.host("a").unwrap().error, None);
    assert_eq!(lab.machines(), [("active", Some("a".into())), ("available", None)]);
}

#[test]
fn of_two_hosts_with_one_address_the_one_with_a_machine_keeps_it() {
    let same = json!({"baremetalHosts": {"a": {"ctlPlaneIP": "192.0.2.11/24"}}});
    let mut lab = Lab::new(&json!({"baremetalHosts": {"a": null}}), &["available", "available"]);
    lab.rest().unwrap();
    lab.edit(&same);
    lab.rest().unwrap();
    let part = "spec.baremetalHosts[a].ctlPlaneIP: \"192.0.2.11\" is the address of host b too";
    lab.says("Ready", False, "InvalidInput", &[part, "give each host its own"]);
    assert_eq!(lab.machines(), [("active", Some("b".into())), ("available", None)]);
    let mut both = Lab::new(&same, &["available", "available"]);
    both.rests_for("InvalidInput", &["spec.baremetalHosts[b].ctlPlaneIP"]);
}

#[test]
fn of_two_sets_with_one_address_the_older_one_has_it_unless_the_newer_one_has_a_machine() {
    let older = |is_provisioned: bool| {
        let mut other = set_of("other", &json!({"baremetalHosts": {"a": null}}));
        if is_provisioned {
            let hosts = json!({"b": {"hostname": "b", "bmhRef": "4dc4d6a3"}});
            other.status = serde_json::from_value(json!({"baremetalHosts": hosts})).unwrap();
        }
        Arc::new(other)
    };
    let told = |is_newer: bool, other: Arc<BaremetalSet>| {
        let mut lab = Lab::new(&json!({}), &["available", "available"]);
        let created = if is_newer { "2026-03-01T00:00:00Z" } else { "2025-01-01T00:00:00Z" };
        let time = serde_json::from_value(json!(created)).unwrap();
        lab.set.as_mut().unwrap().metadata.creation_timestamp = Some(time);
        lab.neighbours.push(other);
        lab.rest().unwrap();
        lab
    };
    let part = "\"192.0.2.11\" is the address of host b of OpenStackBaremetalSet other too";
    told(true, older(false)).says("Ready", False, "InvalidInput", &[part]);
    told(false, older(true)).says("Ready", False, "InvalidInput", &[part]);
    told(false, older(false)).says("Ready", True, "Ready", &[]);
}

#[test]
fn a_host_waits_for_an_address_until_the_machine_that_had_it_is_given_back() {
    let mut lab = Lab::new(&json!({"baremetalHosts": {"b": null}}), &["available", "available"]);
    lab.rest().unwrap();
    // Its undeployment fails, so that it keeps answering there.
    let b = json!({"ctlPlaneIP": "192.0.2.10/24"});
    lab.edit(&json!({"baremetalHosts": {"a": null, "b": b}}));
    lab.pass().unwrap();
    lab.model.nodes[0].provision_state = State::Error;
    lab.model.nodes[0].target_provision_state = None;
    lab.rest().unwrap();
    let part = "spec.baremetalHosts[b].ctlPlaneIP: \"192.0.2.10\" is still the address of the machine \
                of host a; wait until it is released";
    lab.says(INPUT_READY, False, "InvalidInput", &[part]);
    assert_eq!(lab.machines()[1], ("available", None));
    // Another set waits, too.
    let mut other = Lab::new(&json!({"baremetalHosts": {"a": null, "b": b}}), &["available"]);
    other.set.as_mut().unwrap().metadata.uid = Some("other".into());
    other.set.as_mut().unwrap().metadata.name = Some("other".into());
    other.neighbours.push(Arc::new(lab.set.clone().unwrap()));
    other.rest().unwrap();
    other.says(INPUT_READY, False, "InvalidInput", &["host a of OpenStackBaremetalSet set;"]);
    lab.undeploy(0);
    lab.gets_ready();
    assert_eq!(lab.host("b").unwrap().provisioning_state, "active");
}

#[test]
fn a_drive_that_is_too_large_is_told_without_its_content() {
    let mut lab = Lab::new(&json!({"userData": {"name": "large"}}), &["available", "available"]);
    lab.secret("large", &[("userData", &format!("#!/bin/sh\n# hunter2{}", "a".repeat(600_000)))]);
    lab.rests_for("InvalidInput", &["spec.userData: the value has", "above"]);
    assert!(!format!("{:?}{:?}", lab.seen().unwrap(), lab.notices).contains("hunter2"));
    lab.secret("large", &[("userData", "#!/bin/sh")]);
    lab.gets_ready();
}

#[test]
fn an_api_that_is_too_old_for_the_form_is_told_and_auto_takes_the_other_form() {
    let mut lab = Lab::new(&json!({"configDriveFormat": "Json"}), &["available", "available"]);
    lab.version = "1.50";
    lab.rests_for("InvalidInput", &["spec.configDriveFormat: \"Json\" needs version 1.56"]);
    lab.edit(&json!({"configDriveFormat": "Auto"}));
    lab.gets_ready();
}

#[test]
fn the_network_of_a_ramdisk_is_a_secrets_and_holds_the_host_that_names_it_alone() {
    let named = json!({"baremetalHosts": {"a": {"preprovisioningNetworkDataName": "ramdisk"}}});
    let mut lab = Lab::new(&named, &["available", "available"]);
    lab.rest().unwrap();
    let path = "spec.baremetalHosts[a].preprovisioningNetworkDataName: \"ramdisk\"";
    lab.says(
        "Ready",
        False,
        "SecretNotFound",
        &[path, "is not an existing Secret", "key networkData"],
    );
    assert_eq!(lab.machines(), [("active", Some("b".into())), ("available", None)]);
    lab.secret("ramdisk", &[("networkData", "[]")]);
    lab.rests_for("InvalidInput", &[path, "is a Secret whose networkData is not an object"]);
    lab.secret("ramdisk", &[("networkData", "{links: [{id: n0}], networks: [{link: n0}]}")]);
    lab.version = "1.65";
    lab.rests_for("InvalidInput", &[path, "needs version 1.66 of Ironic's API"]);
    assert_eq!(lab.model.deployed.values().sum::<u32>(), 1);
    lab.version = "1.66";
    lab.gets_ready();
    let node = &lab.model.nodes[1];
    let over = &lab.model.deployed_over[node.instance_uuid.as_ref().unwrap()];
    assert_eq!(over.as_ref().unwrap()["links"], json!([{"id": "n0", "mtu": 1500}]));
    // Later changes apply to the next deployment, and the host's own system stays as it was.
    let n_before = lab.log.len();
    lab.secret("ramdisk", &[("networkData", "{links: [{id: m}], networks: [{link: m}]}")]);
    lab.rest().unwrap();
    lab.says("UpToDate", True, "UpToDate", &[]);
    assert_eq!(lab.asked(n_before), [""; 0]);
}

#[test]
fn credentials_that_are_missing_are_told_as_an_input() {
    let mut lab = Lab::new(&json!({}), &["available", "available"]);
    let (path, keys) = ("spec.ironic.secret", "username and password");
    lab.unseen = Some(Unseen::NoSecret { path, name: "ironic".into(), keys });
    lab.rest().unwrap();
    let part = "spec.ironic.secret: \"ironic\" is not an existing Secret; create it, with username \
                and password.";
    lab.says("Ready", False, "SecretNotFound", &[part]);
    lab.says("OpenStackBaremetalSetProvServerReady", Unknown, "InputMissing", &["InputReady"]);
}

#[test]
fn an_input_that_goes_missing_while_ironic_is_away_lets_nobody_forget_a_machine() {
    let mut lab = Lab::new(&json!({}), &["available", "available", "available"]);
    lab.rest().unwrap();
    let hosts = [lab.host("a"), lab.host("b")];
    let keys = lab.secrets.remove("keys").unwrap();
    let (path, needed) = ("spec.ironic.secret", "username and password");
    for unseen in [
        Unseen::Error(Error::Unreachable("timed out".into())),
        Unseen::NoSecret { path, name: "ironic".into(), keys: needed },
    ] {
        lab.unseen = Some(unseen);
        lab.rests_for("SecretNotFound", &["spec.deploymentSSHSecret"]);
        assert_eq!([lab.host("a"), lab.host("b")], hosts);
    }
    // Meanwhile one of them loses its reservation: its record stays, and no second one is taken.
    lab.model.nodes[0].instance_uuid = None;
    lab.unseen = None;
    lab.rest().unwrap();
    lab.secrets.insert("keys".into(), keys);
    lab.rests_for("MachineGone", &["machine m0"]);
    assert_eq!(lab.model.deployed.values().sum::<u32>(), 2);
}

#[test]
fn an_input_that_goes_missing_holds_a_machine_on_its_way_and_none_that_runs() {
    let mut lab = Lab::new(&json!({}), &["available", "available"]);
    for _ in 0..2 {
        lab.pass().unwrap();
    }
    lab.model.nodes[0].provision_state = State::Active;
    lab.model.nodes[0].power_state = Some("power on".into());
    let keys = lab.secrets.remove("keys").unwrap();
    let n_before = lab.log.len();
    lab.rest().unwrap();
    assert_eq!(lab.asked(n_before), [""; 0]);
    assert_eq!(lab.host("a").unwrap().provisioning_state, "active");
    assert_eq!(lab.host("b").unwrap().provisioning_state, "available");
    lab.says("UpToDate", True, "UpToDate", &[]);
    lab.secrets.insert("keys".into(), keys);
    lab.gets_ready();
}

#[test]
fn no_secret_is_seen_in_what_is_written_or_printed() {
    let mut lab =
        Lab::new(&json!({"passwordSecret": {"name": "root"}}), &["available", "available"]);
    lab.secret("root", &[("NodeRootPassword", "hunter2")]);
    for _ in 0..3 {
        let seen = lab.seen().unwrap();
        let asked = orders(&seen, lab.model.now());
        let plan = lab.pass().unwrap();
        let all = format!("{seen:?}{asked:?}{plan:?}{:?}", lab.notices);
        assert!(!all.contains("hunter2") && !all.contains(KEY), "{all}");
    }
    assert_eq!(lab.model.deployed.values().sum::<u32>(), 2);
}
