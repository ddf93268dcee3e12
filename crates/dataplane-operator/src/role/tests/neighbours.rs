//! Objects beside a group's own: conditions of other operators, hosts that join, objects of equal
//! names, and fields that users leave out or add.

use api::dataplane::NodeSet;

use super::*;
use crate::host::conflicts::Claim;
use crate::role::inventory_shards::{self, node_inventory_name};

/// The data of an inventory object that is to be written.
fn inventory(world: &World, name: &str) -> Value {
    let plan = recorded(decide::decide(&world.seen, None, world.now));
    let step = plan.steps.into_iter().find(|it| it.target.name == name).unwrap();
    let Write::Apply { object, .. } = step.write else { panic!("{name} is not applied") };
    object["data"].clone()
}

#[test]
fn an_annotation_of_another_operator_is_no_input() {
    let mut world = World::deployed();
    world.role().annotations_mut().insert("example.org/cell".into(), "cell1".into());
    world.node(0).annotations_mut().insert("example.org/cell".into(), "cell2".into());
    assert_eq!(world.settle(), [""; 0]);
}

#[test]
fn a_condition_of_another_operator_counts_for_nothing_and_stays() {
    let mut world = World::deployed();
    let foreign = fault("example.org/Service", Severity::Error, "Broken", "x");
    world.node(0).status.as_mut().unwrap().conditions.push(foreign.clone());
    world.role().status.as_mut().unwrap().conditions.push(foreign);
    assert_eq!(world.settle(), [""; 0]);
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
}

#[test]
fn a_config_map_and_a_secret_of_one_name_are_two_inputs() {
    let digests = |content: &str| Digests {
        version: content.to_owned(),
        keys: BTreeMap::from([("k".to_owned(), content.into())]),
        ..Digests::default()
    };
    let mut world = World::new();
    let service = Arc::make_mut(world.seen.services.get_mut("run-os").unwrap());
    service.spec.config_maps = vec!["x".into()];
    service.spec.secrets = vec!["x".into()];
    for source in [SourceRef::config_map(NAMESPACE, "x"), SourceRef::secret(NAMESPACE, "x")] {
        world.seen.sources.insert(source, digests("a"));
    }
    world.deploy();
    world.set_deploy(false);
    world.seen.sources.insert(SourceRef::secret(NAMESPACE, "x"), digests("b"));
    world.settle();
    let status = world.seen.nodes[0].status.as_ref().unwrap();
    let told = &find(&status.conditions, "UpToDate").unwrap().message;
    assert_eq!(told, "Changed since the last deployment: Secret x.");
}

#[test]
fn a_role_and_a_node_of_one_name_keep_apart() {
    let [of_role, of_node] = [NodeGroup::Role("x".into()), NodeGroup::Node("x".into())];
    assert_ne!(of_role.key(NAMESPACE), of_node.key(NAMESPACE));
    assert_ne!(node_inventory_name("x"), inventory_shards::name("x", 0));
    let mut world = World::new();
    world.seen.nodes = vec![node("compute", "192.0.2.10")];
    world = world.held();
    let writes = world.settle();
    for name in ["dataplanenode-compute", "dataplanerole-compute"] {
        assert!(writes.contains(&format!("apply ConfigMap {name}")), "{writes:?}");
    }
}

#[test]
fn a_host_without_an_address_is_in_no_inventory_and_hinders_no_other() {
    let mut world = World::new().held();
    let spec = json!({ "role": "compute" });
    world.seen.nodes[1] = Arc::new(objects::new(NAMESPACE, "n1", &spec));
    let of_role = inventory(&world, "dataplanerole-compute");
    let writes = world.settle();
    assert!(!of_role["inventory"].as_str().unwrap().contains("n1"), "{of_role}");
    assert!(!writes.contains(&"apply ConfigMap dataplanenode-n1".to_owned()), "{writes:?}");
    assert_eq!(runs(&writes), ["run install-os on n0"]);
    assert_eq!(world.condition(1, "Ready"), is("False", "HostAddressMissing"));
}

