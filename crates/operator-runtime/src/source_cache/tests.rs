//! Tests of when a source is read, which readers its changes enqueue, and which digests it has.

use k8s_openapi::ByteString;
use operator_core::{hash, upstream_hash};
use parking_lot::Mutex;
use serde_json::{Value, json};
use testkit::fake_api::{FakeApi, failure};

use super::*;
use crate::api::tests::{following, object};
use crate::cache::WriteThrough as _;
use crate::cache_registry::CacheRegistry;

/// The controller of the readers.
const READER: &str = "group";

/// The caches of a manager `op`.
fn caches() -> (Arc<MetadataCache<Secret>>, Arc<MetadataCache<ConfigMap>>) {
    let mut registry = CacheRegistry::default();
    (registry.metadata("op", vec![]), registry.metadata("op", vec![]))
}

struct World {
    secrets: Arc<MetadataCache<Secret>>,
    config_maps: Arc<MetadataCache<ConfigMap>>,
    sources: Arc<SourceCache>,
    woken: Arc<Mutex<Vec<Key>>>,
}

impl World {
    fn new() -> Self {
        let (secrets, config_maps) = caches();
        let sources = SourceCache::new(&[], &Keys::default(), &secrets, &config_maps);
        let woken: Arc<Mutex<Vec<Key>>> = Arc::default();
        let wake = Arc::clone(&woken);
        sources.on_change(READER, move |reader| wake.lock().push(reader));
        Self { secrets, config_maps, sources, woken }
    }

    fn woken(&self) -> Vec<String> {
        std::mem::take(&mut *self.woken.lock()).into_iter().map(|it| it.name).collect()
    }
}

/// Returns a Secret with one key as the API server answers.
fn secret(version: &str, value: &str) -> Value {
    let mut secret = object("s", "1", version);
    secret["kind"] = json!("Secret");
    let value = k8s_openapi::ByteString(value.as_bytes().to_vec());
    secret["data"] = json!({ "key": value });
    secret
}

#[tokio::test]
async fn a_source_is_read_once_for_each_of_its_versions() {
    let world = World::new();
    let source = SourceRef::secret("ns", "s");
    let server = FakeApi::answering([(200, secret("5", "a")), (200, secret("6", "b"))]);
    let api = following(&server);
    assert_eq!(world.sources.digests(&api, &source).await.unwrap(), None, "it does not exist");
    world.secrets.absorb(&secret("5", "a"));
    let first = world.sources.digests(&api, &source).await.unwrap().unwrap();
    assert_eq!(world.sources.digests(&api, &source).await.unwrap().unwrap(), first);
    assert_eq!((first.version.as_str(), &first.keys["key"]), ("5", &hash::of_bytes("a").into()));
    world.secrets.absorb(&secret("6", "b"));
    let second = world.sources.digests(&api, &source).await.unwrap().unwrap();
    assert_ne!(first.keys, second.keys);
    assert_eq!(server.asked(), ["GET /api/v1/namespaces/ns/secrets/s"; 2]);
}

#[tokio::test]
async fn content_is_kept_for_who_asks_for_it_and_read_with_the_digests() {
    let world = World::new();
    let source = SourceRef::secret("ns", "s");
    let server = FakeApi::answering([
        (200, secret("5", "a")),
        (200, secret("5", "a")),
        (200, secret("6", "b")),
    ]);
    let api = following(&server);
    world.secrets.absorb(&secret("5", "a"));
    world.sources.digests(&api, &source).await.unwrap();
    let content = world.sources.content(&api, &source).await.unwrap().unwrap();
    assert_eq!(content.text("key"), Some("a"), "the digests were read without their values");
    world.secrets.absorb(&secret("6", "b"));
    let digests = world.sources.digests(&api, &source).await.unwrap().unwrap();
    let content = world.sources.content(&api, &source).await.unwrap().unwrap();
    assert_eq!((content.text("key"), content.digest("key")), (Some("b"), digests.keys.get("key")));
    assert_eq!(server.asked().len(), 3);
}

