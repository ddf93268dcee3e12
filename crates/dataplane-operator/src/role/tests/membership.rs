//! Nodes that join a role, move between roles, leave, lose their role, or have none.

use super::*;

fn role(name: &str, services: &[&str]) -> Arc<Role> {
    let spec = json!({
        "preProvisioned": true,
        "services": services,
        "deployStrategy": { "deploy": true },
        "nodeTemplate": { "ansibleSSHPrivateKeySecret": "key" },
    });
    Arc::new(objects::new(NAMESPACE, name, &spec))
}

impl World {
    /// The group of another role, as the operator sees it once these nodes name it.
    fn of_role(name: &str, services: &[&str], nodes: Vec<Arc<Node>>) -> Self {
        let mut world = Self::new();
        let own = world.seen.services["run-os"].clone();
        world.seen.services.insert("own".into(), own);
        world.seen.group = NodeGroup::Role(name.into());
        world.seen.role = Some(role(name, services));
        world.seen.nodes = nodes;
        for node in &mut world.seen.nodes {
            let node = Arc::make_mut(node);
            node.spec.role = Some(name.into());
        }
        world
    }

    /// The group of a node that names no role.
    fn alone(services: &[&str]) -> Self {
        let mut world = Self::new();
        let spec = json!({
            "ansibleHost": "192.0.2.10",
            "services": services,
            "deployStrategy": { "deploy": true },
            "node": { "ansibleSSHPrivateKeySecret": "key" },
        });
        world.seen.group = NodeGroup::Node("n0".into());
        world.seen.role = None;
        world.seen.nodes = vec![Arc::new(objects::new(NAMESPACE, "n0", &spec))];
        world
    }

    /// Removes a node from the group, in its present state.
    fn take_out(&mut self, name: &str) -> Arc<Node> {
        let at = self.seen.nodes.iter().position(|it| it.name_any() == name).unwrap();
        self.seen.nodes.remove(at)
    }
}

#[test]
fn a_node_that_comes_to_a_deployed_role_is_deployed_alone_and_nobody_else_is_touched() {
    let mut world = World::deployed();
    world.seen.nodes.push(node("n2", "192.0.2.12"));
    assert_eq!(runs(&world.settle()), ["run install-os on n2"]);
    assert_eq!(world.condition(2, "Ready"), is("False", "Deploying"));
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
    assert!(world.role_message().starts_with("2/3 nodes are ready."), "{}", world.role_message());
    world.deploy();
    assert_eq!(world.condition(2, "Ready"), is("True", "Ready"));
}

#[test]
fn a_node_that_leaves_runs_nothing_and_the_role_counts_without_it() {
    let mut world = World::deployed();
    world.take_out("n1");
    let writes = world.settle();
    assert_eq!(writes, ["apply ConfigMap dataplanerole-compute", "status DataPlaneRole compute"]);
    assert_eq!(world.role_message(), "1/1 nodes are ready.");
}

#[test]
fn a_node_that_is_being_deleted_is_left_as_it_is() {
    let mut world = World::with_own_inventories();
    let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(world.now);
    world.node(1).metadata.deletion_timestamp = Some(now);
    let writes = world.set_var("hello").settle();
    assert_eq!(runs(&writes), ["run install-os on n0"]);
    // Except for its inventory, which no other finalizer holds.
    let of_n1: Vec<&String> = writes.iter().filter(|it| it.contains("n1")).collect();
    assert_eq!(of_n1, ["delete ConfigMap dataplanenode-n1", "release DataPlaneNode n1"]);
}

