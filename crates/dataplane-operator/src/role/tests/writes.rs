//! Objects that are rewritten after others changed them, and reports of rejected writes.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;

fn is_run(step: &Step) -> bool {
    matches!(step.write, Write::Create { .. })
}

#[test]
fn an_inventory_that_is_deleted_or_edited_by_hand_is_written_again_and_nothing_runs() {
    let mut world = World::new().held();
    world.deploy();
    world.seen.inventories.remove("dataplanenode-n0");
    assert_eq!(world.settle(), ["apply ConfigMap dataplanenode-n0"]);
    for name in ["dataplanenode-n1", "dataplanerole-compute"] {
        // Another writer has taken over a field of the data: the hash that we wrote is still there.
        let left = json!({ "metadata": { "annotations": { INVENTORY_HASH: "" } } });
        world.seen.inventories.get_mut(name).unwrap().managed_fields =
            ManagedFields::applied(&left);
        assert_eq!(world.settle(), [format!("apply ConfigMap {name}")]);
    }
}

#[test]
fn a_run_that_is_refused_is_told_on_role_and_hosts_once_and_heals() {
    let mut world = World::new();
    world.refused_pass(is_run);
    assert_eq!(world.role_reason("WritesAccepted").as_deref(), Some("Forbidden"));
    let message = world.role_message();
    assert!(message.starts_with("OpenStackAnsibleEE install-os-"), "{message}");
    assert!(message.contains("cannot be written: exceeded quota: q. Raise the quota"), "{message}");
    assert_eq!(world.condition(0, "Ready"), is("False", "Forbidden"));
    assert_eq!(world.condition(1, "DeploymentReady"), is("False", "Forbidden"));
    world.writes.clear();
    for _ in 0..3 {
        world.refused_pass(is_run);
        assert_eq!(world.writes, [""; 0], "told once");
    }
    world.deploy();
    assert_eq!(world.role_reason("WritesAccepted"), None);
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
}

#[test]
fn an_inventory_that_is_refused_is_told_with_everything_else_and_heals_in_one_pass() {
    let mut world = World::new().held();
    let is_inventory = |it: &Step| it.target.name == "dataplanenode-n1";
    world.refused_pass(is_inventory);
    let message = world.role_message();
    assert!(message.starts_with("ConfigMap dataplanenode-n1 cannot be written"), "{message}");
    world.writes.clear();
    world.refused_pass(is_inventory);
    assert_eq!(world.writes, [""; 0]);
    // What is already deployed stays ready.
    world.deploy();
    world.seen.inventories.remove("dataplanenode-n1");
    world.refused_pass(is_inventory);
    assert_eq!(world.role_reason("Ready").as_deref(), Some("Forbidden"));
    assert_eq!(world.condition(1, "Ready"), is("True", "Ready"));
    world.pass();
    assert_eq!(world.role_reason("WritesAccepted"), None);
    assert_eq!(world.role_reason("Ready").as_deref(), Some("NodesReady"));
}

#[test]
fn a_default_service_that_is_refused_is_told_on_the_role() {
    let mut world = World::new();
    world.seen.services.clear();
    let is_service = |it: &Step| it.target.kind.kind == "OpenStackDataPlaneService";
    world.refused_pass(is_service);
    assert_eq!(world.role_reason("WritesAccepted").as_deref(), Some("Forbidden"));
    world.writes.clear();
    world.refused_pass(is_service);
    assert_eq!(world.writes, [""; 0]);
}

/// Returns the writes of inventory objects of the role.
fn of_role(writes: &[String]) -> Vec<&String> {
    writes.iter().filter(|it| it.starts_with("apply ConfigMap dataplanerole")).collect()
}

#[test]
fn inventories_that_no_run_mounts_wait_while_nodes_arrive_unless_a_host_in_service_lacks_one() {
    let mut world = World::of(120);
    world.strategy().batch_size = Some(100);
    let created = |world: &World| Some(Time(world.now));
    let now = created(&world);
    for node in &mut world.seen.nodes {
        Arc::make_mut(node).metadata.creation_timestamp.clone_from(&now);
    }
    let writes = world.settle();
    assert_eq!(of_role(&writes), ["apply ConfigMap dataplanerole-compute"]);
    assert_eq!(runs(&writes).len(), 1, "a full batch waits for nobody: {writes:?}");
    world.now = world.now.saturating_add(SignedDuration::from_secs(3)).unwrap();
    let writes = world.settle();
    assert_eq!(of_role(&writes), ["apply ConfigMap dataplaneroles.1-compute"]);
    assert_eq!(runs(&writes).len(), 1, "{writes:?}");
    world.deploy();
    // Another one arrives, and an object is lost meanwhile.
    let mut further = node("n120", "192.0.2.120");
    Arc::make_mut(&mut further).metadata.creation_timestamp = created(&world);
    world.seen.nodes.push(further);
    assert_eq!(of_role(&world.settle()), [""; 0]);
    world.seen.inventories.remove("dataplanerole-compute");
    assert_eq!(of_role(&world.settle()), ["apply ConfigMap dataplanerole-compute"]);
}
