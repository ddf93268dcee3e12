//! A set's way with Metal3, and what it says where something is in the way.

use super::*;
use crate::baremetal_set::status::{INPUT_READY, SERVER_READY, UP_TO_DATE};
use Truth::{False, True};

/// What a machine has of the set.
fn has_nothing_of_the_set(machine: &Value) {
    let text = machine.to_string();
    for part in ["openstackbaremetalset", "osbms", "consumerRef", "cloudinit", "config-drive"] {
        assert!(!text.contains(part), "{part} in {text}");
    }
}

#[test]
fn hosts_are_provisioned_by_one_write_each_and_say_so() {
    let mut world = World::new(&json!({}), &["x", "y"]);
    world.rest().unwrap();
    world.says("Ready", True, "Ready", &[]);
    world.says(SERVER_READY, True, "Answering", &[IMAGE]);
    let applied = world.log.iter().filter(|it| it.starts_with("apply"));
    assert_eq!(applied.collect::<Vec<_>>(), ["apply x", "apply y"]);
    let a = world.host("a").unwrap();
    assert_eq!((a.bmh_ref.as_str(), a.provisioning_state.as_str()), ("metal/x", "provisioned"));
    assert_eq!(a.user_data_secret_name, "set-cloudinit-userdata-a");
    assert_eq!(a.network_data_secret_name, "set-cloudinit-networkdata-a");
    assert_eq!(a.ip_addresses["ctlplane"], "192.0.2.10/24");
    let x = world.machine("x");
    assert_eq!(
        x["metadata"]["annotations"]["edpm.openstack.org/config-drive-hash"],
        json!(a.config_drive_hash.unwrap())
    );
    assert_eq!(x["metadata"]["labels"]["set-osbms-hostname"], "a");
    assert_eq!(x["metadata"]["labels"]["openstackbaremetalset.openstack.org/uid"], "set");
    assert_eq!((&x["spec"]["online"], &x["spec"]["image"]), (&json!(true), &json!({"url": IMAGE})));
    assert_eq!(x["spec"]["consumerRef"]["name"], "set");
    assert_eq!(x["spec"]["automatedCleaningMode"], "metadata");
    let n_before = world.calls;
    world.pass().unwrap();
    assert_eq!(world.calls, n_before, "nothing is written where nothing changed");
}

#[test]
fn secrets_never_stand_elsewhere() {
    let mut world = World::new(&json!({"passwordSecret": {"name": "root"}}), &["x", "y"]);
    let values = BTreeMap::from([("NodeRootPassword".to_owned(), b"hunter2".to_vec())]);
    world.inputs.insert("root".into(), Values::new("1", values).into());
    world.rest().unwrap();
    world.says("Ready", True, "Ready", &[]);
    let all = format!("{:?}{:?}{:?}{:?}", world.machines, world.set, world.notices, world.seen());
    assert!(!all.contains("hunter2") && !all.contains(KEY), "{all}");
}

#[test]
fn an_error_is_told_verbatim_and_goes_when_metal3_gets_over_it() {
    let mut world = World::new(&json!({}), &["x", "y"]);
    world.failing.insert("x".into(), 2);
    for _ in 0..6 {
        world.pass().unwrap();
        world.pass().unwrap();
        if world.machine("x")["status"]["errorType"] == "provisioning error" {
            break;
        }
        world.work();
    }
    let words = "metal/x, which is provisioning: provisioning error: Image provisioning failed: no such \
                 image; correct the cause";
    world.says("Ready", False, "MachineFailed", &["Host a: ", words]);
    assert!(world.host("a").unwrap().error.unwrap().contains(words));
    assert_eq!(world.host("b").unwrap().error, None);
    world.rest().unwrap();
    world.says("Ready", True, "Ready", &[]);
}

#[test]
fn an_image_that_is_corrected_reaches_machines_that_failed_with_it_and_none_that_runs() {
    let mut world = World::new(&json!({}), &["x", "y"]);
    world.failing.insert("x".into(), 1000);
    for _ in 0..6 {
        world.pass().unwrap();
        world.work();
    }
    world.edit(&json!({"osContainerImageUrl": "https://images.example.org/good.qcow2"}));
    world.pass().unwrap();
    assert_eq!(world.machine("x")["spec"]["image"]["url"], "https://images.example.org/good.qcow2");
    assert_eq!(world.machine("y")["spec"]["image"]["url"], IMAGE);
    world.failing.clear();
    world.rest().unwrap();
    world.says("Ready", True, "Ready", &[]);
}

