//! Property test: no object that a CRD accepts ends a list or a watch.
//!
//! Lists and watches go through the operators' own client into their caches.

use std::collections::{BTreeMap, BTreeSet};

use api::{ansibleee, baremetal, cert_manager, dataplane, definitions, infra, metal3, nova};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::core::PartialObjectMeta;
use proptest::prelude::*;
use proptest::test_runner::Config;
use serde_json::json;
use testkit::fake_api::FakeApi;

use super::*;
use crate::api::tests::client;

mod accepted;

use accepted::{accepted, any_json, extremes, minimal};

/// Why each of the objects cannot be deserialized, in their order; `None` when it can.
type Faults = Vec<Option<String>>;
/// Returns the faults of objects of one kind in a cache, next to a valid one.
type Reader = fn(good: &Value, objects: &[Value]) -> Faults;

/// Every kind that the operators serve.
const OWN: [(&str, Reader); 10] = [
    ("OpenStackAnsibleEE", faults::<ansibleee::AnsibleEe>),
    ("OpenStackBaremetalSet", faults::<baremetal::BaremetalSet>),
    ("OpenStackDataPlane", faults::<dataplane::DataPlane>),
    ("OpenStackDataPlaneDeployment", faults::<dataplane::Deployment>),
    ("OpenStackDataPlaneNode", faults::<dataplane::Node>),
    ("OpenStackDataPlaneNodeSet", faults::<dataplane::NodeSet>),
    ("OpenStackDataPlaneRole", faults::<dataplane::Role>),
    ("OpenStackDataPlaneService", faults::<dataplane::Service>),
    ("NovaCell", faults::<nova::Cell>),
    ("NovaExternalCompute", faults::<nova::ExternalCompute>),
];

/// Every foreign kind that is watched, with a sample object; the CRDs of these kinds may change.
fn foreign() -> [(Reader, Value); 14] {
    let aspects = json!([{ "type": "Ready", "status": "True", "lastTransitionTime": null }]);
    let address = json!({ "network": "n", "subnet": "s", "address": "192.0.2.1", "vlan": 7 });
    let machine = json!({
        "spec": { "online": true, "image": { "url": "u" }, "consumerRef": { "name": "a" } },
        "status": {
            "provisioning": { "state": "available" },
            "hardware": { "cpu": { "clockMegahertz": 2.5 }, "storage": [{ "sizeBytes": 1 }] },
            "operationHistory": { "provision": { "start": null } },
        },
    });
    [
        (faults::<infra::NetConfig>, json!({ "spec": { "networks": [{ "name": "n" }] } })),
        (
            faults::<infra::IpSet>,
            json!({
                "spec": { "networks": [{ "name": "n", "subnetName": "s", "fixedIP": "192.0.2.1" }] },
                "status": { "reservations": [address], "conditions": aspects },
            }),
        ),
        (
            faults::<infra::DnsMasq>,
            json!({ "spec": {}, "status": { "dnsAddresses": ["a"], "conditions": aspects } }),
        ),
        (
            faults::<infra::DnsData>,
            json!({
                "spec": { "hosts": [{ "ip": "192.0.2.1", "hostnames": ["a"] }] },
                "status": { "conditions": aspects },
            }),
        ),
        (faults::<cert_manager::Issuer>, json!({ "spec": { "selfSigned": {} } })),
        (
            faults::<cert_manager::Certificate>,
            json!({
                "spec": { "secretName": "a", "issuerRef": { "name": "i" }, "dnsNames": ["a"] },
                "status": { "conditions": aspects },
            }),
        ),
        (faults::<metal3::BareMetalHost>, machine),
        (
            faults::<metal3::ProvisionServer>,
            json!({ "spec": {}, "status": { "localImageUrl": "u" } }),
        ),
        (faults::<Job>, json!({ "spec": { "template": {} }, "status": { "conditions": aspects } })),
        (
            faults::<Pod>,
            json!({ "spec": { "containers": [] }, "status": { "conditions": aspects } }),
        ),
        (faults::<ConfigMap>, json!({ "data": { "a": "b" } })),
        (faults::<Service>, json!({ "spec": { "ports": [{ "port": 1 }] } })),
        (
            faults::<EndpointSlice>,
            json!({ "addressType": "IPv4", "endpoints": [{ "addresses": ["192.0.2.1"] }] }),
        ),
        (faults::<PartialObjectMeta<Secret>>, json!({})),
    ]
}

