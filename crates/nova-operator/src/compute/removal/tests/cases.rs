//! The ways in which a compute is deleted.

use nova_config::annotations::ALLOW_REMOVAL;

use super::*;
use crate::finalizers;

/// The writes after the end of the cleanup when the node is deleted too; sorted.
const END: [&str; 8] = [
    "delete run",
    "release cell",
    "release compute",
    "release node",
    "status cell",
    "status cell",
    "status compute",
    "status node",
];

fn gone(world: &World) {
    assert!(world.node.is_none() && world.compute.is_none(), "{:?}", world.compute);
    assert!(world.runs.is_empty(), "a run of the clean-up is forgotten");
}

#[test]
fn a_node_is_held_before_it_has_a_compute_and_a_cell_while_it_has_one() {
    let mut world = World::new();
    let finalizers = |it: &ObjectMeta| it.finalizers.clone().unwrap_or_default();
    assert_eq!(finalizers(world.node.as_ref().unwrap().meta()), [INVENTORY, finalizers::NODE]);
    assert_eq!(finalizers(world.compute.as_ref().unwrap().meta()), [finalizers::COMPUTE]);
    assert_eq!(finalizers(world.cell.as_ref().unwrap().meta()), [finalizers::CELL]);
    world.node = Some(node("uid-n0", "192.0.2.7"));
    world.compute = None;
    assert_eq!(world.settle()[..2], ["hold node", "apply compute"]);
}

#[test]
fn nothing_of_novas_is_written_for_a_node_without_a_cell_however_it_goes() {
    let mut world = World::new();
    (world.compute, world.node) = (None, Some(node("uid-n0", "192.0.2.7")));
    world.node.as_mut().unwrap().annotations_mut().clear();
    world.settle();
    assert_eq!(world.node.as_ref().unwrap().finalizers(), [INVENTORY]);
    world.delete_node(false);
    gone(&world);
    assert_eq!(world.settle(), [""; 0]);
}

#[test]
fn a_node_deleted_in_the_background_takes_its_compute_with_it_in_order() {
    let mut world = World::new();
    let writes = world.delete_node(false).settle();
    assert_eq!(writes[0], "delete compute");
    assert_eq!(n_cleanups(&writes), 1, "{writes:?}");
    assert!(!writes.iter().any(|it| it.starts_with("release")), "{writes:?}");
    assert_eq!(world.told_by_node().0, "ComputeTerminating");
    let mut writes = world.end("Ok").settle();
    writes.sort();
    assert_eq!(writes, END);
    gone(&world);
    assert_eq!(world.leftovers(), [("n0.example.org".to_owned(), true)]);
    assert_eq!(world.events, ["compute HostCleaned", "node LeftInNova", "cell LeftInNova"]);
}

#[test]
fn a_node_deleted_in_the_foreground_loses_its_old_runs_and_not_the_one_that_cleans_up() {
    let mut world = World::new();
    world.runs.push(own_run(&world, "nova-n0", true));
    world.delete_node(true);
    assert!(world.runs.is_empty());
    let writes = world.settle();
    assert_eq!((n_cleanups(&writes), world.runs.len()), (1, 1), "{writes:?}");
    world.end("Ok").settle();
    gone(&world);
    assert_eq!(world.leftovers(), [("n0.example.org".to_owned(), true)]);
}

#[test]
fn with_permission_an_annotation_that_is_removed_takes_only_the_compute() {
    let mut world = World::new();
    let annotations = world.node.as_mut().unwrap().annotations_mut();
    annotations.insert(ALLOW_REMOVAL.to_owned(), "true".to_owned());
    annotations.remove(CELL);
    let writes = world.settle();
    assert_eq!((writes[0].as_str(), n_cleanups(&writes)), ("delete compute", 1));
    world.end("Ok").settle();
    assert!(world.compute.is_none() && world.runs.is_empty());
    let node = world.node.as_ref().unwrap();
    assert_eq!(node.finalizers(), [INVENTORY]);
    assert_eq!(world.told_by_node().0, "", "the cell remembers what is left");
    assert_eq!(world.leftovers().len(), 1);
}

#[test]
fn a_compute_deleted_by_hand_is_cleaned_up_and_made_again_and_nothing_is_left_over() {
    let mut world = World::new();
    let old = world.compute.as_ref().and_then(ResourceExt::uid);
    world.wait(1);
    world.delete("compute", "n0");
    let writes = world.settle();
    assert_eq!(n_cleanups(&writes), 1);
    assert!(!writes.contains(&"apply compute".to_owned()), "it waits for the old one: {writes:?}");
    let writes = world.end("Ok").settle();
    assert!(writes.contains(&"apply compute".to_owned()), "{writes:?}");
    assert_ne!(world.compute.as_ref().and_then(ResourceExt::uid), old);
    assert!(world.node.as_ref().unwrap().finalizers().contains(&finalizers::NODE.to_owned()));
    assert_eq!(world.leftovers().len(), 1);
    // It registers again under the same name: nova's records are in use.
    world.compute = world.compute.map(deployed);
    world.settle();
    assert_eq!(world.leftovers(), []);
}

