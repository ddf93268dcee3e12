//! The hosts' inputs, and the reported faults of invalid ones.

use ConditionStatus::False;

use super::*;
use crate::status::INPUT_READY;

/// Asserts that a set with these changes waits and reports it, and continues when they are
/// reverted.
#[track_caller]
fn waits(changes: &Value, back: &Value, reason: &str, parts: &[&str]) {
    let mut world = Metal::new(changes, &["x", "y"]);
    world.rest().unwrap();
    world.says(INPUT_READY, False, reason, parts);
    world.says("Ready", False, reason, parts);
    assert_eq!(world.asked(0), [""; 0]);
    // The requesting owner reads the cause from each host's entry.
    let errors = ["a", "b"].map(|it| world.host(it).unwrap());
    assert!(errors.iter().any(|it| it.needs_human));
    let errors = errors.map(|it| it.error.unwrap_or_default()).join(" ");
    assert!(parts.iter().all(|it| errors.contains(it)), "{errors}");
    world.edit(back);
    world.gets_ready();
}

#[test]
fn what_hosts_cannot_be_made_from_is_told_with_the_legal_way() {
    waits(
        &json!({"deploymentSSHSecret": "none"}),
        &json!({"deploymentSSHSecret": "keys"}),
        "SecretNotFound",
        &["spec.deploymentSSHSecret: \"none\" is not an existing Secret"],
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
        &json!({"osImageChecksum": null}),
        &json!({"osImageChecksum": CHECKSUM}),
        "InvalidInput",
        &["spec.osImageChecksum: Metal3 needs a checksum for an image at a URL"],
    );
    let oci = "oci://images.example.org/edpm:1";
    waits(
        &json!({"osImageChecksum": ""}),
        &json!({"osContainerImageUrl": oci}),
        "InvalidInput",
        &["spec.osImageChecksum", "or use an oci:// URL"],
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
        &["spec.vendorData: Metal3 does not support vendor data"],
    );
    let adopt = json!({"adopt": true, "machine": {"node": "x"}});
    waits(
        &json!({"baremetalHosts": {"a": adopt, "b": {"vendorData": {"name": "keys"}}}}),
        &json!({"baremetalHosts": {"a": {"adopt": null}, "b": {"vendorData": null}}}),
        "InvalidInput",
        &["spec.baremetalHosts[a].adopt: Metal3 cannot adopt", "spec.baremetalHosts[b].vendorData"],
    );
}

#[test]
fn a_server_that_is_named_must_serve_its_image_first() {
    let named = json!({"osImageDeploymentType": "SelfExtracting", "provisionServerName": "images"});
    let mut world = Metal::new(&named, &["x", "y"]);
    world.rest().unwrap();
    let part = "spec.provisionServerName: \"images\" is not an existing OpenStackProvisionServer";
    world.says("Ready", False, "InvalidInput", &[part]);
    let server = |status: &Value| -> Option<ProvisionServer> {
        serde_json::from_value(json!({
            "apiVersion": "baremetal.openstack.org/v1beta1", "kind": "OpenStackProvisionServer",
            "metadata": {"name": "images", "namespace": "ns"}, "spec": {}, "status": status,
        }))
        .unwrap()
    };
    world.server = server(&json!({}));
    world.rests_for("ImageNotServed", &["images does not serve its image yet"]);
    let told = world.host("a").unwrap();
    assert!(told.error.unwrap().contains("images does not serve its image yet"));
    assert!(!told.needs_human);
    world.server = server(&json!({"localImageUrl": "http://i/a.qcow2"}));
    world.rests_for("ImageNotServed", &["does not serve the checksum of its image yet"]);
    world.server = server(&json!({"localImageUrl": "http://i/a.qcow2",
        "localImageChecksumUrl": "http://i/a.sum", "osImageChecksumType": "sha256"}));
    world.gets_ready();
    let image =
        json!({"url": "http://i/a.qcow2", "checksum": "http://i/a.sum", "checksumType": "sha256"});
    assert_eq!(world.machine("x")["spec"]["image"], image);
}

#[test]
fn an_image_in_a_registry_needs_no_checksum() {
    let oci = "oci://images.example.org/edpm:1";
    let changes = json!({"osContainerImageUrl": oci, "osImageChecksum": null});
    let mut world = Metal::new(&changes, &["x", "y"]);
    world.gets_ready();
    assert_eq!(world.machine("x")["spec"]["image"], json!({"url": oci}));
}

#[test]
fn a_machine_that_is_reserved_keeps_its_secrets_while_inputs_are_wrong_and_goes_on() {
    let mut world = Metal::new(&json!({"baremetalHosts": {"b": null}}), &["x"]);
    for _ in 0..3 {
        world.pass().unwrap();
    }
    let keys = world.secrets.remove("keys").unwrap();
    world.pass().unwrap();
    world.pass().unwrap();
    let a = world.host("a").unwrap();
    assert_eq!((a.bmh_ref.as_str(), a.provisioning_state.as_str()), ("metal/x", "available"));
    assert!(
        a.error.unwrap().contains("spec.deploymentSSHSecret: \"keys\" is not an existing Secret")
    );
    assert_eq!(world.made.len(), 3);
    // It has all its inputs, so Metal3 does not wait.
    world.rest().unwrap();
    assert_eq!(world.host("a").unwrap().error, None);
    world.says("Ready", False, "SecretNotFound", &[]);
    world.secrets.insert("keys".into(), keys);
    world.gets_ready();
    assert_eq!(world.deployed["x"], 1);
}

/// A Secret of another set in the namespace of the machines.
fn of_others() -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "set-cloudinit-userdata-a",
        "namespace": "metal", "labels": {"openstackbaremetalset.openstack.org/uid": "other"}}})
}

#[test]
fn a_secret_of_another_set_of_the_same_name_is_told_and_not_overwritten() {
    let mut world = Metal::new(&json!({}), &["x", "y"]);
    world.made.insert("set-cloudinit-userdata-a".into(), of_others());
    world.rest().unwrap();
    let part = "metadata.name: Secret metal/set-cloudinit-userdata-a belongs to another";
    world.says(INPUT_READY, False, "InvalidInput", &[part]);
    assert!(world.host("a").unwrap().error.unwrap().contains(part));
    assert_eq!(world.host("b").unwrap().provisioning_state, "provisioned");
    assert_eq!(world.made["set-cloudinit-userdata-a"], of_others());
    world.made.remove("set-cloudinit-userdata-a");
    world.gets_ready();
}

#[test]
fn a_host_that_runs_goes_on_where_another_set_takes_its_secrets() {
    let mut world = Metal::provisioned();
    let n_before = world.log.len();
    world.made.insert("set-cloudinit-userdata-a".into(), of_others());
    world.rest().unwrap();
    let part = "metadata.name: Secret metal/set-cloudinit-userdata-a belongs to another";
    world.says("Ready", False, "InvalidInput", &[part]);
    let a = world.host("a").unwrap();
    assert_eq!((a.provisioning_state.as_str(), a.error), ("provisioned", None));
    assert_eq!(world.asked(n_before), [""; 0]);
}
