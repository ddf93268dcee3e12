//! Tests of the store: its content after each order of watch events and responses to own writes.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::watcher::Event;
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// An input of a store.
enum Input {
    Told(Event<Item<ConfigMap>>),
    Answer(Item<ConfigMap>),
}

/// Creates an object from `name/uid@version`.
fn object(text: &str) -> ConfigMap {
    let (name, rest) = text.split_once('/').unwrap();
    let (uid, version) = rest.split_once('@').unwrap();
    let metadata = json!({
        "namespace": "ns", "name": name, "uid": uid, "resourceVersion": version,
    });
    serde_json::from_value(json!({ "metadata": metadata })).unwrap()
}

/// The same as an item; it is unreadable if its name begins with `bad`.
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

/// Parses an input: `apply`, `delete`, `item` and `answer` with an object; `list` and `done` around
/// items.
fn input(text: &str) -> Input {
    let watched =
        |event: fn(Item<ConfigMap>) -> Event<Item<ConfigMap>>, it| Input::Told(event(item(it)));
    match text.split_once(' ') {
        None if text == "list" => Input::Told(Event::Init),
        None => Input::Told(Event::InitDone),
        Some(("apply", it)) => watched(Event::Apply, it),
        Some(("delete", it)) => watched(Event::Delete, it),
        Some(("item", it)) => watched(Event::InitApply, it),
        Some((_, it)) => Input::Answer(item(it)),
    }
}

fn store() -> Store<ConfigMap> {
    let mut store = Store::new(vec![]);
    store.open(vec![None]);
    store
}

/// Returns the content of the store after these inputs.
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
    // Another object's later version: the watch should have reported a/1@5 before.
    assert_eq!(after(&mut store, &["apply b/2@9"]), ["b/2@9"]);
    // A confirmed object stays, however far the watch advances.
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

/// Applies a watch event alone.
fn input_item(text: &str) -> Event<Item<ConfigMap>> {
    match input(text) {
        Input::Told(event) => event,
        Input::Answer(_) => panic!("{text} is an answer"),
    }
}

#[test]
fn after_a_restore_of_etcd_the_cache_goes_back_with_it() {
    let cases: [(&str, &[&str], &[&str]); 7] = [
        (
            "an object at an older version",
            &["list", "item a/1@5", "done", "apply a/1@90", "list", "item a/1@5", "done"],
            &["a/1@5"],
        ),
        (
            "an own write that is lost",
            &["list", "item a/1@5", "done", "answer a/1@90", "list", "item a/1@5", "done"],
            &["a/1@5"],
        ),
        (
            "an object that had been made again",
            &["list", "item a/1@5", "done", "apply a/2@90", "list", "item a/1@5", "done"],
            &["a/1@5"],
        ),
        (
            "own writes are seen at once again",
            &["list", "done", "apply a/1@90", "list", "item a/1@5", "done", "answer a/1@7"],
            &["a/1@7"],
        ),
        (
            "also where the list has only what had been deleted",
            &[
                "list",
                "item a/1@5",
                "done",
                "delete a/1@90",
                "list",
                "item a/1@5",
                "done",
                "answer a/1@7",
            ],
            &["a/1@7"],
        ),
        (
            "where the list tells nothing of it, the first event does",
            &[
                "list",
                "item a/1@5",
                "done",
                "apply b/2@90",
                "list",
                "item a/1@5",
                "done",
                "apply a/1@7",
                "answer a/1@8",
            ],
            &["a/1@8"],
        ),
        (
            "a deletion too",
            &[
                "list",
                "item a/1@5",
                "done",
                "apply b/2@90",
                "list",
                "item a/1@5",
                "done",
                "delete a/1@7",
                "answer c/3@8",
            ],
            &["c/3@8"],
        ),
    ];
    for (case, inputs, expected) in cases {
        assert_eq!(after(&mut store(), inputs), expected, "{case}");
    }
}

/// A fake etcd with one watch, which can be restored from a backup.
#[derive(Clone, Default)]
struct Etcd {
    version: u64,
    /// Name → UID and version.
    objects: BTreeMap<u8, (u64, u64)>,
    /// Events that the watch has yet to report, and responses still in flight.
    events: Vec<String>,
    answers: Vec<String>,
}

impl Etcd {
    fn write(&mut self, name: u8) -> String {
        self.version += 1;
        let uid = self.objects.get(&name).map_or(self.version, |it| it.0);
        self.objects.insert(name, (uid, self.version));
        let text = format!("n{name}/{uid}@{}", self.version);
        self.events.push(format!("apply {text}"));
        text
    }

    fn delete(&mut self, name: u8) {
        if let Some((uid, _)) = self.objects.remove(&name) {
            self.version += 1;
            self.events.push(format!("delete n{name}/{uid}@{}", self.version));
        }
    }