#[test]
fn in_a_namespace_that_goes_everything_is_released_at_once_and_no_host_is_touched() {
    for is_under_way in [false, true] {
        let mut world = World::new();
        if is_under_way {
            world.delete_node(false).settle();
        }
        world.namespace_goes = true;
        for word in ["node", "compute", "cell"] {
            world.delete(word, "");
        }
        world.runs.clear();
        let writes = world.settle();
        assert!(writes.iter().all(|it| it.starts_with("release")), "{writes:?}");
        gone(&world);
        assert!(world.cell.is_none());
    }
}

#[test]
fn a_node_made_again_under_its_name_waits_for_the_old_compute_to_go() {
    let mut world = World::new();
    // A user removed the finalizers, and the node was recreated before any reconciliation.
    world.node = Some(node("uid-again", "192.0.2.7"));
    world.collect();
    let writes = world.settle();
    assert_eq!(n_cleanups(&writes), 1, "{writes:?}");
    assert!(!writes.contains(&"apply compute".to_owned()), "{writes:?}");
    assert_eq!(world.told_by_node().0, "ComputeTerminating");
    world.wait(1);
    let writes = world.end("Ok").settle();
    assert!(writes.contains(&"apply compute".to_owned()), "{writes:?}");
    assert!(is_owned(world.compute.as_ref().unwrap().meta(), "uid-again"));
}

#[test]
fn an_operator_that_was_down_meanwhile_does_the_same_a_little_later() {
    let mut world = World::new();
    // No controller runs: the node is deleted, and Kubernetes does its part.
    world.delete_node(true);
    world.wait(600).settle();
    // The run ends while the operator is down again.
    world.end("Ok");
    world.wait(600).settle();
    gone(&world);
    assert_eq!(world.leftovers(), [("n0.example.org".to_owned(), true)]);
}

#[test]
fn an_operator_killed_after_every_single_write_cleans_up_once_and_forgets_nothing() {
    for in_foreground in [false, true] {
        let mut world = World::new();
        world.delete_node(in_foreground);
        let mut writes = world.settle_by(1);
        world.end("Ok");
        writes.extend(world.settle_by(1));
        assert_eq!(n_cleanups(&writes), 1, "{writes:?}");
        gone(&world);
        assert_eq!(world.leftovers(), [("n0.example.org".to_owned(), true)]);
    }
}

#[test]
fn a_compute_waits_until_its_cell_remembers_what_it_leaves() {
    let mut world = World::new();
    world.delete_node(false).settle();
    world.end("Ok");
    // The cell's controller is late, or its write is rejected.
    for _ in 0..9 {
        let creation = world.creation().map(|it| recorded(lifecycle::decide(&it, None, world.now)));
        let ending = world.ending().map(|it| recorded(removal::decide(&it, None, world.now)));
        for plan in creation.map(without_orders).into_iter().chain(ending) {
            world.take_all(&plan.steps);
            world.collect();
        }
    }
    assert_eq!(world.told_by_node().0, "LeftInNova");
    assert!(world.compute.is_some() && world.leftovers().is_empty());
    world.settle();
    gone(&world);
    assert_eq!(world.leftovers(), [("n0.example.org".to_owned(), true)]);
}

#[test]
fn whatever_its_node_asks_for_meanwhile_a_compute_goes() {
    for asked in ["nova-cell0", "No Name", "nova-cell2", ""] {
        let mut world = World::new();
        let old = world.compute.as_ref().and_then(ResourceExt::uid);
        world.wait(1);
        world.delete("compute", "n0");
        let annotations = world.node.as_mut().unwrap().annotations_mut();
        annotations.insert(CELL.to_owned(), asked.to_owned());
        world.settle();
        world.end("Ok").settle();
        assert_ne!(world.compute.as_ref().and_then(ResourceExt::uid), old, "{asked:?}");
        assert_eq!(world.compute.is_some(), asked == "nova-cell2");
    }
}

#[test]
fn a_node_that_only_others_hold_keeps_no_compute() {
    let mut world = World::new();
    // A user removed our finalizer.
    world.change("node", |it| it.finalizers = Some(vec![INVENTORY.into(), "example.org/x".into()]));
    world.delete_node(false).settle();
    world.end("Ok").settle();
    assert!(world.node.is_some() && world.compute.is_none());
    assert_eq!(world.leftovers().len(), 1);
}

