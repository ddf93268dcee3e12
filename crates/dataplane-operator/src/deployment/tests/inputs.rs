//! The inputs that a deployment waits for, and those that it passes to its runs.

use super::*;

/// Checks that without what `lose` takes away nothing begins, with this reason and these words, and
/// that it begins when that is back.
fn waits(whole: &World, reason: &str, words: &[&str], lose: impl FnOnce(&mut World)) {
    let mut world = whole.clone();
    lose(&mut world);
    assert_eq!(world.settle(), ["status"], "{reason}");
    assert_eq!(world.condition("Ready"), is("False", reason));
    world.says("Ready", words);
    assert_eq!(world.condition("DeploymentReady"), is("Unknown", "Init"));
    assert_eq!(world.of_set("compute", "NodeSetDeploymentReady"), "Unknown Init");
    world.seen = Observed { deployment: world.seen.deployment, ..whole.seen.clone() };
    world.succeeds();
}

#[test]
fn what_is_missing_before_it_begins_is_named_and_waited_for() {
    let is_second =
        |spec: Value| move |it: &mut World| it.seen.services.extend([service("second", &spec)]);
    let whole = World::new();
    waits(&whole, "NodeSetNotFound", &["compute", "create it"], |it| it.seen.node_sets.clear());
    waits(&whole, "NodeSetNotReady", &["compute"], |it| {
        it.edit("compute", |it| it.metadata.generation = Some(2));
    });
    waits(&whole, "ServiceNotFound", &["second", "spec.services", "compute"], |it| {
        it.seen.services.remove("second");
    });
    let words = ["second", "spec.playbook: \"../x\" is neither"];
    waits(&whole, "ServiceInvalid", &words, is_second(json!({ "playbook": "../x" })));
    let same = json!({ "playbook": "a.b.c", "edpmServiceType": "first" });
    let words = ["first and second", "spec.services", "compute"];
    waits(&whole, "ServiceTypeTwice", &words, is_second(same));
    waits(&whole, "NodeSetNotReady", &["compute"], |it| it.seen.inventories.clear());
    waits(&whole, "SshSecretNotFound", &["Secret key", "ssh-privatekey"], |it| {
        it.seen.sources.clear();
    });
}

#[test]
fn a_service_that_cannot_be_read_is_told_as_there_with_its_field_and_is_not_made_anew() {
    let why = "spec.playbookContents: cannot be read; expected a string";
    let words = ["OpenStackDataPlaneService second", "spec.services of", "compute", "exists", why];
    waits(&World::new(), "ServiceUnreadable", &words, |it| {
        it.seen.services.remove("second");
        it.seen.unreadable.insert("second".into(), why.into());
    });
    // An existing service with a default service's name may be the user's own.
    let mut world = World::new();
    world.edit("compute", |it| it.spec.services = vec!["install-os".into()]);
    world.seen.unreadable.insert("install-os".into(), why.into());
    assert_eq!(world.settle(), ["status"]);
    assert_eq!(world.condition("Ready"), is("False", "ServiceUnreadable"));
}

#[test]
fn a_node_set_that_cannot_be_read_is_told_with_its_field_and_a_deployment_waits_for_it() {
    let why = "spec.nodes.n0.ansible.ansiblePort: cannot be read; expected an integer";
    let words = ["OpenStackDataPlaneNodeSet compute", why];
    waits(&World::new(), "NodeSetUnreadable", &words, |it| {
        it.seen.node_sets.clear();
        it.seen.unreadable_sets.insert("compute".into(), why.into());
    });
    // An end that the node set has not recorded is kept until the node set can be parsed.
    let mut world = World::new();
    world.is_unheard = true;
    world.run_out(|_, _| "Ok");
    world.is_unheard = false;
    let unread = world.seen.node_sets.remove("compute").unwrap();
    world.seen.unreadable_sets.insert("compute".into(), why.into());
    world.settle();
    assert_eq!(world.seen.deployment.finalizers(), [RUNNING]);
    world.seen.unreadable_sets.clear();
    world.seen.node_sets.insert("compute".into(), unread);
    world.hear();
    world.settle();
    assert_eq!(world.seen.deployment.finalizers(), [""; 0]);
}

/// Sets a condition of the node set to false.
fn fails(world: &mut World, type_: &str, reason: &str, message: &str) {
    world.edit("compute", |it| {
        let status = it.status.as_mut().unwrap();
        let found = status.conditions.iter_mut().find(|it| it.type_ == type_).unwrap();
        found.status = api::conditions::ConditionStatus::False;
        (found.reason, found.message) = (reason.into(), message.into());
    });
}

