//! What phase 0 adds to the runs of a compute, and what keeps them from running.

use super::*;
use crate::group::conflicting_service::ConflictingService;

fn rival() -> ConflictingService {
    ConflictingService { lister: "OpenStackDataPlaneRole compute".into(), service: "own".into() }
}

#[test]
fn a_service_of_the_same_files_is_named_and_nothing_runs_until_it_is_off_the_list() {
    let mut world = World::new();
    world.seen.nova.listed = Some(rival());
    world.settle();
    let condition = world.condition("InputReady");
    assert_eq!((condition.reason.as_str(), world.n_runs()), ("NovaServiceListed", 0));
    for part in ["OpenStackDataPlaneService own", "OpenStackDataPlaneRole compute", "Compute n0"] {
        assert!(condition.message.contains(part), "{}", condition.message);
    }
    world.seen.nova.listed = None;
    assert!(world.settle().contains(&"run libvirt".to_owned()));
}

#[test]
fn a_deployed_compute_stays_ready_and_runs_nothing_beside_such_a_service_until_it_is_edited() {
    let mut world = World::deployed();
    world.seen.nova.listed = Some(rival());
    assert_eq!(world.settle(), ["status"]);
    assert_eq!(world.condition("Ready").status, ConditionStatus::True);
    assert_eq!(world.reason("InputReady"), "NovaServiceListed");
    world.writes.clear();
    assert_eq!(world.configure(Some("[DEFAULT]\ndebug = true\n")).settle(), ["status"]);
    assert_eq!(world.reason("Ready"), "NovaServiceListed");
    world.seen.nova.listed = None;
    assert!(world.settle().contains(&"run nova".to_owned()));
}

/// Has the role list services, of which these have succeeded on the host.
fn list(world: &mut World, services: &[&str], succeeded: &[&str]) {
    let names = services.iter().map(|it| (*it).to_owned()).collect();
    world.seen.group.as_mut().unwrap().role_mut().spec.services = names;
    let run = |name: &&str| {
        json!({
            "name": name, "state": "Succeeded", "hash": "h", "deployedHash": "h", "attempt": 1,
            "since": "2025-12-31T00:00:00Z",
        })
    };
    let runs: Vec<Value> = succeeded.iter().map(run).collect();
    world.node().status.as_mut().unwrap().services = serde_json::from_value(json!(runs)).unwrap();
}

/// A node that awaits its turn to get a new service of its role stays Ready meanwhile.
#[test]
fn a_first_run_waits_for_each_service_that_the_host_lists_and_a_deployed_compute_does_not() {
    let mut world = World::new();
    list(&mut world, &["run-os", "ovn"], &["run-os"]);
    assert_eq!(world.settle(), ["files", "status"]);
    let told = world.condition("NodeReady");
    assert_eq!((told.reason.as_str(), world.n_runs()), ("NodeNotReady", 0));
    assert!(told.message.starts_with("OpenStackDataPlaneService ovn has not"), "{}", told.message);
    list(&mut world, &["run-os", "ovn"], &["run-os", "ovn"]);
    let mut world = world.deploy();
    list(&mut world, &["run-os", "ovn", "new"], &["run-os", "ovn"]);
    world.configure(Some("[DEFAULT]\ndebug = true\n"));
    assert!(world.settle().contains(&"run nova".to_owned()));
}

/// The volumes and mounts of the first run of a compute with this inventory.
fn mounts_of_a_run(inventory: &str, secret: Option<&str>) -> (String, Vec<String>) {
    let mut world = World::new();
    world.compute().spec.inventory_config_map_name = Some(inventory.to_owned());
    let status = world.node().status.as_mut().unwrap();
    status.inventory_config_map_name = Some("dataplanenode-n0".into());
    status.inventory_secret_name = secret.map(str::to_owned);
    status.shared_inventory_config_map_name = Some("dataplanerole-compute".into());
    status.shared_inventory_secret_name = secret.map(|_| "dataplanerole-compute".to_owned());
    world.settle();
    let spec = &world.seen.runs[0].spec;
    let mounts = spec.extra_mounts.iter().flat_map(|it| &it.mounts);
    let paths = mounts.filter(|it| it.mount_path.contains("_vars")).map(|it| it.mount_path.clone());
    (serde_json::to_string(&spec.extra_mounts).unwrap(), paths.collect())
}

#[test]
fn the_nodes_variables_from_secrets_are_mounted_beside_its_inventory() {
    let (spec, paths) = mounts_of_a_run("dataplanenode-n0", Some("dataplanenode-n0"));
    let folder = "/runner/inventory";
    assert_eq!(paths, [format!("{folder}/group_vars/all"), format!("{folder}/host_vars")]);
    assert!(spec.contains(r#""secretName":"dataplanenode-n0""#), "{spec}");
    assert_eq!(mounts_of_a_run("dataplanenode-n0", None).1, [""; 0]);
    let (spec, paths) = mounts_of_a_run("dataplanerole-compute", Some("dataplanenode-n0"));
    assert_eq!(paths.len(), 2);
    assert!(spec.contains(r#""secretName":"dataplanerole-compute""#), "{spec}");
    // A user's own inventory comes with mounts of the user's own.
    assert_eq!(mounts_of_a_run("mine", Some("dataplanenode-n0")).1, [""; 0]);
}