#[test]
fn a_host_that_is_taken_out_gives_its_machine_back_and_its_secrets_go_last() {
    let mut world = World::new(&json!({}), &["x", "y"]);
    world.rest().unwrap();
    world.edit(&json!({"baremetalHosts": {"a": null}}));
    world.pass().unwrap();
    let a = world.host("a").unwrap();
    assert!(a.annotated_for_deletion);
    // Nobody takes it while it is erased.
    for state in ["deprovisioning", "available"] {
        assert_eq!(world.machine("x")["spec"]["consumerRef"]["name"], "set");
        assert!(world.machine("x")["spec"]["image"].is_null());
        assert!(world.made.contains_key("set-cloudinit-userdata-a"));
        world.work();
        assert_eq!(world.state("x"), state);
        if state == "deprovisioning" {
            world.pass().unwrap();
        }
    }
    world.rest().unwrap();
    has_nothing_of_the_set(world.machine("x"));
    assert_eq!(world.machine("x")["spec"]["online"], false);
    assert_eq!(world.machine("x")["metadata"]["labels"], json!({"rack": "one"}));
    let names: Vec<&str> = world.made.keys().map(String::as_str).collect();
    let left = ["metadata", "networkdata", "userdata"].map(|it| format!("set-cloudinit-{it}-b"));
    assert_eq!(names, left);
    assert_eq!(world.host("a"), None);
    world.says("Ready", True, "Ready", &[]);
    assert_eq!(world.deployed["y"], 1);
}

#[test]
fn a_machine_is_cleaned_as_the_set_says_and_over_the_network_of_its_ramdisk() {
    let mut world = World::new(
        &json!({"automatedCleaningMode": "disabled", "baremetalHosts": {
            "b": null, "a": {"preprovisioningNetworkDataName": "ramdisk"}}}),
        &["x"],
    );
    world.rest().unwrap();
    world.delete();
    for state in ["deprovisioning", "available"] {
        world.pass().unwrap();
        let spec = &world.machine("x")["spec"];
        assert_eq!(spec["automatedCleaningMode"], "disabled");
        assert_eq!(spec["preprovisioningNetworkDataName"], "ramdisk");
        world.work();
        assert_eq!(world.state("x"), state);
    }
    world.rest().unwrap();
    assert!(world.set.is_none());
    assert_eq!(world.machine("x")["spec"], json!({"online": false}));
}

#[test]
fn a_retained_machine_keeps_its_image_and_power_and_nothing_else_of_the_set() {
    let mut world = World::new(&json!({"deprovisionPolicy": "Retain"}), &["x", "y"]);
    world.rest().unwrap();
    world.delete();
    world.rest().unwrap();
    assert!(world.set.is_none() && world.made.is_empty());
    for name in ["x", "y"] {
        has_nothing_of_the_set(world.machine(name));
        assert_eq!(world.machine(name)["spec"]["image"]["url"], IMAGE);
        assert_eq!(world.machine(name)["spec"]["online"], true);
        assert_eq!(world.state(name), "provisioned");
    }
}

#[test]
fn a_set_that_is_deleted_waits_for_its_machines() {
    let mut world = World::new(&json!({}), &["x", "y"]);
    world.rest().unwrap();
    world.delete();
    for _ in 0..3 {
        world.pass().unwrap();
        assert!(world.set.is_some());
    }
    world.rest().unwrap();
    assert!(world.set.is_none() && world.made.is_empty());
    for name in ["x", "y"] {
        has_nothing_of_the_set(world.machine(name));
        assert_eq!(world.state(name), "available");
    }
}

#[test]
fn a_host_that_comes_back_while_its_machine_is_erased_waits_for_it() {
    let mut world = World::new(&json!({}), &["x", "y"]);
    world.rest().unwrap();
    let a = serde_json::to_value(&world.set.as_ref().unwrap().spec.baremetal_hosts["a"]).unwrap();
    world.edit(&json!({"baremetalHosts": {"a": null}}));
    world.pass().unwrap();
    world.edit(&json!({"baremetalHosts": {"a": a}}));
    world.pass().unwrap();
    world.says("Ready", False, "MachineInProgress", &["Host a: BareMetalHost metal/x"]);
    world.rest().unwrap();
    world.says("Ready", True, "Ready", &[]);
    assert_eq!(world.deployed["x"], 2);
}

#[test]
fn user_data_that_changes_later_is_only_told() {
    let mut world = World::new(&json!({}), &["x", "y"]);
    world.rest().unwrap();
    let n_before = world.log.len();
    world.edit(&json!({"cloudUserName": "other"}));
    world.rest().unwrap();
    world.says(UP_TO_DATE, False, "ConfigDriveChanged", &["a, b", "take a host out of"]);
    world.says("Ready", True, "Ready", &[]);
    assert_eq!(world.log.len(), n_before);
}