#[tokio::test]
async fn two_who_ask_at_once_make_one_read() {
    let world = World::new();
    let source = SourceRef::secret("ns", "s");
    let server = FakeApi::answering([(200, secret("5", "a"))]);
    let api = following(&server);
    world.secrets.absorb(&secret("5", "a"));
    let ask = || world.sources.digests(&api, &source);
    let (first, second) = tokio::join!(ask(), ask());
    assert_eq!(first.unwrap().unwrap(), second.unwrap().unwrap());
    assert_eq!(server.asked(), ["GET /api/v1/namespaces/ns/secrets/s"]);
}

#[tokio::test]
async fn only_the_texts_that_were_asked_for_are_kept() {
    let (secrets, config_maps) = caches();
    let kept = SourceCache::new(&["key", "absent"], &Keys::default(), &secrets, &config_maps);
    let plain = SourceCache::new(&[], &Keys::default(), &secrets, &config_maps);
    secrets.absorb(&secret("5", "a"));
    let source = SourceRef::secret("ns", "s");
    let server = FakeApi::answering([(200, secret("5", "a")), (200, secret("5", "a"))]);
    let api = following(&server);
    let texts = kept.digests(&api, &source).await.unwrap().unwrap().texts;
    assert_eq!(texts, BTreeMap::from([("key".to_owned(), Arc::from("a"))]));
    assert_eq!(plain.digests(&api, &source).await.unwrap().unwrap().texts, BTreeMap::new());
}

#[tokio::test]
async fn a_source_has_the_hash_that_upstream_publishes_of_it() {
    let world = World::new();
    let mut typed = secret("5", "a");
    typed["type"] = json!("Opaque");
    let mut config_map = object("m", "1", "6");
    config_map["kind"] = json!("ConfigMap");
    config_map["data"] = json!({ "a": "x < y" });
    config_map["binaryData"] = json!({ "b": "AP8=" });
    world.secrets.absorb(&typed);
    world.config_maps.absorb(&config_map);
    let server = FakeApi::answering([(200, typed), (200, config_map)]);
    let api = following(&server);
    let data =
        |key: &str, value: &[u8]| BTreeMap::from([(key.to_owned(), ByteString(value.to_vec()))]);
    let texts = BTreeMap::from([("a".to_owned(), "x < y".to_owned())]);
    for (source, expected) in [
        (SourceRef::secret("ns", "s"), upstream_hash::of_secret(&data("key", b"a"), "Opaque")),
        (
            SourceRef::config_map("ns", "m"),
            upstream_hash::of_config_map(&texts, &data("b", &[0, 255])),
        ),
    ] {
        let read = world.sources.digests(&api, &source).await.unwrap().unwrap();
        assert_eq!(read.published, expected.into(), "{source:?}");
    }
}

#[tokio::test]
async fn a_source_that_went_between_watch_and_read_is_absent() {
    let world = World::new();
    world.secrets.absorb(&secret("5", "a"));
    let server = FakeApi::answering([failure(404, "NotFound")]);
    let source = SourceRef::secret("ns", "s");
    let api = following(&server);
    assert_eq!(world.sources.digests(&api, &source).await.unwrap(), None);
}

#[tokio::test]
async fn texts_and_bytes_of_a_config_map_are_values_alike() {
    let world = World::new();
    let mut answer = object("c", "1", "5");
    answer["data"] = json!({ "text": "ä" });
    answer["binaryData"] = json!({ "bytes": k8s_openapi::ByteString(vec![0xff]) });
    world.config_maps.absorb(&answer);
    let server = FakeApi::answering([(200, answer)]);
    let source = SourceRef::config_map("ns", "c");
    let values = world.sources.content(&following(&server), &source).await.unwrap().unwrap();
    assert_eq!(values.keys().collect::<Vec<_>>(), ["bytes", "text"]);
    assert_eq!(
        (values.text("text"), values.text("bytes"), values.text("x")),
        (Some("ä"), None, None)
    );
    assert_eq!(values.entries().count(), 2);
}

