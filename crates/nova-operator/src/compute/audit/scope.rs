//! Whose hosts share audits: those of a role or of a node set, or the host of a node on its own.

use api::ansibleee::AnsibleEe;
use api::dataplane::{Node, NodeSet, Role};
use kube::{Resource, ResourceExt};
use operator_core::object_key::Key;

use crate::group::{GroupKey, group_key};

/// The hosts that share audits.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Scope {
    /// Those of the nodes of a role or of a node set.
    Group(GroupKey),
    /// That of a node on its own.
    Node(Key),
}

impl Scope {
    /// Returns the scope of a node.
    pub fn of_node(node: &Node) -> Self {
        group_key(node).map_or_else(|| Self::Node(Key::of(node)), Self::Group)
    }

    /// Returns the scope of an audit, which its owner is; `None` for another run.
    pub fn of_run(run: &AnsibleEe) -> Option<Self> {
        let namespace = run.namespace().unwrap_or_default();
        run.owner_references().iter().find_map(|it| {
            let key = Key::new(&namespace, &it.name);
            match &*it.kind {
                kind if kind == Role::kind(&()) => Some(Self::Group(GroupKey::Role(key))),
                kind if kind == NodeSet::kind(&()) => Some(Self::Group(GroupKey::NodeSet(key))),
                kind if kind == Node::kind(&()) => Some(Self::Node(key)),
                _ => None,
            }
        })
    }

    /// Returns the key in the workqueue: the name of no object is like that of a group there.
    pub fn key(&self) -> Key {
        match self {
            Self::Group(key) => key.work_key(),
            Self::Node(key) => key.clone(),
        }
    }

    /// Returns the scope of a key in the workqueue.
    pub fn of_key(key: &Key) -> Self {
        GroupKey::of_work_key(key).map_or_else(|| Self::Node(key.clone()), Self::Group)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_role_a_node_set_and_a_node_of_one_name_are_three_scopes() {
        let key = || Key::new("ns", "a");
        let groups = [GroupKey::Role(key()), GroupKey::NodeSet(key())];
        let scopes: Vec<Scope> =
            groups.into_iter().map(Scope::Group).chain([Scope::Node(key())]).collect();
        let keys: BTreeSet<Key> = scopes.iter().map(Scope::key).collect();
        assert_eq!(keys.len(), scopes.len());
        for scope in scopes {
            assert_eq!(Scope::of_key(&scope.key()), scope);
        }
    }
}