#[test]
fn a_node_that_moves_is_deployed_only_what_its_new_role_has_beside() {
    let mut before = World::deployed();
    let moved = before.take_out("n0");
    let mut after = World::of_role("storage", &["run-os", "own"], vec![moved]);
    assert_eq!(runs(&after.settle()), ["run own on n0"]);
    after.deploy();
    assert_eq!(after.condition(0, "Ready"), is("True", "Ready"));
    let status = after.seen.nodes[0].status.clone().unwrap();
    let services: Vec<&str> = status.services.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(services, ["run-os", "own"]);
    assert_eq!(status.observed_role.unwrap().name, "storage");
    // Those that stay are unchanged, and a node that returns has lost nothing but what changed.
    assert_eq!(runs(&before.settle()), [""; 0]);
    assert_eq!(before.condition(0, "Ready"), is("True", "Ready"));
}

#[test]
fn a_node_that_moves_in_the_middle_of_a_run_begins_anew_under_its_new_role() {
    let mut before = World::new().at_rest();
    let moved = before.take_out("n0");
    let mut after = World::of_role("storage", &["install-os"], vec![moved]);
    // The scheduler admits it when the old run has ended: both name the same address.
    assert_eq!(runs(&after.settle()), ["run install-os on n0"]);
    assert_eq!(after.seen.runs[0].spec.hosts[0].address, before.seen.runs[0].spec.hosts[0].address);
    assert_ne!(after.seen.runs[0].name_any(), before.seen.runs[0].name_any());
    before.finish(&[("n0", "Failed")]).settle();
    let next = before.seen.runs.last().unwrap().name_any();
    assert_eq!(before.role_message(), format!("0/1 nodes are ready. n1: runs {next}."));
    after.deploy();
    assert_eq!(after.condition(0, "Ready"), is("True", "Ready"));
}

#[test]
fn a_node_that_moves_in_the_middle_of_a_redeployment_is_deployed_again_with_the_former_inputs_too()
{
    for is_deployed_at_once in [true, false] {
        let mut before = World::deployed();
        before.set_var("hello").settle();
        let moved = before.take_out("n0");
        let mut after = World::of_role("compute2", &["install-os", "run-os"], vec![moved]);
        if !is_deployed_at_once {
            after.set_deploy(false).settle();
            assert_eq!(after.condition(0, "Ready").0, "False");
            after.set_deploy(true);
        }
        assert_eq!(runs(&after.settle()), ["run install-os on n0"]);
        after.finish(&[]);
        assert_eq!(runs(&after.settle()), ["run run-os on n0"]);
        after.deploy();
        assert_eq!(after.condition(0, "UpToDate"), is("True", "UpToDate"));
    }
}

#[test]
fn a_role_that_is_deleted_leaves_its_nodes_as_they_are_and_its_return_runs_nothing() {
    let mut world = World::new();
    let own = world.node(1);
    own.spec.deploy_strategy = Some(serde_json::from_value(json!({ "deploy": true })).unwrap());
    world.deploy();
    let role = world.seen.role.take();
    world.settle();
    for node in [0, 1] {
        assert_eq!(world.condition(node, "Ready"), is("True", "Ready"));
    }
    assert_eq!(world.condition(0, "InputReady"), is("False", "RoleNotFound"));
    assert_eq!(world.condition(0, "UpToDate"), is("Unknown", "RoleUnknown"));
    world.seen.role = role;
    // Recreated under its name: another object.
    world.role().metadata.uid = Some("other".into());
    assert_eq!(runs(&world.settle()), [""; 0]);
    assert_eq!(world.condition(0, "UpToDate"), is("True", "UpToDate"));
}

#[test]
fn a_role_that_is_deleted_in_the_middle_of_a_run_is_waited_for() {
    let mut world = World::new().at_rest();
    let role = world.seen.role.take();
    // Its runs are deleted with it.
    world.seen.runs.clear();
    assert_eq!(world.settled(0, "Ready"), is("False", "RoleNotFound"));
    world.seen.role = role;
    assert_eq!(runs(&world.settle()), ["run install-os on n0,n1"]);
    world.deploy();
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
}

