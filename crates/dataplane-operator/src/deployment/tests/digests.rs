//! The recorded hashes of a deployment's Secrets: as neighbours compare them, and the same after an
//! upgrade.

use k8s_openapi::ByteString;
use operator_core::keyed::Keys;
use operator_core::upstream_hash;
use operator_runtime::source_cache::Values;

use super::*;

/// The Secret of a service as an operator with these keys reads it.
fn secret(keys: &Keys, value: &str) -> Digests {
    let values = [("password".to_owned(), value.as_bytes().to_vec())].into();
    Values::keyed("1", values, keys).digests()
}

fn maybe() -> SourceRef {
    SourceRef::secret(NAMESPACE, "maybe")
}

/// A cluster whose two services have the same Secret as data source.
fn world(keys: &Keys) -> World {
    let mut world = World::new();
    for name in ["first", "second"] {
        let sources = json!([{ "secretRef": { "name": "maybe" } }]);
        let spec = json!({ "playbook": format!("a.b.{name}"), "dataSources": sources });
        world.seen.services.extend([service(name, &spec)]);
    }
    world.seen.sources.insert(maybe(), secret(keys, "hunter2"));
    world
}

#[test]
fn what_is_recorded_of_a_secret_is_what_neighbours_compare_and_runs_have_it_keyed() {
    let data = [("password".to_owned(), ByteString("hunter2".into()))].into();
    let plain = upstream_hash::of_secret(&data, "Opaque");
    for keys in [Keys::default(), Keys::new(b"key", [])] {
        let mut world = world(&keys);
        world.run_out(|_, _| "Ok");
        let mut status = world.status().clone();
        assert_eq!(status.secret_hashes["maybe"], plain);
        status.secret_hashes.clear();
        let runs: Vec<&AnsibleEe> = world.seen.runs.iter().map(|it| &**it).collect();
        let visible = json!([status, runs]).to_string();
        assert!(!visible.contains(&plain[..10]), "{visible}");
    }
}

#[test]
fn a_keyed_hash_that_a_release_before_recorded_of_a_running_deployment_becomes_the_plain_one() {
    let keys = Keys::new(b"key", []);
    let mut world = world(&keys).at_rest();
    let plain = world.status().secret_hashes["maybe"].clone();
    let data = [("password".to_owned(), ByteString("hunter2".into()))].into();
    let keyed = upstream_hash::of_secret_by(&keys, &data, "Opaque").text();
    let status = Arc::make_mut(&mut world.seen.deployment).status.as_mut().unwrap();
    status.secret_hashes.insert("maybe".to_owned(), keyed);
    assert_eq!(world.settle(), ["status"]);
    assert_eq!(world.status().secret_hashes["maybe"], plain);
}

#[test]
fn a_secret_that_a_service_was_given_before_an_upgrade_is_the_same_after_it() {
    let keys = Keys::new(b"key", []);
    for (value, expected) in [("hunter2", None), ("another", Some("mixed"))] {
        let mut world = world(&Keys::default()).at_rest();
        let plain = world.status().secret_hashes["maybe"].clone();
        world.seen.sources.insert(maybe(), secret(&keys, "hunter2"));
        assert_eq!(world.settle(), [""; 0], "it is not written for that");
        assert_eq!(world.status().secret_hashes["maybe"], plain);
        let present = secret(&keys, value);
        world.seen.sources.insert(maybe(), present.clone());
        world.succeeds();
        let expected = expected.map_or_else(|| present.published.text(), str::to_owned);
        assert_eq!(world.status().secret_hashes["maybe"], expected);
    }
}
