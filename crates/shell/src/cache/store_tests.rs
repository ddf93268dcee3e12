//! What a cache believes after each order of watch events and answers to own writes.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::watcher::Event;
use serde_json::json;

use super::*;

/// What may reach a store.
enum Input {
    Told(Event<Item<ConfigMap>>),
    Answer(Item<ConfigMap>),
}

/// `name/uid@version`.
fn object(text: &str) -> ConfigMap {
    let (name, rest) = text.split_once('/').unwrap();
    let (uid, version) = rest.split_once('@').unwrap();
    let metadata = json!({
        "namespace": "ns", "name": name, "uid": uid, "resourceVersion": version,
    });
    serde_json::from_value(json!({ "metadata": metadata })).unwrap()
}

/// The same as an item; it cannot be read where its name begins with `bad`.
fn item(text: &str) -> Item<ConfigMap> {
    let mut object = serde_json::to_value(object(text)).unwrap();
    if text.starts_with("bad") {
        object["data"] = json!(7);
    }
    Item::read(&object)
}

fn shown(object: &ConfigMap) -> String {
    format!(
        "{}/{}@{}",
        object.name_any(),
        object.uid().unwrap_or_default(),
        object.resource_version().unwrap_or_default()
    )
}

/// `apply`, `delete`, `item` and `answer` with an object; `list` and `done` around items.
fn input(text: &str) -> Input {
    let told =
        |event: fn(Item<ConfigMap>) -> Event<Item<ConfigMap>>, it| Input::Told(event(item(it)));
    match text.split_once(' ') {
        None if text == "list" => Input::Told(Event::Init),
        None => Input::Told(Event::InitDone),
        Some(("apply", it)) => told(Event::Apply, it),
        Some(("delete", it)) => told(Event::Delete, it),
        Some(("item", it)) => told(Event::InitApply, it),
        Some((_, it)) => Input::Answer(item(it)),
    }
}

fn store() -> Store<ConfigMap> {
    let mut store = Store::new(vec![]);
    store.open(vec![None]);
    store
}

/// What the store holds after these inputs.
fn after(store: &mut Store<ConfigMap>, inputs: &[&str]) -> Vec<String> {
    for text in inputs {
        match input(text) {
            Input::Told(event) => drop(store.take(0, event)),
            Input::Answer(object) => drop(store.answer(object)),
        }
    }
    store.all().iter().map(|it| shown(it)).collect()
}

#[test]
fn a_cache_believes_the_watch_and_what_is_newer_than_it() {
    let cases: [(&str, &[&str], &[&str]); 19] = [
        ("an own write is seen at once", &["list", "done", "answer a/1@5"], &["a/1@5"]),
        (
            "an update's answer after the deletion was told",
            &["list", "item a/1@5", "done", "delete a/1@8", "answer a/1@7"],
            &[],
        ),
        (
            "a creation's answer after the deletion was told",
            &["list", "done", "apply a/1@5", "delete a/1@6", "answer a/1@5"],
            &[],
        ),
        (
            "a creation's answer after deletion and another creation",
            &["list", "done", "apply a/1@5", "delete a/1@6", "apply a/2@7", "answer a/1@5"],
            &["a/2@7"],
        ),
        (
            "a creation's answer between deletion and another creation",
            &["list", "done", "delete a/1@6", "answer a/1@5", "apply a/2@7"],
            &["a/2@7"],
        ),
        (
            "made again before the end of its predecessor was told",
            &["list", "item a/1@5", "done", "answer a/2@8", "delete a/1@7"],
            &["a/2@8"],
        ),
        (
            "made again after the end of its predecessor was told",
            &["list", "item a/1@5", "done", "delete a/1@7", "answer a/2@8"],
            &["a/2@8"],
        ),
        (
            "an answer older than what was told",
            &["list", "item a/1@5", "done", "apply a/1@9", "answer a/1@7"],
            &["a/1@9"],
        ),
        (
            "an event older than the answer",
            &["list", "item a/1@5", "done", "answer a/1@9", "apply a/1@7"],
            &["a/1@9"],
        ),
        (
            "an answer before the first list, which has it",
            &["answer a/1@5", "list", "item a/1@5", "done"],
            &["a/1@5"],
        ),
        (
            "an answer before the first list, which lacks it",
            &["answer a/1@5", "list", "item b/2@6", "done"],
            &["b/2@6"],
        ),
        (
            "written while a list was made: the list is older",
            &["list", "item b/2@3", "answer a/1@5", "done"],
            &["a/1@5", "b/2@3"],
        ),
        (
            "written while a list was made, and gone before it was: the list is newer",
            &["list", "item b/2@6", "answer a/1@5", "done"],
            &["b/2@6"],
        ),
        (
            "gone while the watch was cut, and its answer came during the list",
            &["list", "answer a/1@5", "done", "apply b/2@9"],
            &["b/2@9"],
        ),
        (
            "a relist that lacks what was told before",
            &["list", "item a/1@5", "item b/2@6", "done", "list", "item b/2@6", "done"],
            &["b/2@6"],
        ),
        (
            "a late answer for what a relist lacked",
            &["list", "item a/1@5", "done", "list", "item b/2@8", "done", "answer a/1@7"],
            &["b/2@8"],
        ),
        (
            "one that cannot be read hides no other",
            &["list", "item a/1@5", "item bad/2@6", "item c/3@7", "done", "apply bad/2@8"],
            &["a/1@5", "c/3@7"],
        ),
        (
            "an answer older than what could not be read",
            &["list", "done", "answer bad/1@9", "apply bad/1@7"],
            &[],
        ),
        (
            "gone while the watch was cut, and never readable",
            &["list", "item bad/2@6", "done", "list", "item a/1@8", "done"],
            &["a/1@8"],
        ),
    ];
    for (case, inputs, expected) in cases {
        assert_eq!(after(&mut store(), inputs), expected, "{case}");
    }
}

