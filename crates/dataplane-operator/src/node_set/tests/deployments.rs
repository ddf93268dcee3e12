//! What deployments do to a node set's status.

use super::*;

#[test]
fn a_new_node_set_gets_its_inventory_and_waits_for_a_deployment() {
    let mut world = World::new();
    let expected = ["hold NodeSet compute", "apply Secret dataplanenodeset-compute"];
    assert_eq!(world.settle(), [&expected[..], &["status NodeSet compute"]].concat());
    assert_eq!(world.seen.set.finalizers(), [INVENTORY_FINALIZER]);
    world.holds([("SetupReady", "True", "Ready"), ("InputReady", "True", "InputComplete")]);
    world.holds([("Ready", "False", "NotDeployed"), ("UpToDate", "False", "NeverDeployed")]);
    world.says("Ready", &["lists compute in spec.nodeSets"]);
    let status = world.seen.set.status.clone().unwrap();
    assert_eq!((status.nodes, status.ready_nodes), (2, 0));
    assert_eq!(status.inventory_secret_name.as_deref(), Some(SECRET));
    assert_eq!(world.states(), [HostState::Undeployed; 2]);
}

#[test]
fn hosts_are_deployed_one_by_one_and_the_node_set_is_ready_after_the_last() {
    let mut world = World::set_up();
    world.deploy("d", &json!({}), &[("n0", 2, "Succeeded"), ("n1", 1, "Running")]);
    assert_eq!(world.settle(), ["status NodeSet compute"]);
    assert_eq!(world.states(), [HostState::Deployed, HostState::Deploying]);
    world.holds([("Ready", "False", "Deploying"), ("UpToDate", "False", "Deploying")]);
    world.says("Ready", &["OpenStackDataPlaneDeployment d is under way"]);
    // The deployment itself reports the progress within a host's service sequence.
    world.deploy("d", &json!({}), &[("n0", 2, "Succeeded"), ("n1", 1, "Pending")]);
    assert_eq!(world.settle(), [""; 0]);
    assert_eq!(world.deployed("d").settle(), ["status NodeSet compute"]);
    assert_eq!(world.states(), [HostState::Deployed; 2]);
    world.holds([("Ready", "True", "Ready"), ("UpToDate", "True", "UpToDate")]);
    let status = world.seen.set.status.clone().unwrap();
    assert_eq!(status.deployed_config_hash, status.config_hash);
    assert_eq!(status.deployed_inputs, status.inputs);
    assert_eq!(world.node("n0").deployed_config_hash.as_deref(), Some(&world.hash()[..8]));
    assert_eq!(status.config_map_hashes["web-config"], "c1");
    assert_eq!((status.ready_nodes, status.settled_deployments), (2, vec!["d".to_owned()]));
}

#[test]
fn a_node_set_of_many_deployments_has_a_status_that_can_be_written() {
    let mut world = World::set_up();
    let many = |it: &str| -> serde_json::Map<String, Value> {
        let summary = json!({ "failedHostList": vec![it; 200] });
        (0..60).map(|n| (format!("run-{n}"), summary.clone())).collect()
    };
    for name in ["d0", "d1", "d2", "d3", "d4"] {
        world.deployed(name);
        let mut object = serde_json::to_value(&**world.seen.deployments.last().unwrap()).unwrap();
        object["status"]["ansibleExecutionSummaries"] = json!(many("a-host-of-the-set"));
        *world.seen.deployments.last_mut().unwrap() =
            Arc::new(serde_json::from_value(object).unwrap());
    }
    world.settle();
    let status = serde_json::to_value(&world.seen.set.status).unwrap();
    let told = |field: &str| -> Vec<String> {
        status[field].as_object().unwrap().keys().cloned().collect()
    };
    // They have the same age, so that the names decide which one is newer.
    assert_eq!(told("deploymentExecutionSummaries"), ["d4"]);
    assert_eq!(told("deploymentStatuses"), ["d0", "d1", "d2", "d3", "d4"]);
    assert!(status.to_string().len() < 500_000, "{}", status.to_string().len());
}

#[test]
fn what_was_deployed_stays_known_when_its_deployment_is_deleted() {
    let mut world = deployed();
    world.seen.deployments.clear();
    assert_eq!(world.settle(), ["status NodeSet compute"]);
    world.holds([("Ready", "True", "Ready"), ("UpToDate", "True", "UpToDate")]);
    assert_eq!(world.seen.set.status.as_ref().unwrap().settled_deployments, [""; 0]);
}

