//! Machines that are given back, or given up as they are.

use ConditionStatus::{False, True};

use super::*;

/// Asserts that a machine has nothing of the set.
fn has_nothing_of_the_set(machine: &Value) {
    let text = machine.to_string();
    for part in ["openstackbaremetalset", "osbms", "consumerRef", "cloudinit", "config-drive"] {
        assert!(!text.contains(part), "{part} in {text}");
    }
}

#[test]
fn a_host_that_is_taken_out_gives_its_machine_back_and_its_secrets_go_last() {
    let mut world = Metal::provisioned();
    world.edit(&json!({"baremetalHosts": {"a": null}}));
    world.pass().unwrap();
    let a = world.host("a").unwrap();
    assert!(a.annotated_for_deletion);
    // It is not taken while it is being erased.
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
    let mut world = Metal::new(
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
    let mut world = Metal::new(&json!({"deprovisionPolicy": "Retain"}), &["x", "y"]);
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
fn a_machine_that_is_to_be_retained_and_is_no_host_yet_is_taken_back() {
    for (n_works, state) in ["available", "provisioning", "provisioned"].iter().enumerate() {
        let of_one = json!({"deprovisionPolicy": "Retain", "baremetalHosts": {"b": null}});
        let mut world = Metal::new(&of_one, &["x"]);
        for _ in 0..3 {
            world.pass().unwrap();
        }
        for _ in 0..n_works {
            world.work();
            world.pass().unwrap();
        }
        assert_eq!(world.state("x"), *state);
        assert_eq!(world.machine("x")["spec"]["image"]["url"], IMAGE);
        world.edit(&json!({"baremetalHosts": {"a": null}}));
        world.pass().unwrap();
        let is_host = *state == "provisioned";
        if is_host {
            let part =
                "metal/x is no longer managed: it keeps running and answers at 192.0.2.10/24";
            world.says("Ready", False, "MachineRetained", &["Host a: ", part]);
        }
        world.gets_ready();
        has_nothing_of_the_set(world.machine("x"));
        let spec = &world.machine("x")["spec"];
        assert_eq!((&spec["online"], spec["image"].is_null()), (&json!(is_host), !is_host));
        assert_eq!(world.state("x"), if is_host { "provisioned" } else { "available" });
        assert_eq!(world.deployed.contains_key("x"), is_host);
    }
}

#[test]
fn a_machine_whose_image_is_gone_already_is_not_retained() {
    let mut world = Metal::new(&json!({"baremetalHosts": {"b": null}}), &["x"]);
    world.rest().unwrap();
    world.edit(&json!({"baremetalHosts": {"a": null}}));
    world.pass().unwrap();
    world.edit(&json!({"deprovisionPolicy": "Retain"}));
    world.pass().unwrap();
    assert_eq!(world.state("x"), "provisioned");
    assert_eq!(world.machine("x")["spec"]["consumerRef"]["name"], "set");
    world.rest().unwrap();
    has_nothing_of_the_set(world.machine("x"));
    assert_eq!(
        (world.state("x"), &world.machine("x")["spec"]["online"]),
        ("available", &json!(false))
    );
}

#[test]
fn a_machine_that_metal3_may_not_switch_off_stays_on() {
    let mut world = Metal::new(&json!({"baremetalHosts": {"b": null}}), &["x"]);
    world.change("x", &json!({"spec": {"online": true, "disablePowerOff": true}}));
    world.gets_ready();
    world.delete();
    world.rest().unwrap();
    assert!(world.set.is_none());
    assert_eq!(world.machine("x")["spec"], json!({"online": true, "disablePowerOff": true}));
}

#[test]
fn a_host_that_comes_back_while_its_machine_is_erased_waits_for_it() {
    let mut world = Metal::provisioned();
    let a = serde_json::to_value(&world.set.as_ref().unwrap().spec.baremetal_hosts["a"]).unwrap();
    world.edit(&json!({"baremetalHosts": {"a": null}}));
    world.pass().unwrap();
    world.edit(&json!({"baremetalHosts": {"a": a}}));
    world.pass().unwrap();
    world.says("Ready", False, "MachineInProgress", &["Host a: BareMetalHost metal/x"]);
    world.gets_ready();
    assert_eq!(world.deployed["x"], 2);
}

#[test]
fn an_image_that_somebody_else_wrote_too_is_told_when_the_machine_goes_back() {
    let mut world = Metal::new(&json!({"baremetalHosts": {"b": null}}), &["x"]);
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
