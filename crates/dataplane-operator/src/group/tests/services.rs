//! What a group makes of a service that a human wrote wrongly, and of sources with one key.

use common::api::dataplane::Service;

use super::*;

/// The world, with another service in the place of `install-os`.
fn with(spec: &Value) -> World {
    let mut world = World::new();
    let service: Service = object("OpenStackDataPlaneService", "install-os", spec);
    world.seen.services.insert("install-os".into(), Arc::new(service));
    world
}

#[test]
fn a_service_that_cannot_be_deployed_is_told_and_nothing_runs() {
    let mut world = with(&json!({ "playbook": "" }));
    let writes = world.settle();
    assert!(!writes.iter().any(|it| it.starts_with("run ")), "{writes:?}");
    assert_eq!(world.condition(0, "InputReady"), is("False", "ServiceInvalid"));
    assert_eq!(world.role_reason("InputReady").as_deref(), Some("ServiceInvalid"));
    let message = world.role_message();
    let words =
        "OpenStackDataPlaneService install-os cannot be deployed: spec: nothing to run: set";
    assert!(message.contains(words), "{message}");
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
