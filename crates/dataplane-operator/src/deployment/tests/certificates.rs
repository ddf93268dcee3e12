//! The certificates and CA bundles that runs mount, and what is recorded of them.

use api::dataplane::node_set::NodeSetCertificates;

use super::*;

/// Where the runs of services of one type mount their CA bundles and certificates.
const PATHS: [&str; 2] =
    ["/var/lib/openstack/cacerts/kind", "/var/lib/openstack/certs/kind/default"];

/// A node set whose service agent has certificates, and whose service certs mounts them.
fn certified(name: &str, hosts: &[&str]) -> Arc<NodeSet> {
    let mut set = node_set(name, hosts, &["certs", "agent"]);
    let certificates = NodeSetCertificates {
        service: "agent".into(),
        key: "default".into(),
        directory: "kind".into(),
        secrets: vec![format!("{name}-agent-default-certs-0")],
        waiting_hosts: 0,
    };
    Arc::make_mut(&mut set).status.as_mut().unwrap().certificates = vec![certificates];
    set
}

fn world(node_sets: Vec<Arc<NodeSet>>, spec: Value, is_global: bool) -> World {
    let names: Vec<String> = node_sets.iter().map(|it| it.name_any()).collect();
    let mut world = World::with(node_sets, spec);
    let certs = json!({ "playbook": "a.b.certs", "addCertMounts": true,
        "deployOnAllNodeSets": is_global });
    let agent = json!({ "playbook": "a.b.agent", "edpmServiceType": "kind", "caCerts": "ca",
        "tlsCerts": { "default": { "contents": ["dnsnames"] } } });
    world.seen.services.extend([service("certs", &certs), service("agent", &agent)]);
    let bundles = names.iter().map(|it| format!("{it}-agent-default-certs-0"));
    for secret in bundles.chain(["ca".to_owned()]) {
        world.seen.sources.insert(SourceRef::secret(NAMESPACE, &secret), digests("1", &["x"]));
    }
    world
}

/// The certificates and CA bundles that a run mounts: path → Secrets.
fn mounted(run: &AnsibleEe) -> BTreeMap<String, Vec<String>> {
    let volumes: Vec<_> = run.spec.extra_mounts.iter().flat_map(|it| &it.volumes).collect();
    let mounts = run.spec.extra_mounts.iter().flat_map(|it| &it.mounts);
    let secrets = |name: &str| -> Vec<String> {
        let volume = volumes.iter().find(|it| it.name == name).unwrap();
        let whole = volume.secret.iter().filter_map(|it| it.secret_name.clone());
        let parts = volume.projected.iter().flat_map(|it| it.sources.iter().flatten());
        whole.chain(parts.filter_map(|it| Some(it.secret.as_ref()?.name.clone()))).collect()
    };
    let is_tls = |it: &str| it.contains("/cacerts/") || it.contains("/certs/");
    let of_tls = mounts.filter(|it| is_tls(&it.mount_path));
    of_tls.map(|it| (it.mount_path.clone(), secrets(&it.name))).collect()
}

#[test]
fn a_service_that_brings_certificates_mounts_those_of_all_services_and_their_ca_bundles() {
    let mut world = world(vec![certified("compute", &["n0", "n1"])], json!({}), false);
    world.run_out(|_, _| "Ok");
    let of = |secret: &str| vec![secret.to_owned()];
    let own = (PATHS[0].to_owned(), of("ca"));
    let certificates = (PATHS[1].to_owned(), of("compute-agent-default-certs-0"));
    assert_eq!(mounted(world.run("certs")), BTreeMap::from([own.clone(), certificates]));
    // Another service has its own CA bundle alone.
    assert_eq!(mounted(world.run("agent")), BTreeMap::from([own]));
    assert_eq!(world.status().secret_hashes["compute-agent-default-certs-0"], "n1q");
}

#[test]
fn a_service_that_names_no_ca_bundle_gets_the_common_one_where_there_is_one() {
    let world = |bundle: Option<&str>, ca_certs: Value| {
        let mut world = World::with(vec![node_set("compute", &["n0"], &["own"])], json!({}));
        let mut spec = json!({ "playbook": "a.b.own" });
        if ca_certs != Value::Null {
            spec["caCerts"] = ca_certs;
        }
        world.seen.services.extend([service("own", &spec)]);
        if let Some(name) = bundle {
            world.seen.sources.insert(SourceRef::secret(NAMESPACE, name), digests("1", &["x"]));
        }
        world.run_out(|_, _| "Ok");
        mounted(world.run("own")).into_values().flatten().collect::<Vec<String>>()
    };
    let common = Some("combined-ca-bundle");
    assert_eq!(world(common, Value::Null), ["combined-ca-bundle"]);
    assert_eq!(world(common, json!("")), [""; 0]);
    // Runs do not wait for the default bundle of a service that names none.
    assert_eq!(world(None, Value::Null), [""; 0]);
}

