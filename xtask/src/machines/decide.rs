//! Decides the next steps, so that exactly the machines run that Ironic has deployed.

use std::collections::BTreeSet;

/// A node that Ironic has deployed with a config drive.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Node {
    pub(super) uuid: String,
    /// Its name, else its UUID.
    pub(super) name: String,
    /// The Unix time when it became active, which distinguishes two deployments of a machine.
    pub(super) since: u64,
    pub(super) is_on: bool,
}

impl Node {
    /// Returns the identity of this deployment of the machine.
    pub(super) fn deployment(&self) -> String {
        format!("{}-{}", self.uuid, self.since)
    }

    /// Returns the name of its pod.
    pub(super) fn pod(&self) -> String {
        format!("machine-{}", self.name)
    }
}

/// A running machine.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Pod {
    pub(super) name: String,
    /// The deployment that it booted from.
    pub(super) deployment: String,
    /// Whether it is being deleted.
    pub(super) is_ending: bool,
}

/// A step.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Step<'a> {
    /// Deletes a machine's pod.
    Halt(&'a str),
    /// Removes the files of a deployment.
    Wipe(&'a str),
    /// Boots a machine.
    Boot(&'a Node),
}

/// Returns the next steps; empty when nothing is left to do or only deletions are pending.
///
/// `disks` are the deployments that have files on the disk.
pub(super) fn decide<'a>(nodes: &'a [Node], pods: &'a [Pod], disks: &'a [String]) -> Vec<Step<'a>> {
    let deployed: BTreeSet<String> = nodes.iter().map(Node::deployment).collect();
    let is_wanted =
        |pod: &Pod| nodes.iter().any(|it| it.is_on && it.deployment() == pod.deployment);
    let surplus = pods.iter().filter(|it| !it.is_ending && !is_wanted(it));
    let in_use = |disk: &String| pods.iter().any(|it| it.deployment == *disk);
    let forgotten = disks.iter().filter(|it| !deployed.contains(*it) && !in_use(it));
    // Pod names are unique, so a machine's old pod must be gone first.
    let has_pod = |node: &Node| pods.iter().any(|it| it.name == node.pod());
    let down = nodes.iter().filter(|it| it.is_on && !has_pod(it));
    surplus
        .map(|it| Step::Halt(&it.name))
        .chain(forgotten.map(|it| Step::Wipe(it)))
        .chain(down.map(Step::Boot))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, since: u64) -> Node {
        Node { uuid: format!("uuid-{name}"), name: name.to_owned(), since, is_on: true }
    }

    fn pod(name: &str, since: u64) -> Pod {
        let node = node(name, since);
        Pod { name: node.pod(), deployment: node.deployment(), is_ending: false }
    }

    #[test]
    fn a_deployed_machine_boots_once() {
        let nodes = [node("a", 1)];
        assert_eq!(decide(&nodes, &[], &[]), [Step::Boot(&nodes[0])]);
        assert_eq!(decide(&nodes, &[pod("a", 1)], &[nodes[0].deployment()]), []);
    }

    #[test]
    fn what_is_undeployed_goes_and_leaves_nothing() {
        let (mut gone, disks) = (pod("a", 1), [node("a", 1).deployment()]);
        assert_eq!(decide(&[], &[gone.clone()], &disks), [Step::Halt("machine-a")]);
        gone.is_ending = true;
        assert_eq!(decide(&[], &[gone], &disks), []);
        assert_eq!(decide(&[], &[], &disks), [Step::Wipe("uuid-a-1")]);
    }

    #[test]
    fn a_machine_that_is_off_ends_and_keeps_what_it_has() {
        let (nodes, disks) = ([Node { is_on: false, ..node("a", 1) }], [node("a", 1).deployment()]);
        let running = [pod("a", 1)];
        assert_eq!(decide(&nodes, &running, &disks), [Step::Halt("machine-a")]);
        assert_eq!(decide(&nodes, &[], &disks), []);
        let nodes = [node("a", 1)];
        assert_eq!(decide(&nodes, &[], &disks), [Step::Boot(&nodes[0])]);
    }

    #[test]
    fn a_machine_that_was_deployed_anew_boots_when_its_old_self_is_gone() {
        let (nodes, mut old) = ([node("a", 2)], pod("a", 1));
        assert_eq!(decide(&nodes, &[old.clone()], &[]), [Step::Halt("machine-a")]);
        old.is_ending = true;
        assert_eq!(decide(&nodes, &[old], &[]), []);
        assert_eq!(decide(&nodes, &[], &[]), [Step::Boot(&nodes[0])]);
    }

    #[test]
    fn one_machine_does_not_disturb_another() {
        let nodes = [node("a", 1), node("b", 1)];
        let (pods, disks) = ([pod("b", 1)], [nodes[1].deployment()]);
        assert_eq!(decide(&nodes, &pods, &disks), [Step::Boot(&nodes[0])]);
    }
}