#[test]
fn a_machine_that_somebody_else_took_is_told_and_left_alone() {
    let mut world = World::new(&json!({}), &["x", "y", "z"]);
    world.rest().unwrap();
    let other = json!({"kind": "Machine", "name": "m", "namespace": "n", "apiVersion": "x/v1"});
    world.change("x", &json!({"spec": {"consumerRef": other}}));
    world.rest().unwrap();
    world.says(
        "Ready",
        False,
        "MachineTaken",
        &["metal/x is used by Machine n/m now", "take a out"],
    );
    assert_eq!(world.host("a").unwrap().provisioning_state, "gone");
    let n_before = world.log.iter().filter(|it| it.contains("apply")).count();
    world.delete();
    world.rest().unwrap();
    assert!(world.set.is_none());
    let applied: Vec<_> =
        world.log.iter().filter(|it| it.contains("apply")).skip(n_before).collect();
    assert!(!applied.contains(&&"apply x".to_owned()), "{applied:?}");
    assert_eq!(world.machine("x")["spec"]["consumerRef"], other);
}

#[test]
fn a_machine_that_is_deleted_while_it_runs_is_told_and_not_replaced() {
    let mut world = World::new(&json!({}), &["x", "y", "z"]);
    world.rest().unwrap();
    world.machines.as_mut().unwrap().remove(0);
    world.rest().unwrap();
    world.says("Ready", False, "MachineGone", &["metal/x was deleted", "make sure that it is off"]);
    assert_eq!(world.state("z"), "available");
    let a = serde_json::to_value(&world.set.as_ref().unwrap().spec.baremetal_hosts["a"]).unwrap();
    world.edit(&json!({"baremetalHosts": {"a": null}}));
    world.rest().unwrap();
    world.edit(&json!({"baremetalHosts": {"a": a}}));
    world.rest().unwrap();
    world.says("Ready", True, "Ready", &[]);
    assert_eq!(world.host("a").unwrap().bmh_ref, "metal/z");
}

#[test]
fn a_machine_that_is_deleted_on_its_way_is_replaced() {
    let mut world = World::new(&json!({"baremetalHosts": {"b": null}}), &["x", "y"]);
    for _ in 0..3 {
        world.pass().unwrap();
    }
    world.work();
    world.pass().unwrap();
    world.machines.as_mut().unwrap().remove(0);
    world.rest().unwrap();
    world.says("Ready", True, "Ready", &[]);
    assert_eq!(world.host("a").unwrap().bmh_ref, "metal/y");
}

#[test]
fn a_detached_machine_and_one_that_is_off_are_told() {
    let mut world = World::new(&json!({}), &["x", "y"]);
    for _ in 0..3 {
        world.pass().unwrap();
    }
    world.change("x", &json!({"status": {"operationalStatus": "detached"}}));
    world.pass().unwrap();
    world.says("Ready", False, "MachineDetached", &["kubectl annotate -n metal bmh x"]);
    world.change("x", &json!({"status": {"operationalStatus": "OK"}}));
    world.rest().unwrap();
    world.says("Ready", True, "Ready", &[]);
    world.change("y", &json!({"status": {"poweredOn": false}}));
    world.pass().unwrap();
    world.says("Ready", False, "PowerFailed", &["metal/y is provisioned and not powered on"]);
    assert_eq!(world.host("b").unwrap().provisioning_state, "powering on");
}

#[test]
fn an_image_that_somebody_else_wrote_too_is_told_when_the_machine_goes_back() {
    let mut world = World::new(&json!({"baremetalHosts": {"b": null}}), &["x"]);
    world.rest().unwrap();
    world.edit(&json!({"baremetalHosts": {"a": null}}));
    world.pass().unwrap();
    world.change("x", &json!({"spec": {"image": {"url": "mine"}}}));
    world.pass().unwrap();
    world.says("Ready", False, "ImageHeld", &["Host a: ", "kubectl patch -n metal bmh x"]);
    world.change("x", &json!({"spec": {"image": null}}));
    world.rest().unwrap();
    has_nothing_of_the_set(world.machine("x"));
}

/// A set with such changes waits and says so, and goes on when they are taken back.
#[track_caller]
fn waits(changes: &Value, back: &Value, reason: &str, parts: &[&str]) {
    let mut world = World::new(changes, &["x", "y"]);
    world.rest().unwrap();
    world.says(INPUT_READY, False, reason, parts);
    world.says("Ready", False, reason, parts);
    assert!(world.log.is_empty(), "{:?}", world.log);
    world.edit(back);
    world.rest().unwrap();
    world.says("Ready", True, "Ready", &[]);
}