#[test]
fn a_deployment_counts_once_whatever_older_ones_are_still_there() {
    let mut world = World::set_up();
    world.deploy("a", &json!({}), &[("n0", 2, "Succeeded"), ("n1", 1, "Failed")]);
    world.end("a", false, ["c0", "s0"]).settle();
    assert_eq!(world.states(), [HostState::Deployed, HostState::Failed]);
    world.deployed("b").settle();
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
    // The newer one is deleted; the older failure does not reappear.
    world.seen.deployments.retain(|it| it.name_any() == "a");
    world.settle();
    assert_eq!(world.states(), [HostState::Deployed; 2]);
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
}

#[test]
fn deployments_of_a_node_set_that_had_its_name_before_count_for_nobody() {
    let mut world = World::set_up();
    world.deployed("ended");
    world.deploy("open", &json!({}), &[("n0", 1, "Running"), ("n1", 1, "Running")]);
    let set = Arc::make_mut(&mut world.seen.set);
    set.metadata.uid = Some("another".into());
    set.status = None;
    // Its nodes went with it.
    for name in ["n0", "n1"] {
        world.with_node(name, |it| it.status = None);
    }
    world.settle();
    assert_eq!(world.states(), [HostState::Undeployed; 2]);
    assert_eq!(world.condition("Ready"), is("False", "NotDeployed"));
    let status = world.seen.set.status.clone().unwrap();
    assert!(status.settled_deployments.is_empty() && status.deployment_statuses.is_empty());
    // One that began with it counts.
    world.deployed("own").settle();
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
}

#[test]
fn a_failed_host_is_named_with_its_cause_and_the_next_step() {
    let mut world = World::set_up();
    world.deploy("d", &json!({}), &[("n0", 2, "Succeeded"), ("n1", 1, "Failed")]).settle();
    assert_eq!(world.condition("Ready"), is("False", "Deploying"), "it may be tried again");
    world.end("d", false, ["c1", "s1"]).settle();
    world.holds([("DeploymentReady", "False", "TaskFailed"), ("Stalled", "True", "TaskFailed")]);
    let text = world.message("Ready");
    assert!(text.contains("n1: TaskFailed in service web: no disk"), "{text}");
    assert!(text.ends_with("create another OpenStackDataPlaneDeployment."), "{text}");
    let status = world.seen.set.status.clone().unwrap();
    assert_eq!(status.failures[0].deployment, "d");
    assert_eq!(status.deployed_config_hash, None);
    assert_eq!(world.node("n0").deployed_config_hash.as_deref(), Some(&world.hash()[..8]));
}

#[test]
fn a_deployment_that_goes_while_it_runs_leaves_its_hosts_failed() {
    let mut world = World::set_up();
    world.deploy("d", &json!({}), &[("n0", 2, "Succeeded"), ("n1", 1, "Running")]).settle();
    world.seen.deployments.clear();
    world.settle();
    assert_eq!(world.states(), [HostState::Deployed, HostState::Failed]);
    assert_eq!(world.condition("DeploymentReady"), is("False", "DeploymentGone"));
    world.says("Ready", &["The deployment that was at n1 has gone"]);
}

#[test]
fn an_edit_of_the_spec_is_named_and_takes_no_readiness() {
    let mut world = deployed();
    world.edit("/nodeTemplate/ansible", json!({ "ansibleVars": { "greeting": "hello" } }));
    let expected = ["apply Secret dataplanenodeset-compute", "status NodeSet compute"];
    assert_eq!(world.settle(), expected);
    world.holds([("Ready", "True", "Ready"), ("UpToDate", "False", "InputsChanged")]);
    world.says("UpToDate", &["nodeTemplate.ansible.ansibleVars.greeting."]);
    world.edit("/nodeTemplate/ansible", json!({})).settle();
    assert_eq!(world.condition("UpToDate"), is("True", "UpToDate"), "it is what is deployed again");
    world.edit("/nodes/n1/networks", json!([{ "name": "ctlplane", "subnetName": "subnet1" }]));
    world.settle();
    world.says("UpToDate", &["nodes.n1."]);
}