#[test]
fn it_brings_them_alone_as_well() {
    let spec = json!({ "servicesOverride": ["certs"] });
    let mut world = world(vec![certified("compute", &["n0"])], spec, false);
    world.run_out(|_, _| "Ok");
    assert_eq!(mounted(world.run("certs")).into_keys().collect::<Vec<_>>(), PATHS);
}

#[test]
fn one_run_for_all_node_sets_has_the_certificates_of_all_in_one_volume() {
    let sets = vec![certified("a", &["a0"]), certified("b", &["b0"])];
    let mut world = world(sets, json!({}), true);
    world.run_out(|_, _| "Ok");
    let mounted = mounted(world.run("certs"));
    let expected = ["a-agent-default-certs-0", "b-agent-default-certs-0"];
    assert_eq!(mounted[PATHS[1]], expected);
}

#[test]
fn certificates_that_are_gone_are_waited_for_by_name() {
    let mut world = world(vec![certified("compute", &["n0"])], json!({}), false);
    let secret = SourceRef::secret(NAMESPACE, "compute-agent-default-certs-0");
    let content = world.seen.sources.remove(&secret).unwrap();
    world.settle();
    assert_eq!(world.condition("Ready"), is("False", "DataSourceNotFound"));
    world.says("Ready", &["Secret compute-agent-default-certs-0"]);
    world.seen.sources.insert(secret, content);
    world.succeeds();
}

/// Sets the condition of the node set's certificates, and for how many hosts those of agent are
/// missing.
fn tells(world: &mut World, status: &str, reason: &str, waiting_hosts: i64) {
    world.edit("compute", |it| {
        let told = it.status.as_mut().unwrap();
        told.conditions.retain(|it| it.type_ != "NodeSetCertificatesReady");
        let message = "2 certificates are not issued yet.";
        told.conditions.push(stated("NodeSetCertificatesReady", status, reason, message));
        told.certificates.iter_mut().for_each(|it| it.waiting_hosts = waiting_hosts);
    });
}

#[test]
fn only_services_with_certificates_wait_for_them() {
    let world = |services: &[&str]| {
        let spec = json!({ "servicesOverride": services });
        let mut world = world(vec![certified("compute", &["n0"])], spec, false);
        tells(&mut world, "False", "Issuing", 1);
        world
    };
    let mut without = world(&["first"]);
    without.succeeds();
    for services in [["first", "agent"], ["first", "certs"]] {
        let mut with = world(&services).at_rest();
        assert_eq!(with.condition("Ready"), is("False", "CertificatesNotReady"), "{services:?}");
        with.says("Ready", &[services[1], "2 certificates are not"]);
        // Certificates of other services may still be missing.
        tells(&mut with, "False", "Issuing", 0);
        with.succeeds();
    }
}

#[test]
fn a_deployment_that_has_begun_is_not_held_by_what_becomes_of_certificates() {
    let mut world = world(vec![certified("compute", &["n0"])], json!({}), false);
    tells(&mut world, "True", "Issued", 0);
    assert!(world.settle().contains(&"run certs on n0".to_owned()));
    tells(&mut world, "False", "InputMissing", 1);
    world.edit("compute", |it| it.status.as_mut().unwrap().certificates.clear());
    world.succeeds();
}

#[test]
fn a_node_set_without_hosts_needs_no_certificates() {
    let mut set = certified("compute", &[]);
    Arc::make_mut(&mut set).status.as_mut().unwrap().certificates.clear();
    let mut world = world(vec![set, certified("other", &["n0"])], json!({}), false);
    tells(&mut world, "True", "Issued", 0);
    world.succeeds();
}

#[test]
fn a_service_that_the_node_set_does_not_list_waits_until_its_certificates_are_asked_for() {
    let spec = json!({ "servicesOverride": ["agent"] });
    let mut world = world(vec![certified("compute", &["n0"])], spec, false);
    let known = world.seen.node_sets["compute"].status.clone().unwrap().certificates;
    world.edit("compute", |it| it.status.as_mut().unwrap().certificates.clear());
    tells(&mut world, "True", "NotRequired", 0);
    world.settle();
    assert_eq!(world.condition("Ready"), is("False", "CertificatesNotReady"));
    world.says("Ready", &["not asked for yet"]);
    let mut disabled = world.clone();
    tells(&mut disabled, "True", "NotEnabled", 0);
    disabled.succeeds();
    tells(&mut world, "True", "Issued", 0);
    world.edit("compute", |it| it.status.as_mut().unwrap().certificates = known);
    world.succeeds();
}

#[test]
fn a_service_of_the_same_type_without_certificates_hides_none() {
    let spec = json!({ "servicesOverride": ["plain", "certs"] });
    let mut world = world(vec![certified("compute", &["n0"])], spec, false);
    let plain = json!({ "playbook": "a.b.plain", "edpmServiceType": "kind" });
    world.seen.services.extend([service("plain", &plain)]);
    world.run_out(|_, _| "Ok");
    assert_eq!(mounted(world.run("certs")).into_keys().collect::<Vec<_>>(), PATHS);
}
