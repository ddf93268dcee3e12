//! Network attachments that are missing, not served, or differ between a role and its nodes.

use super::*;

impl World {
    fn role_attaches(&mut self, names: &[&str]) {
        self.role().spec.network_attachments = names.iter().map(|it| (*it).to_owned()).collect();
    }

    fn node_attaches(&mut self, node: usize, names: &[&str]) {
        let names = names.iter().map(|it| (*it).to_owned());
        self.node(node).spec.network_attachments = names.collect();
    }

    fn networks(&mut self, names: &[&str]) {
        self.seen.networks = Networks::Known(names.iter().map(|it| (*it).to_owned()).collect());
    }

    /// The inputs of a node are not ready for this reason, of which the message has these words.
    #[track_caller]
    fn lacks(&self, node: usize, reason: &str, words: &[&str]) {
        assert_eq!(self.condition(node, "InputReady"), is("False", reason));
        self.says(node, "InputReady", words);
    }
}

#[test]
fn a_missing_attachment_is_named_on_role_and_nodes_and_heals_when_it_appears() {
    let mut world = World::new();
    world.role_attaches(&["ctlplane", "storage"]);
    world.networks(&["ctlplane"]);
    world.settle();
    assert_eq!(world.role_reason("InputReady").as_deref(), Some("NetworkAttachmentNotFound"));
    let words = ["NetworkAttachmentDefinition storage", "OpenStackDataPlaneRole compute"];
    world.lacks(1, "NetworkAttachmentNotFound", &words);
    assert!(!world.message(1, "InputReady").contains("Definition ctlplane"));
    assert!(world.seen.runs.is_empty());
    world.networks(&["ctlplane", "storage"]);
    world.deploy();
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
    assert_eq!(world.seen.runs[0].spec.network_attachments, ["ctlplane", "storage"]);
}

#[test]
fn a_nodes_own_attachment_concerns_that_node_alone() {
    let mut world = World::new();
    world.node_attaches(0, &["storage"]);
    world.networks(&[]);
    world.deploy();
    world.lacks(0, "NetworkAttachmentNotFound", &[]);
    assert_eq!(world.condition(1, "Ready"), is("True", "Ready"));
}

#[test]
fn a_cluster_without_the_kind_is_told_and_looked_at_again() {
    let mut world = World::new();
    world.role_attaches(&["ctlplane"]);
    world.seen.networks = Networks::NotServed;
    world.settle();
    world.lacks(0, "NetworkAttachmentsNotServed", &["k8s.cni.cncf.io/v1", "Multus"]);
    let again = world.pass().requeue_after.unwrap();
    assert!(again <= std::time::Duration::from_secs(30), "{again:?}");
    world.role_attaches(&[]);
    world.seen.networks = Networks::NotNamed;
    world.deploy();
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
}

#[test]
fn a_role_and_its_nodes_must_agree() {
    let mut world = World::new();
    world.role_attaches(&["a", "b"]);
    world.node_attaches(0, &["b", "a"]);
    world.networks(&["a", "b"]);
    world.deploy();
    world.lacks(0, "NetworkAttachmentsDiffer", &["(b, a)", "(a, b)"]);
    assert_eq!(world.condition(1, "Ready"), is("True", "Ready"));
    world.node_attaches(0, &["a", "b"]);
    world.deploy();
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
}

#[test]
fn nodes_of_a_role_without_a_list_follow_the_first_that_has_one() {
    let mut world = World::new();
    world.node_attaches(0, &["a"]);
    world.node_attaches(1, &["b"]);
    world.networks(&["a", "b"]);
    world.deploy();
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
    world.lacks(1, "NetworkAttachmentsDiffer", &["OpenStackDataPlaneNode n0 (a)"]);
    world.node_attaches(1, &[]);
    world.deploy();
    assert_eq!(world.condition(1, "Ready"), is("True", "Ready"));
}
