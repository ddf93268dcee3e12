//! Hashes as earlier releases wrote them into statuses. Other values here would redeploy hosts, or
//! report them as out of date, after an upgrade.

use std::collections::BTreeMap;

use api::dataplane::{Node, Role, Service};
use operator_core::hash;
use operator_core::keyed::texts;
use serde_json::{Value, json};
use testkit::objects::new;

use super::{HostInputs, Inputs, of_host, of_service, run_hash};
use crate::host::effective_spec::EffectiveSpec;
use crate::host::vars::Objects;

/// A role with every input field that the previous release had.
fn role() -> Value {
    let volume = json!({ "name": "ca", "secret": { "secretName": "ca", "defaultMode": 256 } });
    json!({
        "dataPlane": "openstack-edpm",
        "preProvisioned": true,
        "services": ["a"],
        "env": [{ "name": "PROXY", "value": "http://192.0.2.9" }],
        "networkAttachments": ["ctlplane"],
        "nodeTemplate": {
            "ansiblePort": 2222,
            "ansibleUser": "cloud-admin",
            "ansibleSSHPrivateKeySecret": "key",
            "managementNetwork": "ctlplane",
            "ansibleVars": {
                "dns": ["192.0.2.53", 7, 1.5, true, null],
                "greeting": "{{ hello }}",
                "nested": { "b": "ä\n", "a": {} },
            },
            "networks": [
                { "name": "ctlplane", "subnetName": "subnet1", "defaultRoute": true },
                { "name": "storage", "subnetName": "subnet1", "fixedIP": "192.0.2.8" },
            ],
            "networkConfig": { "template": "network_config: []\n" },
            "extraMounts": [{
                "extraVolType": "Ceph",
                "propagation": ["All"],
                "volumes": [volume],
                "mounts": [{ "name": "ca", "mountPath": "/ca", "readOnly": true }],
            }],
        },
    })
}

fn inputs(role: &Value, node: &Value, instance: Option<&str>) -> (EffectiveSpec, Inputs) {
    let role: Role = new("openstack", "compute", role);
    let node: Node = new("openstack", "n0", node);
    let host = EffectiveSpec::of(None, Some(&role), &node, &Objects::new());
    let inputs = of_host(&host, instance);
    (host, inputs)
}

/// Returns the first characters of the hash of a service, and of all of its inputs by name.
fn golden(host: &Inputs, service: &Value) -> [String; 2] {
    let service: Service = new("openstack", "a", service);
    let keys = BTreeMap::from([("key", "digest")]);
    let sources = BTreeMap::from([("ConfigMap x".to_owned(), hash::short(&keys).into())]);
    let of_service = of_service(&service, "a", &sources);
    let all = hash::short(&(texts(host), texts(&of_service)));
    [HostInputs::of(host).hash_with(&of_service).text(), all].map(|it| it[..10].to_owned())
}

#[test]
fn the_hash_of_a_host_with_every_field_is_the_one_of_the_release_before() {
    let node = json!({
        "role": "compute",
        "ansibleHost": "192.0.2.7",
        "hostName": "n0.example.org",
        "node": { "ansibleVars": { "greeting": "hello", "rack": "7" } },
    });
    let (_, host) = inputs(&role(), &node, Some("node+abc"));
    let playbook = json!({ "playbook": "osp.edpm.a", "edpmServiceType": "b" });
    assert_eq!(golden(&host, &playbook), ["78f96dd9dc", "b497a34be0"]);
    for (service, expected) in [
        (json!({ "playbookContents": "- hosts: all\n" }), "02ff227a5a"),
        (json!({ "play": "- hosts: all\n" }), "02ff227a5a"),
        (json!({ "role": "osp.edpm.a" }), "1dce48bec5"),
    ] {
        assert_eq!(golden(&host, &service)[0], expected, "{service}");
    }
}

#[test]
fn the_hash_of_a_host_with_hardly_anything_is_the_one_of_the_release_before() {
    let (_, host) = inputs(&json!({}), &json!({ "ansibleHost": "192.0.2.7" }), None);
    assert_eq!(golden(&host, &json!({ "playbook": "a" })), ["b2b364cc7b", "2a87c470a2"]);
}

#[test]
fn the_hash_of_a_host_whose_own_fields_say_more_than_its_roles_variables_is_still_the_same() {
    let mut role = role();
    let vars = [
        ("ansible_user", json!("a")),
        ("ansible_ssh_private_key_file", json!("/a")),
        ("edpm_network_config_template", json!("a")),
        ("management_network", json!("a")),
    ];
    for (name, value) in vars {
        role["nodeTemplate"]["ansibleVars"][name] = value;
    }
    let node = json!({
        "ansibleHost": "192.0.2.7",
        "node": {
            "ansibleUser": "own",
            "ansibleSSHPrivateKeySecret": "own",
            "managementNetwork": "own",
            "networkConfig": { "template": "own" },
            "ansibleVars": { "management_network": "b" },
        },
    });
    let (_, host) = inputs(&role, &node, None);
    assert_eq!(golden(&host, &json!({ "playbook": "a" })), ["ae3afcfd47", "2d6bd5cf45"]);
}

#[test]
fn the_hash_of_a_partial_run_is_the_one_of_the_release_before() {
    let mut role = role();
    role["deployStrategy"] = json!({
        "ansibleTags": "a", "ansibleSkipTags": "b", "ansibleLimit": "n0", "batchSize": 7,
    });
    let (host, _) = inputs(&role, &json!({ "deployStrategy": { "ansibleTags": "c" } }), None);
    assert_eq!(run_hash(&"full".into(), &host.options).text()[..10], *"4575c8d668");
}
