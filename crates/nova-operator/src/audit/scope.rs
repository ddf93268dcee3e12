//! Whose hosts share audits: those of a role or of a node set, or the host of a node on its own.

use api::ansibleee::AnsibleEe;
use api::dataplane::{Node, NodeSet, Role};
use kube::{Resource, ResourceExt};
use operator_core::object_key::Key;

use crate::group::{GroupKey, group_key};

/// Separates the kind from the name in the key of a scope; no name of an object has it.
const SEPARATOR: char = '/';

/// The hosts that share audits.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Scope {
    /// Those of the nodes of a role.
    Role(Key),
    /// Those of the nodes of a node set.
    NodeSet(Key),
    /// That of a node on its own.
    Node(Key),
}

impl Scope {
    /// Returns the scope of a node.
    pub fn of_node(node: &Node) -> Self {
        match group_key(node) {
            Some(GroupKey::Role(key)) => Self::Role(key),
            Some(GroupKey::NodeSet(key)) => Self::NodeSet(key),
            None => Self::Node(Key::of(node)),
        }
    }

    /// Returns the scope of an audit, which its owner is; `None` for another run.
    pub fn of_run(run: &AnsibleEe) -> Option<Self> {
        let namespace = run.namespace().unwrap_or_default();
        run.owner_references().iter().find_map(|it| {
            let key = Key::new(&namespace, &it.name);
            match &*it.kind {
                kind if kind == Role::kind(&()) => Some(Self::Role(key)),
                kind if kind == NodeSet::kind(&()) => Some(Self::NodeSet(key)),
                kind if kind == Node::kind(&()) => Some(Self::Node(key)),
                _ => None,
            }
        })
    }

    /// Returns the key in the workqueue.
    pub fn key(&self) -> Key {
        let (kind, key) = match self {
            Self::Role(key) => ("role", key),
            Self::NodeSet(key) => ("nodeset", key),
            Self::Node(key) => ("node", key),
        };
        Key::new(&key.namespace, format!("{kind}{SEPARATOR}{}", key.name))
    }

    /// Returns the scope of a key in the workqueue; `None` for the key of something else.
    pub fn of_key(key: &Key) -> Option<Self> {
        let (kind, name) = key.name.split_once(SEPARATOR)?;
        let object = Key::new(&key.namespace, name);
        match kind {
            "role" => Some(Self::Role(object)),
            "nodeset" => Some(Self::NodeSet(object)),
            "node" => Some(Self::Node(object)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_role_a_node_set_and_a_node_of_one_name_are_three_scopes() {
        let key = || Key::new("ns", "a");
        let scopes = [Scope::Role(key()), Scope::NodeSet(key()), Scope::Node(key())];
        assert_eq!(BTreeSet::from(scopes.clone().map(|it| it.key())).len(), scopes.len());
        for scope in scopes {
            assert_eq!(Scope::of_key(&scope.key()), Some(scope));
        }
        assert_eq!(Scope::of_key(&Key::new("ns", "a")), None);
    }
}
