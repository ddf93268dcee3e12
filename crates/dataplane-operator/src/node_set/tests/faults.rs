//! Faults of a node set are reported with object, cause and next step.

use operator_core::run_engine::ssh_secret::KeyFault;

use super::*;
use crate::annotations::ACCEPT_SHARED;
use crate::collection::RunnerImage;
use crate::default_services::DefaultServices;

/// Returns the reason of `InputReady`, and whether there is an inventory.
fn told(world: &mut World) -> (String, bool) {
    world.settle();
    (world.condition("InputReady").1, world.seen.inventory.is_some())
}

fn edited(pointer: &str, value: Value) -> World {
    let mut world = World::new();
    world.edit(pointer, value);
    world
}

#[test]
fn a_condition_of_another_operator_counts_for_nothing_and_stays() {
    let mut world = World::set_up();
    let before = world.condition("Ready");
    let foreign = fault("example.org/Service", Severity::Error, "Broken", "x");
    Arc::make_mut(&mut world.seen.set).status.as_mut().unwrap().conditions.push(foreign);
    assert_eq!(world.settle(), [""; 0]);
    assert_eq!(world.condition("Ready"), before);
}

#[test]
fn what_is_wrong_with_the_spec_is_told_and_nothing_is_written_for_deployments() {
    let host = |it: Value| json!({ "n0": it });
    let at = |it: &str| json!({ "ansible": { "ansibleHost": it } });
    let volume = json!([{ "volumes": [{ "name": "a.b" }], "mounts": [] }]);
    let ansible = |vars: Value| {
        host(json!({ "ansible": { "ansibleHost": "192.0.2.1", "ansibleVars": vars } }))
    };
    for (pointer, value, reason, words) in [
        ("/nodes", host(json!({})), "HostAddressMissing", "spec.nodes[n0].ansible.ansibleHost"),
        ("/nodes", host(at("n0.example.org")), "HostAddressMissing", "no valid IP address"),
        (
            "/nodes",
            json!({ "N_0": at("192.0.2.1") }),
            "HostNameInvalid",
            "spec.nodes[N_0].hostName",
        ),
        (
            "/nodes",
            json!({ "a": at("192.0.2.1"), "b": at("192.0.2.1") }),
            "HostTwice",
            "[a] and spec.nodes[b]",
        ),
        (
            "/nodes",
            ansible(json!({ "ansible_host": "{{ x }}" })),
            "HostAddressInvalid",
            "ansible_host",
        ),
        ("/nodes", ansible(json!({ "ansible_port": "x" })), "HostAddressInvalid", "ansible_port"),
        ("/nodeTemplate/extraMounts", volume, "VolumeNameInvalid", "\"a.b\""),
        ("/nodeTemplate/ansibleSSHPrivateKeySecret", json!("no"), "SshSecretNotFound", "Secret no"),
        ("/networkAttachments", json!(["net"]), "NetworkAttachmentsNotServed", "Multus"),
    ] {
        let mut world = edited(pointer, value);
        world.seen.networks = Networks::NotServed;
        let (found, has_inventory) = told(&mut world);
        assert_eq!(found, reason, "{pointer}");
        world.says("InputReady", &[words]);
        // Runs need the networks, and the inventory does not.
        let of_runs = reason == "NetworkAttachmentsNotServed";
        assert_eq!(has_inventory, of_runs, "{reason}");
        assert_eq!(world.condition("SetupReady").0 == "True", of_runs);
        assert_eq!(world.condition("Ready").1, reason);
    }
}

#[test]
fn an_inventory_that_no_object_holds_is_refused_with_the_way_out() {
    let text = "x".repeat(1_200_000);
    let mut world = edited("/nodeTemplate/ansible", json!({ "ansibleVars": { "large": text } }));
    assert_eq!(told(&mut world), ("InventoryTooLarge".to_owned(), false));
    world.says("InputReady", &["divide its nodes"]);
}

#[test]
fn variables_that_are_missing_or_no_text_leave_the_inventory_as_it_was() {
    let entry = json!([{ "configMapRef": { "name": "vars" } }]);
    let mut world = World::set_up();
    let hash = world.hash();
    world.edit("/nodeTemplate/ansible", json!({ "ansibleVarsFrom": entry }));
    assert_eq!(told(&mut world).0, "VariablesNotFound");
    assert_eq!(world.hash(), hash);
    let map = SourceRef::config_map(NAMESPACE, "vars");
    world.seen.objects.insert(map.clone(), content(&[("a", "1")]));
    assert_eq!(told(&mut world), ("InputComplete".to_owned(), true));
    assert_ne!(world.hash(), hash);
    world.seen.objects.insert(map, content(&[("ansible_host", "192.0.2.9")]));
    assert_eq!(told(&mut world).0, "HostAddressInvalid");
}