#[test]
fn a_host_that_names_no_key_gets_no_run() {
    let mut world = World::new();
    let template = world.template();
    template.ansible_ssh_private_key_secret = None;
    let own = json!({ "ansibleSSHPrivateKeySecret": "key" });
    world.node(0).spec.node = Some(serde_json::from_value(own).unwrap());
    assert_eq!(runs(&world.settle()), ["run install-os on n0"]);
    assert_eq!(world.condition(1, "Ready"), is("False", "SshSecretNotNamed"));
}

#[test]
fn a_host_without_a_role_and_services_is_never_taken_for_deployed() {
    let mut world = World::new();
    world.seen.group = NodeGroup::Node("n0".into());
    world.seen.role = None;
    world.seen.nodes.truncate(1);
    world.node(0).spec.role = None;
    assert_eq!(runs(&world.settle()), [""; 0]);
    assert_eq!(world.condition(0, "Ready").0, "False");
    assert_eq!(world.condition(0, "UpToDate"), is("False", "NeverDeployed"));
}

#[test]
fn the_mounts_of_a_human_reach_every_run_once() {
    let mounts = json!([{
        "volumes": [{ "name": "ceph", "secret": { "secretName": "ceph" } }],
        "mounts": [{ "name": "ceph", "mountPath": "/etc/ceph" }],
    }]);
    let mut world = World::new();
    let template = world.template();
    template.extra_mounts = serde_json::from_value(mounts).unwrap();
    world.deploy();
    assert_eq!(world.seen.runs.len(), 2);
    for run in &world.seen.runs {
        let mounts = run.spec.extra_mounts.iter().flat_map(|it| &it.mounts);
        assert_eq!(mounts.filter(|it| it.mount_path == "/etc/ceph").count(), 1);
    }
}

#[test]
fn an_inventory_has_numbers_as_numbers_nothing_empty_and_each_hosts_own_nic_template() {
    let mut world = World::new().held();
    let own = json!({ "networkConfig": { "template": "own" } });
    world.node(1).spec.node = Some(serde_json::from_value(own).unwrap());
    let of_role = inventory(&world, "dataplanerole-compute");
    let text = of_role["inventory"].as_str().unwrap();
    assert!(text.contains("ansible_port: 22\n"), "{text}");
    assert!(text.contains("ansible_user: \"{{ ") && !text.contains(": \"\""), "{text}");
    assert_eq!(of_role["network-n1"], "own");
    assert_eq!(text.matches("/runner/network/network-n1").count(), 1, "{text}");
    assert_eq!(inventory(&world, "dataplanenode-n1")["network"], "own");
}

#[test]
fn a_default_service_that_a_human_changed_stays_as_it_is() {
    let mut world = World::new();
    let service = Arc::make_mut(world.seen.services.get_mut("run-os").unwrap());
    service.spec.playbook = Some("mine.yml".into());
    let plan = recorded(decide::decide(&world.seen, None, world.now));
    assert!(!plan.steps.iter().any(|it| it.target.kind.kind == "OpenStackDataPlaneService"));
    world.deploy();
    let last = world.seen.runs.last().unwrap();
    assert_eq!(last.spec.playbook.as_deref(), Some("mine.yml"));
}