#[test]
fn a_node_without_a_role_gets_the_services_that_it_lists() {
    let mut world = World::alone(&["install-os", "run-os"]);
    assert_eq!(runs(&world.settle()), ["run install-os on n0"]);
    let run = &world.seen.runs[0];
    let owner = &run.owner_references()[0];
    assert_eq!((owner.kind.as_str(), owner.uid.as_str()), ("OpenStackDataPlaneNode", "n0"));
    let spec = serde_json::to_string(&run.spec).unwrap();
    assert!(spec.contains(r#""name":"dataplanenode-n0""#), "{spec}");
    assert_eq!(runs(&world.finish(&[]).settle()), ["run run-os on n0"]);
    world.deploy();
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
    assert_eq!(world.condition(0, "UpToDate"), is("True", "UpToDate"));
    assert_eq!(world.pass().steps, []);
}

#[test]
fn a_node_with_neither_a_role_nor_services_is_told_so() {
    let mut world = World::alone(&[]);
    assert_eq!(runs(&world.settle()), [""; 0]);
    assert_eq!(world.condition(0, "Ready"), is("False", "RoleNotNamed"));
    world.node(0).spec.services = vec!["no-such".into()];
    assert_eq!(world.settled(0, "Ready"), is("False", "ServiceNotFound"));
}

#[test]
fn a_service_of_a_node_that_cannot_be_read_is_told_with_its_field_and_is_not_made_anew() {
    let mut world = World::alone(&["install-os"]);
    world.seen.services.clear();
    let why = "spec.playbook: cannot be read; expected a string";
    world.seen.unreadable.insert("install-os".into(), why.into());
    assert_eq!(runs(&world.settle()), [""; 0]);
    assert_eq!(world.condition(0, "Ready"), is("False", "ServiceUnreadable"));
    let expected = "install-os, listed in spec.services of OpenStackDataPlaneNode";
    world.says(0, "Ready", &[expected, why]);
}

#[test]
fn a_default_service_that_a_node_lists_is_created() {
    let mut world = World::alone(&["install-os"]);
    world.seen.services.clear();
    let plan = recorded(decide::decide(&world.seen, None, world.now));
    let names: Vec<&str> = plan.steps.iter().map(|it| it.target.name.as_str()).collect();
    assert_eq!(names, ["install-os"]);
}

#[test]
fn a_refused_run_of_a_node_without_a_role_is_told_on_it_and_heals() {
    let mut world = World::alone(&["install-os"]);
    let is_run = |step: &Step| matches!(step.write, Write::Create { .. });
    world.refused_pass(is_run);
    assert_eq!(world.condition(0, "WritesAccepted"), is("False", "Forbidden"));
    assert_eq!(world.condition(0, "Ready"), is("False", "Forbidden"));
    world.writes.clear();
    world.refused_pass(is_run);
    assert_eq!(world.writes, [""; 0], "told once");
    world.deploy();
    let status = world.seen.nodes[0].status.as_ref().unwrap();
    assert_eq!(find(&status.conditions, "WritesAccepted"), None);
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
}

#[test]
fn a_node_that_is_taken_out_of_its_role_stays_as_it_is() {
    let mut before = World::deployed();
    let mut node = before.take_out("n0");
    Arc::make_mut(&mut node).spec.role = None;
    let mut world = World::alone(&[]);
    world.seen.nodes = vec![node];
    assert_eq!(world.settle(), ["status DataPlaneNode n0"]);
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
    assert_eq!(world.condition(0, "InputReady"), is("False", "RoleNotNamed"));
    assert_eq!(world.condition(0, "UpToDate"), is("Unknown", "RoleUnknown"));
}

#[test]
fn a_node_that_gets_a_role_keeps_what_was_deployed_to_it() {
    let mut alone = World::alone(&["install-os", "run-os"]);
    alone.deploy();
    let mut node = alone.take_out("n0");
    Arc::make_mut(&mut node).spec.services.clear();
    let mut world = World::of_role("compute", &["install-os", "run-os"], vec![node]);
    assert_eq!(runs(&world.settle()), [""; 0]);
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
}
