//! Deployments to hosts whose nodes are not made yet, cannot be made, go, or are others meanwhile.

use api::conditions::Severity;
use api::dataplane::condition_types::NODES_ACCEPTED;
use testkit::conditions::fault;

use super::*;

impl World {
    /// A deployment of `n0` and `n1`, of which `n1` has no node.
    fn with_one_node() -> Self {
        let mut world = Self::new();
        world.lose_nodes(&["n1"]);
        world
    }

    fn lose_nodes(&mut self, hosts: &[&'static str]) {
        self.without_nodes = hosts.to_vec();
        self.seen.nodes.get_mut("compute").unwrap().retain(|it, _| !hosts.contains(&it.as_str()));
    }

    /// The node set says that nodes cannot be made.
    fn refuse_nodes(&mut self) {
        let refused = fault(NODES_ACCEPTED, Severity::Warning, "Forbidden", "exceeded quota: q");
        self.edit("compute", |it| it.status.as_mut().unwrap().conditions.push(refused));
    }
}

#[test]
fn a_deployment_begins_when_each_of_its_hosts_has_its_node() {
    let mut world = World::with_one_node();
    assert_eq!(world.settle(), ["status"]);
    assert_eq!(world.condition("SetupReady"), is("False", "NodesNotReady"));
    let words = "1 hosts of OpenStackDataPlaneNodeSet compute have no OpenStackDataPlaneNode yet";
    world.says("SetupReady", &[words, ": n1."]);
    world.without_nodes.clear();
    assert!(world.settle().contains(&"run first on n0,n1".to_owned()));
}

#[test]
fn a_host_whose_node_cannot_be_made_or_goes_takes_no_part_and_the_others_do() {
    let mut refused = World::with_one_node();
    refused.refuse_nodes();
    let mut leaving = World::new();
    leaving.with_node("compute", "n1", |it| it.spec.leaving = Some(true));
    let mut deleted = World::new();
    let now = Time(deleted.now);
    deleted.with_node("compute", "n1", |it| it.metadata.deletion_timestamp = Some(now));
    for mut world in [refused, leaving, deleted] {
        assert!(world.run_out(|_, _| "Ok").contains(&"run first on n0".to_owned()));
        assert_eq!(world.condition("Ready"), is("True", "Ready"));
    }
    // Nothing would be run, and that would be a success.
    let mut world = World::new();
    world.refuse_nodes();
    world.lose_nodes(&["n0", "n1"]);
    world.settle();
    assert_eq!(world.condition("SetupReady"), is("False", "NodesNotReady"));
    assert!(!world.is_over());
}

/// Whether its entry still stands, and what becomes of a host.
type Going<'a> = (bool, &'a dyn Fn(&mut World));

#[test]
fn a_host_that_goes_or_becomes_another_one_meanwhile_takes_no_part_any_more() {
    let machine = |world: &mut World, installed: i64| {
        let installed = (world.now + SignedDuration::from_secs(installed)).to_string();
        let machine = json!({ "state": "active", "since": installed, "installation": "another",
            "installed": installed, "ready": true });
        world.with_node("compute", "n1", |it| {
            it.status.as_mut().unwrap().machine = serde_json::from_value(machine).unwrap();
        });
    };
    let goes: [Going<'_>; 5] = [
        (true, &|world| world.with_node("compute", "n1", |it| it.spec.leaving = Some(true))),
        (false, &|world| _ = world.edit("compute", |it| drop(it.spec.nodes.remove("n1")))),
        (true, &|world| world.lose_nodes(&["n1"])),
        (true, &|world| {
            world.lose_nodes(&["n1"]);
            world.without_nodes.clear();
        }),
        (true, &|world| machine(world, 0)),
    ];
    let mut world = World::new().at_rest();
    world.sleep(60);
    world.finish();
    for (is_listed, goes) in goes {
        let mut world = world.clone();
        goes(&mut world);
        assert_eq!(runs(&world.run_out(|_, _| "Ok")), ["run second on n0"]);
        if is_listed {
            assert_eq!(world.condition("Ready"), is("False", "BackoffLimitExceeded"));
            let lost = "1 of 2 hosts have failed for good. These were taken out or made anew since it \
                        began: n1. Create another OpenStackDataPlaneDeployment for them.";
            assert_eq!(world.message("DeploymentReady"), lost);
            let of_set = world.of_set("compute", "NodeSetDeploymentReady");
            assert_eq!(of_set, "False BackoffLimitExceeded");
        } else {
            assert_eq!(world.condition("Ready"), is("True", "Ready"));
            world.says("DeploymentReady", &["on 1 hosts"]);
        }
    }
    // A system that was there at the beginning takes part.
    machine(&mut world, -60);
    assert_eq!(runs(&world.settle()), ["run second on n0,n1"]);
}

#[test]
fn a_deployment_whose_hosts_were_all_made_anew_fails_once_its_runs_have_ended() {
    let mut world = World::with(vec![node_set("compute", &["n0"], &["first"])], json!({}));
    world.settle();
    world.sleep(60);
    world.lose_nodes(&["n0"]);
    world.without_nodes.clear();
    world.settle();
    assert!(!world.is_over(), "its run is at work on the host");
    world.finish().settle();
    assert_eq!(world.condition("Ready"), is("False", "BackoffLimitExceeded"));
    assert!(world.is_over() && world.status().node_set_hashes.is_empty());
}
