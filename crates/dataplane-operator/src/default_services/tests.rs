//! Tests: the data files, and when a default service is restored.

use std::collections::BTreeSet;

use api::dataplane::service::faults::{faults, warnings};
use api::dataplane::{NodeSetSpec, RoleSpec};
use api::definitions;
use api::shared::SourceKind;
use operator_core::data_sources::sources_of;
use operator_core::plan::Write;
use operator_runtime::cache::WriteThrough as _;
use serde_json::Value;

use super::*;
use crate::collection;
use crate::host::inputs::{Inputs, of_service};

/// The default services as their files have them.
static SHIPPED: LazyLock<DefaultServices> = LazyLock::new(DefaultServices::default);

/// A default service as the API server has it after it was applied.
fn applied(name: &str) -> Service {
    applied_as(&SHIPPED, name)
}

fn applied_as(defaults: &DefaultServices, name: &str) -> Service {
    let Write::Apply { object, .. } = defaults.step("ns", name, "").unwrap().write else {
        panic!("no apply")
    };
    serde_json::from_value(object).unwrap()
}

#[test]
fn every_service_of_a_role_that_names_none_is_a_default_service() {
    for name in RoleSpec::default().services {
        assert!(SHIPPED.find(&name).is_some(), "{name}");
        let playbook = SHIPPED.find(&name).unwrap().spec.playbook.as_deref().unwrap();
        assert!(collection::playbooks().contains(playbook), "{name}: {playbook} is not shipped");
    }
}

#[test]
fn all_services_that_node_sets_may_list_by_name_are_there() {
    assert_eq!(names().count(), 36);
    assert_eq!(names().count(), FILES.len(), "two files have one name");
    // The default list of a node set's services; the other files have names of other projects.
    for name in "redhat download-cache bootstrap configure-network validate-network install-os \
                 configure-os ssh-known-hosts run-os reboot-os install-certs ovn telemetry"
        .split_whitespace()
    {
        assert!(SHIPPED.find(name).is_some(), "{name}");
    }
}

#[test]
fn each_file_is_a_service_of_its_own_type_without_fault_or_warning() {
    for name in names() {
        let service = SHIPPED.find(name).unwrap();
        assert_eq!(service.spec.edpm_service_type.as_deref(), Some(name));
        let playbook = service.spec.playbook.as_deref().unwrap();
        assert!(playbook.starts_with(&format!("{}.", collection::name())), "{name}: {playbook}");
        assert_eq!(faults(service), [], "{name}");
        assert_eq!(warnings(service), [], "{name}");
    }
}

#[test]
fn a_service_that_cannot_be_read_is_found_with_its_field_and_is_not_missing() {
    let object = |name: &str, playbook: Value| {
        serde_json::json!({
            "apiVersion": "dataplane.openstack.org/v1beta1",
            "kind": "OpenStackDataPlaneService",
            "metadata": { "namespace": "ns", "name": name, "uid": name, "resourceVersion": "1" },
            "spec": { "playbook": playbook },
        })
    };
    let cache: Arc<Cache<Service>> = Cache::new(vec![]);
    cache.absorb(&object("own", "a.b.c".into()));
    cache.absorb(&object("run-os", 7.into()));
    let names = ["own", "run-os", "install-os"].map(str::to_owned);
    let mut found = Found::default();
    found.lookup((&cache, &SHIPPED), "ns", names.clone());
    assert_eq!(found.services.keys().collect::<Vec<_>>(), ["own"]);
    let why = "spec.playbook: cannot be read; expected a string";
    assert_eq!(found.unreadable, BTreeMap::from([("run-os".to_owned(), why.to_owned())]));
    let steps = SHIPPED.missing("ns", &names, &found.services, &found.unreadable);
    let made: Vec<&str> = steps.iter().map(|it| it.target.name.as_str()).collect();
    assert_eq!(made, ["install-os"]);
}