fn schema(kind: &str) -> Value {
    let of_kind = definitions::all().into_iter().find(|it| it.spec.names.kind == kind).unwrap();
    let of_kind = serde_json::to_value(of_kind).unwrap();
    of_kind["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

/// Stores an object of the kind under a name.
fn put<K: Watchable>(server: &FakeApi, object: &Value, key: &Key) {
    let mut object = object.clone();
    object["apiVersion"] = json!(K::api_version(&()));
    object["kind"] = json!(K::kind(&()));
    object["metadata"] = json!({ "namespace": key.namespace, "name": key.name, "uid": key.name });
    server.put(&format!("{}/{}", K::url_path(&(), Some(&key.namespace)), key.name), object);
}

/// Returns the faults of the objects in a cache of the kind: the first half is listed, the others
/// come by the watch; valid objects are listed and watched last.
fn faults<K: Watchable>(good: &Value, objects: &[Value]) -> Faults {
    let all: Vec<&Value> = [good].into_iter().chain(objects).chain([good]).collect();
    let cache: Arc<Cache<K>> = Cache::new(vec![]);
    let key = |at: usize| Key::new("ns", format!("o-{at}"));
    let (last, came) = (key(all.len() - 1), Arc::new(tokio::sync::Notify::new()));
    let comes = Arc::clone(&came);
    cache.on_change(move |it| {
        if Key::of(it) == last {
            comes.notify_one();
        }
    });
    let server = FakeApi::default();
    let put_all = |places: std::ops::Range<usize>| {
        for at in places {
            put::<K>(&server, all[at], &key(at));
        }
    };
    let half = all.len() / 2;
    put_all(0..half);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let watching = Arc::clone(&cache).watch(client(&server), Scope::default());
        let limit = std::time::Duration::from_mins(1);
        let all_come = async {
            server.until(|it| it.requests().iter().any(|it| it.verb == "WATCH")).await;
            put_all(half..all.len());
            tokio::time::timeout(limit, came.notified()).await
        };
        tokio::select! {
            () = watching => panic!("a watch ended"),
            came = all_come => came.expect("the last object is told"),
        }
    });
    assert!(cache.get(&key(0)).is_some(), "the good object of the list is not there");
    let unreadable = cache.unreadable().borrow().clone();
    assert_eq!(cache.all().len() + unreadable.len(), all.len(), "an object is neither");
    let fault = |at: usize| {
        let name = key(at).name;
        let found = unreadable.iter().find(|it| it.metadata.name.as_ref() == Some(&name))?;
        assert!(!found.fault.path.is_empty(), "{}", found.fault);
        Some(found.fault.to_string())
    };
    (1..=objects.len()).map(fault).collect()
}

fn config(cases: u32) -> Config {
    Config { cases, failure_persistence: None, ..Config::default() }
}

/// Faults that are not visible from a CRD: all but the nesting depth.
fn unexpected(faults: &Faults) -> BTreeSet<&str> {
    let faults = faults.iter().flatten().map(String::as_str);
    faults.filter(|it| !it.ends_with("is nested deeper than 64 levels")).collect()
}

#[test]
fn each_kind_of_the_operators_has_a_reader_here() {
    let served: BTreeSet<String> =
        definitions::all().into_iter().map(|it| it.spec.names.kind).collect();
    assert_eq!(served, OWN.iter().map(|(kind, _)| (*kind).to_owned()).collect());
}

#[test]
fn what_a_definition_accepts_can_be_read_at_the_limits_of_each_field() {
    let mut all = BTreeMap::new();
    for (kind, read) in OWN {
        let schema = schema(kind);
        let objects = extremes(&schema);
        assert!(objects.len() > 15, "{kind} has {} limits", objects.len());
        let faults = read(&minimal(&schema), &objects);
        let unexpected: Vec<String> = unexpected(&faults).into_iter().map(str::to_owned).collect();
        if !unexpected.is_empty() {
            all.insert(kind, unexpected);
        }
    }
    assert!(all.is_empty(), "definitions accept what no operator can read: {all:#?}");
}

#[test]
fn random_objects_that_a_definition_accepts_stop_no_list_and_can_be_read_but_for_their_depth() {
    let mut too_deep = 0;
    for (kind, read) in OWN {
        let schema = schema(kind);
        let good = minimal(&schema);
        let objects = prop::collection::vec(accepted(&schema), 4..16);
        let mut runner = proptest::test_runner::TestRunner::new(config(12));
        let outcome = runner.run(&objects, |objects| {
            let faults = read(&good, &objects);
            prop_assert!(unexpected(&faults).is_empty(), "{kind}: {faults:?}");
            Ok(())
        });
        outcome.unwrap();
        let deep = json!((0..200).fold(json!(1), |inner, _| json!([inner])));
        let free =
            extremes(&schema).into_iter().any(|it| it.to_string().contains(&deep.to_string()));
        too_deep += usize::from(free);
    }
    assert!(too_deep >= 6, "hardly a definition has a field that is free in depth");
}

#[test]
fn random_objects_of_others_stop_no_list() {
    for (read, sample) in foreign() {
        let objects = prop::collection::vec(changed(sample.clone()), 4..16);
        let mut runner = proptest::test_runner::TestRunner::new(config(24));
        let outcome = runner.run(&objects, |objects| {
            read(&sample, &objects);
            Ok(())
        });
        outcome.unwrap();
    }
}

/// Generates the sample with arbitrary JSON in place of up to three of its parts.
fn changed(sample: Value) -> BoxedStrategy<Value> {
    let mut places = Vec::new();
    collect(&sample, "", &mut places);
    if places.is_empty() {
        return any_json().prop_map(|it| json!({ "spec": it })).boxed();
    }
    let changes = prop::collection::vec((prop::sample::select(places), any_json()), 1..4);
    let change = move |changes: Vec<(String, Value)>| {
        let mut object = sample.clone();
        for (place, value) in changes {
            if let Some(part) = object.pointer_mut(&place) {
                *part = value;
            }
        }
        object
    };
    changes.prop_map(change).boxed()
}

/// Returns the JSON pointers to all parts of a value except itself.
fn collect(value: &Value, path: &str, places: &mut Vec<String>) {
    let parts: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, it)| (name.clone(), it)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(at, it)| (at.to_string(), it)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    for (name, part) in parts {
        let path = format!("{path}/{name}");
        collect(part, &path, places);
        places.push(path);
    }
}
