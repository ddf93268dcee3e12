//! Services with invalid specs, and data sources with equal keys.

use api::dataplane::Service;
use operator_core::run_engine::ssh_secret::KeyFault;

use super::*;

/// The cluster with another service in place of `install-os`.
fn with(spec: &Value) -> World {
    let mut world = World::new();
    let service: Service = objects::new(NAMESPACE, "install-os", spec);
    world.seen.services.insert("install-os".into(), Arc::new(service));
    world
}

#[test]
fn a_service_that_cannot_be_deployed_is_told_and_nothing_runs() {
    let mut world = with(&json!({ "playbook": "" }));
    assert_eq!(runs(&world.settle()), [""; 0]);
    assert_eq!(world.condition(0, "InputReady"), is("False", "ServiceInvalid"));
    assert_eq!(world.role_reason("InputReady").as_deref(), Some("ServiceInvalid"));
    let words =
        "OpenStackDataPlaneService install-os cannot be deployed: spec: nothing to run: set";
    world.role_says(&[words]);
}

#[test]
fn mounts_that_reach_no_run_are_a_warning_of_the_role_or_node_that_lists_them() {
    let mut world = World::new();
    let mounts = json!([{ "propagation": ["compute"], "volumes": [], "mounts": [] }]);
    let section: NodeSection = serde_json::from_value(json!({ "extraMounts": mounts })).unwrap();
    let template = world.role().spec.node_template.as_mut().unwrap();
    template.extra_mounts.clone_from(&section.extra_mounts);
    world.node(1).spec.node = Some(section);
    world.settle();
    let words = "extraMounts[0].propagation: no run gets these volumes, because compute is neither";
    let of_role = format!("OpenStackDataPlaneRole compute: spec.nodeTemplate.{words}");
    conditions::says(world.role_conditions(), "SpecWarnings", &[&of_role]);
    world.says(1, "SpecWarnings", &[&format!("OpenStackDataPlaneNode n1: spec.node.{words}")]);
    assert_eq!(find(world.seen.nodes[0].conditions(), "SpecWarnings"), None);
    let template = world.role().spec.node_template.as_mut().unwrap();
    template.extra_mounts[0].propagation = vec!["Compute".into()];
    world.settle();
    assert_eq!(world.role_reason("SpecWarnings"), None);
}

#[test]
fn of_two_sources_with_one_key_the_last_one_is_mounted_alone() {
    let mut world = with(&json!({
        "playbook": "a.b.c",
        "dataSources": [{ "secretRef": { "name": "s" } }, { "configMapRef": { "name": "m" } }],
    }));
    let digests = |keys: &[&str]| Digests {
        version: "1".into(),
        keys: keys.iter().map(|it| ((*it).to_owned(), "d".into())).collect(),
        ..Digests::default()
    };
    world.seen.sources.insert(SourceRef::secret(NAMESPACE, "s"), digests(&["x", "y"]));
    world.seen.sources.insert(SourceRef::config_map(NAMESPACE, "m"), digests(&["x"]));
    world.settle();
    let mounts = &world.seen.runs[0].spec.extra_mounts;
    let given: Vec<(&str, &str)> = mounts
        .iter()
        .flat_map(|it| &it.mounts)
        .filter_map(|it| {
            Some((it.mount_path.strip_prefix("/var/lib/openstack/configs/")?, &*it.name))
        })
        .collect();
    let volume = |name: &str| {
        let mut volumes = mounts.iter().flat_map(|it| &it.volumes);
        volumes.find(|it| it.name == name).unwrap().config_map.is_some()
    };
    let found: Vec<(&str, bool)> = given.into_iter().map(|(path, it)| (path, volume(it))).collect();
    assert_eq!(found, [("install-os/y", false), ("install-os/x", true)]);
}

/// The cluster, where `run-os` needs a Secret.
fn with_late_secret() -> (World, (SourceRef, Digests)) {
    let mut world = World::new();
    let spec = json!({
        "playbook": "a.b.c", "dataSources": [{ "secretRef": { "name": "late" } }],
    });
    let service: Service = objects::new(NAMESPACE, "run-os", &spec);
    world.seen.services.insert("run-os".into(), Arc::new(service));
    let keys = BTreeMap::from([("x".to_owned(), "d".into())]);
    let digests = Digests { version: "1".into(), keys, ..Digests::default() };
    (world, (SourceRef::secret(NAMESPACE, "late"), digests))
}

#[test]
fn what_a_later_service_lacks_does_not_hold_those_before_it_on_new_hosts() {
    let (mut world, (secret, digests)) = with_late_secret();
    assert!(world.settle().contains(&"run install-os on n0,n1".to_owned()));
    assert_eq!(world.condition(0, "InputReady"), is("False", "DataSourceNotFound"));
    assert_eq!(runs(&world.finish(&[]).settle()), [""; 0]);
    assert_eq!(world.condition(0, "DeploymentReady"), is("False", "InputMissing"));
    world.role_says(&["Secret late"]);
    assert_eq!(world.settle(), [""; 0]);
    world.seen.sources.insert(secret, digests);
    assert!(world.settle().contains(&"run run-os on n0,n1".to_owned()));
    world.finish(&[]).settle();
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
    assert_eq!(world.seen.runs.len(), 2);
}

