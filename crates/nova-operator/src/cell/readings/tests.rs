//! Tests of which cells are read, and of what is reported of those of another operator.

use std::net::SocketAddr;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use operator_core::keyed::Keys;
use operator_core::plan::EventDraft;
use operator_runtime::api::Api;
use operator_runtime::cache::{Cache, MetadataCache, WriteThrough as _};
use operator_runtime::cache_registry::CacheRegistry;
use operator_runtime::metrics::Metrics;
use operator_runtime::source_cache::SourceCache;
use serde_json::{Value, json};
use testkit::fake_api::FakeApi;
use testkit::golden::recorded;
use testkit::http_server::server;

use super::*;
use crate::nova::health::ApiHealth;
use crate::nova::monitor::objects::MonitoredObjects;
use crate::shared_caches::SharedCaches;
use crate::shared_caches::queues::Queues;
use crate::test_cloud::{leads, nova_cell, settings, token};

const LIMIT: Duration = Duration::from_secs(30);

struct World {
    readings: CellReadings,
    server: FakeApi,
    secrets: Arc<MetadataCache<Secret>>,
    queues: Queues,
}

impl World {
    /// A cell whose Keystone is at that address, and its Secrets.
    fn new(address: SocketAddr, cells_are_ours: bool) -> Self {
        let world = Self::without_secrets(address, cells_are_ours);
        world.put("nova-cell1", "1", "ServicePassword", "p");
        world.put("bus", "1", "transport_url", "rabbit://nova:bus@192.0.2.2/v");
        world
    }

    fn without_secrets(address: SocketAddr, cells_are_ours: bool) -> Self {
        let mut registry = CacheRegistry::default();
        let secrets = registry.metadata("op", vec![]);
        let config_maps = registry.metadata("op", vec![]);
        let server = FakeApi::default();
        let client = kube::Client::new(server.clone(), "ns");
        let (queues, cells) = (Queues::default(), Cache::new(vec![]));
        let objects = MonitoredObjects { caches: SharedCaches::default(), cells_are_ours };
        let settings = settings(&Metrics::new("test"), leads());
        let monitor = NovaMonitor::new(Duration::from_millis(5), settings, objects, queues.clone());
        let sources = Sources {
            cells,
            secrets: SourceCache::new(&[], &Keys::default(), &secrets, &config_maps),
            api: Arc::new(Api::new(client, "op", "op-0", leads(), vec![])),
            cells_are_ours,
        };
        sources.cells.absorb(&nova_cell("cell1", address));
        Self {
            readings: CellReadings { sources, monitor, reported: Reported::default() },
            server,
            secrets,
            queues,
        }
    }

    fn put(&self, name: &str, version: &str, key: &str, value: &str) {
        self.put_data(name, version, &json!({key: ByteString(value.as_bytes().to_vec())}));
    }

    fn put_data(&self, name: &str, version: &str, data: &Value) {
        let object = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": version},
            "data": data,
        });
        self.secrets.absorb(&object);
        self.server.put(&format!("/api/v1/namespaces/ns/secrets/{name}"), object);
    }

    /// Reconciles the cell; returns the Events of the plan, which has no step.
    async fn pass(&self) -> Vec<EventDraft> {
        let Some(seen) = self.readings.observe(&key()).await.unwrap() else { return vec![] };
        let plan = recorded(decide(&seen));
        assert!(plan.all().next().is_none(), "nothing is written");
        plan.events.into_iter().map(|it| it.1).collect()
    }

    /// Waits until a reading has changed what is known of the API.
    async fn read(&self) {
        let read = self.queues.cell_readings.next();
        let read = tokio::time::timeout(LIMIT, read).await.expect("the API is read");
        self.queues.cell_readings.done(&read);
    }
}

fn key() -> Key {
    Key::new("ns", "cell1")
}

/// A Keystone and a nova that has no hosts.
async fn cloud() -> SocketAddr {
    let answer = |text: &str| {
        if text.starts_with("post ") {
            return token(text, &[("compute", "/v2.1")]);
        }
        let body = if text.starts_with("get /v2.1/ ") {
            json!({"version": {"version": "2.100", "min_version": "2.1"}})
        } else {
            json!({"services": [], "hypervisors": []})
        };
        (200, "OpenStack-API-Version: compute 2.69\r\n".to_owned(), body.to_string())
    };
    server(answer).await.0
}

#[tokio::test]
async fn a_cell_of_any_operator_is_read_and_none_that_does_not_exist() {
    for cells_are_ours in [true, false] {
        let world = World::new(cloud().await, cells_are_ours);
        assert_eq!(world.pass().await, []);
        world.read().await;
        let monitor = &world.readings.monitor;
        assert_eq!(monitor.api(&key()), ApiHealth::Answers);
        assert_eq!(world.pass().await, []);
        let gone = Key::new("ns", "gone");
        assert!(world.readings.observe(&gone).await.unwrap().is_none());
        assert!(monitor.is_unread(&gone));
    }
}

#[tokio::test]
async fn a_refusal_is_one_event_on_the_cell_of_another_operator() {
    let (address, _) = server(|_| (401, String::new(), String::new())).await;
    for (cells_are_ours, n_events) in [(true, 0), (false, 1)] {
        let world = World::new(address, cells_are_ours);
        assert_eq!(world.pass().await, [], "it was not read yet");
        world.read().await;
        let events = world.pass().await;
        assert_eq!(events.len(), n_events);
        for event in events {
            assert!(event.warning && event.reason == "CredentialsRefused", "{event:?}");
            assert!(event.note.contains("Correct ServicePassword in Secret nova-cell1"));
        }
        assert_eq!(world.pass().await, [], "it was reported");
    }
}

#[tokio::test]
async fn a_missing_secret_is_one_event_and_its_arrival_enqueues_the_cell() {
    let world = World::without_secrets(cloud().await, false);
    let (woken, queue) = (Arc::clone(&world.queues.cells), Arc::clone(&world.queues.cells));
    world.readings.sources.secrets.on_change(CELL_READINGS, move |reader| queue.push(reader));
    let events = world.pass().await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].reason, "SecretNotFound");
    assert_eq!(world.pass().await, [], "it was reported");
    for (name, key, value) in [
        ("nova-cell1", "ServicePassword", "p"),
        ("bus", "transport_url", "rabbit://nova:bus@192.0.2.2/v"),
    ] {
        world.put(name, "1", key, value);
        assert_eq!(woken.next().await, self::key());
        woken.done(&self::key());
    }
    assert_eq!(world.pass().await, []);
    // That it is not read for want of inputs may have been found before.
    while world.readings.monitor.api(&key()) != ApiHealth::Answers {
        world.read().await;
    }
}

#[tokio::test]
async fn a_cell_with_an_application_credential_is_read_with_it_and_without_the_password() {
    let (address, asked) = server(|_| (401, String::new(), String::new())).await;
    let world = World::without_secrets(address, true);
    let value = |it: &str| ByteString(it.as_bytes().to_vec());
    let data = json!({
        "ServicePassword": value("p4ss"), "ACID": value("0123"), "ACSecret": value("s3cret"),
    });
    world.put_data("nova-cell1", "1", &data);
    world.put("bus", "1", "transport_url", "rabbit://nova:bus@192.0.2.2/v");
    world.pass().await;
    world.read().await;
    let login = asked.lock()[0].clone();
    assert!(login.contains("application_credential") && login.contains("s3cret"), "{login}");
    assert!(!login.contains("p4ss") && !login.contains("scope"), "{login}");
}