/// Otherwise each would be restored again and again: fields that the API server adds are not a
/// user's edit.
#[test]
fn the_api_server_adds_no_field_to_a_default_service_and_drops_none() {
    let kind = "OpenStackDataPlaneService";
    let crd = definitions::all().into_iter().find(|it| it.spec.names.kind == kind).unwrap();
    let schema = serde_json::to_value(&crd.spec.versions[0]).unwrap();
    let schema = &schema["schema"]["openAPIV3Schema"]["properties"]["spec"];
    for text in FILES {
        let file: Value = yaml::from_str(text).unwrap();
        let name = file["metadata"]["name"].as_str().unwrap();
        assert_eq!(
            serde_json::to_value(&SHIPPED.find(name).unwrap().spec).unwrap(),
            file["spec"],
            "{name}"
        );
        agrees(&file["spec"], schema, name);
    }
}

/// Asserts that a value has only fields of its schema, and all fields with a default.
fn agrees(value: &Value, schema: &Value, path: &str) {
    if let Some(items) = value.as_array() {
        for item in items {
            agrees(item, &schema["items"], path);
        }
    }
    let Some(fields) = value.as_object() else { return };
    for (name, value) in fields {
        let below = if schema["properties"].is_object() {
            &schema["properties"][name]
        } else {
            &schema["additionalProperties"]
        };
        assert!(below.is_object(), "{path}.{name} is unknown");
        agrees(value, below, &format!("{path}.{name}"));
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let is_filled = property.get("default").is_some() && !fields.contains_key(name);
        assert!(!is_filled, "{path}.{name} would be filled");
    }
}

#[test]
fn services_that_need_others_playbooks_are_there_too() {
    let shipped: BTreeSet<&str> = collection::playbooks().iter().map(String::as_str).collect();
    let missing: Vec<&str> = names()
        .filter(|it| !shipped.contains(SHIPPED.find(it).unwrap().spec.playbook.as_deref().unwrap()))
        .collect();
    assert!(missing.contains(&"telemetry") && missing.contains(&"swift"), "{missing:?}");
    assert!(missing.len() < FILES.len());
}

/// Returns the table of the docs, built from the files and the collection.
fn table() -> String {
    let row = |name: &str| {
        let spec = &SHIPPED.find(name).unwrap().spec;
        let is_ours = spec.playbook.as_ref().is_some_and(|it| collection::playbooks().contains(it));
        let sources: Vec<String> = sources_of(spec)
            .iter()
            .map(|it| {
                let kind = if it.kind == SourceKind::Secret { "S" } else { "C" };
                let optional = if it.is_optional { " (optional)" } else { "" };
                format!("{kind} `{}`{optional}", it.name)
            })
            .collect();
        let row = format!(
            "| `{name}` | {} | {} |",
            if is_ours { "yes" } else { "no" },
            sources.join(", ")
        );
        row.replace("|  |", "| |") + "\n"
    };
    names().map(row).collect()
}

#[test]
fn the_docs_list_every_default_service_as_it_is() {
    let docs = std::fs::read_to_string("../../docs/services.md").unwrap();
    assert!(docs.contains(&table()), "docs/services.md should have:\n{}", table());
}

#[test]
fn the_docs_say_which_default_services_of_a_node_set_our_collection_has() {
    let all = NodeSetSpec::default().services;
    let has = |it: &&String| {
        let playbook = SHIPPED.find(it).and_then(|it| it.spec.playbook.as_deref());
        playbook.is_some_and(|it| collection::playbooks().contains(it))
    };
    let included: Vec<String> = all.iter().filter(has).map(|it| format!("`{it}`")).collect();
    let (last, others) = included.split_last().unwrap();
    let counts = format!("{}, of which our image has {}", all.len(), included.len());
    for (page, words) in [
        ("docs/nodeset.md", format!("{counts}: {} and {last}.", others.join(", "))),
        ("README.md", counts.clone()),
    ] {
        let text = std::fs::read_to_string(format!("../../{page}")).unwrap();
        assert!(text.contains(&words), "{page} should have: {words}");
    }
}

#[test]
fn what_was_applied_is_intact_with_labels_and_annotations_of_others() {
    let mut service = applied("run-os");
    assert_eq!(SHIPPED.restoration(&service), None);
    service.labels_mut().insert("mine".into(), "x".into());
    service.annotations_mut().insert("mine".into(), "x".into());
    assert_eq!(SHIPPED.restoration(&service), None);
    let kept = SHIPPED.as_it_holds(Arc::new(service.clone()));
    assert_eq!(*kept, service);
}