#[test]
fn an_object_of_a_service_that_is_missing_or_has_a_key_that_is_no_file_name_is_told() {
    let mut world = World::new();
    let map = SourceRef::config_map(NAMESPACE, "web-config");
    world.seen.sources.insert(map.clone(), digests("c1", &["a/b"]));
    assert_eq!(of_services(&mut world), is("False", "DataSourceInvalid"));
    world.says("ServiceInputsReady", &["key \"a/b\" of ConfigMap web-config"]);
    // If two objects have the same key, the last one is mounted, which the service's status
    // reports.
    world.seen.sources.insert(map.clone(), digests("c1", &["password"]));
    let secret = SourceRef::secret(NAMESPACE, "web-secret");
    world.seen.sources.get_mut(&secret).unwrap().ssh_key_fault = Some(KeyFault::Passphrase);
    assert_eq!(of_services(&mut world), is("False", "DataSourceInvalid"));
    let words = "ssh-privatekey of Secret web-secret, named by OpenStackDataPlaneService web, has a \
                 passphrase";
    world.says("ServiceInputsReady", &[words]);
    world.seen.sources.get_mut(&secret).unwrap().ssh_key_fault = None;
    assert_eq!(of_services(&mut world), is("True", "ServiceInputsComplete"));
    world.seen.sources.remove(&map);
    world.seen.sources.remove(&SourceRef::secret(NAMESPACE, "web-secret"));
    assert_eq!(of_services(&mut world), is("False", "DataSourceNotFound"));
    assert!(!world.message("ServiceInputsReady").contains("web-secret"), "it is optional");
}

/// Returns status and reason of `ServiceInputsReady`, after which the node set itself lacks nothing.
fn of_services(world: &mut World) -> (String, String) {
    assert_eq!(told(world), ("InputComplete".to_owned(), true));
    world.condition("ServiceInputsReady")
}

#[test]
fn what_a_default_service_lacks_is_told_with_its_keys_and_a_command_that_makes_it() {
    let mut world = World::new();
    world.edit("/services", json!(["install", "ovn"]));
    let ovn = DefaultServices::default().find("ovn").unwrap().clone();
    world.seen.services.insert("ovn".into(), Arc::new(ovn));
    assert_eq!(of_services(&mut world), is("False", "DataSourceNotFound"));
    world.says("ServiceInputsReady", &[
        "ConfigMap ovncontroller-config, named by OpenStackDataPlaneService ovn, does not exist: \
         create it with the key ovsdb-config, for example: kubectl -n openstack create configmap \
         ovncontroller-config --from-literal=ovsdb-config='ovn-remote: tcp:HOST:6642'.",
        "Secret combined-ca-bundle, named by OpenStackDataPlaneService ovn, does not exist: create it \
         with the key tls-ca-bundle.pem, for example: kubectl -n openstack create secret generic",
    ]);
}

#[test]
fn what_services_lack_is_named_before_the_first_run_and_takes_nothing_from_what_was_asked_for() {
    let mut world = World::new();
    world.edit("/services", json!(["install", "web", "gone"]));
    let lacks = json!({ "playbook": "osp.edpm.none", "caCerts": "authorities" });
    world.seen.services.insert("web".into(), service("web", &lacks));
    assert_eq!(of_services(&mut world), is("False", "DataSourceNotFound"));
    world.seen.runner = RunnerImage::Own;
    world.settle();
    world.says("ServiceInputsReady", &[
        "Secret authorities, named by OpenStackDataPlaneService web, does not exist",
        "OpenStackDataPlaneService gone, listed in spec.services",
        "OpenStackDataPlaneService web runs playbook osp.edpm.none, which the installation's runner",
    ]);
    let status = world.seen.set.status.as_ref().unwrap();
    let found = find(&status.conditions, "ServiceInputsReady").unwrap();
    assert_eq!(found.severity, Some(Severity::Warning));
    // A deployment of the one service that lacks nothing.
    world.deploy(
        "d",
        &json!({ "servicesOverride": ["install"] }),
        &[("n0", 1, "Succeeded"), ("n1", 1, "Succeeded")],
    );
    world.end("d", true, ["c1", "s1"]).settle();
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
    assert_eq!(world.condition("ServiceInputsReady").0, "False");
    let authorities = SourceRef::secret(NAMESPACE, "authorities");
    world.seen.sources.insert(authorities, digests("a1", &["tls-ca-bundle.pem"]));
    world.edit("/services", json!(["install", "web"]));
    assert_eq!(of_services(&mut world), is("False", "NotIncluded"));
    let image = json!({ "playbook": "osp.edpm.none", "openStackAnsibleEERunnerImage": "mine" });
    world.seen.services.insert("web".into(), service("web", &image));
    assert_eq!(of_services(&mut world), is("True", "ServiceInputsComplete"));
}

