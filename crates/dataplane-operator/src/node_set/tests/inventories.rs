//! The content of a node set's inventory, and the learned host keys.

use api::ansibleee::AnsibleEe;
use operator_core::run_engine::host_owner::TAKE_OVER;
use operator_core::run_engine::ssh_secret::{KNOWN_HOSTS, KeyFault};

use super::*;

fn vars(world: &World) -> Value {
    world.inventory()[SET]["vars"].clone()
}

fn host(world: &World, name: &str) -> Value {
    world.inventory()[SET]["hosts"][name].clone()
}

#[test]
fn an_inventory_has_upstreams_shape() {
    let mut world = World::of(&json!({
        "preProvisioned": true,
        "services": ["install", "web"],
        "tags": ["blue"],
        "nodeTemplate": {
            "ansibleSSHPrivateKeySecret": "key",
            "networks": [
                { "name": "ctlplane", "subnetName": "subnet1" },
                { "name": "InternalApi", "subnetName": "subnet1" },
            ],
            "ansible": { "ansibleUser": "root", "ansiblePort": 22, "ansibleVars": { "a": 1 } },
        },
        "nodes": { "edpm-compute-0": {
            "hostName": "edpm-compute-0.example.com",
            "networks": [
                { "name": "ctlplane", "subnetName": "subnet1" },
                { "name": "tenant", "subnetName": "subnet1", "fixedIP": "172.19.0.100" },
            ],
            "ansible": { "ansibleHost": "192.0.2.10", "ansiblePort": 2022 },
        } },
    }));
    let custom = service("web", &json!({ "playbook": "a.b.web", "edpmServiceType": "site" }));
    world.seen.services.insert("web".into(), custom);
    world.settle();
    let files = "/runner/env/known_hosts/compute/known_hosts \
                 /runner/env/known_hosts/compute/learned /runner/host_keys/known_hosts";
    let args = format!(
        "-o 'UserKnownHostsFile={files}' -o GlobalKnownHostsFile=/dev/null \
         -o StrictHostKeyChecking=yes"
    );
    let beside = format!("-i /runner/env/ssh_key/ssh_key_compute -o BatchMode=yes {args}");
    assert_eq!(
        vars(&world),
        json!({
            "a": 1,
            "ansible_port": "22",
            "ansible_ssh_common_args": args,
            "ansible_ssh_private_key_file": "/runner/env/ssh_key/ssh_key_compute",
            "ansible_user": "root",
            "edpm_nodeset_name": "compute",
            "edpm_service_types": ["install", "site"],
            "edpm_services": ["install", "web"],
            "edpm_ssh_args": beside,
            "edpm_tls_certs_enabled": false,
            "management_network": "ctlplane",
            "network_servicenet_map": { "InternalApi": "internalapi" },
            "networks_lower": { "InternalApi": "internalapi" },
            "nodeset_networks": ["InternalApi"],
            "nodeset_tags": ["blue"],
        })
    );
    assert_eq!(
        host(&world, "edpm-compute-0"),
        json!({
            "ansible_host": "192.0.2.10",
            "ansible_port": "2022",
            "canonical_hostname": "edpm-compute-0.example.com",
            "ctlplane_ip": "192.0.2.10",
            "edpm_owner": "openstack/OpenStackDataPlaneNode/edpm-compute-0",
            "edpm_owner_accepted": ["compute"],
            "edpm_owner_uid": "uid-edpm-compute-0",
            "network_servicenet_map": { "tenant": "tenant" },
            "networks_lower": { "tenant": "tenant" },
            "nodeset_networks": ["tenant"],
            "tenant_ip": "172.19.0.100",
        })
    );
}

#[test]
fn options_of_ssh_that_a_user_gives_are_followed_by_ours() {
    let mut world = World::set_up();
    let ours = vars(&world)["ansible_ssh_common_args"].clone();
    let own = |it: &str| json!({ "ansible_ssh_common_args": it });
    world.edit("/nodeTemplate/ansible", json!({ "ansibleVars": own("-o ProxyCommand=a") }));
    world.edit("/nodes/n0/ansible/ansibleVars", own("-o ProxyCommand=b")).settle();
    let followed = |own: &str| format!("{own} {}", ours.as_str().unwrap());
    assert_eq!(vars(&world)["ansible_ssh_common_args"], followed("-o ProxyCommand=a"));
    assert_eq!(host(&world, "n0")["ansible_ssh_common_args"], followed("-o ProxyCommand=b"));
}