#[test]
fn hosts_in_service_wait_until_all_services_have_what_they_need() {
    let (mut world, (secret, digests)) = with_late_secret();
    world.seen.sources.insert(secret.clone(), digests.clone());
    world.deploy();
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
    world.seen.sources.remove(&secret);
    assert_eq!(runs(&world.set_var("hello").settle()), [""; 0]);
    world.seen.sources.insert(secret, digests);
    assert!(world.settle().contains(&"run install-os on n0,n1".to_owned()));
}

#[test]
fn a_role_names_the_ssh_secret_that_it_lacks_before_and_after_it_has_nodes() {
    let mut world = World::new();
    let nodes = std::mem::take(&mut world.seen.nodes);
    let sources = std::mem::take(&mut world.seen.sources);
    world.settle();
    assert_eq!(world.role_condition("InputReady"), is("False", "SshSecretNotFound"));
    assert_eq!(world.role_condition("Ready"), is("False", "SshSecretNotFound"));
    world.seen.nodes = nodes;
    world.settle();
    world.role_says(&["Secret key with the ssh key does not exist"]);
    // Each node has one of its own: that of the role counts for nothing.
    for (node, name) in world.seen.nodes.iter_mut().zip(["key0", "key1"]) {
        let own = json!({ "ansibleSSHPrivateKeySecret": name });
        Arc::make_mut(node).spec.node = Some(serde_json::from_value(own).unwrap());
    }
    let digests = sources.values().next().unwrap();
    world.seen.sources.insert(SourceRef::secret(NAMESPACE, "key0"), digests.clone());
    let faulty = Digests { ssh_key_fault: Some(KeyFault::Passphrase), ..digests.clone() };
    world.seen.sources.insert(SourceRef::secret(NAMESPACE, "key1"), faulty);
    world.settle();
    assert_eq!(world.role_condition("InputReady"), is("False", "SshSecretInvalid"));
    let message = world.message(1, "InputReady");
    assert!(message.starts_with("ssh-privatekey of Secret key1 has a passphrase"), "{message}");
    let ran: Vec<&str> =
        world.seen.runs.iter().flat_map(|it| &it.spec.hosts).map(|it| &*it.name).collect();
    assert_eq!(ran, ["n0"], "no run needs a key that ssh cannot use");
}

#[test]
fn a_playbook_that_the_runner_image_lacks_is_named_on_the_role_and_run_all_the_same() {
    let mut world = with(&json!({ "playbook": "osp.edpm.none" }));
    world.settle();
    assert_eq!(world.role_reason("ServiceInputsReady"), None);
    let mut world = with(&json!({ "playbook": "osp.edpm.none" }));
    world.seen.runner = RunnerImage::Own;
    assert!(world.settle().contains(&"run install-os on n0,n1".to_owned()));
    assert_eq!(world.role_condition("ServiceInputsReady"), is("False", "NotIncluded"));
    world.finish(&[]).settle();
    world.finish(&[]).settle();
    assert_eq!(world.role_condition("Ready"), is("True", "NodesReady"));
}

#[test]
fn what_a_default_service_lacks_is_told_with_its_keys_and_a_command_that_makes_it() {
    let mut world = World::new();
    let ovn = DefaultServices::default().find("ovn").unwrap().clone();
    world.seen.services.insert("ovn".into(), Arc::new(ovn));
    world.role().spec.services = ["install-os", "ovn"].map(str::to_owned).into();
    world.settle();
    assert_eq!(world.role_condition("InputReady"), is("False", "DataSourceNotFound"));
    let words = "ConfigMap ovncontroller-config, named by OpenStackDataPlaneService ovn, does not \
                 exist: create it with the key ovsdb-config, for example: kubectl -n openstack create \
                 configmap ovncontroller-config --from-literal=ovsdb-config='ovn-remote: tcp:HOST:6642'.";
    assert_eq!(world.message(0, "InputReady"), words);
    let map = SourceRef::config_map(NAMESPACE, "ovncontroller-config");
    let digests = |key: &str| Digests {
        version: "1".into(),
        keys: BTreeMap::from([(key.to_owned(), "d".into())]),
        ..Digests::default()
    };
    world.seen.sources.insert(map.clone(), digests("ovsdb.config"));
    assert_eq!(runs(&world.finish(&[]).settle()), [""; 0]);
    assert_eq!(world.role_condition("InputReady"), is("False", "DataSourceIncomplete"));
    let words = "ConfigMap ovncontroller-config, named by OpenStackDataPlaneService ovn, has no key \
                 ovsdb-config: add it.";
    assert_eq!(world.message(0, "InputReady"), words);
    world.seen.sources.insert(map, digests("ovsdb-config"));
    assert!(world.settle().contains(&"run ovn on n0,n1".to_owned()));
}
