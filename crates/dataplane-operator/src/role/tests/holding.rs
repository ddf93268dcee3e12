//! The finalizers that hold nodes and roles until their inventories are deleted.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Resource;

use super::*;

impl World {
    pub(super) fn change(&mut self, kind: &str, name: &str, change: impl FnOnce(&mut ObjectMeta)) {
        if kind == "DataPlaneRole" {
            return change(self.role().meta_mut());
        }
        let node = self.seen.nodes.iter_mut().find(|it| it.name_any() == name).unwrap();
        change(Arc::make_mut(node).meta_mut());
    }

    /// Removes objects that are deleted and have no finalizers.
    pub(super) fn collect(&mut self) {
        let goes = |it: &ObjectMeta| {
            it.deletion_timestamp.is_some() && it.finalizers.iter().flatten().count() == 0
        };
        self.seen.nodes.retain(|it| !goes(it.meta()));
        self.seen.role = self.seen.role.take().filter(|it| !goes(it.meta()));
    }

    fn delete(&mut self, kind: &str, name: &str, others: &[&str]) {
        let at = Time(self.now);
        self.change(kind, name, |it| {
            it.deletion_timestamp = Some(at);
            let finalizers = it.finalizers.get_or_insert_default();
            finalizers.extend(others.iter().map(|it| (*it).to_owned()));
        });
    }

    fn delete_node(&mut self, others: &[&str]) {
        self.delete("DataPlaneNode", "n0", others);
    }

    /// Removes all other finalizers from the node.
    fn let_go(&mut self) {
        let ours = |it: &String| it == INVENTORY_FINALIZER;
        self.change("DataPlaneNode", "n0", |it| {
            it.finalizers.get_or_insert_default().retain(ours);
        });
    }
}

#[test]
fn what_gets_an_inventory_is_held_before_it_has_one() {
    let mut world = World::new();
    world.change("DataPlaneNode", "n0", |it| it.finalizers = None);
    world.change("DataPlaneRole", "compute", |it| it.finalizers = Some(vec![OTHER.into()]));
    let holds = ["hold DataPlaneNode n0", "hold DataPlaneRole compute"];
    assert_eq!(world.settle()[..2], holds);
    let role = world.seen.role.as_ref().unwrap();
    assert_eq!(role.metadata.finalizers.as_deref().unwrap(), [OTHER, INVENTORY_FINALIZER]);
}

#[test]
fn a_node_without_an_inventory_is_not_held() {
    let mut world = World::new();
    world.seen.nodes.pop();
    world.seen.nodes = vec![node("n0", "")];
    let node = world.node(0);
    (node.spec.host_name, node.spec.ansible_host) = (None, None);
    node.metadata.finalizers = None;
    let writes = world.settle();
    assert!(!writes.iter().any(|it| it.starts_with("hold")), "{writes:?}");
}

#[test]
fn a_host_gets_an_inventory_of_its_own_once_another_operator_holds_its_node_and_keeps_it() {
    let mut world = World::deployed();
    assert!(world.seen.inventories.keys().eq(["dataplanerole-compute"]));
    world.node(0).finalizers_mut().push(OTHER.into());
    assert_eq!(world.settle(), ["apply ConfigMap dataplanenode-n0"]);
    world.let_go();
    assert_eq!(world.settle(), [""; 0]);
    let writes = world.set_var("hello").settle();
    assert!(writes.contains(&"apply ConfigMap dataplanenode-n0".to_owned()), "{writes:?}");
    assert!(!writes.contains(&"apply ConfigMap dataplanenode-n1".to_owned()), "{writes:?}");
}

#[test]
fn a_node_that_was_held_a_moment_before_its_deletion_gets_its_inventory_all_the_same() {
    let mut world = World::deployed();
    world.delete_node(&[OTHER]);
    let writes = world.settle();
    assert!(writes.contains(&"apply ConfigMap dataplanenode-n0".to_owned()), "{writes:?}");
    assert_eq!(world.settle(), [""; 0]);
    world.let_go();
    let last = ["delete ConfigMap dataplanenode-n0", "release DataPlaneNode n0"];
    assert_eq!(world.settle()[..2], last);
}

#[test]
fn nodes_whose_role_is_missing_for_a_moment_get_no_inventories_for_it() {
    let mut world = World::deployed();
    let own = json!({ "ansibleSSHPrivateKeySecret": "key" });
    world.node(0).spec.node = Some(serde_json::from_value(own).unwrap());
    let role = world.seen.role.take();
    world.settle();
    world.seen.role = role;
    world.settle();
    assert!(world.seen.inventories.keys().eq(["dataplanerole-compute"]));
}

#[test]
fn a_deleted_node_takes_its_inventory_with_it_and_leaves_its_roles() {
    let mut world = World::with_own_inventories();
    world.delete_node(&[]);
    let writes = world.settle();
    assert_eq!(
        writes[..3],
        [
            "delete ConfigMap dataplanenode-n0",
            "release DataPlaneNode n0",
            "apply ConfigMap dataplanerole-compute"
        ]
    );
    assert!(!world.seen.inventories.contains_key("dataplanenode-n0"));
    assert_eq!(world.seen.nodes.len(), 1);
}

#[test]
fn an_inventory_stays_while_anybody_else_holds_its_node_and_comes_last() {
    for other in [OTHER, "foregroundDeletion", "orphan"] {
        let mut world = World::with_own_inventories();
        world.delete_node(&[other]);
        let writes = world.settle();
        assert!(!writes.iter().any(|it| it.contains("n0")), "{other}: {writes:?}");
        assert!(world.seen.inventories.contains_key("dataplanenode-n0"));
        world.let_go();
        let writes = world.settle();
        let last = ["delete ConfigMap dataplanenode-n0", "release DataPlaneNode n0"];
        assert_eq!(writes[..2], last, "{other}");
    }
}

#[test]
fn an_operator_killed_between_the_two_writes_forgets_nothing() {
    let mut world = World::with_own_inventories();
    world.delete_node(&[]);
    let plan = recorded(decide::decide(&world.seen, None, world.now));
    world.take(&plan.steps[..1]);
    world.writes.clear();
    assert_eq!(world.settle()[0], "release DataPlaneNode n0");
}

#[test]
fn a_role_and_its_nodes_deleted_together_leave_nothing() {
    let mut world = World::with_own_inventories();
    world.delete("DataPlaneRole", "compute", &[]);
    for name in ["n0", "n1"] {
        world.delete("DataPlaneNode", name, &[]);
    }
    world.settle();
    assert!(world.seen.role.is_none() && world.seen.nodes.is_empty());
    assert!(world.seen.inventories.is_empty(), "{:?}", world.seen.inventories.keys());
}

#[test]
fn a_deleted_role_leaves_its_nodes_and_their_inventories() {
    let mut world = World::with_own_inventories();
    world.delete("DataPlaneRole", "compute", &[]);
    world.settle();
    assert!(world.seen.role.is_none());
    let names: Vec<&String> = world.seen.inventories.keys().collect();
    assert_eq!(names, ["dataplanenode-n0", "dataplanenode-n1"]);
    assert_eq!(world.condition(0, "InputReady"), is("False", "RoleNotFound"));
}

#[test]
fn an_inventory_that_would_go_with_its_owner_is_written_anew() {
    let mut world = World::with_own_inventories();
    world.seen.inventories.get_mut("dataplanenode-n1").unwrap().has_owner = true;
    assert_eq!(world.settle(), ["apply ConfigMap dataplanenode-n1"]);
}
