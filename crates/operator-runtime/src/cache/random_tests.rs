//! Property test: no object that a CRD accepts ends a list or a watch.
//!
//! Lists and watches go through the operators' own client into their caches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use api::{ansibleee, baremetal, cert_manager, dataplane, definitions, infra, metal3, nova};
use axum::body::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::client::Body;
use kube::core::PartialObjectMeta;
use proptest::prelude::*;
use proptest::test_runner::Config;
use serde_json::json;
use tower::service_fn;

use super::*;
use crate::client::client_over;
use crate::error::BoxError;
use crate::metrics::Metrics;

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

/// Returns the object as the API server stores it.
fn stored<K: Watchable>(object: &Value, name: &str, version: usize) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = json!(K::api_version(&()));
    object["kind"] = json!(K::kind(&()));
    object["metadata"] = json!({
        "namespace": "ns", "name": name, "uid": name, "resourceVersion": version.to_string(),
    });
    object
}

/// Returns a client of an API server that lists the first half of the objects and reports the
/// others in the first watch.
fn serving<K: Watchable>(objects: &[Value]) -> Client {
    let (listed, told) = objects.split_at(objects.len() / 2);
    let list = json!({
        "apiVersion": K::api_version(&()),
        "kind": format!("{}List", K::kind(&())),
        "metadata": { "resourceVersion": "1000000" },
        "items": listed,
    });
    // In the API server's field order, because an object is parsed from its text as soon as it is
    // reached.
    let event = |it: &Value| format!("{{\"type\":\"ADDED\",\"object\":{it}}}\n");
    let (list, events) = (list.to_string(), told.iter().map(event).collect::<String>());
    let watches = Arc::new(AtomicUsize::new(0));
    let service = service_fn(move |request: Request<Body>| {
        let is_watch = request.uri().query().is_some_and(|it| it.contains("watch="));
        let text = if is_watch { events.clone() } else { list.clone() };
        let is_answered = !is_watch || watches.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            if !is_answered {
                std::future::pending::<()>().await;
            }
            Ok::<_, BoxError>(Response::new(Full::new(Bytes::from(text))))
        }
    });
    client_over(service, "ns", &Metrics::new("test"))
}

/// Returns the faults of the objects in a cache of the kind; valid objects are listed and watched
/// last.
fn faults<K: Watchable>(good: &Value, objects: &[Value]) -> Faults {
    let half = objects.len() / 2;
    let all: Vec<Value> = [good]
        .into_iter()
        .chain(objects)
        .chain([good])
        .enumerate()
        .map(|(at, it)| {
            stored::<K>(it, &format!("o-{at}"), if at <= half { 1 } else { 1_000_001 + at })
        })
        .collect();
    let cache: Arc<Cache<K>> = Cache::new(vec![]);
    let key = |at: usize| Key::new("ns", format!("o-{at}"));
    let (last, came) = (key(all.len() - 1), Arc::new(tokio::sync::Notify::new()));
    let comes = Arc::clone(&came);
    cache.on_change(move |it| {
        if Key::of(it) == last {
            comes.notify_one();
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let watching = Arc::clone(&cache).watch(serving::<K>(&all), Scope::default());
        let limit = std::time::Duration::from_mins(1);
        let all_came = tokio::time::timeout(limit, came.notified());
        tokio::select! {
            () = watching => panic!("a watch ended"),
            came = all_came => came.expect("the last object is told"),
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
        assert!(objects.len() > 20, "{kind} has {} limits", objects.len());
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