#[test]
fn a_service_and_its_objects_that_change_are_named() {
    let mut world = deployed();
    let map = SourceRef::config_map(NAMESPACE, "web-config");
    world.seen.sources.insert(map.clone(), digests("c2", &["a.conf"]));
    assert_eq!(world.settled("UpToDate"), is("False", "InputsChanged"));
    world.says("UpToDate", &["ConfigMap web-config of service web."]);
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
    world.seen.sources.insert(map, digests("c1", &["a.conf"]));
    // What was deployed of a Secret that is gone is not known any more.
    world.seen.sources.remove(&SourceRef::secret(NAMESPACE, "web-secret"));
    assert_eq!(world.settled("UpToDate"), is("True", "UpToDate"), "it is optional");
    let required = json!([{ "secretRef": { "name": "web-secret" } }]);
    let web = world.seen.services["web"].clone();
    let mut spec = serde_json::to_value(&web.spec).unwrap();
    spec["dataSources"] = required;
    let required = Service { spec: serde_json::from_value(spec).unwrap(), ..(*web).clone() };
    world.seen.services.insert("web".into(), Arc::new(required));
    world.settle();
    world.says("UpToDate", &["Secret web-secret of service web"]);
    world.seen.services.insert("web".into(), web);
    world.seen.sources.insert(SourceRef::secret(NAMESPACE, "web-secret"), digests("s1", &[]));
    world.settle();
    world.says("UpToDate", &["Secret web-secret of service web."]);
    world.deployed("e").settle();
    assert_eq!(world.condition("UpToDate"), is("True", "UpToDate"));
    let other = service("install", &json!({ "playbook": "a.b.other" }));
    world.seen.services.insert("install".into(), other);
    world.settle();
    world.says("UpToDate", &[": service install."]);
}

#[test]
fn a_deployment_of_some_services_settles_their_objects_and_not_the_spec() {
    let mut world = deployed();
    let map = SourceRef::config_map(NAMESPACE, "web-config");
    world.seen.sources.insert(map, digests("c2", &["a.conf"]));
    let some = json!({ "servicesOverride": ["web"] });
    let hosts = [("n0", 1, "Succeeded"), ("n1", 1, "Succeeded")];
    world.deploy("e", &some, &hosts).end("e", true, ["c2", "s1"]).settle();
    assert_eq!(world.condition("UpToDate"), is("True", "UpToDate"));
    world.edit("/tags", json!(["x"])).settle();
    world.deploy("f", &some, &hosts).end("f", true, ["c2", "s1"]).settle();
    world.holds([("Ready", "True", "Ready"), ("UpToDate", "False", "InputsChanged")]);
    world.says("UpToDate", &[": tags."]);
}

#[test]
fn tags_make_no_host_what_it_is_to_be_and_a_limit_only_those_that_it_leaves() {
    let mut world = World::set_up();
    let all = [("n0", 2, "Succeeded"), ("n1", 2, "Succeeded")];
    world.deploy("t", &json!({ "ansibleTags": "x" }), &all);
    world.end("t", true, ["c1", "s1"]).settle();
    assert_eq!(world.states(), [HostState::Undeployed; 2]);
    for (name, host) in [("l0", "n0"), ("l1", "n1")] {
        assert_ne!(world.condition("UpToDate"), is("True", "UpToDate"));
        world.deploy(name, &json!({ "ansibleLimit": host }), &[(host, 2, "Succeeded")]);
        world.end(name, true, ["c1", "s1"]).settle();
    }
    assert_eq!(world.states(), [HostState::Deployed; 2]);
    let status = world.seen.set.status.clone().unwrap();
    assert_eq!(status.deployed_config_hash, status.config_hash);
    assert_eq!(status.secret_hashes.len(), 0, "a limited deployment says nothing of all hosts");
}