#[test]
fn an_answer_that_the_watch_passes_without_telling_it_is_gone() {
    let mut store = store();
    assert_eq!(after(&mut store, &["list", "done", "answer a/1@5"]), ["a/1@5"]);
    // Another object's later version: the watch would have told a/1@5 before.
    assert_eq!(after(&mut store, &["apply b/2@9"]), ["b/2@9"]);
    // One that it has told stays, however far it goes.
    assert_eq!(after(&mut store, &["answer b/2@11", "apply b/2@11", "apply c/3@12"]).len(), 2);
}

#[test]
fn nothing_is_remembered_of_what_the_watch_has_told() {
    let mut store = store();
    after(&mut store, &["list", "done"]);
    for version in 1..1000 {
        after(&mut store, &[&format!("answer a/1@{version}"), &format!("apply a/1@{version}")]);
    }
    after(&mut store, &["delete a/1@1000", "answer a/1@1000"]);
    assert!(store.watches[0].answers.is_empty() && store.objects.is_empty());
}

#[test]
fn each_namespace_has_a_watch_of_its_own_and_other_namespaces_none() {
    let mut store: Store<ConfigMap> = Store::new(vec![]);
    store.open(vec![Some("ns".into()), Some("other".into())]);
    assert_eq!(store.pending(), 2);
    let mut elsewhere = object("a/1@5");
    elsewhere.metadata.namespace = Some("other".into());
    store.answer(Item::Readable(elsewhere.clone()));
    after(&mut store, &["list", "done"]);
    assert_eq!((store.pending(), store.all().len()), (1, 1), "the other list has it yet");
    after(&mut store, &["apply b/2@9"]);
    assert_eq!(store.all().len(), 2, "the watch of ns tells nothing of the other namespace");
    elsewhere.metadata.namespace = Some("unwatched".into());
    assert!(store.answer(Item::Readable(elsewhere)).is_none());
}

#[test]
fn an_index_follows_its_objects_and_forgets_what_is_gone() {
    let by_owner = |it: &ConfigMap| {
        let owner = it.labels().get("owner");
        owner.map(|owner| Key::new("ns", owner)).into_iter().collect()
    };
    let mut store: Store<ConfigMap> = Store::new(vec![("owner", Box::new(by_owner))]);
    store.open(vec![None]);
    let of = |owner: &str, version: &str| {
        let mut object = object(&format!("a/1@{version}"));
        object.labels_mut().insert("owner".into(), owner.into());
        object
    };
    let names = |store: &Store<ConfigMap>, owner: &str| {
        store.indexed("owner", &Key::new("ns", owner)).len()
    };
    store.take(0, Event::Apply(Item::Readable(of("x", "1"))));
    assert_eq!((names(&store, "x"), names(&store, "y")), (1, 0));
    let changes = store.take(0, Event::Apply(Item::Readable(of("y", "2"))));
    assert_eq!((names(&store, "x"), names(&store, "y")), (0, 1));
    assert!(changes[0].old.is_some() && changes[0].new.is_some());
    store.take(0, Event::Delete(Item::Readable(of("y", "3"))));
    assert!(store.indexed.is_empty());
}

#[test]
fn what_cannot_be_read_is_known_by_name_until_it_can_be_or_goes() {
    let mut store = store();
    let names = |store: &Store<ConfigMap>| {
        let all = store.all_unreadable();
        all.iter().filter_map(|it| it.metadata.name.clone()).collect::<Vec<String>>()
    };
    after(&mut store, &["list", "item a/1@5", "item bad/2@6", "item bad2/3@6", "done"]);
    assert_eq!(names(&store), ["bad", "bad2"]);
    after(&mut store, &["delete bad2/3@7"]);
    assert_eq!(names(&store), ["bad"]);
    let corrected = || {
        let mut corrected = object("bad/2@8");
        corrected.data = Some([("key".into(), "value".into())].into());
        corrected
    };
    let changes = store.take(0, Event::Apply(Item::Readable(corrected())));
    assert!(changes[0].old.is_none() && changes[0].new.is_some(), "its controller is woken");
    assert!(names(&store).is_empty() && store.get(&Key::new("ns", "bad")).is_some());
    let changes = store.take(0, input_item("apply bad/2@9"));
    assert!(changes[0].old.is_some() && changes[0].new.is_none(), "its controller is woken");
    assert_eq!(names(&store), ["bad"]);
}

/// A watch's event alone.
fn input_item(text: &str) -> Event<Item<ConfigMap>> {
    match input(text) {
        Input::Told(event) => event,
        Input::Answer(_) => panic!("{text} is an answer"),
    }
}