#[test]
fn a_change_wakes_those_who_depend_on_the_source_existing_or_not() {
    let world = World::new();
    let on = |names: &[&str]| names.iter().map(|it| SourceRef::secret("ns", it)).collect();
    world.sources.depends(READER, &Key::new("ns", "first"), on(&["s"]));
    world.sources.depends(READER, &Key::new("ns", "second"), on(&["s", "other"]));
    let same_name = SourceRef::config_map("ns", "s");
    world.sources.depends(READER, &Key::new("ns", "third"), BTreeSet::from([same_name]));
    world.secrets.absorb(&secret("5", "a"));
    assert_eq!(world.woken(), ["first", "second"]);
    world.sources.depends("another", &Key::new("ns", "first"), on(&["s"]));
    world.secrets.absorb(&secret("5", "a"));
    assert_eq!(world.woken(), [""; 0], "nothing has changed");
    world.sources.depends(READER, &Key::new("ns", "first"), BTreeSet::new());
    world.sources.depends(READER, &Key::new("ns", "second"), on(&["other"]));
    world.secrets.absorb(&secret("6", "b"));
    assert_eq!(world.woken(), [""; 0]);
}

#[test]
fn annotations_and_ownership_are_known_from_metadata() {
    let world = World::new();
    let mut written = secret("5", "a");
    written["metadata"]["annotations"] = json!({ "hash": "h" });
    written["metadata"]["managedFields"] = json!([{
        "manager": "op",
        "operation": "Apply",
        "fieldsV1": {
            "f:data": { "f:key": {} },
            "f:metadata": { "f:annotations": { "f:hash": {} } },
        },
    }]);
    world.secrets.absorb(&written);
    let source = SourceRef::secret("ns", "s");
    assert_eq!(world.sources.annotation(&source, "hash").as_deref(), Some("h"));
    assert!(world.sources.owned(&source).has(["hash"], ["key"]));
    // Another manager has edited the value: only the key is missing from the owned fields.
    written["metadata"]["resourceVersion"] = json!("6");
    written["metadata"]["managedFields"][0]["fieldsV1"]["f:data"] = json!({});
    world.secrets.absorb(&written);
    assert!(!world.sources.owned(&source).has(["hash"], ["key"]));
    let absent = SourceRef::config_map("ns", "s");
    assert_eq!(world.sources.owned(&absent), ManagedFields::default());
    assert_eq!(world.sources.version(&absent), None);
}

#[tokio::test]
async fn digests_of_secrets_are_keyed_and_those_of_config_maps_are_not() {
    let (secrets, config_maps) = caches();
    let keys = Keys::new(b"key", []);
    let sources = SourceCache::new(&[], &keys, &secrets, &config_maps);
    let mut config_map = object("m", "1", "6");
    config_map["data"] = json!({ "key": "a" });
    secrets.absorb(&secret("5", "a"));
    config_maps.absorb(&config_map);
    let server = FakeApi::answering([(200, secret("5", "a")), (200, config_map)]);
    let api = following(&server);
    let read = sources.digests(&api, &SourceRef::secret("ns", "s")).await.unwrap().unwrap();
    let plain = hash::of_bytes("a");
    assert_eq!(read.keys["key"], keys.of_bytes(b"a"));
    assert!(read.keys["key"].is(&plain), "as a release without keys wrote it");
    let published = upstream_hash::of_secret(&[("key".into(), ByteString(b"a".into()))].into(), "");
    assert_eq!(read.published.text(), published, "neighbours compare it");
    for text in [plain.as_str(), &published] {
        assert!(!format!("{read:?}").contains(&text[..10]), "{read:?}");
    }
    let read = sources.digests(&api, &SourceRef::config_map("ns", "m")).await.unwrap().unwrap();
    assert_eq!(read.keys["key"].text(), plain);
}