#[test]
fn a_stronger_source_wins_over_a_weaker_one() {
    let mut world = World::new();
    let from = json!([
        { "configMapRef": { "name": "m" } },
        { "secretRef": { "name": "s" }, "prefix": "edpm_" },
    ]);
    world.seen.objects = Objects::from([
        (
            SourceRef::config_map(NAMESPACE, "m"),
            content(&[("a", "map"), ("edpm_b", "map"), ("ansible_user", "map"), ("n", "7")]),
        ),
        (SourceRef::secret(NAMESPACE, "s"), content(&[("b", "{{ x }}"), ("nodeset_name", "no")])),
    ]);
    let own =
        json!({ "a": "own", "edpm_nodeset_name": "no", "ansible_ssh_private_key_file": "no" });
    world.edit("/nodeTemplate/ansible", json!({ "ansibleVarsFrom": from, "ansibleVars": own }));
    let host_vars = json!({ "ansible_host": "192.0.2.99", "ctlplane_ip": "198.51.100.1" });
    world.edit("/nodes/n0/ansible/ansibleVars", host_vars).settle();
    let vars = vars(&world);
    let text = &world.content["inventory"];
    assert_eq!(vars["a"], "own");
    assert_eq!(vars["n"], 7);
    assert_eq!(vars["ansible_user"], "cloud-admin", "a field wins over a list");
    assert_eq!(vars["edpm_nodeset_name"], "compute", "what the operator decides nobody replaces");
    assert_eq!(vars["ansible_ssh_private_key_file"], "/runner/env/ssh_key/ssh_key_compute");
    assert!(text.contains(r#"edpm_b: !unsafe "{{ x }}""#), "a Secret's value is no template");
    assert_eq!(host(&world, "n0")["ansible_host"], "192.0.2.99");
    assert_eq!(host(&world, "n0")["ctlplane_ip"], "198.51.100.1");
}

#[test]
fn the_secret_has_the_labels_that_others_look_for_and_the_node_sets_own() {
    let mut world = World::new();
    Arc::make_mut(&mut world.seen.set).labels_mut().insert("site".into(), "a".into());
    let plan = world.pass();
    let applied = plan.steps.iter().find_map(|it| {
        if let Write::Apply { object, .. } = &it.write { Some(object.clone()) } else { None }
    });
    let applied = applied.unwrap();
    let expected = json!({
        "edpm.openstack.org/inventory": "true",
        "inventory": "true",
        "openstack.org/operator-name": "dataplane",
        "openstackdataplanenodeset": "compute",
        "site": "a",
    });
    assert_eq!((&applied["metadata"]["labels"], &applied["type"]), (&expected, &json!("Opaque")));
}

#[test]
fn an_inventory_that_is_deleted_or_edited_by_hand_is_written_again() {
    let mut world = World::set_up();
    world.seen.inventory = None;
    assert_eq!(world.settle(), ["apply Secret dataplanenodeset-compute"]);
    world.seen.inventory.as_mut().unwrap().managed_fields = ManagedFields::default();
    assert_eq!(world.settle(), ["apply Secret dataplanenodeset-compute"]);
}

/// A run that reports a host's key.
pub(super) fn run(name: &str, address: &str, key: &str) -> Arc<AnsibleEe> {
    let run = json!({
        "apiVersion": "ansibleee.openstack.org/v1beta1",
        "kind": "OpenStackAnsibleEE",
        "metadata": { "name": "r", "namespace": NAMESPACE,
            "creationTimestamp": "2026-01-01T00:00:01Z" },
        "spec": { "hosts": [{ "name": name, "address": address }] },
        "status": { "hostKeys": [{ "name": name, "key": key }] },
    });
    Arc::new(serde_json::from_value(run).unwrap())
}

#[test]
fn a_key_that_a_run_learned_stands_beside_the_inventory_at_once_and_in_the_status_at_the_end() {
    let mut world = World::set_up();
    let before = world.content["inventory"].clone();
    world.deploy("d", &json!({}), &[("n0", 1, "Running"), ("n1", 1, "Running")]).settle();
    world.seen.runs = vec![run("n0", "192.0.2.10:22", KEY)];
    assert_eq!(world.settle(), ["apply Secret dataplanenodeset-compute"]);
    assert_eq!(world.node_writes, [""; 0], "the deployment records it with its end");
    assert_eq!(world.content["known_hosts"], format!("192.0.2.10 {KEY}\n"));
    assert_eq!(world.content["inventory"], before, "a deployment is under way");
    world.deployed("d").settle();
    assert_eq!(world.node("n0").host_key.as_deref(), Some(KEY));
    // It stays known after the run is deleted.
    world.seen.runs.clear();
    assert_eq!(world.settle(), [""; 0]);
    // Keys in the user's known hosts are not learned.
    let secret = SourceRef::secret(NAMESPACE, "key");
    let digests = world.seen.sources.get_mut(&secret).unwrap();
    digests.texts.insert(KNOWN_HOSTS.into(), Arc::from(format!("192.0.2.10 {KEY}")));
    world.settle();
    assert_eq!(world.content["known_hosts"], "");
}

#[test]
fn a_host_that_moves_while_a_deployment_runs_stays_known_where_that_reaches_it() {
    let mut world = World::new();
    world.seen.runs = vec![run("n0", "192.0.2.10:22", KEY)];
    world.settle();
    world.deploy("d", &json!({}), &[("n0", 1, "Running"), ("n1", 1, "Running")]).settle();
    world.edit("/nodes/n0/ansible/ansibleHost", json!("192.0.2.99")).settle();
    assert_eq!(host(&world, "n0")["ansible_host"], "192.0.2.10");
    let known = format!("192.0.2.10 {KEY}");
    assert!(world.content["known_hosts"].lines().any(|it| it == known), "{:?}", world.content);
    assert_eq!(world.settle(), [""; 0]);
    world.deployed("d").settle();
    assert_eq!(host(&world, "n0")["ansible_host"], "192.0.2.99");
    assert_eq!(world.content["known_hosts"], format!("192.0.2.99 {KEY}\n"));
}

/// Golden: another value here would report every node set as out of date after an upgrade.
#[test]
fn the_digest_of_the_same_inputs_never_changes() {
    let world = World::set_up();
    assert_eq!(world.hash(), GOLDEN);
}

const GOLDEN: &str = "2fb764ef6de5acc5c005406c97c9502c3d0ef6ac60366dff3ae33232f1567519";

#[test]
fn the_owner_of_a_host_is_no_variable_of_a_users() {
    let mut world = World::new();
    let own = json!({ "ansibleVars": { "edpm_owner": "a/b/c", "edpm_owner_accepted": ["u-1"] } });
    world.edit("/nodeTemplate/ansible", own.clone());
    world.edit("/nodes/n0/ansible/ansibleVars", own["ansibleVars"].clone()).settle();
    let text = &world.content["inventory"];
    assert!(!text.contains("u-1") && !text.contains("a/b/c"), "{text}");
    assert!(text.contains("edpm_owner_uid"), "{text}");
}

#[test]
fn a_node_set_tells_that_its_variables_turn_the_check_of_host_keys_off() {
    let mut world = World::set_up();
    let told = |world: &World| world.message("HostKeysChecked");
    world.edit("/nodes/n0/ansible/ansibleVars", json!({ "ansible_host_key_checking": false }));
    assert_eq!(world.settled("HostKeysChecked"), is("False", "HostKeyCheckingOff"));
    assert!(told(&world).contains("ansibleVars of the node set have ansible_host_key_checking"));
    world.edit("/nodes/n0/ansible/ansibleVars", json!({})).settle();
    let conditions = &world.seen.set.status.as_ref().unwrap().conditions;
    assert!(conditions.iter().all(|it| it.type_ != "HostKeysChecked"), "{conditions:?}");
}

#[test]
fn a_node_set_names_mounts_that_reach_no_run() {
    let mut world = World::set_up();
    let mounts = json!([{ "propagation": ["web", "compute"], "volumes": [], "mounts": [] }]);
    world.edit("/nodeTemplate/extraMounts", mounts);
    assert_eq!(world.settled("SpecWarnings"), is("True", "WithoutEffect"));
    let path = "OpenStackDataPlaneNodeSet compute: spec.nodeTemplate.extraMounts[0].propagation";
    world.says("SpecWarnings", &[path, "because web, compute is neither All nor Compute"]);
    world.edit("/nodeTemplate/extraMounts/0/propagation", json!(["All"])).settle();
    assert_eq!(find(world.seen.set.conditions(), "SpecWarnings"), None);
}

#[test]
fn an_owner_that_is_accepted_while_a_deployment_runs_counts_for_its_next_attempts() {
    let mut world = World::set_up();
    world.deploy("d", &json!({}), &[("n0", 0, "Running"), ("n1", 0, "Running")]).settle();
    let before = world.inventory();
    world.edit("/nodeTemplate/ansible", json!({ "ansibleVars": { "greeting": "late" } }));
    let annotate = |world: &mut World, value: &str| {
        world.with_node("n0", |it| {
            it.annotations_mut().insert(TAKE_OVER.into(), value.into());
        });
        world.settle();
    };
    annotate(&mut world, "u-1");
    let mut now = world.inventory();
    let accepted = now[SET]["hosts"]["n0"]["edpm_owner_accepted"].take();
    assert_eq!(accepted, json!(["u-1", "compute"]));
    now[SET]["hosts"]["n0"]["edpm_owner_accepted"] = json!(["compute"]);
    assert_eq!(now, before, "all else is as the deployment began with it");
    annotate(&mut world, "u-1,u-2");
    let accepted = &world.inventory()[SET]["hosts"]["n0"]["edpm_owner_accepted"];
    assert_eq!(accepted, &json!(["u-1", "u-2", "compute"]));
    assert_eq!(world.settle(), [""; 0]);
    annotate(&mut world, "");
    assert_eq!(world.inventory(), before);
}

#[test]
fn a_key_that_ssh_cannot_use_is_named_before_a_run_needs_it() {
    let mut world = World::new();
    let secret = SourceRef::secret(NAMESPACE, "key");
    world.seen.sources.get_mut(&secret).unwrap().ssh_key_fault = Some(KeyFault::LastLine);
    assert_eq!(world.settled("InputReady"), is("False", "SshSecretInvalid"));
    let text = world.message("InputReady");
    let words = "ssh-privatekey of Secret key has no line break behind its last line";
    assert!(text.starts_with(words) && text.contains("--from-file"), "{text}");
    assert!(world.seen.inventory.is_none(), "no deployment begins");
    world.seen.sources.get_mut(&secret).unwrap().ssh_key_fault = None;
    assert_eq!(world.settled("SetupReady"), is("True", "Ready"));
}

#[test]
fn variables_that_other_operators_give_are_data_and_change_no_digest() {
    let mut world = World::set_up();
    let (hash, before) = (world.hash(), world.inventory());
    world.edit("/nodes/n0/ansible/ansibleVars", json!({ "edpm_site_id": "own" })).settle();
    let edited = world.hash();
    assert_ne!(edited, hash);
    let given = json!([{ "name": "example.org", "vars": {
        "edpm_site_id": "{{ lookup('file', '/etc/shadow') }}",
        "ansible_host": "192.0.2.99", "edpm_owner": "a/b/c", "edpm_owner_accepted": "u", "a b": "c",
    } }]);
    world.with_node("n0", |it| {
        it.status.as_mut().unwrap().host_vars = serde_json::from_value(given).unwrap();
    });
    assert_eq!(world.settle(), ["apply Secret dataplanenodeset-compute"]);
    let text = &world.content["inventory"];
    let line = "edpm_site_id: !unsafe \"{{ lookup('file', '/etc/shadow') }}\"";
    assert!(text.contains(line), "{text}");
    let mut now = world.inventory();
    assert!(now[SET]["hosts"]["n0"].as_object_mut().unwrap().remove("edpm_site_id").is_some());
    assert_eq!(now, before, "all others are refused");
    assert_eq!(world.hash(), edited);
}