#[test]
fn while_a_deployment_runs_the_inventory_stays_and_edits_wait_for_another_one() {
    let mut world = World::set_up();
    let (before, hash) = (world.content["inventory"].clone(), world.hash());
    world.deploy("d", &json!({}), &[("n0", 1, "Running"), ("n1", 1, "Running")]).settle();
    assert_eq!(world.edit("/tags", json!(["x"])).settle(), ["status NodeSet compute"]);
    assert_eq!((&world.content["inventory"], world.hash()), (&before, hash.clone()));
    assert_eq!(world.condition("UpToDate"), is("False", "Deploying"));
    let text = world.message("UpToDate");
    assert!(text.contains("OpenStackDataPlaneDeployment d is under way"), "{text}");
    assert!(text.ends_with(": tags."), "{text}");
    // It is written again if another field manager changes it.
    world.seen.inventory = None;
    world.settle();
    assert_ne!(world.content["inventory"], before);
    world.deployed("d").settle();
    assert_ne!(world.hash(), hash);
    let status = world.seen.set.status.clone().unwrap();
    assert_eq!(status.deployed_config_hash, Some(hash));
    assert_eq!(world.condition("UpToDate"), is("False", "InputsChanged"));
    world.says("UpToDate", &[": tags."]);
}

#[test]
fn a_deployment_that_cannot_be_read_is_told_with_its_field_and_what_it_did_stays_known() {
    let mut world = deployed();
    world.deploy("e", &json!({}), &[("n0", 2, "Succeeded"), ("n1", 1, "Running")]).settle();
    let before = world.seen.set.status.clone().unwrap();
    assert_eq!(before.hosts[1].state, HostState::Deploying);
    let readable = world.seen.deployments.clone();
    world.garble("d", true);
    world.garble("e", false);
    world.edit("/tags", json!(["x"]));
    let inventory = world.content["inventory"].clone();
    assert_eq!(world.settled("DeploymentReady"), is("False", "DeploymentUnreadable"));
    let words = "OpenStackDataPlaneDeployment d exists and cannot be read: spec.";
    world.says("DeploymentReady", &[words]);
    let now = world.seen.set.status.clone().unwrap();
    assert_eq!(now.hosts, before.hosts);
    assert_eq!(now.settled_deployments, before.settled_deployments);
    assert_eq!(now.deployment_statuses, before.deployment_statuses);
    assert_eq!(world.content["inventory"], inventory, "its runs go on with it");
    world.seen.deployments = readable;
    world.seen.unreadable_deployments.clear();
    world.deployed("e").settle();
    assert_eq!(world.condition("DeploymentReady"), is("True", "Deployed"));
}

#[test]
fn what_later_runs_of_a_deployment_take_anew_is_not_said_to_wait() {
    let mut world = World::set_up();
    world.deploy("d", &json!({}), &[("n0", 1, "Running"), ("n1", 1, "Running")]);
    world.edit("/env", json!([{ "name": "ANSIBLE_FORKS", "value": "9" }]));
    world.edit("/nodeTemplate/extraMounts", json!([{ "volumes": [], "mounts": [] }])).settle();
    let text = world.message("UpToDate");
    assert_eq!(text, "OpenStackDataPlaneDeployment d is under way.");
    world.deployed("d").settle();
    world.says("UpToDate", &[": env, nodeTemplate.extraMounts."]);
}

#[test]
fn the_newest_deployments_that_have_ended_are_told_with_conditions_and_summaries() {
    let mut world = World::set_up();
    for idx in 0..12 {
        let name = format!("d{idx:02}");
        world.deployed(&name);
        let deployment = Arc::make_mut(world.seen.deployments.last_mut().unwrap());
        let status = deployment.status.as_mut().unwrap();
        let condition = stated("NodeSetDeploymentReady", "True", "Ready", &name);
        status.node_set_conditions.insert(SET.into(), vec![condition]);
        let summary = serde_json::from_value(json!({ "totalHosts": idx })).unwrap();
        status.ansible_execution_summaries.insert("run".into(), summary);
    }
    world.deploy("open", &json!({}), &[("n0", 1, "Running")]).settle();
    let status = world.seen.set.status.clone().unwrap();
    let told: Vec<String> = status.deployment_statuses.keys().cloned().collect();
    let newest: Vec<String> = (2..12).map(|it| format!("d{it:02}")).collect();
    assert_eq!(told, newest, "the ten newest, and of one that runs its own status tells");
    assert_eq!(status.deployment_statuses["d07"][0].message, "d07");
    assert_eq!(status.deployment_execution_summaries["d07"]["run"].total_hosts, Some(7));
    assert_eq!(status.deployment_execution_summaries.len(), 10);
}

