//! Deployments to hosts whose machines are provisioned.

use super::*;

impl World {
    /// Hosts whose machines are provisioned; those that are listed have theirs.
    fn bare(spec: Value, ready: &[&str]) -> Self {
        let mut world =
            Self::with(vec![node_set("compute", &["n0", "n1"], &["first", "second"])], spec);
        world.edit("compute", |it| {
            it.spec.pre_provisioned = false;
            let template = json!({ "ctlplaneInterface": "eth0" });
            it.spec.baremetal_set_template = Some(serde_json::from_value(template).unwrap());
        });
        for host in ["n0", "n1"] {
            world.provision(host, ready.contains(&host));
        }
        world
    }

    fn provision(&mut self, host: &str, is_ready: bool) {
        let machine = json!({ "machine": format!("m-{host}"), "state": "active",
            "since": "2026-01-01T00:00:00Z", "ready": is_ready });
        let machine = serde_json::from_value(machine).unwrap();
        self.edit("compute", |it| {
            it.status.as_mut().unwrap().machines.insert(host.into(), machine);
        });
    }
}

#[test]
fn a_deployment_begins_when_all_of_its_hosts_have_their_machines() {
    let mut world = World::bare(json!({}), &["n0"]);
    assert_eq!(world.settle(), ["status"]);
    assert_eq!(world.condition("SetupReady"), is("False", "MachinesNotReady"));
    let words = "1 hosts of OpenStackDataPlaneNodeSet compute have no machine";
    world.says("SetupReady", &[words, ": n1."]);
    world.provision("n1", true);
    let hash = Some("hash-of-machines".to_owned());
    world.edit("compute", |it| it.status.as_mut().unwrap().bmh_ref_hash.clone_from(&hash));
    assert!(world.settle().contains(&"run first on n0,n1".to_owned()));
    world.succeeds();
    assert_eq!(world.status().bmh_ref_hashes.get("compute"), hash.as_ref());
}

#[test]
fn a_limit_leaves_out_hosts_that_have_no_machine() {
    let mut world = World::bare(json!({ "ansibleLimit": "n0" }), &["n0"]);
    assert!(world.settle().contains(&"run first on n0".to_owned()));
}

#[test]
fn no_further_run_is_made_for_a_host_whose_machine_goes_meanwhile() {
    let mut world = World::bare(json!({}), &["n0", "n1"]).at_rest();
    world.provision("n1", false);
    assert!(world.finish().settle().contains(&"run second on n0".to_owned()));
    assert_eq!(world.condition("InputReady"), is("False", "MachinesNotReady"));
    world.finish().settle();
    assert!(!world.is_over());
    world.provision("n1", true);
    assert!(world.settle().contains(&"run second on n1".to_owned()));
    world.succeeds();
}

#[test]
fn nothing_runs_on_another_system_before_the_node_is_described_with_it() {
    let mut world = World::bare(json!({}), &["n0", "n1"]).at_rest();
    world.edit("compute", |it| {
        let machine = it.status.as_mut().unwrap().machines.get_mut("n1").unwrap();
        machine.installation = Some("another".into());
    });
    assert_eq!(runs(&world.finish().settle()), ["run second on n0"]);
    assert_eq!(world.condition("InputReady"), is("False", "MachinesNotReady"));
    let machine = world.seen.node_sets["compute"].status.as_ref().unwrap().machines["n1"].clone();
    world.with_node("compute", "n1", |it| it.status.as_mut().unwrap().machine = Some(machine));
    assert_eq!(runs(&world.settle()), ["run second on n1"]);
}