#[test]
fn two_services_of_one_type_are_named_and_one_that_is_listed_twice_is_none_of_them() {
    let mut world = World::new();
    let own = json!({ "playbook": "a.b.c", "edpmServiceType": "install" });
    world.seen.services.insert("own".into(), service("own", &own));
    world.edit("/services", json!(["install", "own", "install"]));
    assert_eq!(of_services(&mut world), is("False", "ServiceTypeTwice"));
    let words = "OpenStackDataPlaneServices install and own, listed in spec.services of";
    world.says("ServiceInputsReady", &[words, "edpmServiceType install"]);
    world.edit("/services", json!(["install", "install"]));
    assert_eq!(of_services(&mut world), is("True", "ServiceInputsComplete"));
    // A type is no name.
    world.edit("/services", json!(["install", "web"]));
    let other = json!({ "playbook": "a.b.c", "edpmServiceType": "other" });
    world.seen.services.insert("install".into(), service("install", &other));
    let named = json!({ "playbook": "a.b.c", "edpmServiceType": "install" });
    world.seen.services.insert("web".into(), service("web", &named));
    assert_eq!(of_services(&mut world), is("True", "ServiceInputsComplete"));
}

#[test]
fn a_host_that_an_older_object_has_is_refused_by_name_until_that_gives_it_up() {
    let mut world = World::new();
    let template = json!({ "ansibleSSHPrivateKeySecret": "key" });
    let spec = json!({ "nodeTemplate": template, "nodes": { "n1": {} } });
    let mut other: NodeSet = object("other", &spec);
    world.seen.neighbours = vec![Claim::of_node_set(&other)];
    assert_eq!(world.settled("InputReady").1, "InputComplete", "of one age, the name decides");
    let old = serde_json::from_value(json!("2025-01-01T00:00:00Z")).unwrap();
    other.metadata.creation_timestamp = Some(old);
    world.seen.neighbours = vec![Claim::of_node_set(&other)];
    assert_eq!(world.settled("Ready"), is("False", "HostTaken"));
    let words = [
        "Host n1 of OpenStackDataPlaneNodeSet compute belongs to",
        "OpenStackDataPlaneNodeSet other, which is older",
    ];
    world.says("InputReady", &words);
    world.seen.neighbours.clear();
    assert_eq!(world.settled("InputReady").1, "InputComplete");
}

#[test]
fn what_goes_missing_takes_nothing_from_hosts_that_are_deployed() {
    let mut world = deployed();
    world.seen.sources.remove(&SourceRef::secret(NAMESPACE, "key"));
    assert_eq!(told(&mut world).0, "SshSecretNotFound");
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
}

#[test]
fn an_edit_whose_inputs_are_missing_is_not_ready_and_what_goes_missing_later_undoes_nothing() {
    let mut world = deployed();
    let sources = std::mem::take(&mut world.seen.sources);
    assert_eq!(world.settled("Ready").0, "True");
    world.edit("/tags", json!(["a"]));
    for _ in 0..2 {
        assert_eq!(world.settled("Ready"), ("False".into(), "SshSecretNotFound".into()));
    }
    world.seen.sources = sources;
    assert_eq!(world.settled("Ready").0, "True");
}

#[test]
fn hosts_of_a_new_node_set_with_one_key_wait_until_that_is_accepted_and_in_service_they_go_on() {
    let mut world = World::set_up();
    for name in ["n0", "n1"] {
        world.with_node(name, |it| it.status.as_mut().unwrap().host_key = Some(KEY.into()));
    }
    assert_eq!(world.settled("Ready"), is("False", "HostKeyShared"));
    let text = world.message("InputReady");
    let words = ["n1 shows", "host n0 of OpenStackDataPlaneNodeSet compute", "at two addresses"];
    assert!(words.iter().all(|it| text.contains(it)), "{text}");
    let (_, print) = text.rsplit_once("accept-shared-host-key=").unwrap();
    assert!(text.contains(" openstackdataplanenode/n1 dataplane"), "{text}");
    let print = print.to_owned();
    world.with_node("n1", |it| drop(it.annotations_mut().insert(ACCEPT_SHARED.into(), print)));
    assert_eq!(world.settled("InputReady"), is("True", "InputComplete"));

    world.deployed("d").with_node("n1", |it| it.annotations_mut().clear()).settle();
    world.holds([("Ready", "True", "Ready"), ("InputReady", "True", "InputComplete")]);
    assert_eq!(world.condition("HostKeyUnique"), is("False", "HostKeyShared"));
}