    fn shown(&self) -> Vec<String> {
        let show = |(name, (uid, version)): (&u8, &(u64, u64))| format!("n{name}/{uid}@{version}");
        self.objects.iter().map(show).collect()
    }
}

/// One step of the simulation; the number selects the object.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Foreign(u8),
    Own(u8),
    Delete(u8),
    /// An own write whose response arrives later, in any order.
    OwnLate(u8),
    Answer(prop::sample::Index),
    Hear,
    /// The watch is interrupted; an own write happens before or after the list is made.
    Relist(u8, bool),
    Backup,
    Restore,
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        3 => (0..4_u8).prop_map(Deed::Foreign),
        3 => (0..4_u8).prop_map(Deed::Own),
        2 => (0..4_u8).prop_map(Deed::Delete),
        2 => (0..4_u8).prop_map(Deed::OwnLate),
        2 => any::<prop::sample::Index>().prop_map(Deed::Answer),
        6 => Just(Deed::Hear),
        1 => (0..4_u8, any::<bool>()).prop_map(|(name, first)| Deed::Relist(name, first)),
        1 => Just(Deed::Backup),
        1 => Just(Deed::Restore),
    ]
}

/// Reopens the watch: a list of everything, with an own write in between.
fn relist(etcd: &mut Etcd, store: &mut Store<ConfigMap>, meanwhile: Option<(u8, bool)>) {
    after(store, &["list"]);
    let is_before = meanwhile.is_some_and(|it| it.1);
    let mut answer = None;
    if let Some((name, _)) = meanwhile.filter(|_| is_before) {
        answer = Some(etcd.write(name));
    }
    etcd.events.clear();
    let items = etcd.shown();
    if let Some((name, _)) = meanwhile.filter(|_| !is_before) {
        answer = Some(etcd.write(name));
    }
    if let Some(text) = answer {
        after(store, &[&format!("answer {text}")]);
    }
    for it in items {
        after(store, &[&format!("item {it}")]);
    }
    after(store, &["done"]);
}

/// A fake etcd, its backup and the store that follows it.
struct Scene {
    etcd: Etcd,
    backup: Etcd,
    store: Store<ConfigMap>,
}

impl Scene {
    fn new() -> Self {
        let mut scene = Self { etcd: Etcd::default(), backup: Etcd::default(), store: store() };
        relist(&mut scene.etcd, &mut scene.store, None);
        scene
    }

    fn happen(&mut self, deed: Deed) {
        let Self { etcd, backup, store } = self;
        match deed {
            Deed::Foreign(name) => drop(etcd.write(name)),
            Deed::Own(name) => {
                let text = etcd.write(name);
                after(store, &[&format!("answer {text}")]);
            }
            Deed::OwnLate(name) => {
                let text = etcd.write(name);
                etcd.answers.push(text);
            }
            Deed::Delete(name) => etcd.delete(name),
            Deed::Answer(which) if !etcd.answers.is_empty() => {
                let text = etcd.answers.remove(which.index(etcd.answers.len()));
                after(store, &[&format!("answer {text}")]);
            }
            Deed::Hear if !etcd.events.is_empty() => {
                let event = etcd.events.remove(0);
                after(store, &[&event]);
            }
            Deed::Answer(_) | Deed::Hear => {}
            Deed::Relist(name, is_before) => relist(etcd, store, Some((name, is_before))),
            Deed::Backup => *backup = etcd.clone(),
            Deed::Restore => {
                *etcd = backup.clone();
                etcd.answers.clear();
                relist(etcd, store, None);
            }
        }
    }
}

proptest! {
    #[test]
    fn a_cache_that_has_heard_everything_is_as_etcd_is_also_after_a_restore(
        deeds in prop::collection::vec(deed(), 1..60),
    ) {
        let mut scene = Scene::new();
        for deed in deeds {
            scene.happen(deed);
        }
        let Scene { mut etcd, mut store, .. } = scene;
        // One more change of another object, so that the watch advances past every response.
        etcd.write(9);
        let events = std::mem::take(&mut etcd.events);
        for event in &events {
            drop(after(&mut store, &[event]));
        }
        let found: Vec<String> = store.all().iter().map(|it| shown(it)).collect();
        prop_assert_eq!(found, etcd.shown());
    }

    #[test]
    fn without_a_restore_a_watch_never_goes_back(deeds in prop::collection::vec(deed(), 1..60)) {
        let mut scene = Scene::new();
        for deed in deeds.into_iter().filter(|it| !matches!(it, Deed::Restore)) {
            let reported = scene.store.watches[0].reported;
            scene.happen(deed);
            prop_assert!(scene.store.watches[0].reported >= reported, "{:?}", deed);
        }
    }
}
