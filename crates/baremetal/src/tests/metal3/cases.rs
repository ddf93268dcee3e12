//! Machines of Metal3 on their way into service, and the reported problems.

use ConditionStatus::{False, True};

use super::*;
use crate::status::{SERVER_READY, UP_TO_DATE};

#[test]
fn hosts_are_provisioned_by_one_write_each_and_say_so() {
    let mut world = Metal::provisioned();
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
    let image = json!({"url": IMAGE, "checksum": CHECKSUM, "checksumType": "auto"});
    assert_eq!((&x["spec"]["online"], &x["spec"]["image"]), (&json!(true), &image));
    assert_eq!(x["spec"]["consumerRef"]["name"], "set");
    assert_eq!(x["spec"]["automatedCleaningMode"], "metadata");
    let n_before = world.life.n_calls;
    world.pass().unwrap();
    assert_eq!(world.life.n_calls, n_before, "nothing is written where nothing changed");
}

#[test]
fn secrets_never_stand_elsewhere() {
    let mut world = Metal::new(&json!({"passwordSecret": {"name": "root"}}), &["x", "y"]);
    world.secret("root", &[("NodeRootPassword", "hunter2")]);
    world.gets_ready();
    let all = format!("{:?}{:?}{:?}{:?}", world.machines, world.set, world.notices, world.seen());
    assert!(!all.contains("hunter2") && !all.contains(KEY), "{all}");
}

#[test]
fn an_error_is_told_verbatim_and_goes_when_metal3_gets_over_it() {
    let mut world = Metal::new(&json!({}), &["x", "y"]);
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
    world.gets_ready();
}

#[test]
fn an_image_that_is_corrected_reaches_machines_that_failed_with_it_and_none_that_runs() {
    let mut world = Metal::new(&json!({}), &["x", "y"]);
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
    world.gets_ready();
}

#[test]
fn user_data_that_changes_later_is_only_told() {
    let mut world = Metal::provisioned();
    let n_before = world.log.len();
    world.edit(&json!({"cloudUserName": "other"}));
    world.rest().unwrap();
    world.says(UP_TO_DATE, False, "ConfigDriveChanged", &["a, b", "remove a host from"]);
    world.says("Ready", True, "Ready", &[]);
    assert_eq!(world.asked(n_before), [""; 0]);
}

#[test]
fn a_machine_that_is_detached_or_paused_and_one_that_is_off_are_told() {
    let mut world = Metal::new(&json!({}), &["x", "y"]);
    for _ in 0..3 {
        world.pass().unwrap();
    }
    world.change("x", &json!({"status": {"operationalStatus": "detached"}}));
    world.pass().unwrap();
    world.says("Ready", False, "MachineDetached", &["kubectl annotate -n metal bmh x"]);
    let paused =
        |it: &Value| json!({"metadata": {"annotations": {"baremetalhost.metal3.io/paused": it}}});
    world.change("x", &paused(&json!("")));
    world.change("x", &json!({"status": {"operationalStatus": "OK"}}));
    world.pass().unwrap();
    let command = "kubectl annotate -n metal bmh x baremetalhost.metal3.io/paused-";
    world.says("Ready", False, "MachinePaused", &[command]);
    world.change("x", &paused(&Value::Null));
    world.gets_ready();
    world.change("y", &json!({"status": {"poweredOn": false}}));
    world.pass().unwrap();
    world.says("Ready", False, "PowerFailed", &["metal/y is provisioned but not powered on"]);
    assert_eq!(world.host("b").unwrap().provisioning_state, "powering on");
}

#[test]
fn where_metal3_is_not_there_its_absence_is_told_and_a_set_may_go() {
    let mut world = Metal::new(&json!({}), &[]);
    world.machines = None;
    world.pass().unwrap();
    world.says("Ready", False, "ProvisionerNotFound", &["install Metal3, or set"]);
    world.set.as_mut().unwrap().finalizers_mut().push(crate::finalizers::MACHINES.into());
    world.delete();
    world.pass().unwrap();
    assert!(world.set.is_none());
}