#[test]
fn what_hosts_cannot_be_made_from_is_told_with_the_legal_way() {
    waits(
        &json!({"deploymentSSHSecret": "none"}),
        &json!({"deploymentSSHSecret": "keys"}),
        "SecretNotFound",
        &["spec.deploymentSSHSecret: \"none\" is no Secret there"],
    );
    waits(
        &json!({"passwordSecret": {"name": "keys"}}),
        &json!({"passwordSecret": null}),
        "InvalidInput",
        &["give it key NodeRootPassword"],
    );
    waits(
        &json!({"osContainerImageUrl": null}),
        &json!({"osContainerImageUrl": IMAGE}),
        "InvalidInput",
        &["spec.osContainerImageUrl: with osImageDeploymentType PassThrough"],
    );
    waits(
        &json!({"osImageDeploymentType": "SelfExtracting"}),
        &json!({"osImageDeploymentType": "PassThrough"}),
        "InvalidInput",
        &["name an OpenStackProvisionServer in spec.provisionServerName, or set"],
    );
    waits(
        &json!({"vendorData": {"name": "keys"}}),
        &json!({"vendorData": null}),
        "InvalidInput",
        &["spec.vendorData: Metal3 takes no vendor data"],
    );
    let adopt = json!({"adopt": true, "machine": {"node": "x"}});
    waits(
        &json!({"baremetalHosts": {"a": adopt, "b": {"vendorData": {"name": "keys"}}}}),
        &json!({"baremetalHosts": {"a": {"adopt": null}, "b": {"vendorData": null}}}),
        "InvalidInput",
        &["spec.baremetalHosts[a].adopt: Metal3 takes over", "spec.baremetalHosts[b].vendorData"],
    );
}

#[test]
fn a_namespace_that_is_not_watched_and_a_name_that_is_too_long_are_told() {
    let mut world = World::new(&json!({}), &[]);
    world.is_unwatched = true;
    world.rest().unwrap();
    world.says(
        "Ready",
        False,
        "InvalidInput",
        &["spec.bmhNamespace: \"metal\"", "watchNamespaces"],
    );
    let mut world = World::new(&json!({}), &["x", "y"]);
    world.set.as_mut().unwrap().metadata.name = Some("s".repeat(49));
    world.rest().unwrap();
    world.says(
        "Ready",
        False,
        "InvalidInput",
        &["metadata.name: with 49 characters", "at most 48"],
    );
    assert!(world.log.is_empty());
}

#[test]
fn a_server_that_is_named_must_serve_its_image_first() {
    let named = json!({"osImageDeploymentType": "SelfExtracting", "provisionServerName": "images"});
    let mut world = World::new(&named, &["x", "y"]);
    world.rest().unwrap();
    let part = "spec.provisionServerName: \"images\" is no OpenStackProvisionServer there";
    world.says("Ready", False, "InvalidInput", &[part]);
    let server = |status: &Value| -> Option<ProvisionServer> {
        serde_json::from_value(json!({
            "apiVersion": "baremetal.openstack.org/v1beta1", "kind": "OpenStackProvisionServer",
            "metadata": {"name": "images", "namespace": "ns"}, "spec": {}, "status": status,
        }))
        .unwrap()
    };
    world.server = server(&json!({}));
    world.rest().unwrap();
    world.says("Ready", False, "ImageNotServed", &["images does not serve its image yet"]);
    world.server = server(&json!({"localImageUrl": "http://i/a.qcow2",
        "localImageChecksumUrl": "http://i/a.sum", "osImageChecksumType": "sha256"}));
    world.rest().unwrap();
    world.says("Ready", True, "Ready", &[]);
    let image =
        json!({"url": "http://i/a.qcow2", "checksum": "http://i/a.sum", "checksumType": "sha256"});
    assert_eq!(world.machine("x")["spec"]["image"], image);
}

#[test]
fn where_metal3_is_not_there_its_absence_is_told_and_a_set_may_go() {
    let mut world = World::new(&json!({}), &[]);
    world.machines = None;
    world.pass().unwrap();
    world.says("Ready", False, "ProvisionerNotFound", &["install Metal3, or set"]);
    world.set.as_mut().unwrap().finalizers_mut().push(crate::baremetal_set::MACHINES.into());
    world.delete();
    world.pass().unwrap();
    assert!(world.set.is_none());
}