#[test]
fn a_changed_field_is_restored_with_an_event_and_meanwhile_not_deployed() {
    let mut service = applied("run-os");
    service.spec.open_stack_ansible_ee_runner_image = Some("mine".into());
    let (restoring, notice) = SHIPPED.restoration(&service).unwrap();
    assert_eq!(
        Some(restoring),
        SHIPPED.step("ns", "run-os", "a default service differs from what is shipped")
    );
    let note = notice.unwrap().note;
    assert!(note.contains("OpenStackDataPlaneService run-os is a default service"), "{note}");
    assert!(note.contains("under another name with edpmServiceType: run-os"), "{note}");
    assert_eq!(SHIPPED.as_it_holds(Arc::new(service)).spec, SHIPPED.find("run-os").unwrap().spec);
}

#[test]
fn a_service_of_the_name_that_was_there_first_is_its_authors() {
    let spec = serde_json::from_value(json!({ "playbook": "a.b.c" })).unwrap();
    let humans = Service::new("run-os", spec);
    assert_eq!(SHIPPED.restoration(&humans), None);
    assert_eq!(*SHIPPED.as_it_holds(Arc::new(humans.clone())), humans, "hosts may run by it");
    let own = Service::new("my-run-os", SHIPPED.find("run-os").unwrap().spec.clone());
    assert_eq!(SHIPPED.restoration(&own), None);
}

#[test]
fn another_versions_service_and_a_lost_mark_are_mended_without_an_event() {
    let mut older = applied("run-os");
    older.spec.container_image_fields.clear();
    let hash = hash::short(&older.spec);
    older.annotations_mut().insert(CONTENT_HASH.into(), hash);
    assert_eq!(SHIPPED.restoration(&older).unwrap().1, None);
    let mut unmarked = applied("run-os");
    unmarked.labels_mut().clear();
    assert_eq!(SHIPPED.restoration(&unmarked).unwrap().1, None);
    let before_marks = Service::new("run-os", SHIPPED.find("run-os").unwrap().spec.clone());
    assert_eq!(SHIPPED.restoration(&before_marks).unwrap().1, None);
}

fn gated() -> DefaultServices {
    DefaultServices::with_gates(&["run-os=example.org/Up".parse().unwrap()])
}

#[test]
fn without_the_option_no_default_service_lists_a_gate() {
    assert!(names().all(|it| SHIPPED.find(it).unwrap().spec.readiness_gates.is_empty()));
}

#[test]
fn a_gate_of_the_option_changes_its_service_alone_and_no_host_is_out_of_date() {
    let gated = gated();
    let differ: Vec<&str> = names().filter(|it| gated.find(it) != SHIPPED.find(it)).collect();
    assert_eq!(differ, ["run-os"]);
    let mut service = gated.find("run-os").unwrap().clone();
    assert_eq!((faults(&service), warnings(&service)), (vec![], vec![]));
    let inputs = |it: &Service| of_service(it, "run-os", &Inputs::new());
    assert_eq!(inputs(&service), inputs(SHIPPED.find("run-os").unwrap()));
    let listed = std::mem::take(&mut service.spec.readiness_gates);
    let types: Vec<&str> = listed.iter().map(|it| it.condition_type.as_str()).collect();
    assert_eq!(types, ["example.org/Up"]);
    assert_eq!(Some(&service), SHIPPED.find("run-os"));
}

#[test]
fn the_gate_counts_at_once_and_is_added_and_removed_without_an_event() {
    let (gated, shipped) = (gated(), DefaultServices::default());
    for (before, after) in [(&shipped, &gated), (&gated, &shipped)] {
        let found = applied_as(before, "run-os");
        assert_eq!(before.restoration(&found), None);
        let held = after.as_it_holds(Arc::new(found.clone()));
        assert_eq!(held.spec, after.find("run-os").unwrap().spec);
        let (restoring, notice) = after.restoration(&found).unwrap();
        assert_eq!(notice, None);
        let because = "a default service differs from what is shipped";
        assert_eq!(Some(restoring), after.step("ns", "run-os", because));
        assert_eq!(after.restoration(&applied_as(after, "run-os")), None);
    }
}

#[test]
fn a_gate_needs_a_default_service_and_a_type() {
    for wrong in ["", "run-os", "run-os=", "unknown=example.org/Up", "=example.org/Up"] {
        assert!(wrong.parse::<DefaultGate>().is_err(), "{wrong}");
    }
}
