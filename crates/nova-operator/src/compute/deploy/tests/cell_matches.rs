//! A compute whose node requests another cell, and one whose role or cell does not exist.

use nova_config::annotations::{CELL, DEFAULT_CONFIG};

use super::*;

/// A deployed compute that its node owns, with that annotation on the node.
fn asked(cell: Option<&str>) -> World {
    let mut world = World::deployed();
    world.own();
    world.node().annotations_mut().extend(cell.map(|it| (CELL.to_owned(), it.to_owned())));
    world
}

#[test]
fn a_mismatch_is_told_deploys_nothing_and_goes_with_its_cause() {
    for (cell, words) in [
        (
            Some("nova-cell2"),
            "asks for cell nova-cell2, but NovaExternalCompute n0 is in cell nova-cell1",
        ),
        (Some(""), "names a cell any more"),
        (None, "names a cell any more"),
    ] {
        let mut world = asked(cell);
        assert_eq!(world.settle(), ["status"], "{cell:?}");
        world.says("CellMatches", "CellMismatch", &[words]);
        assert_eq!(world.condition("Ready").status, ConditionStatus::True);

        world.node().annotations_mut().insert(CELL.into(), "nova-cell1".into());
        assert_eq!(world.settle(), ["status"]);
        assert_eq!(world.reason("CellMatches"), "CellMatches");
    }
}

#[test]
fn a_mismatch_is_told_in_an_event_of_the_compute_once() {
    let mut world = asked(Some("nova-cell2"));
    let plan = world.pass();
    let Write::Status { notices, .. } = &plan.steps[0].write else { panic!("{plan:?}") };
    assert_eq!(notices.iter().filter(|it| it.reason == "CellMismatch").count(), 1);
    assert_eq!(world.settle(), Vec::<String>::new());
}

#[test]
fn a_mismatch_keeps_nothing_else_from_the_host() {
    let mut world = asked(Some("nova-cell2"));
    world.settle();
    let writes = world.configure(Some("[libvirt]\ncpu_mode = none\n")).settle();
    assert!(writes.contains(&"run nova".to_owned()), "{writes:?}");
}

#[test]
fn a_compute_that_its_node_does_not_own_is_not_compared() {
    let mut world = asked(Some("nova-cell2"));
    world.compute().metadata.owner_references = None;
    assert_eq!(world.settle(), Vec::<String>::new());
    assert_eq!(world.reason("CellMatches"), "CellMatches");
}

#[test]
fn a_role_that_is_deleted_undoes_nothing_although_it_named_the_configuration() {
    let mut world = World::new();
    let role = world.seen.group.as_mut().unwrap().role_mut();
    role.annotations_mut().insert(CELL.into(), "nova-cell1".into());
    role.annotations_mut().insert(DEFAULT_CONFIG.into(), "defaults".into());
    let defaults = content(&[("02-nova-default.conf", "[DEFAULT]\ndebug = True\n")]);
    world.seen.default_config =
        Some(DefaultConfig { name: "defaults".into(), content: Some(defaults) });
    world.run_all().settle();
    let files = world.files.clone();
    assert!(files.contains_key("02-nova-default.conf"));

    world.seen.group = None;
    world.seen.default_config = None;
    // The node's controller has noticed, and keeps the node ready.
    world.node().status.as_mut().unwrap().observed_role = None;
    let writes = world.settle();
    assert!(!writes.iter().any(|it| it == "files" || it.starts_with("run")), "{writes:?}");
    assert_eq!(world.files, files);
    assert_eq!(world.reason("InputReady"), "RoleNotFound");
    assert_eq!(world.condition("Ready").status, ConditionStatus::True);
}

#[test]
fn what_the_node_publishes_without_its_role_is_no_input() {
    let mut world = World::deployed();
    let status = world.node().status.as_mut().unwrap();
    status.observed_role = None;
    status.address = Some("192.0.2.7:2222".into());
    let writes = world.settle();
    assert!(!writes.iter().any(|it| it == "files" || it.starts_with("run")), "{writes:?}");
    assert_eq!(world.reason("InputReady"), "InventoryNotPublished");
    assert_eq!(world.condition("Ready").status, ConditionStatus::True);
}

#[test]
fn a_cell_that_does_not_exist_is_waited_for() {
    let mut world = World::new();
    let cell = world.seen.cell.take();
    world.settle();
    assert_eq!((world.reason("NovaCellReady"), world.n_runs()), ("NovaCellNotFound".into(), 0));
    world.seen.cell = cell;
    assert_eq!(world.settle()[..3], ["files", "status", "run libvirt"]);
}