#[test]
fn a_host_that_is_added_has_nothing_deployed_and_one_that_goes_is_forgotten() {
    let mut world = deployed();
    world.edit("/nodes/n2", json!({ "ansible": { "ansibleHost": "192.0.2.12" } })).settle();
    assert_eq!(world.condition("Ready"), is("False", "NotDeployed"));
    assert!(world.message("Ready").starts_with("1 of 3 hosts"), "{}", world.message("Ready"));
    let mut nodes = json!(world.seen.set.spec.nodes);
    nodes.as_object_mut().unwrap().retain(|it, _| it == "n0");
    world.edit("/nodes", nodes).settle();
    assert_eq!(world.states(), [HostState::Deployed]);
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
}

#[test]
fn whoever_waits_for_the_account_of_upstreams_runs_goes_on() {
    let world = World::set_up();
    assert_eq!(world.condition("ServiceAccountReady"), is("True", "NotRequired"));
}

#[test]
fn a_node_set_without_hosts_waits_for_a_deployment_too() {
    let mut world = World::new();
    world.edit("/nodes", json!({})).settle();
    assert_eq!(world.condition("Ready"), is("False", "NotDeployed"));
    let message = world.message("Ready");
    assert!(
        message.starts_with("Nothing is deployed") && message.contains("no hosts"),
        "{message}"
    );
    world.deploy("d", &json!({}), &[]).end("d", true, ["c1", "s1"]).settle();
    world.holds([("Ready", "True", "Ready"), ("UpToDate", "True", "UpToDate")]);
    world.says("DeploymentReady", &["no hosts"]);
}

#[test]
fn a_node_set_goes_after_its_inventory_and_after_whoever_deploys_it() {
    let mut world = World::set_up();
    world.deploy("d", &json!({}), &[("n0", 1, "Running")]);
    let deletion = serde_json::from_value(json!("2026-01-02T00:00:00Z")).unwrap();
    Arc::make_mut(&mut world.seen.set).metadata.deletion_timestamp = Some(deletion);
    // A run may still need the inventory.
    assert_eq!(world.settle(), ["status NodeSet compute"]);
    assert_eq!(world.condition("SetupReady"), is("False", "DeletionWaits"));
    let message = world.message("SetupReady");
    assert!(message.ends_with("openstackdataplanedeployment/d"), "{message}");
    world.end("d", false, ["c1", "s1"]);
    Arc::make_mut(&mut world.seen.set).finalizers_mut().push("somebody/else".into());
    world.settle();
    world.says("SetupReady", &["finalizers remove them: somebody/else."]);
    Arc::make_mut(&mut world.seen.set).finalizers_mut().pop();
    world.writes.clear();
    world.pass();
    let expected = ["delete Secret dataplanenodeset-compute", "release NodeSet compute"];
    assert_eq!(world.writes, expected);
}

#[test]
fn a_host_is_reached_at_the_address_of_its_deployment_and_at_no_other() {
    let mut world = World::new();
    let reached = |world: &World| -> Vec<bool> {
        world.claim().hosts.iter().map(|it| it.is_reached).collect()
    };
    world.settle();
    assert_eq!(reached(&world), [false, false]);
    world.deployed("d").settle();
    assert_eq!(reached(&world), [true, true]);
    let set = Arc::make_mut(&mut world.seen.set);
    let node = set.spec.nodes.get_mut("n0").unwrap().ansible.get_or_insert_default();
    node.ansible_host = Some("192.0.2.99".into());
    assert_eq!(reached(&world), [false, true]);
    world.settle();
    assert_eq!(reached(&world), [false, true], "it was earned elsewhere");
    let only = json!({ "servicesOverride": ["web"] });
    world.deploy("e", &only, &[("n0", 1, "Succeeded"), ("n1", 1, "Succeeded")]);
    world.end("e", true, ["c1", "s1"]).settle();
    assert_eq!(reached(&world), [true, true]);
}

#[test]
fn a_host_that_waits_when_a_deployment_is_over_is_half_changed_and_has_not_failed() {
    let mut world = deployed();
    world.deploy("e", &json!({}), &[("n0", 1, "Failed"), ("n1", 1, "Pending")]);
    world.end("e", false, ["c0", "s0"]).settle();
    assert_eq!(world.states(), [HostState::Failed, HostState::Undeployed]);
    world.says("Ready", &["failed on 1 of 2 hosts", "left 1 of 2 hosts half changed"]);
    assert!(world.node("n1").deployed_config_hash.is_some(), "it was in service once");
}