#[test]
fn a_node_set_that_is_not_set_up_says_why() {
    let mut world = World::new();
    fails(&mut world, "InputReady", "SshSecretNotFound", "Secret key does not exist");
    fails(&mut world, "SetupReady", "InputMissing", "see InputReady");
    world.settle();
    assert_eq!(world.condition("SetupReady"), is("False", "NodeSetNotReady"));
    world.says("SetupReady", &["Secret key does not exist"]);
    fails(&mut world, "SetupReady", "DeploymentUnderWay", "it waits for d");
    world.settle();
    world.says("SetupReady", &["it waits for d"]);
    let now = Time(world.now);
    world.edit("compute", |it| it.metadata.deletion_timestamp = Some(now)).settle();
    world.says("SetupReady", &["being deleted"]);
}

#[test]
fn what_only_other_services_lack_is_not_waited_for() {
    let sets = || vec![node_set("compute", &["n0"], &["first", "second"])];
    let lacking = |spec: Value| {
        let mut world = World::with(sets(), spec);
        let sources = json!([{ "configMapRef": { "name": "gone" } }]);
        let spec = json!({ "playbook": "a.b.second", "dataSources": sources });
        world.seen.services.extend([service("second", &spec)]);
        fails(&mut world, "InputReady", "DataSourceNotFound", "ConfigMap gone does not exist");
        world
    };
    let mut world = lacking(json!({ "servicesOverride": ["first"] }));
    world.succeeds();
    let mut world = lacking(json!({}));
    world.settle();
    assert_eq!(world.condition("Ready"), is("False", "DataSourceNotFound"));
}

#[test]
fn what_a_later_service_lacks_does_not_hold_those_before_it() {
    let services = ["first", "second", "third"];
    let mut world = World::with(vec![node_set("compute", &["n0"], &services)], json!({})).at_rest();
    let missing = world.seen.services.remove("third").unwrap();
    assert!(world.finish().settle().contains(&"run second on n0".to_owned()));
    assert_eq!(world.condition("InputReady"), is("False", "ServiceNotFound"));
    assert_eq!(runs(&world.finish().settle()), [""; 0]);
    assert_eq!(world.condition("Ready"), is("False", "ServiceNotFound"));
    world.seen.services.insert("third".into(), missing);
    world.succeeds();
}

#[test]
fn a_service_for_all_waits_for_what_any_node_set_lacks() {
    let sets =
        vec![node_set("a", &["a0"], &["first", "everywhere"]), node_set("b", &["b0"], &["first"])];
    let mut world = World::with(sets, json!({})).at_rest();
    world.finish();
    for lacking in ["a", "b"] {
        let mut world = world.clone();
        world.seen.inventories.remove(lacking);
        let writes = world.settle();
        assert!(!writes.iter().any(|it| it.starts_with("run")), "{lacking}: {writes:?}");
        world.seen.inventories.insert(lacking.into());
        world.succeeds();
    }
}

fn snippet() -> SourceRef {
    SourceRef::config_map(NAMESPACE, "snippet")
}

/// Changes the content of the ConfigMap.
fn set_snippet(world: &mut World, version: &str) {
    world.seen.sources.insert(snippet(), digests(version, &["x.conf"]));
}

/// A cluster whose second service has a ConfigMap, and a Secret that is not there, as data sources.
fn with_sources() -> World {
    let mut world = World::new();
    let spec = json!({
        "playbook": "a.b.second",
        "edpmServiceType": "own",
        "dataSources": [
            { "configMapRef": { "name": "snippet" } },
            { "secretRef": { "name": "maybe", "optional": true } },
        ],
    });
    world.seen.services.extend([service("second", &spec)]);
    set_snippet(&mut world, "1");
    world
}

#[test]
fn a_missing_data_source_is_waited_for_unless_it_is_optional() {
    waits(&with_sources(), "DataSourceNotFound", &["ConfigMap snippet", "second"], |it| {
        it.seen.sources.remove(&snippet());
    });
}

#[test]
fn one_that_goes_while_it_runs_stops_only_what_needs_it() {
    let mut world = with_sources();
    world.settle();
    world.seen.sources.remove(&snippet());
    world.settle();
    world.finish().settle();
    assert_eq!(world.condition("Ready"), is("False", "DataSourceNotFound"));
    assert_eq!(world.of_set("compute", "ServiceFirstDeploymentReady"), "True Ready");
    set_snippet(&mut world, "1");
    world.succeeds();
}

#[test]
fn the_hashes_are_of_what_was_there_when_the_runs_were_made() {
    let mut world = with_sources();
    world.settle();
    assert_eq!(world.status().config_map_hashes["snippet"], "n1q");
    set_snippet(&mut world, "2");
    assert_eq!(world.settle(), [""; 0], "its service has not begun");
    world.finish().settle();
    assert_eq!(world.status().config_map_hashes["snippet"], "n2q");
    set_snippet(&mut world, "3");
    world.run_out(|_, _| "Ok");
    assert_eq!(world.status().config_map_hashes["snippet"], "n2q");
    let run = world.run("second");
    let mounts = run.spec.extra_mounts.iter().flat_map(|it| &it.mounts);
    let paths: Vec<&str> = mounts.map(|it| it.mount_path.as_str()).collect();
    assert!(paths.contains(&"/var/lib/openstack/configs/own/x.conf"), "{paths:?}");
}