#[test]
fn a_foreign_cell_is_never_written_and_its_node_remembers_what_is_left() {
    let mut world = World::new();
    world.cells_are_ours = false;
    let before = world.cell.clone();
    let annotations = world.node.as_mut().unwrap().annotations_mut();
    annotations.insert(ALLOW_REMOVAL.to_owned(), "true".to_owned());
    annotations.insert(CELL.to_owned(), String::new());
    world.settle();
    world.end("Ok").settle();
    assert!(world.compute.is_none());
    let words = ["nova-cell1", "--host n0.example.org", "openstack compute service delete"];
    world.node_says("LeftInNova", &words);
    assert_eq!(world.cell, before);
    assert!(world.events.contains(&"node LeftInNova".to_owned()), "{:?}", world.events);
    // Until the node gets another compute, or is deleted.
    assert_eq!(world.settle(), [""; 0]);
    world.wait(1);
    let annotations = world.node.as_mut().unwrap().annotations_mut();
    annotations.insert(CELL.to_owned(), "nova-cell1".to_owned());
    world.settle();
    assert_eq!(world.told_by_node().0, "Deploying");
}

/// A run of the compute's own, finished or not.
pub(super) fn own_run(world: &World, name: &str, is_finished: bool) -> AnsibleEe {
    let mut run: AnsibleEe = object(name, &json!({}));
    let owner = world.compute.as_ref().and_then(|it| it.controller_owner_ref(&()));
    run.metadata.owner_references = owner.map(|it| vec![it]);
    run.labels_mut().insert("edpm.openstack.org/service".into(), "nova".into());
    let attempts = json!({ "n0": { "hash": "h", "attempt": 1 } }).to_string();
    run.annotations_mut().insert("edpm.openstack.org/attempts".into(), attempts);
    if is_finished {
        run.status = Some(serde_json::from_value(json!({ "JobStatus": "Succeeded" })).unwrap());
    }
    run
}

/// Lets a deployed compute with options go, after `how`; returns the writes at its end, with the reasons
/// of the Events on the node, and the Secrets.
fn lets_options_go(how: fn(&mut World)) -> (Vec<String>, Vec<Value>) {
    let mut world = World::new();
    let spec = &mut world.compute.as_mut().unwrap().spec;
    spec.custom_service_config = Some("[DEFAULT]\nmax_concurrent_builds = 7\n".to_owned());
    let files = &mut spec.default_config_overwrite;
    files.insert("provider.yaml".to_owned(), "meta: {}\n".to_owned());
    files.insert("../my file.yaml".to_owned(), "meta: {}\n".to_owned());
    files.extend((0..9).map(|it| (format!("z{it}"), "x".repeat(128 * 1024))));
    how(&mut world);
    world.settle();
    world.end("Ok");
    let (mut writes, mut secrets) = (Vec::new(), Vec::new());
    for plan in (0..8).flat_map(|_| pass(&mut world)).collect::<Vec<_>>() {
        let kept = |it: &&Step| it.target.kind.kind == "Secret";
        secrets.extend(plan.steps.iter().filter(kept).map(|it| json!(it)));
        writes.extend(plan.events.into_iter().map(|(on, it)| {
            assert!(it.note.contains(" secret n0-options-"), "{}", it.note);
            assert!(
                it.note.contains("but for 2 of the files of defaultConfigOverwrite"),
                "{}",
                it.note
            );
            format!("{} on {}", it.reason, on.name)
        }));
    }
    writes.extend(std::mem::take(&mut world.writes));
    (writes, secrets)
}

/// Carries out the plans of all controllers once.
fn pass(world: &mut World) -> Vec<Plan<OrderOfHost>> {
    let plans = world.plans();
    for plan in &plans {
        world.take_all(&plan.steps);
        world.collect();
    }
    plans
}

#[test]
fn options_of_a_compute_that_is_deleted_are_kept_in_a_secret_of_its_node_before_it_goes() {
    let (writes, secrets) = lets_options_go(|it| it.delete("compute", "n0"));
    assert_eq!(writes[0], "OptionsKept on n0");
    let at = |what: &str| writes.iter().position(|it| it == what).unwrap();
    assert!(at("apply secret") < at("release compute"), "{writes:?}");
    assert_eq!(secrets.len(), 1, "{secrets:?}");
    let object = &secrets[0]["write"]["Apply"]["object"];
    assert_eq!(object["metadata"]["ownerReferences"][0]["uid"], "uid-n0");
    let data: std::collections::BTreeMap<String, k8s_openapi::ByteString> =
        serde_json::from_value(object["data"].clone()).unwrap();
    let text = |key: &str| String::from_utf8(data[key].0.clone()).unwrap();
    assert!(text("customServiceConfig").ends_with("max_concurrent_builds = 7\n"));
    assert_eq!(text("provider.yaml"), "meta: {}\n");
    assert_eq!(text("-my-file.yaml"), "meta: {}\n", "the API server would refuse the Secret");
    let n_bytes: usize = data.values().map(|it| it.0.len()).sum();
    assert_eq!((data.len(), n_bytes < 1024 * 1024), (10, true), "nine further files have no room");
}

#[test]
fn nothing_is_kept_of_a_compute_whose_node_goes() {
    let (writes, secrets) = lets_options_go(|it| _ = it.delete_node(false));
    assert!(writes.contains(&"release compute".to_owned()), "{writes:?}");
    assert!(secrets.is_empty(), "{secrets:?}");
}
