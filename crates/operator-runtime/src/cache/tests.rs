//! Tests of a cache from the outside: its changes, its first lists, and what it keeps of an object.

use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use super::*;

fn object(version: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "namespace": "ns", "name": "a", "uid": "1", "resourceVersion": version,
            "managedFields": [{ "manager": "kubectl" }],
        },
        "data": { "key": "value" },
    })
}

fn typed(version: &str) -> Item<ConfigMap> {
    Item::read(&object(version))
}

/// A cache with one open watch, and how many objects it has announced.
fn cache() -> (Arc<Cache<ConfigMap>>, Arc<AtomicUsize>) {
    let cache: Arc<Cache<ConfigMap>> = Cache::new(vec![]);
    cache.open(vec![None]);
    let announced = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&announced);
    cache.on_change(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
    });
    (cache, announced)
}

#[test]
fn a_change_is_announced_once_whoever_brings_it_first() {
    let (cache, announced) = cache();
    cache.absorb(&object("5"));
    assert_eq!(announced.load(Ordering::Relaxed), 1);
    cache.take(0, Event::Apply(typed("5")));
    assert_eq!(announced.load(Ordering::Relaxed), 1, "the watch repeats the answer");
    cache.take(0, Event::Apply(typed("6")));
    assert_eq!(announced.load(Ordering::Relaxed), 3, "the old form and the new one");
    cache.take(0, Event::Delete(typed("7")));
    assert_eq!(announced.load(Ordering::Relaxed), 4);
    cache.absorb(&object("6"));
    assert_eq!(announced.load(Ordering::Relaxed), 4, "an answer that comes too late is no change");
}

#[test]
fn managed_fields_are_not_kept_unless_a_cache_wants_them() {
    let (cache, _) = cache();
    cache.absorb(&object("5"));
    assert_eq!(cache.all()[0].managed_fields().len(), 0);
    let whole: Arc<Cache<ConfigMap>> = Cache::trimmed(vec![], |it| it.data = None);
    whole.absorb(&object("5"));
    assert_eq!(whole.all()[0].managed_fields().len(), 1);
    assert_eq!(whole.all()[0].data, None);
}

#[test]
fn a_copy_of_the_object_among_its_annotations_is_kept_in_no_cache() {
    let mut applied = object("5");
    let copy = r#"{"stringData":{"password":"hunter2"}}"#;
    applied["metadata"]["annotations"] = json!({ LAST_APPLIED: copy, "a": "b" });
    let whole: Arc<Cache<ConfigMap>> = Cache::trimmed(vec![], |_| {});
    whole.open(vec![None]);
    let kept = || {
        let annotations = whole.all()[0].annotations().clone();
        annotations.into_keys().collect::<Vec<_>>()
    };
    whole.absorb(&applied);
    assert_eq!(kept(), ["a"]);
    applied["metadata"]["resourceVersion"] = json!("6");
    applied["metadata"]["annotations"]["c"] = json!("d");
    whole.take(0, Event::Apply(Item::read(&applied)));
    assert_eq!(kept(), ["a", "c"]);
    whole.absorb(&object("7"));
    assert_eq!(whole.get(&Key::new("ns", "a")).unwrap().metadata.annotations, None);
}

#[test]
fn what_is_not_of_the_kind_is_not_taken_in() {
    let (cache, announced) = cache();
    cache.absorb(&json!({ "metadata": 7 }));
    assert_eq!((cache.all().len(), announced.load(Ordering::Relaxed)), (0, 0));
    assert_eq!(cache.kind(), "/ConfigMap");
}

#[tokio::test]
async fn it_is_synced_once_every_watch_has_delivered_its_first_list() {
    let cache: Arc<Cache<ConfigMap>> = Cache::new(vec![]);
    let is_synced = || futures::FutureExt::now_or_never(cache.synced()).is_some();
    assert!(!is_synced(), "its watches are not even open");
    cache.open(vec![Some("a".into()), Some("b".into())]);
    let list = |watch| {
        cache.take(watch, Event::Init);
        cache.take(watch, Event::InitDone);
    };
    list(0);
    list(0);
    assert!(!is_synced(), "a relist of one is not the first list of the other");
    list(1);
    assert!(is_synced());
}

#[test]
fn an_object_that_cannot_be_read_is_an_error_to_whoever_needs_it() {
    let (cache, _) = cache();
    let mut poison = object("5");
    poison["data"] = json!({ "key": 7 });
    let mut unreadable = cache.unreadable();
    cache.take(0, Event::Apply(Item::read(&poison)));
    assert!(unreadable.has_changed().unwrap() && unreadable.borrow_and_update().len() == 1);
    let key = Key::new("ns", "a");
    assert!(cache.get(&key).is_none() && cache.all().is_empty());
    let error = cache.try_get(&key).unwrap_err();
    let text = "read configmaps ns/a: the object cannot be read: data.key: cannot be read; expected \
                a string";
    assert_eq!((error.reason(), error.chain().as_str()), ("Unreadable", text));
    cache.take(0, Event::Apply(typed("6")));
    assert!(cache.try_get(&key).unwrap().is_some() && unreadable.borrow_and_update().is_empty());
    assert!(cache.try_get(&Key::new("ns", "b")).unwrap().is_none());
}