#[test]
fn content_that_changes_between_the_runs_of_one_deployment_counts_as_nothing_deployed() {
    let mut world = with_sources();
    world.settle();
    world.finish().settle();
    world.finish_with(|_, host| if host == "n1" { "Failed" } else { "Ok" }).settle();
    assert_eq!(world.status().config_map_hashes["snippet"], "n1q");
    let mut same = world.clone();
    same.run_out(|_, _| "Ok");
    assert_eq!(same.status().config_map_hashes["snippet"], "n1q");
    set_snippet(&mut world, "2");
    world.succeeds();
    assert_eq!(world.status().config_map_hashes["snippet"], "mixed", "n0 has the first content");
    // The same applies to two services with one data source.
    let mut world = with_sources();
    let first = world.seen.services["second"].spec.data_sources.clone();
    let spec = json!({ "playbook": "a.b.first", "dataSources": first });
    world.seen.services.extend([service("first", &spec)]);
    world.settle();
    set_snippet(&mut world, "2");
    world.run_out(|_, _| "Ok");
    assert_eq!(world.status().config_map_hashes["snippet"], "mixed");
}

#[test]
fn what_the_deployment_says_reaches_its_runs() {
    let mut world = World::with(
        vec![node_set("compute", &["n0"], &["first", "second"])],
        json!({
            "servicesOverride": ["third"],
            "ansibleTags": "a b",
            "ansibleSkipTags": "c",
            "ansibleExtraVars": { "edpm_service_type": "mine", "n": 1 },
            "ansibleJobNodeSelector": { "zone": "x" },
            "ansibleEEEnvConfigMapName": "own-env",
            "preserveJobs": false,
        }),
    );
    world.edit("compute", |it| {
        it.spec.network_attachments = vec!["ctlplane".into()];
        it.spec.env =
            serde_json::from_value(json!([{ "name": "ANSIBLE_FORKS", "value": "9" }])).unwrap();
        let status = it.status.as_mut().unwrap();
        status.dns_cluster_addresses = vec!["192.0.2.53".into()];
        status.ctlplane_search_domain = Some("ctlplane.example.org".into());
    });
    world.seen.networks = Networks::Known(["ctlplane".to_owned()].into());
    world.settle();
    assert_eq!(world.seen.runs.len(), 1, "only what overrides is deployed");
    let spec = &world.run("third").spec;
    let cmd_line = "--limit 'edpm_run,localhost' --tags 'a b' --skip-tags 'c'";
    assert_eq!(spec.cmd_line.as_deref(), Some(cmd_line));
    assert_eq!(spec.extra_vars["edpm_services_override"], json!(["third"]));
    assert_eq!(spec.extra_vars["edpm_service_type"], "third");
    assert_eq!(spec.extra_vars["n"], 1);
    assert_eq!(spec.node_selector["zone"], "x");
    assert_eq!((spec.env_config_map_name.as_str(), spec.preserve_jobs), ("own-env", false));
    assert_eq!(spec.network_attachments, ["ctlplane"]);
    assert_eq!(spec.env[0].name, "ANSIBLE_FORKS");
    let dns = spec.dns_config.clone().unwrap();
    assert_eq!(dns.nameservers.unwrap(), ["192.0.2.53"]);
    world.run_out(|_, _| "Ok");
    assert_eq!(world.status().node_sets["compute"].services, ["third"]);
}

#[test]
fn a_service_brings_its_own_runner_image() {
    let mut world = World::new();
    let spec = json!({
        "playbook": "a.b.second", "openStackAnsibleEERunnerImage": "registry.example/runner:1",
    });
    world.seen.services.extend([service("second", &spec)]);
    world.settle();
    world.finish().settle();
    let image = |service: &str| world.run(service).spec.image.as_deref();
    assert_eq!((image("first"), image("second")), (None, Some("registry.example/runner:1")));
}

#[test]
fn a_default_service_that_is_listed_is_made() {
    let mut world = World::with(vec![node_set("compute", &["n0"], &["run-os"])], json!({}));
    let plan = world.plan();
    let names: Vec<&str> = plan.steps.iter().map(|it| it.target.name.as_str()).collect();
    assert_eq!(names, ["run-os"]);
    let spec = json!({ "playbook": "osp.edpm.run_os" });
    world.seen.services.extend([service("run-os", &spec)]);
    world.run_out(|_, _| "Ok");
}