#[test]
fn a_second_node_at_the_address_of_a_first_one_gets_no_run_until_it_is_corrected() {
    let mut world = World::new();
    let created = |it: &str| serde_json::from_value(json!(it)).unwrap();
    world.node(0).metadata.creation_timestamp = created("2026-01-01T00:00:00Z");
    let second = world.node(1);
    second.metadata.creation_timestamp = created("2026-01-02T00:00:00Z");
    second.spec.ansible_host = Some("::ffff:192.0.2.10".into());
    world.seen.claims = world.seen.nodes.iter().map(|it| Claim::of_node(it, None)).collect();
    world.deploy();
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
    assert_eq!(world.condition(1, "InputReady"), is("False", "HostTaken"));
    world.says(1, "InputReady", &["belongs to OpenStackDataPlaneNode n0, which is older"]);
    assert!(world.seen.runs.iter().flat_map(|it| &it.spec.hosts).all(|it| it.name == "n0"));
    world.node(1).spec.ansible_host = Some("192.0.2.11".into());
    world.seen.claims = world.seen.nodes.iter().map(|it| Claim::of_node(it, None)).collect();
    world.deploy();
    assert_eq!(world.condition(1, "Ready"), is("True", "Ready"));
}

#[test]
fn a_host_of_another_owner_is_told_with_the_command_that_takes_it_over() {
    let mut world = World::new().at_rest();
    world.finish(&[("n1", "Failed")]);
    let run = Arc::make_mut(world.seen.runs.last_mut().unwrap());
    let failure = json!([{ "host": "n1", "path": "/opt/edpm/plays/owner-check.yaml:80",
        "task": "The host must be the owner's",
        "message": "the host belongs to OpenStackDataPlaneNode old (UID u-7)" }]);
    run.status.as_mut().unwrap().failures = serde_json::from_value(failure).unwrap();
    assert_eq!(world.settled(1, "DeploymentReady"), is("False", "HostNotOwned"));
    let text = world.message(1, "DeploymentReady");
    assert!(text.contains("Host n1 was not touched"), "{text}");
    assert!(text.contains("belongs to OpenStackDataPlaneNode old (UID u-7)"), "{text}");
    let command = "openstackdataplanenode/n1 dataplane.openstack.org/take-over=u-7";
    assert!(text.ends_with(command), "{text}");
}

#[test]
fn an_inventory_names_the_owner_of_each_host_and_whom_it_takes_over_from() {
    let mut world = World::new().held();
    let node = world.node(1);
    node.metadata.uid = Some("u-1".into());
    let accepted = ("dataplane.openstack.org/take-over".to_owned(), "u-7, $(id)".to_owned());
    node.metadata.annotations.get_or_insert_default().extend([accepted]);
    for name in ["dataplanerole-compute", "dataplanenode-n1"] {
        let content = inventory(&world, name);
        let text = content["inventory"].as_str().unwrap();
        let owner = format!("edpm_owner: !unsafe \"{NAMESPACE}/OpenStackDataPlaneNode/n1\"");
        assert!(text.contains(&owner), "{text}");
        assert!(text.contains("edpm_owner_uid: !unsafe \"u-1\""), "{text}");
        assert!(text.contains("u-7") && !text.contains("$(id)"), "{text}");
    }
}

#[test]
fn a_host_that_an_older_node_set_has_is_refused_by_name_and_the_others_go_on() {
    let mut world = World::new();
    let spec = json!({
        "nodeTemplate": { "ansibleSSHPrivateKeySecret": "key" },
        "nodes": { "x": { "ansible": { "ansibleHost": "192.0.2.10" } } },
    });
    let mut set: NodeSet = objects::new(NAMESPACE, "set", &spec);
    let created = |it: &str| serde_json::from_value(json!(it)).unwrap();
    set.metadata.creation_timestamp = created("2026-01-01T00:00:00Z");
    world.node(0).metadata.creation_timestamp = created("2026-01-02T00:00:00Z");
    world.seen.claims = vec![Claim::of_node_set(&set)];
    assert_eq!(world.settled(0, "InputReady"), is("False", "HostTaken"));
    let words = [
        "Host n0 of OpenStackDataPlaneNode n0 belongs to",
        "OpenStackDataPlaneNodeSet set, which is older",
    ];
    world.says(0, "InputReady", &words);
    let touched: Vec<&str> =
        world.seen.runs.iter().flat_map(|it| &it.spec.hosts).map(|it| it.name.as_str()).collect();
    assert_eq!(touched, ["n1"]);
}
